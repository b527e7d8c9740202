"""Which harbor environment a run uses, what it can enforce, and what must be ready before."""

from __future__ import annotations

import functools
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from orbit.assembly import EnvironmentSpec
from orbit.errors import SetupError, UsageError
from orbit.execution import left_overs, orphans
from orbit.execution._roots import bubblewrap
from orbit.execution.agents import AgentSpec
from orbit.execution.limits import Capacity
from orbit.execution.trials import LimitsRecord
from orbit.host import memory_allowed_bytes, n_cores_allowed

if TYPE_CHECKING:
    from harbor.models.environment_type import EnvironmentType
    from harbor.models.trial.config import EnvironmentConfig

    from orbit.frameworks import Framework
    from orbit.images import ImageInfo

Progress = Callable[[str], None]

_MEMORY_SHARE = 0.9
"""Of the machine's memory that a trial may have at most; the rest keeps the machine alive."""

_CAPACITY_FORMATS = {
    "docker": "{{.NCPU}} {{.MemTotal}} {{.DockerRootDir}}",
    "podman": "{{.Host.CPUs}} {{.Host.MemTotal}} {{.Store.GraphRoot}}",
}

STOP_AGENT = "pkill -KILL -u agent; true"
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
    def capacity(self) -> Capacity:
        """What the machine has that trials run on.

        Raises:
            SetupError: it cannot be asked.
        """

    @abstractmethod
    def for_cell(self, framework: Framework, agent: AgentSpec, limits: LimitsRecord) -> CellEnvironment:
        """Where a cell runs.

        Raises:
            SetupError: it cannot be had on this machine.
        """

    @abstractmethod
    def prepare(self, run_id: str, frameworks: Sequence[Framework], report: Progress) -> None:
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

    def capacity(self) -> Capacity:
        """What this process may use."""
        memory_mb = int(_MEMORY_SHARE * memory_allowed_bytes() / 2**20)
        return Capacity(cpus=n_cores_allowed(), memory_mb=memory_mb, storage_mb=_disk_mb(Path.cwd()))

    def for_cell(self, framework: Framework, agent: AgentSpec, limits: LimitsRecord) -> CellEnvironment:
        """A trusted agent needs no network, and bubblewrap can take it away."""
        confined = bubblewrap() is not None and agent.is_trusted
        return CellEnvironment(EnvironmentSpec(kind="local", can_enforce_no_network=confined, **of_spec(limits)))

    def prepare(self, run_id: str, frameworks: Sequence[Framework], report: Progress) -> None:
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
    """The engine that the `docker` or `podman` command reaches, with our images."""

    program: Literal["docker", "podman"] = "docker"

    def capacity(self) -> Capacity:
        """What the engine's machine has."""
        return _engine_capacity(self.program)

    def for_cell(self, framework: Framework, agent: AgentSpec, limits: LimitsRecord) -> CellEnvironment:
        """The framework's image, with the agent's program at the version that was asked for."""
        from orbit.images import check_image

        image = check_image(framework, self.program)
        _check_agent(agent, framework, image)
        spec = EnvironmentSpec(
            kind=self.program,
            image=image.name,
            can_enforce_no_network=True,
            can_enforce_allowlist=self._can_confine(agent),
            allowed_hosts=agent.model_hosts,
            agent_user="agent",
            collect_commands=(STOP_AGENT,),
            **of_spec(limits),
        )
        unlimited = f"environment {self.program} does not limit disk use to {limits.storage_mb} MiB"
        return CellEnvironment(spec, image.image_id, (unlimited,))

    def prepare(self, run_id: str, frameworks: Sequence[Framework], report: Progress) -> None:
        """Take down what earlier runs left, and mark this one; the images were checked when cells were staged."""
        if self.program == "podman":
            preflight("orbit.execution.docker:OrbitPodmanEnvironment")
        orphans.remove_orphans(report, engine=orphans.Engine(self.program))
        left_overs.mark(run_id, self.program)

    def to_harbor(self, run_id: str, agent: AgentSpec) -> EnvironmentConfig:
        """Our subclass of harbor's environment by import path."""
        from harbor.models.trial.config import EnvironmentConfig

        return EnvironmentConfig(
            import_path=f"orbit.execution.docker:{self._class_name}",
            kwargs={"run_id": run_id, "agent_network": "host" if agent.endpoint_is_local else "engine"},
        )

    def clean_up(self, run_id: str, report: Progress) -> None:
        """Take down what is still there of this run; without an answer its mark stays, for the next command."""
        try:
            orphans.remove_run(run_id, report, orphans.Engine(self.program))
        except SetupError as error:
            report(f"containers of this run may be left: {error}; the next orbit command looks again")
        else:
            left_overs.unmark(run_id)

    @property
    def _class_name(self) -> str:
        return "OrbitPodmanEnvironment" if self.program == "podman" else "OrbitDockerEnvironment"

    def _can_confine(self, agent: AgentSpec) -> bool:
        """Whether harbor's sidecar can hold the agent to its endpoint; it needs images from a public registry."""
        if agent.is_trusted or agent.endpoint_is_local or not agent.knows_its_hosts:
            return False
        from orbit.execution import docker

        environment: type[docker.OrbitDockerEnvironment] = getattr(docker, self._class_name)
        return bool(environment._egress_control_kernel_support())


def of_spec(limits: LimitsRecord) -> dict[str, Any]:
    """The limits by the names that a staged task has for them; the time of a run is the verification's affair."""
    resources = {name: getattr(limits, name) for name in ("cpus", "memory_mb", "storage_mb")}
    return {**resources, "verifier_timeout_sec": limits.verification_timeout_sec}


def preflight(import_path: str | None = None, kind: EnvironmentType | None = None) -> None:
    """Have harbor look whether an environment can be used: programs, packages and credentials.

    Raises:
        SetupError: it cannot; in harbor's words, on one line.
    """
    from harbor.environments.factory import EnvironmentFactory

    try:
        EnvironmentFactory.run_preflight(kind, import_path)
    except (SystemExit, ImportError, ValueError, RuntimeError, OSError) as error:
        name = kind.value if kind is not None else (import_path or "").rpartition(":")[2]
        raise SetupError(f"environment {name}: {' '.join(str(error).split())}") from error


def _check_agent(agent: AgentSpec, framework: Framework, image: ImageInfo) -> None:
    """Refuse an image whose agent program is another version than asked for.

    Raises:
        SetupError: it is; the text names the command that rebuilds it.
    """
    if not agent.is_preinstalled or agent.version is None:
        return
    there = image.agents.get(agent.name, "none")
    if there != agent.version:
        raise SetupError(
            f"--agent-version {agent.version}: {image.name} has {agent.name} {there}; set its version in "
            f"images/agents.toml and run `orbit images build {framework.name}`"
        )


def _disk_mb(directory: Path) -> int:
    """Size of the disk that a directory is on; what is free on it changes by the minute."""
    return shutil.disk_usage(directory).total // 2**20


@functools.cache
def _engine_capacity(program: str) -> Capacity:
    """What the machine has that the engine runs on; its disk only if that is this one's.

    Raises:
        SetupError: no engine answers.
    """
    from orbit.images import ask_engine

    answer = ask_engine("info", "--format", _CAPACITY_FORMATS[program], program=program)
    n_cpus, memory_bytes, root = answer.split(maxsplit=2)
    root = root.strip()
    storage_mb = _disk_mb(Path(root)) if Path(root).is_dir() else None
    return Capacity(cpus=int(n_cpus), memory_mb=int(_MEMORY_SHARE * int(memory_bytes) / 2**20), storage_mb=storage_mb)


def choose_environment(
    name: str, *, allow_unsandboxed: bool = False, image_prefix: str | None = None
) -> EnvironmentChoice:
    """The environment of that name.

    Raises:
        UsageError: there is none, or it takes no images from a registry.
    """
    if image_prefix is not None and name in ("local", "docker", "podman"):
        raise UsageError(f"--image-prefix: --environment {name} uses images of this machine; leave it out")
    if name == "local":
        return LocalChoice(allow_unsandboxed=allow_unsandboxed)
    if name in ("docker", "podman"):
        return DockerChoice(program="docker" if name == "docker" else "podman")
    from orbit.execution._hosted import HostedChoice, hosted_names

    if name not in hosted_names():
        raise UsageError(f"--environment {name}: not one of local, docker, podman, {', '.join(hosted_names())}")
    return HostedChoice(name, image_prefix)
