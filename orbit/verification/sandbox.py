"""Runs artifacts on this machine: behind bubblewrap where it works, else as a plain process with a warning."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import psutil

from orbit.errors import HarnessError, SetupError
from orbit.frameworks import find_framework
from orbit.verification import _bwrap, _jobs
from orbit.verification._jobs import RunFiles, collect, container_run
from orbit.verification.execution import Execution, ExecutionRequest, ExecutionStatus, Role
from orbit.verification.verdict import Sandbox

__all__ = [
    "LocalExecutor",
    "RunFiles",
    "SandboxProbe",
    "collect",
    "container_run",
    "probe_sandbox",
    "sandbox_available",
]

Kind = Literal["bubblewrap", "process"]

STOP_SEC = 90.0
MEMORY_SHARE = 0.95
"""No run may use more of the machine's memory than this: beyond it the kernel kills, and perhaps not the run."""

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class SandboxProbe:
    """Which sandbox runs get on this machine; `detail` says why it is not bubblewrap and what to do."""

    kind: Kind
    detail: str


def probe_sandbox() -> SandboxProbe:
    """Find out, once in a process and by really starting it, whether bubblewrap works here."""
    problem = _bwrap.probe()
    return SandboxProbe("bubblewrap", "") if problem is None else SandboxProbe("process", problem)


def sandbox_available() -> bool:
    """Whether candidate code is confined here by more than limits."""
    return probe_sandbox().kind == "bubblewrap"


class LocalExecutor:
    """Runs artifacts here, each in a fresh process; implements `Executor`.

    Args:
        python_for: role and framework to the interpreter of the environment that runs it.
        bare_imports: framework to the modules whose import is not counted; by default as `framework.toml` says.
        adapter_for: framework to its provenance adapter, if there is one; by default as in `frameworks/`.
        kind: the sandbox to use; by default the best that works here.
    """

    def __init__(
        self,
        python_for: Callable[[Role, str], Path],
        bare_imports: Callable[[str], list[str]] | None = None,
        *,
        adapter_for: Callable[[str], Path | None] | None = None,
        kind: Kind | None = None,
    ) -> None:
        self._python_for = python_for
        self._bare_imports = bare_imports or _declared_imports
        self._adapter_for = adapter_for or _declared_adapter
        self._kind = kind
        self._parents: set[subprocess.Popen[bytes]] = set()

    def run(self, request: ExecutionRequest) -> Execution:
        """Run once and block until it ended; see `Executor.run`. Interrupted, it leaves nothing running.

        Raises:
            HarnessError: the runner itself failed, or `stop` was called.
            SetupError: the environment cannot run here.
        """
        kind = self._kind or probe_sandbox().kind
        sandbox = _describe_sandbox(kind)
        with tempfile.TemporaryDirectory(prefix="orbit-run-") as name:
            directory = Path(name).resolve()
            try:
                self._write(request, directory, kind, sandbox)
            except _jobs.SourceError as error:
                return _jobs.not_started(request, sandbox, str(error))
            returncode = self._supervise(request, directory)
            if returncode < 0 and not sandbox.unprivileged and not (directory / "out" / "execution.json").exists():
                return _jobs.not_started(request, sandbox, "killed the runner", ExecutionStatus.DIED)
            if returncode != 0:
                log = (directory / "parent.log").read_text(errors="replace").strip()
                raise HarnessError(f"run {request.name}: the runner ended with status {returncode}\n{log[-4000:]}")
            return collect(request, directory / "out")

    def stop(self) -> None:
        """End all current runs, from another thread; their `run` calls raise `HarnessError`."""
        for parent in list(self._parents):
            parent.terminate()

    def _write(self, request: ExecutionRequest, directory: Path, kind: Kind, sandbox: Sandbox) -> None:
        """Lay out the run's directory: `child/` for the child, `job.json` and `out/` for the parent alone."""
        adapter = self._adapter_for(request.framework) if request.provenance else None
        for name, content in _jobs.child_files(request, adapter).items():
            path = directory / "child" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o444)
        for path in (directory, *(path for path in directory.rglob("*") if path.is_dir())):
            path.chmod(0o755)
        python = Path(os.path.abspath(self._python_for(request.role, request.framework)))  # noqa: PTH100  keep links
        limited = _limited(request)
        place = _place(limited, directory, python, kind, sandbox)
        child = _bwrap.INSIDE if kind == "bubblewrap" else directory / "child"
        imports = self._bare_imports(request.framework)
        n_processes = _process_limit(request.limits.n_processes, kind)
        job = _jobs.make_job(limited, child, imports, place, n_processes=n_processes, adapter=adapter)
        job_path = directory / "job.json"
        job_path.touch(mode=0o600)
        job_path.write_text(json.dumps(job))

    def _supervise(self, request: ExecutionRequest, directory: Path) -> int:
        """Start the parent and wait for it. Standard input tells it, by its end, should we die."""
        command = [sys.executable, "-I", "-B", str(directory / "child" / "runner.pyz"), "parent"]
        environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        environment |= {"LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with (directory / "parent.log").open("wb") as log:
            parent = subprocess.Popen(
                [*command, str(directory / "job.json")],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        self._parents.add(parent)
        try:
            return parent.wait(request.limits.timeout_sec + _jobs.START_SEC + 4 * STOP_SEC)
        except subprocess.TimeoutExpired as error:
            raise HarnessError(f"run {request.name}: the runner did not end") from error
        finally:
            _end(parent)
            self._parents.discard(parent)


def _declared_imports(framework: str) -> list[str]:
    return list(find_framework(framework).bare_imports)


def _declared_adapter(framework: str) -> Path | None:
    path = find_framework(framework).provenance_path
    return path if path.is_file() else None


def _end(parent: subprocess.Popen[bytes]) -> None:
    """Let the parent kill its run; a parent that cannot is killed, and bubblewrap dies with it."""
    if parent.poll() is None:
        parent.terminate()
        try:
            parent.wait(STOP_SEC)
        except subprocess.TimeoutExpired:
            parent.kill()
            parent.wait()
    assert parent.stdin is not None
    parent.stdin.close()


def _describe_sandbox(kind: Kind) -> Sandbox:
    if kind == "bubblewrap":
        return Sandbox(kind=kind, network=False, unprivileged=True)
    as_root = os.geteuid() == 0
    reach = "what everybody may read" if as_root else "all files of your own user"
    reason = _bwrap.probe() or "it was not asked for"
    warning = f"no sandbox: {reason}; the artifact could read {reach} and write outside its directory"
    return Sandbox(kind=kind, network=True, unprivileged=as_root, warnings=[warning])


def _place(request: ExecutionRequest, directory: Path, python: Path, kind: Kind, sandbox: Sandbox) -> dict[str, Any]:
    """The part of a job that depends on the machine."""
    as_root = os.geteuid() == 0
    layout = _bwrap.interpreter(python)
    if as_root:
        _check_readable(layout, through_parents=kind == "process")
    n_cores = request.limits.n_cores
    home = _bwrap.HOME if kind == "bubblewrap" else str(directory / "scratch")
    wrapper: list[str] = []
    if kind == "bubblewrap":
        scratch_bytes = min(_jobs.SCRATCH_BYTES, request.limits.memory_bytes)
        hidden = [_PACKAGE, _PACKAGE.parent]
        wrapper = _bwrap.command(
            layout, directory / "child", scratch_bytes=scratch_bytes, hidden=hidden, as_root=as_root
        )
    child = _bwrap.INSIDE if kind == "bubblewrap" else directory / "child"
    return {
        "output_dir": str(directory / "out"),
        "command": [*wrapper, *_jobs.child_command(python, child), "{orders}", "{messages}"],
        "wrapped": kind == "bubblewrap",
        "env": _jobs.environment(python, home, request.limits, os.environ.get("LD_LIBRARY_PATH")),
        "cpus": sorted(os.sched_getaffinity(0))[:n_cores] if n_cores is not None else None,
        "scratch": home if kind == "process" else None,
        "work_dir": str(directory),
        "lifeline": True,
        "drop_uid": as_root,
        "gid": None,
        "sandbox": sandbox.model_dump(),
    }


def _limited(request: ExecutionRequest) -> ExecutionRequest:
    """The request with its memory limit held to what the machine has."""
    memory_bytes = min(request.limits.memory_bytes, int(MEMORY_SHARE * psutil.virtual_memory().total))
    return replace(request, limits=replace(request.limits, memory_bytes=memory_bytes))


def _process_limit(n_processes: int, kind: Kind) -> int:
    """The kernel counts per user; where the run shares a user, what that user runs already is added.

    As root the run has a user of its own, and since Linux 5.14 a user namespace has a count of its own.
    """
    if os.geteuid() == 0 or (kind == "bubblewrap" and _kernel() >= (5, 14)):
        return n_processes
    own = os.getuid()
    running = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.uids().real == own:
                running += process.num_threads()
    return n_processes + running


@functools.cache
def _kernel() -> tuple[int, int]:
    major, minor = platform.release().split(".")[:2]
    return int(major), int("".join(char for char in minor if char.isdigit()) or 0)


def _check_readable(layout: _bwrap.Interpreter, *, through_parents: bool) -> None:
    """As root, the run has another user, who must be able to read the environment.

    Raises:
        SetupError: it cannot; the text says which directory and what to do.
    """
    for root in layout.roots:
        for directory in (root, *root.parents) if through_parents else (root,):
            needed = 0o001 if directory in root.parents else 0o005
            if directory.stat().st_mode & needed != needed:
                fix = f"chmod -R o+rX {directory}" if directory == root else "install bubblewrap"
                raise SetupError(f"{directory}: not readable to the unprivileged user that runs artifacts; {fix}")
