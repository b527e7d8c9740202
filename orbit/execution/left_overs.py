"""A mark for every run in containers, so that the next command of any kind can clean up after one that was killed.

A mark is a small file in the user's cache: made before the run's first container, removed when its last one is gone.
Looking for marks costs one directory listing; an engine is asked only about a mark whose process has ended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from orbit.errors import SetupError
from orbit.paths import cache_dir


def marks_dir() -> Path:
    """Where the marks lie."""
    return cache_dir() / "container-runs"


def mark(run_id: str, program: str) -> None:
    """Say that this process is about to make containers with `docker` or `podman`."""
    from orbit.execution.orphans import owner
    from orbit.images import engine_host_variable
    from orbit.records import write_json

    host = os.environ.get(engine_host_variable(program))
    data = {"schema_version": 1, "run_id": run_id, "program": program, "host": host, "owner": owner()}
    write_json(marks_dir() / f"{run_id}.json", data)


def unmark(run_id: str) -> None:
    """Say that nothing of the run is left."""
    (marks_dir() / f"{run_id}.json").unlink(missing_ok=True)


def take_down(report: Callable[[str], None]) -> None:
    """Remove the containers and networks of marked runs whose process has ended."""
    try:
        paths = sorted(marks_dir().glob("*.json"))
    except OSError:
        return
    for path in paths:
        _take_down(path, report)


def _take_down(path: Path, report: Callable[[str], None]) -> None:
    from orbit.execution import orphans

    try:
        data = json.loads(path.read_text())
        run_id, program, host, owner = (data[name] for name in ("run_id", "program", "host", "owner"))
    except FileNotFoundError:
        return
    except (OSError, ValueError, LookupError, TypeError):
        report(f"{path}: not a mark of a run; delete it")
        return
    if orphans.is_alive(owner):
        return
    try:
        orphans.remove_run(run_id, report, orphans.Engine(program, host))
    except SetupError as error:
        report(f"containers of run {run_id} may be left behind: {error}; delete {path} if that engine is gone for good")
        return
    path.unlink(missing_ok=True)
