"""Making a run directory fit for harbor to go on with.

harbor keeps every trial that has a result, also one that was cancelled, and cannot read files that a kill cut short:
it writes them in place. So before a job is created, what is damaged or worth repeating is put out of its way.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harbor.models.job.config import JobConfig

from orbit.execution.outcomes import Disposition, classify, dispose
from orbit.records import write_bytes

_TRIAL_FILES = ("config.json", "lock.json", "result.json")


def make_resumable(config: JobConfig, report: Callable[[str], None]) -> None:
    """Remove trials without a usable result, and our records of them, and refresh harbor's own job files.

    `run.json` already says that the same is asked, so harbor's stricter comparison, which also refuses another number
    of concurrent trials, is satisfied by writing its configuration anew. It is needed: without one, harbor does not
    look for earlier trials and would run them again.
    """
    job_dir = config.jobs_dir / config.job_name
    if not job_dir.is_dir():
        return
    write_bytes(job_dir / "config.json", config.model_dump_json(indent=4).encode())
    (job_dir / "lock.json").unlink(missing_ok=True)
    if _read(job_dir / "result.json") is None:
        (job_dir / "result.json").unlink(missing_ok=True)
    for trial_dir in sorted(path for path in job_dir.iterdir() if path.is_dir()):
        reason = reason_to_repeat(trial_dir)
        if reason is not None:
            report(f"{trial_dir.name}: repeating it ({reason})")
            shutil.rmtree(trial_dir)
            shutil.rmtree(config.jobs_dir / "trials" / trial_dir.name, ignore_errors=True)


def reason_to_repeat(trial_dir: Path) -> str | None:
    """Why a trial has to be made again, None if its result stands."""
    contents = {name: _read(trial_dir / name) for name in _TRIAL_FILES}
    result = contents["result.json"]
    if not isinstance(result, dict) or None in contents.values():
        return "it was interrupted"
    error = result.get("exception_info")
    if not error:
        return None
    ending = classify(error["exception_type"], error["exception_message"])
    if dispose(ending, has_artifact=True) is Disposition.HARNESS_ERROR:
        return f"it ended with {error['exception_type']}"
    return None


def _read(path: Path) -> Any:
    """The JSON of a file, None if it is missing or cut short."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
