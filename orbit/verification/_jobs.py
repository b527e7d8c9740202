"""A run as files, a job for the runner's parent, and an answer; the same wherever the run takes place."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from orbit.errors import HarnessError
from orbit.records import write_bytes, write_json
from orbit.verification import _values, runner
from orbit.verification.execution import Execution, ExecutionRequest, ExecutionStatus, Limits
from orbit.verification.verdict import Sandbox

SOURCE_LIMIT = 2**20
SCRATCH_BYTES = 2**30
START_SEC = 300.0

_OUTPUTS = ("stdout.txt", "stderr.txt", "result.npz", "provenance.json")


@dataclass(frozen=True)
class RunFiles:
    """What a run needs at the place where it runs.

    Attributes:
        files: path below the run's directory to content; what lies under `child/` is for the child to read.
        command: starts the runner's parent, which writes `out/` below the run's directory.
    """

    files: dict[str, bytes]
    command: list[str]


def container_run(
    request: ExecutionRequest,
    *,
    python: str,
    imports: Sequence[str],
    directory: PurePosixPath,
    adapter: Path | None = None,
    gid: int | None = None,
    library_path: str | None = None,
) -> RunFiles:
    """One run as files to copy into a container, at `directory`, and the command to start there as root.

    Afterwards `collect` turns `directory/out`, copied back, into an `Execution`.

    Args:
        request: the run.
        python: the interpreter in the container, for parent and child.
        imports: modules of the bare framework.
        directory: where in the container the files will lie; must not exist before.
        adapter: the framework's provenance adapter, on the host.
        gid: group of the child; the reference's environment can be closed to all others.
        library_path: `LD_LIBRARY_PATH`, should the interpreter need one.

    Raises:
        SourceError: the artifact cannot be read.
    """
    child = directory / "child"
    scratch = str(directory / "scratch")
    place = {
        "output_dir": str(directory / "out"),
        "command": [*child_command(python, child), "{orders}", "{messages}"],
        "wrapped": False,
        "env": environment(python, scratch, request.limits, library_path),
        "cpus": None,
        "scratch": scratch,
        "work_dir": None,
        "lifeline": False,
        "drop_uid": True,
        "gid": gid,
        "sandbox": Sandbox(kind="container", network=False, unprivileged=True).model_dump(),
    }
    files = {f"child/{name}": content for name, content in child_files(request, adapter).items()}
    job = make_job(request, child, imports, place, n_processes=request.limits.n_processes, adapter=adapter)
    files["job.json"] = json.dumps(job).encode()
    return RunFiles(files, [python, "-I", "-B", str(child / "runner.pyz"), "parent", str(directory / "job.json")])


class SourceError(Exception):
    """The artifact is not a file that could be run: a load error of the candidate."""


def read_source(path: Path) -> bytes:
    """The artifact's bytes; never through a link, which may lead from a collected artifact to a file of the host.

    Raises:
        SourceError: it is missing, not a regular file, or too long.
    """
    try:
        descriptor = _values.open_regular(path)
    except OSError as error:
        reason = "is a symbolic link; give the file itself" if error.errno == errno.ELOOP else error.strerror
        raise SourceError(f"{path.name}: {reason}") from error
    except ValueError as error:
        raise SourceError(f"{path.name}: {error}") from error
    with os.fdopen(descriptor, "rb") as stream:
        source = stream.read(SOURCE_LIMIT + 1)
    if len(source) > SOURCE_LIMIT:
        raise SourceError(f"{path.name}: has more than {SOURCE_LIMIT} bytes")
    return source


def child_files(request: ExecutionRequest, adapter: Path | None) -> dict[str, bytes]:
    files = {"runner.pyz": runner.bundle(), f"work/{request.solution.name}": read_source(request.solution)}
    files |= {f"config/{name}": content for name, content in _values.config_files(request.config).items()}
    if adapter is not None and request.provenance:
        files["adapter.py"] = adapter.read_bytes()
    return files


def child_command(python: Path | str, child: PurePosixPath | Path) -> list[str]:
    return [str(python), "-I", "-B", str(child / "runner.pyz"), "child"]


def make_job(
    request: ExecutionRequest,
    child: PurePosixPath | Path,
    imports: Sequence[str],
    place: dict[str, Any],
    *,
    n_processes: int,
    adapter: Path | None,
) -> dict[str, Any]:
    """The job as documented in `runner`; `place` has what depends on where it runs."""
    limits = request.limits
    rlimits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": SCRATCH_BYTES,
        "RLIMIT_NOFILE": 4096,
        "RLIMIT_NPROC": n_processes,
        # XLA reserves far more addresses than it uses, so the real limit is on resident memory, watched by the parent.
        "RLIMIT_AS": 2 * limits.memory_bytes + 16 * 2**30,
    }
    setup = {
        "imports": list(imports),
        "config": str(child / "config"),
        "solution": str(child / "work" / request.solution.name),
        "adapter": str(child / "adapter.py") if adapter is not None and request.provenance else None,
        "rlimits": rlimits,
    }
    bounds = {
        "timeout_sec": limits.timeout_sec,
        "start_sec": START_SEC,
        "memory_bytes": limits.memory_bytes,
        "output_bytes": limits.output_bytes,
        "log_bytes": limits.log_bytes,
    }
    return {"schema_version": 1, "name": request.name, "role": request.role, "limits": bounds, "setup": setup, **place}


def environment(python: Path | str, home: str, limits: Limits, library_path: str | None) -> dict[str, str]:
    """The child's whole environment."""
    variables = {
        "PATH": f"{Path(python).parent}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": home,
        "TMPDIR": home,
        "USER": "orbit",
        "LOGNAME": "orbit",
        "NUMBA_DISABLE_JIT": "1",  # quimb's compiled helpers want to write a cache beside the installed package
    }
    if library_path:
        variables["LD_LIBRARY_PATH"] = library_path  # some interpreters need it to find their own library
    if limits.n_cores is not None:
        variables["OMP_NUM_THREADS"] = str(limits.n_cores)
    return variables


def collect(request: ExecutionRequest, out_dir: Path) -> Execution:
    """Move what the runner's parent wrote to where the request wants it; `execution.json` comes last.

    Raises:
        HarnessError: the parent left no answer.
    """
    try:
        execution = Execution.model_validate_json((out_dir / "execution.json").read_bytes())
    except (OSError, ValueError) as error:
        raise HarnessError(f"run {request.name}: the runner left no answer ({error})") from error
    sandbox = execution.sandbox
    if sandbox is not None and sandbox.network and execution.versions:
        sandbox.warnings.append("the network was open to the artifact")
    for name in ("execution.json", *_OUTPUTS):
        (request.output_dir / name).unlink(missing_ok=True)
    for name in _OUTPUTS:
        with contextlib.suppress(FileNotFoundError):
            write_bytes(request.output_dir / name, (out_dir / name).read_bytes())
    write_json(request.output_dir / "execution.json", execution)
    return execution


def not_started(
    request: ExecutionRequest, sandbox: Sandbox, message: str, status: ExecutionStatus = ExecutionStatus.LOAD_ERROR
) -> Execution:
    """The answer for a run of which the parent could not give one."""
    execution = Execution(name=request.name, role=request.role, status=status, message=message, sandbox=sandbox)
    for name in _OUTPUTS:
        (request.output_dir / name).unlink(missing_ok=True)
    write_json(request.output_dir / "execution.json", execution)
    return execution
