"""Where the progress of a run goes.

harbor makes the verifiers itself, from an import path and plain data, so the callback cannot be handed to them; tasks
of an event loop inherit the context they are started in.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

REPORT: ContextVar[Callable[[str], None] | None] = ContextVar("orbit_progress", default=None)
"""Gets one line whenever something long begins."""
