"""Which harbor environment a run uses, what it can enforce, and what must be ready before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbit.assembly import EnvironmentSpec
from orbit.errors import UsageError
from orbit.execution._roots import bubblewrap
from orbit.execution.agents import AgentSpec

if TYPE_CHECKING:
    from harbor.models.trial.config import EnvironmentConfig

    from orbit.frameworks import Framework

Progress = Callable[[str], None]


class EnvironmentChoice(ABC):
    """One kind of environment."""

    @abstractmethod
    def spec(self, framework: Framework, agent: AgentSpec) -> EnvironmentSpec:
        """What a task is staged for."""

    @abstractmethod
    def prepare(self, frameworks: Sequence[Framework], report: Progress) -> None:
        """Make or find what trials will need, so that none of it counts as their time.

        Raises:
            SetupError: it cannot be had on this machine.
        """

    @abstractmethod
    def to_harbor(self, run_id: str) -> EnvironmentConfig:
        """Harbor's configuration of it."""

    def clean_up(self, run_id: str) -> None:  # noqa: B027 most kinds leave nothing
        """Remove what an interrupted run may have left."""


@dataclass(frozen=True)
class LocalChoice(EnvironmentChoice):
    """The host itself."""

    allow_unsandboxed: bool = False

    def spec(self, framework: Framework, agent: AgentSpec) -> EnvironmentSpec:
        """A trusted agent needs no network, and bubblewrap can take it away."""
        return EnvironmentSpec(kind="local", can_enforce_no_network=bubblewrap() is not None and agent.is_trusted)

    def prepare(self, frameworks: Sequence[Framework], report: Progress) -> None:
        """Make the frameworks' virtual environments."""
        from orbit.environments import environment_python

        for framework in frameworks:
            environment_python(framework, progress=report)

    def to_harbor(self, run_id: str) -> EnvironmentConfig:
        """`LocalEnvironment` by import path."""
        from harbor.models.trial.config import EnvironmentConfig

        return EnvironmentConfig(
            import_path="orbit.execution.local:LocalEnvironment",
            kwargs={"allow_unsandboxed": self.allow_unsandboxed},
        )


def choose_environment(name: str, *, allow_unsandboxed: bool = False) -> EnvironmentChoice:
    """The environment of that name.

    Raises:
        UsageError: there is none.
    """
    if name == "local":
        return LocalChoice(allow_unsandboxed=allow_unsandboxed)
    raise UsageError(f"--environment {name}: not one of local")
