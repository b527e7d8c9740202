"""Raises while it is imported."""

raise RuntimeError("raised at import")
