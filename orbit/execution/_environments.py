"""Which harbor environment a run uses, what it can enforce, and what must be ready before."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbit.assembly import EnvironmentSpec
from orbit.errors import UsageError
from orbit.execution import orphans
from orbit.execution._roots import bubblewrap
from orbit.execution.agents import AgentSpec

if TYPE_CHECKING:
    from harbor.models.trial.config import EnvironmentConfig

    from orbit.frameworks import Framework
    from orbit.tasks import Task

Progress = Callable[[str], None]

_MEMORY_SHARE = 0.9
"""Of the engine's memory that a container may have at most; the rest keeps the machine alive."""

_STOP_AGENT = "pkill -KILL -u agent; true"
"""An agent that ran out of time goes on writing, since harbor only ends its own side of the connection."""


@dataclass(frozen=True)
class CellEnvironment:
    """Where one cell runs.

    Attributes:
        spec: what its task is staged for.
        image_id: the image's digest, where there is one.
        warnings: what the environment cannot give.
    """

    spec: EnvironmentSpec
    image_id: str | None = None
    warnings: tuple[str, ...] = ()


class EnvironmentChoice(ABC):
    """One kind of environment."""

    @abstractmethod
    def for_cell(self, task: Task, framework: Framework, agent: AgentSpec) -> CellEnvironment:
        """Where a cell runs.

        Raises:
            SetupError: it cannot be had on this machine.
        """

    @abstractmethod
    def prepare(self, frameworks: Sequence[Framework], report: Progress) -> None:
        """Make what trials will need, so that none of it counts as their time.

        Raises:
            SetupError: it cannot be had on this machine.
        """

    @abstractmethod
    def to_harbor(self, run_id: str, agent: AgentSpec) -> EnvironmentConfig:
        """Harbor's configuration of it."""

    def clean_up(self, run_id: str, report: Progress) -> None:  # noqa: B027 most kinds leave nothing
        """Remove what an interrupted run may have left."""


@dataclass(frozen=True)
class LocalChoice(EnvironmentChoice):
    """The host itself."""

    allow_unsandboxed: bool = False

    def for_cell(self, task: Task, framework: Framework, agent: AgentSpec) -> CellEnvironment:
        """A trusted agent needs no network, and bubblewrap can take it away."""
        confined = bubblewrap() is not None and agent.is_trusted
        return CellEnvironment(EnvironmentSpec(kind="local", can_enforce_no_network=confined))

    def prepare(self, frameworks: Sequence[Framework], report: Progress) -> None:
        """Make the frameworks' virtual environments."""
        from orbit.environments import environment_python

        for framework in frameworks:
            environment_python(framework, progress=report)

    def to_harbor(self, run_id: str, agent: AgentSpec) -> EnvironmentConfig:
        """`LocalEnvironment` by import path."""
        from harbor.models.trial.config import EnvironmentConfig

        return EnvironmentConfig(
            import_path="orbit.execution.local:LocalEnvironment",
            kwargs={"allow_unsandboxed": self.allow_unsandboxed},
        )


@dataclass(frozen=True)
class DockerChoice(EnvironmentChoice):
    """The Docker engine that the `docker` command reaches, with our images."""

    def for_cell(self, task: Task, framework: Framework, agent: AgentSpec) -> CellEnvironment:
        """The framework's image, resources clamped to what the engine has."""
        from orbit.images import check_image

        image = check_image(framework)
        cpus, memory_mb, warnings = self._clamp(task)
        spec = EnvironmentSpec(
            kind="docker",
            image=image.name,
            can_enforce_no_network=True,
            can_enforce_allowlist=self._can_confine(agent),
            allowed_hosts=agent.model_hosts,
            cpus=cpus,
            memory_mb=memory_mb,
            agent_user="agent",
            collect_commands=(_STOP_AGENT,),
        )
        return CellEnvironment(spec, image.image_id, warnings)

    def prepare(self, frameworks: Sequence[Framework], report: Progress) -> None:
        """Take down what earlier runs left; the images were checked when the cells were staged."""
        orphans.remove_orphans(report)

    def to_harbor(self, run_id: str, agent: AgentSpec) -> EnvironmentConfig:
        """Our subclass of harbor's environment by import path."""
        from harbor.models.trial.config import EnvironmentConfig

        return EnvironmentConfig(
            import_path="orbit.execution.docker:OrbitDockerEnvironment",
            kwargs={"run_id": run_id, "agent_network": "host" if agent.endpoint_is_local else "engine"},
        )

    def clean_up(self, run_id: str, report: Progress) -> None:
        """Take down what is still there of this run."""
        orphans.remove_orphans(report, run_id)

    def _clamp(self, task: Task) -> tuple[int, int, tuple[str, ...]]:
        """Cores and MiB for the task's containers, and what a reader of the records must know about them."""
        n_cpus, memory_bytes = _engine_capacity()
        limits, warnings = task.limits, []
        cpus, memory_mb = min(limits.cpus, n_cpus), min(limits.memory_mb, int(_MEMORY_SHARE * memory_bytes / 2**20))
        if cpus < limits.cpus:
            warnings.append(f"{cpus} cores instead of {limits.cpus}: the engine has no more")
        if memory_mb < limits.memory_mb:
            warnings.append(f"{memory_mb} MiB of memory instead of {limits.memory_mb}: the engine has no more")
        return cpus, memory_mb, tuple(warnings)

    def _can_confine(self, agent: AgentSpec) -> bool:
        """Whether harbor's sidecar can hold the agent to its endpoint; it needs images from a public registry."""
        if agent.is_trusted or agent.endpoint_is_local or not agent.knows_its_hosts:
            return False
        from orbit.execution.docker import OrbitDockerEnvironment

        return bool(OrbitDockerEnvironment._egress_control_kernel_support())


@functools.cache
def _engine_capacity() -> tuple[int, int]:
    """Cores and bytes of memory of the machine that the engine runs on.

    Raises:
        SetupError: no engine answers.
    """
    from orbit.images import _engine

    n_cpus, memory_bytes = _engine.ask("info", "--format", "{{.NCPU}} {{.MemTotal}}").split()
    return int(n_cpus), int(memory_bytes)


def choose_environment(name: str, *, allow_unsandboxed: bool = False) -> EnvironmentChoice:
    """The environment of that name.

    Raises:
        UsageError: there is none.
    """
    if name == "local":
        return LocalChoice(allow_unsandboxed=allow_unsandboxed)
    if name == "docker":
        return DockerChoice()
    raise UsageError(f"--environment {name}: not one of local, docker")
