"""Verification of an artifact: works without harbor and without a container engine."""
