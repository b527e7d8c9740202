"""harbor's Docker environment with what a trustworthy verification needs.

harbor takes the network from a container with a sidecar that it builds from public images; where no image registry is
reachable, it refuses. A container that needs no network at any time gets none here by the engine's own means, which
works anywhere. Every container and network carries labels that say which run made it, so that what a killed run leaves
behind can be found.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, override

from harbor.environments.base import ExecResult, OutputCallback
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.environments.docker import COMPOSE_NO_NETWORK_PATH
from harbor.environments.docker.docker import DockerEnvironment, DockerOptions
from harbor.environments.podman import PodmanEnvironment, PodmanOptions
from harbor.models.task.config import NetworkMode, NetworkPolicy
from pydantic import Field

from orbit.execution.orphans import OWNER_LABEL, RUN_LABEL, owner

N_PROCESSES = 4096
"""Processes and threads in a container; the runner limits an artifact further."""

_RUNNER_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SYS_PTRACE"]


_ENGINE_GONE = ("Cannot connect to the Docker daemon", "error during connect")


class EngineGoneError(RuntimeError):
    """The container engine does not answer any more."""


class OrbitDockerOptions(DockerOptions):
    """Options of our Docker environment, given as harbor's environment kwargs."""

    run_id: str = Field(default="", description="Run that the containers belong to.")
    agent_network: Literal["engine", "host"] = Field(
        default="engine",
        description="Network of a solving container that has one: the engine's, or the host's own for endpoints on it.",
    )


class OrbitDockerEnvironment(DockerEnvironment):
    """Docker with no network by the engine's own means, labels, and fewer rights for containers."""

    options_model = OrbitDockerOptions
    options: OrbitDockerOptions

    def __init__(
        self,
        *args: Any,
        network_policy: NetworkPolicy | None = None,
        phase_network_policies: Sequence[NetworkPolicy] | None = None,
        **kwargs: Any,
    ) -> None:
        policies = [network_policy or NetworkPolicy(), *(phase_network_policies or ())]
        self._never_networked = all(policy.network_mode is NetworkMode.NO_NETWORK for policy in policies)
        super().__init__(*args, network_policy=network_policy, phase_network_policies=phase_network_policies, **kwargs)
        self._overlay_dir: tempfile.TemporaryDirectory[str] | None = None

    @staticmethod
    @override
    def _requires_egress_control(
        *, startup_network_policy: NetworkPolicy, phase_network_policies: Sequence[NetworkPolicy]
    ) -> bool:
        """Harbor's sidecar is needed only to confine a container to some hosts."""
        policies = [startup_network_policy, *phase_network_policies]
        return any(policy.network_mode is NetworkMode.ALLOWLIST for policy in policies)

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        """A container that never has a network needs no sidecar to be without one."""
        capabilities: EnvironmentCapabilities = super().capabilities
        if self._never_networked:
            capabilities = capabilities.model_copy(update={"disable_internet": True})
        return capabilities

    @property
    @override
    def _docker_compose_paths(self) -> list[Path]:
        paths = list(super()._docker_compose_paths)
        if self._overlay_dir is not None:
            paths.append(Path(self._overlay_dir.name) / "docker-compose-orbit.json")
        if self._never_networked:
            paths.append(COMPOSE_NO_NETWORK_PATH)
        return paths

    @override
    async def _run_docker_compose_command(
        self,
        command: list[str],
        check: bool = True,
        timeout_sec: int | None = None,
        stdin_data: bytes | None = None,
        on_output: OutputCallback | None = None,
    ) -> ExecResult:
        """Run a compose command, and tell a vanished engine from a command that failed in the container.

        Raises:
            EngineGoneError: the engine does not answer. What a command printed is no proof of that, so it is asked.
            RuntimeError: the command failed, or ran out of time.
        """
        try:
            result = await super()._run_docker_compose_command(command, check, timeout_sec, stdin_data, on_output)
        except RuntimeError as error:
            if any(mark in str(error) for mark in _ENGINE_GONE) and not await self._engine_answers():
                raise EngineGoneError(f"the container engine went away during `compose {command[0]}`") from error
            raise
        suspicious = result.return_code != 0 and any(mark in (result.stdout or "") for mark in _ENGINE_GONE)
        if suspicious and not await self._engine_answers():
            raise EngineGoneError(f"the container engine went away during `compose {command[0]}`")
        return result

    async def _engine_answers(self) -> bool:
        process = await asyncio.create_subprocess_exec(
            *type(self)._engine_cmd("version"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        return await process.wait() == 0

    @override
    async def start(self, force_build: bool) -> None:
        """Start the container with our overlay."""
        self._overlay_dir = tempfile.TemporaryDirectory(prefix="orbit-compose-")
        path = Path(self._overlay_dir.name) / "docker-compose-orbit.json"
        path.write_text(json.dumps(self.overlay()))
        await super().start(force_build)

    @override
    async def stop(self, delete: bool) -> None:
        """Take the container down; the overlay is needed for that."""
        try:
            await super().stop(delete)
        finally:
            if self._overlay_dir is not None:
                self._overlay_dir.cleanup()
                self._overlay_dir = None

    def overlay(self) -> dict[str, Any]:
        """The compose file that is laid over harbor's."""
        labels = {RUN_LABEL: self.options.run_id, OWNER_LABEL: owner()}
        main: dict[str, Any] = {"labels": labels, "init": True, "pids_limit": N_PROCESSES}
        if (memory_mb := self._effective_memory_mb) is not None:
            main["memswap_limit"] = f"{memory_mb}m"
        overlay: dict[str, Any] = {"services": {"main": main}}
        if self._never_networked:
            # Nothing is installed or escalated here: the runner starts artifacts as another user, and that is all.
            main |= {
                "cap_drop": ["ALL"],
                "cap_add": _RUNNER_CAPABILITIES,
                "security_opt": ["no-new-privileges:true"],
            }
        elif self.options.agent_network == "host":
            main["network_mode"] = "host"
        else:
            overlay["networks"] = {"default": {"labels": labels}}
        return overlay


class OrbitPodmanOptions(OrbitDockerOptions, PodmanOptions):
    """Options of our Podman environment."""


class OrbitPodmanEnvironment(OrbitDockerEnvironment, PodmanEnvironment):
    """The same with Podman: only the programs that are called differ, which is harbor's part."""

    options_model = OrbitPodmanOptions
    options: OrbitPodmanOptions
