"""harbor's other environments by name: mostly other people's machines, with what can be enforced there."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from orbit.assembly import EnvironmentSpec
from orbit.errors import SetupError
from orbit.execution._environments import (
    STOP_AGENT,
    CellEnvironment,
    EnvironmentChoice,
    Progress,
    of_spec,
    preflight,
)
from orbit.execution.agents import AgentSpec
from orbit.execution.limits import Capacity
from orbit.execution.trials import LimitsRecord

if TYPE_CHECKING:
    from harbor.environments.base import BaseEnvironment
    from harbor.environments.capabilities import EnvironmentCapabilities
    from harbor.models.trial.config import EnvironmentConfig

    from orbit.frameworks import Framework

_OURS = ("docker", "podman")


def hosted_names() -> list[str]:
    """Names of harbor's environments that have no class of ours."""
    from harbor.environments.factory import EnvironmentFactory

    return [name for name in EnvironmentFactory.registered_names() if name not in _OURS]


@dataclass(frozen=True)
class HostedChoice(EnvironmentChoice):
    """One of harbor's environments as it is.

    Attributes:
        name: harbor's.
        image_prefix: registry and namespace that our images were pushed to.
    """

    name: str
    image_prefix: str | None = None

    def capacity(self) -> Capacity:
        """Unknown: what the service lacks, it refuses itself."""
        return Capacity()

    def for_cell(self, framework: Framework, agent: AgentSpec, limits: LimitsRecord) -> CellEnvironment:
        """The framework's image by name; what is in it cannot be looked at from here."""
        from orbit.images import agent_versions, image_name

        environment = _environment_class(self.name)
        can = _capabilities(environment)
        if agent.is_preinstalled and agent.version not in (None, agent_versions()[agent.name]):
            raise SetupError(
                f"--agent-version {agent.version}: images/agents.toml has {agent.name} {agent_versions()[agent.name]}; "
                f"change it there, run `orbit images build {framework.name}` and push the image"
            )
        image = image_name(framework)
        if self.image_prefix is not None:
            image = f"{self.image_prefix.rstrip('/')}/{image}"
        spec = EnvironmentSpec(
            kind=self.name,
            image=image,
            can_enforce_no_network=can.disable_internet,
            can_enforce_allowlist=can.network_allowlist and can.network_allowlist_hostnames and agent.knows_its_hosts,
            allowed_hosts=agent.model_hosts,
            agent_user="agent",
            collect_commands=(STOP_AGENT,),
            **of_spec(limits),
        )
        return CellEnvironment(spec, None, tuple(self._warnings(environment, image, limits)))

    def _warnings(self, environment: type[BaseEnvironment], image: str, limits: LimitsRecord) -> list[str]:
        name, resources = self.name, environment.resource_capabilities()
        warnings = [
            f"environment {name}: it is not checked that {image} matches its requirements",
            f"environment {name}: what a killed run leaves there is removed by the service, not by orbit",
            f"environment {name} does not limit disk use to {limits.storage_mb} MiB",
        ]
        if resources is None or not resources.cpu_limit:
            warnings.append(f"environment {name} does not limit a trial to {limits.cpus} cores")
        if resources is None or not resources.memory_limit:
            warnings.append(f"environment {name} does not limit memory to {limits.memory_mb} MiB")
        return warnings

    def prepare(self, run_id: str, frameworks: Sequence[Framework], report: Progress) -> None:
        """Nothing is made here."""

    def to_harbor(self, run_id: str, agent: AgentSpec) -> EnvironmentConfig:
        """Harbor's own environment."""
        from harbor.models.environment_type import EnvironmentType
        from harbor.models.trial.config import EnvironmentConfig

        return EnvironmentConfig(type=EnvironmentType(self.name))


@functools.cache
def _environment_class(name: str) -> type[BaseEnvironment]:
    """The class, once its program or package and its credentials were found.

    Raises:
        SetupError: one of them is missing.
    """
    from harbor.environments.factory import _ENVIRONMENT_REGISTRY, EnvironmentFactory
    from harbor.models.environment_type import EnvironmentType

    kind = EnvironmentType(name)
    extra = _ENVIRONMENT_REGISTRY[kind].pip_extra
    missing = [] if extra is None else missing_packages(extra, metadata.requires("harbor") or [])
    if missing:
        raise SetupError(f"environment {name}: {', '.join(missing)} not installed; run pip install 'harbor[{extra}]'")
    preflight(kind=kind)
    return EnvironmentFactory.get_environment_class(kind)


def missing_packages(extra: str, requirements: Sequence[str]) -> list[str]:
    """Packages of one of harbor's extras that are not installed; harbor may find out in the middle of a trial."""
    found = []
    for requirement in requirements:
        if re.search(rf"""extra == ['"]{re.escape(extra)}['"]""", requirement):
            name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            try:
                metadata.version(name)
            except metadata.PackageNotFoundError:
                found.append(name)
    return found


def _capabilities(environment: type[BaseEnvironment]) -> EnvironmentCapabilities:
    """What an environment can enforce for a task of one container.

    harbor tells it of instances alone, and making one takes a trial. Most answer without looking at themselves, or look
    only at whether they run several containers; of any other nothing is known, and nothing is claimed.
    """
    from harbor.environments.capabilities import EnvironmentCapabilities

    instance = environment.__new__(environment)
    instance.__dict__["_compose_mode"] = False
    try:
        return instance.capabilities
    except (AttributeError, KeyError, TypeError, ValueError):
        return EnvironmentCapabilities()
