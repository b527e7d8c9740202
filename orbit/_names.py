"""Answering an unknown name with the near ones."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from orbit.errors import UsageError


def unknown_name(kind: str, name: str, known: Sequence[str]) -> UsageError:
    """The error for a name that does not exist: the near matches if there are any, else all names."""
    lowered = {item.lower(): item for item in known}
    close = [lowered[item] for item in get_close_matches(name.lower(), list(lowered), n=3, cutoff=0.5)]
    contained = [item for item in known if name and name.lower() in item.lower() and item not in close]
    near = (close + contained)[:3]
    if near:
        return UsageError(f"unknown {kind} {name!r}; did you mean {' or '.join(near)}?")
    return UsageError(f"unknown {kind} {name!r}; known: {', '.join(known) or 'none'}")
