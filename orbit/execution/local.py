"""harbor's environment interface on the host itself, without a container engine.

It exists for the reference agent and for files that a user hands in: both only copy a file into place. Candidate code
is executed elsewhere, by the verification's own sandbox. A third-party agent gets a shell here, so it is refused unless
the user allows it by name.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import tempfile
from pathlib import Path
from typing import Any, override

import psutil
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.environments.options import EnvironmentOptions
from harbor.models.agent.name import AgentName
from harbor.models.task.config import NetworkMode, NetworkPolicy
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.paths import EnvironmentPaths
from pydantic import Field

from orbit.errors import SetupError
from orbit.execution._roots import Roots, UnboundPathError, bubblewrap

TRUSTED_AGENTS = (AgentName.ORACLE.value, AgentName.NOP.value)
"""Agents of harbor that run nothing but the staged task's own solution script, or nothing."""

_MARK = "ORBIT_LOCAL_ENVIRONMENT"
_MAX_OUTPUT_BYTES = 4 * 2**20


class LocalOptions(EnvironmentOptions):
    """Options of `LocalEnvironment`, given as harbor's environment kwargs."""

    allow_unsandboxed: bool = Field(default=False, description="Let third-party agents run commands on this host.")


class LocalEnvironment(BaseEnvironment):
    """Runs commands on the host, each environment with its own /app, /logs, /tests, /solution and /tmp."""

    options_model = LocalOptions

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._program = bubblewrap()
        super().__init__(*args, **kwargs)
        if self._host_mounts:
            raise SetupError("mounts are not possible in the local environment; use --environment docker")
        self._roots = Roots(self.trial_paths.trial_dir / "local" / self.session_id)

    @staticmethod
    @override
    def type() -> str:
        """Name in harbor's records."""
        return "local"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        """With bubblewrap the network can be taken away, per command; without it nothing can be enforced."""
        confined = self._program is not None
        return EnvironmentCapabilities(disable_internet=confined, dynamic_network_policy=confined)

    @property
    def _allow_unsandboxed(self) -> bool:
        return isinstance(self.options, LocalOptions) and self.options.allow_unsandboxed

    @override
    def _validate_definition(self) -> None:
        """A local environment needs no image."""

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        """Nothing to switch: each command is started under the policy of its moment."""

    @override
    async def start(self, force_build: bool) -> None:
        """Make the directories.

        Raises:
            SetupError: the trial's agent is a third party's, and the user did not allow that.
        """
        agent = self._agent_name()
        if agent not in (*TRUSTED_AGENTS, None) and not self._allow_unsandboxed:
            raise SetupError(
                f"agent {agent} would run commands on this host without a container; "
                "use --environment docker, or --allow-unsandboxed if you trust it"
            )
        await asyncio.to_thread(self._roots.create)
        paths = EnvironmentPaths()
        await self.ensure_dirs([paths.agent_dir, paths.verifier_dir, paths.artifacts_dir])
        await self._upload_environment_dir_after_start()

    @override
    async def stop(self, delete: bool) -> None:
        """End what still runs and delete the directories, unless they are to be kept."""
        await asyncio.to_thread(self._end_leftovers)
        if delete:
            await asyncio.to_thread(self._roots.remove)

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file of the host into the environment."""
        target = self._roots.host_path(target_path)
        await asyncio.to_thread(self._upload, Path(source_path), target)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy the contents of a directory of the host into one of the environment."""
        target = self._roots.host_path(target_dir)
        await asyncio.to_thread(self._upload, Path(source_dir), target)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a regular file of the environment to the host.

        Raises:
            FileNotFoundError: there is no regular file of that name.
        """
        source = self._roots.host_path(source_path)
        if not source.exists() or not stat.S_ISREG(source.stat().st_mode):
            raise FileNotFoundError(f"{source_path}: not a regular file in the environment")
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(shutil.copyfile, source, target)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy the regular files of a directory of the environment to the host; links and devices stay behind."""
        source = self._roots.host_path(source_dir)
        if not source.is_dir():
            raise FileNotFoundError(f"{source_dir}: not a directory in the environment")
        await asyncio.to_thread(_copy_regular_files, source, Path(target_dir))

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a shell command and end everything it started. `user` is ignored: there is one user here.

        Raises:
            RuntimeError: it ran out of time; harbor's Docker environment says the same.
            UnboundPathError: without bubblewrap, it names a place outside the environment.
        """
        arguments, directory = self._command(command, cwd or self.task_env_config.workdir or "/app")
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                cwd=directory,
                env=self._environment(env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            try:
                await asyncio.wait_for(process.wait(), timeout_sec)
            except TimeoutError as error:
                raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from error
            finally:
                _kill_group(process.pid)
                await asyncio.shield(process.wait())
            return ExecResult(stdout=_read(stdout), stderr=_read(stderr), return_code=process.returncode or 0)

    def _command(self, command: str, cwd: str) -> tuple[list[str], Path]:
        """Program and arguments for a shell command, and the host directory to start it in."""
        if self._program is None:
            return ["bash", "-c", self._roots.rewritten(command)], self._roots.host_path(cwd)
        network = self.network_policy.network_mode is not NetworkMode.NO_NETWORK
        arguments = self._roots.sandboxed(
            self._program,
            ["bash", "-c", command],
            cwd=cwd,
            network=network,
            whole_system=self._allow_unsandboxed,
        )
        return arguments, self._roots.directory

    def _environment(self, env: dict[str, str] | None) -> dict[str, str]:
        """Variables of a command: none of the host's but the search path, so no key leaks."""
        temporary = "/tmp" if self._program else str(self._roots.directory / "tmp")
        own = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": temporary, "TMPDIR": temporary}
        return {**own, **(self._merge_env(env) or {}), _MARK: str(self._roots.directory)}

    def _upload(self, source: Path, target: Path) -> None:
        if source.is_dir():
            _copy_regular_files(source, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        if self._program is None:
            for script in [target] if target.is_file() else target.rglob("*"):
                if script.suffix == ".sh" and script.is_file():
                    script.write_text(self._roots.rewritten(script.read_text()))

    def _agent_name(self) -> str | None:
        """The agent of the trial as harbor recorded it; None where this environment is used outside a trial."""
        path = self.trial_paths.config_path
        if not path.is_file():
            return None
        agent = TrialConfig.model_validate_json(path.read_text()).agent
        return agent.import_path or agent.name

    def _end_leftovers(self) -> None:
        """End processes that left their group; inside bubblewrap there can be none."""
        if self._program is not None:
            return
        for process in psutil.process_iter():
            try:
                if process.environ().get(_MARK) == str(self._roots.directory):
                    process.kill()
            except psutil.Error:
                continue


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _read(stream: Any) -> str | None:
    """The start of what a command wrote, None if nothing."""
    stream.seek(0)
    data: bytes = stream.read(_MAX_OUTPUT_BYTES)
    return data.decode(errors="replace") or None


def _copy_regular_files(source: Path, target: Path) -> None:
    """Copy a tree into an existing or new directory, leaving out links, sockets, pipes and devices."""

    def special(directory: str, names: list[str]) -> list[str]:
        modes = {name: (Path(directory) / name).lstat().st_mode for name in names}
        return [name for name, mode in modes.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]

    shutil.copytree(source, target, ignore=special, dirs_exist_ok=True)


__all__ = ["TRUSTED_AGENTS", "LocalEnvironment", "LocalOptions", "UnboundPathError"]
