"""Executing artifacts in harbor's verification environment: the worker's side and the verifier's.

The worker writes a run's files to a directory on the host and asks; the verifier, which owns the environment and the
event loop, copies them in, starts the runner there and copies its outputs back. The clock is the runner's own, inside
the environment, so what the copying takes does not count.
"""

from __future__ import annotations

import shlex
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from orbit.errors import HarnessError
from orbit.execution._protocol import RunJob
from orbit.verification.execution import Execution, ExecutionRequest

if TYPE_CHECKING:
    from harbor.environments.base import BaseEnvironment

REFERENCE_PYTHON = "/opt/orbit/reference/python/bin/python{version}"
"""The reference's interpreter in every image; see `images/Dockerfile`."""

CANDIDATE_PYTHON = "/usr/local/bin/python{version}"
REFERENCE_GID = 1001
"""Group that may read the reference's environment; no candidate is in it."""

_ROOT = PurePosixPath("/opt/orbit-runs")
_SHARED_DIRS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/app", "/logs")
"""What anybody may write to in our images."""

_SPARE_SEC = 120.0
_MEMORY_SHARE = 0.95


class ContainerExecutor:
    """Runs artifacts in an environment that somebody else can reach; implements `Executor`.

    Args:
        execute: copies the files of a job into the environment, runs its command and copies the outputs back; may be
            called from several threads. Raises `HarnessError` where the environment fails.
        python_for: role and framework to the interpreter in the environment; by default as in our images.
        bare_imports: framework to the modules whose import is not counted; by default as `framework.toml` says.
        memory_mb: of the environment; a run gets a little less, so that the runner is not the one to be killed.
    """

    def __init__(
        self,
        execute: Callable[[RunJob], None],
        *,
        python_for: Callable[[str, str], str] | None = None,
        bare_imports: Callable[[str], list[str]] | None = None,
        memory_mb: int | None = None,
    ) -> None:
        self._execute = execute
        self._memory_bytes = None if memory_mb is None else int(_MEMORY_SHARE * memory_mb * 2**20)
        self._python_for = python_for or image_python
        self._bare_imports = bare_imports or _declared_imports

    def run(self, request: ExecutionRequest) -> Execution:
        """Run once and block until it ended; see `Executor.run`.

        Raises:
            HarnessError: the environment failed, or the runner in it.
        """
        from orbit.frameworks import find_framework
        from orbit.verification import sandbox
        from orbit.verification._jobs import START_SEC, SourceError, not_started
        from orbit.verification.verdict import Sandbox

        directory = _ROOT / uuid.uuid4().hex
        group_id = REFERENCE_GID if request.role == "reference" else None
        request = self._limited(request)
        try:
            files = sandbox.container_run(
                request,
                python=self._python_for(request.role, request.framework),
                imports=self._bare_imports(request.framework),
                directory=directory,
                adapter=find_framework(request.framework).provenance_path if request.provenance else None,
                gid=group_id,
            )
        except SourceError as error:
            confined = Sandbox(kind="container", network=False, unprivileged=True)
            return not_started(request, confined, str(error))
        with tempfile.TemporaryDirectory(prefix="orbit-container-run-") as name:
            host = Path(name)
            for path, content in files.files.items():
                target = host / "run" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            self._execute(
                RunJob(
                    host_dir=host,
                    directory=str(directory),
                    group_id=group_id,
                    command=files.command,
                    timeout_sec=START_SEC + request.limits.timeout_sec + _SPARE_SEC,
                )
            )
            return sandbox.collect(request, host / "out")

    def _limited(self, request: ExecutionRequest) -> ExecutionRequest:
        if self._memory_bytes is None:
            return request
        memory_bytes = min(request.limits.memory_bytes, self._memory_bytes)
        return replace(request, limits=replace(request.limits, memory_bytes=memory_bytes))


def image_python(role: str, framework: str) -> str:
    """The interpreter that runs a role's artifact in our images."""
    from orbit.frameworks import find_framework

    pattern = REFERENCE_PYTHON if role == "reference" else CANDIDATE_PYTHON
    return pattern.format(version=find_framework(framework).python)


def _declared_imports(framework: str) -> list[str]:
    from orbit.frameworks import find_framework

    return list(find_framework(framework).bare_imports)


async def prepare_environment(environment: BaseEnvironment) -> None:
    """Make the place where runs are laid down, and close every other place that anybody may write to.

    The place can be listed by root alone. The runs of a trial share the container, so a file that one run could leave
    in `/tmp` would be a cache for the next; each has a directory of its own instead, which is removed after it.

    Raises:
        HarnessError: the environment does not execute commands.
    """
    command = f"mkdir -p -m 711 {_ROOT} && chmod -R o-w {' '.join(_SHARED_DIRS)}"
    result = await environment.exec(command, cwd="/", user="root", timeout_sec=60)
    if result.return_code != 0:
        raise HarnessError(f"the verification environment cannot be prepared: {result.stderr or result.stdout}")


async def run_in_environment(environment: BaseEnvironment, job: RunJob) -> None:
    """Carry out a job of `ContainerExecutor` in an environment of harbor's.

    The files of a run lie below a directory that only root can list, and what only the runner's parent may read is
    closed. A run's own user can neither write there nor find the files of other runs, least of all the reference's.

    Raises:
        HarnessError: a step failed.
    """
    directory, child = shlex.quote(job.directory), shlex.quote(f"{job.directory}/child")
    await environment.upload_dir(job.host_dir / "run", job.directory)
    access = f"chmod -R u=rwX,go=rX {child}"
    if job.group_id is not None:
        access = f"chgrp -R {job.group_id} {child} && chmod -R u=rwX,g=rX,o= {child}"
    prepare = (
        f"chmod 711 {directory} && chown -R 0:0 {directory} && {access} && "
        f"chmod 600 {directory}/job.json && mkdir -m 700 {directory}/out"
    )
    command = f"{prepare} && exec {shlex.join(job.command)}"
    result = await environment.exec(command, cwd="/", user="root", timeout_sec=int(job.timeout_sec))
    if result.return_code != 0:
        output = ((result.stderr or "") + (result.stdout or "")).strip()
        raise HarnessError(f"the runner ended with status {result.return_code}: {output[-4000:]}")
    await environment.download_dir(f"{job.directory}/out", job.host_dir / "out")
