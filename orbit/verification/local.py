"""Verification on this machine: each framework in its own environment, candidates in the local sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orbit.environments import environment_python
from orbit.frameworks import find_framework
from orbit.run_directory import new_run_directory
from orbit.tasks import find_task
from orbit.verification.pipeline import VerifyOptions, verify
from orbit.verification.sandbox import LocalExecutor
from orbit.verification.verdict import Verdict


def local_executor(progress: Callable[[str], None] | None = None) -> LocalExecutor:
    """Runs artifacts in the local sandbox; a framework's environment is made when it is first needed."""
    return LocalExecutor(lambda _role, name: environment_python(find_framework(name), progress=progress))


def verify_file(
    solution: Path,
    task_name: str,
    framework_name: str,
    *,
    out_dir: Path | None = None,
    options: VerifyOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[Verdict, Path]:
    """Verify a file, everything given by name.

    Args:
        solution: the artifact.
        task_name: number, id or suite/id.
        framework_name: the framework that it must use.
        out_dir: receives verdict, outputs and logs; a new directory under `runs/` if None.
        options: contract, probes, pairs, seed.
        progress: receives a line whenever something long begins.

    Returns:
        The verdict, and where `verdict.json` lies.

    Raises:
        UsageError: a name is unknown, or `out_dir` holds files.
        SetupError: the framework's environment cannot be made.
    """
    task, framework = find_task(task_name), find_framework(framework_name)
    directory = new_run_directory("verify", out_dir)
    verdict = verify(
        solution,
        task,
        framework,
        executor=local_executor(progress),
        out_dir=directory,
        options=options,
        progress=progress,
    )
    return verdict, directory / "verdict.json"
