"""Who solves: `reference`, `file:PATH`, or one of harbor's agents."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from orbit.errors import SetupError, UsageError
from orbit.execution.agent_options import refuse_secrets
from orbit.execution.trials import AgentRecord

if TYPE_CHECKING:
    from harbor.models.trial.config import AgentConfig

    from orbit.tasks import Task

REFERENCE = "reference"
NOP = "nop"
_FILE = "file:"
_PREINSTALLED = {
    "codex": "orbit.execution.installed:OrbitCodex",
    "claude-code": "orbit.execution.installed:OrbitClaudeCode",
}
"""Agents whose command line is in our images, so that nothing is installed at run time, and their adapters."""

_KEY_VARIABLES = {
    "codex": ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_AUTH_JSON_PATH", "CODEX_FORCE_AUTH_JSON"),
    "claude-code": (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "AWS_BEARER_TOKEN_BEDROCK",
    ),
}
"""What each can get its credentials from; the first is what users are told to set."""

_PROVIDER_HOSTS = {"codex": ("api.openai.com",), "claude-code": ("api.anthropic.com",)}
_UNKNOWN_HOSTS = ("the model endpoint",)
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def _without_user(url: str) -> str:
    """The address without a name and password before its host."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@dataclass(frozen=True)
class AgentSpec:
    """An agent and how it is configured.

    Attributes:
        name: `reference`, `file:PATH`, `nop` or a name of harbor's.
        model: as the agent's own command line takes it.
        effort: reasoning effort.
        options: further keyword arguments of harbor's adapter.
        key_variable: the environment variable with the model's key; only its name is ever written down.
        base_url: another endpoint than the provider's.
        timeout_sec: for solving, instead of the task's.
        version: of the agent's program; an image that carries another one is refused.
    """

    name: str
    model: str | None = None
    effort: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    key_variable: str | None = None
    base_url: str | None = None
    timeout_sec: float | None = None
    version: str | None = None

    @property
    def copies_a_file(self) -> bool:
        """Whether it only puts an existing artifact in place."""
        return self.name == REFERENCE or self.name.startswith(_FILE)

    @property
    def is_trusted(self) -> bool:
        """Whether it runs nothing of a third party."""
        return self.copies_a_file or self.name == NOP

    @property
    def is_preinstalled(self) -> bool:
        """Whether our images carry its program, at a pinned version."""
        return self.name in _PREINSTALLED

    @property
    def endpoint_is_local(self) -> bool:
        """Whether the model is served on this machine, where only the host's own network reaches it."""
        return self.base_url is not None and urlsplit(self.base_url).hostname in _LOOPBACK

    @property
    def knows_its_hosts(self) -> bool:
        """Whether `model_hosts` are real host names."""
        return self.model_hosts != _UNKNOWN_HOSTS

    @property
    def model_hosts(self) -> tuple[str, ...]:
        """Hosts it must reach while solving; none for one that needs no network."""
        if self.is_trusted:
            return ()
        if self.base_url is not None:
            host = urlsplit(self.base_url).hostname
            return (host,) if host else _UNKNOWN_HOSTS
        return _PROVIDER_HOSTS.get(self.name, _UNKNOWN_HOSTS)

    def solution(self, task: Task, framework: str) -> Path | None:
        """The artifact to stage, None for an agent that writes its own.

        Raises:
            UsageError: the file does not exist, or there is no reference.
        """
        if self.name == REFERENCE:
            path = task.reference_path(framework)
            if path is None:
                raise UsageError(f"{task.name} has no reference in {framework}; give a solution with --agent file:PATH")
            return path
        if not self.name.startswith(_FILE):
            return None
        path = Path(self.name.removeprefix(_FILE)).expanduser()
        if not path.is_file():
            raise UsageError(f"--agent {self.name}: {path} is not a file")
        return path

    def record(self) -> AgentRecord:
        """What a run remembers of it; the digest tells a changed file from the same one."""
        sha256 = None
        if self.name.startswith(_FILE):
            path = Path(self.name.removeprefix(_FILE)).expanduser()
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        return AgentRecord(
            name=self.name,
            model=self.model,
            effort=self.effort,
            solution_sha256=sha256,
            version=self.version,
            options=dict(self.options),
            base_url=None if self.base_url is None else _without_user(self.base_url),
            key_variable=self.key_variable,
            timeout_sec=self.timeout_sec,
        )

    def check(self) -> None:
        """Find out early what would only be found when the agent runs.

        Raises:
            UsageError: no model is named, or an option cannot be given to this agent or may not be recorded.
            SetupError: the model's key is not in the environment.
        """
        if self.is_trusted and (self.options or self.version is not None):
            given = "--agent-option" if self.options else "--agent-version"
            raise UsageError(f"agent {self.name} runs no program of its own; leave {given} out")
        known = {name for names in _KEY_VARIABLES.values() for name in names}
        refuse_secrets(self.options, {*known, *([self.key_variable] if self.key_variable else [])})
        if self.name not in _KEY_VARIABLES:
            return
        if self.model is None:
            raise UsageError(f"agent {self.name}: no model is named; name one as provider/model")
        variables = (self.key_variable,) if self.key_variable else _KEY_VARIABLES[self.name]
        if not any(os.environ.get(variable) for variable in variables):
            raise SetupError(
                f"agent {self.name}: the environment variable {variables[0]} is not set; "
                "set it to the key of the model, or name the variable that has it"
            )

    def to_harbor(self) -> AgentConfig:
        """Harbor's configuration of this agent.

        Raises:
            UsageError: harbor has no agent of that name, or the agent has no such option.
        """
        from harbor.agents.factory import AgentFactory
        from harbor.models.agent.name import AgentName
        from harbor.models.trial.config import AgentConfig

        if self.copies_a_file:
            return AgentConfig(name=AgentName.ORACLE.value)
        if self.name not in {known.value for known in AgentName}:
            raise UsageError(f"--agent {self.name}: not one of reference, file:PATH and harbor's agents")
        options = dict(self.options)
        if self.name in _PREINSTALLED:
            options = {"skip_install": True, "disable_web_search": True, **options}
        if self.effort is not None:
            options["reasoning_effort"] = self.effort
        if self.version is not None:
            options["version"] = self.version
        config = AgentConfig(
            name=None if self.name in _PREINSTALLED else self.name,
            import_path=_PREINSTALLED.get(self.name),
            model_name=self.model,
            base_url=self.base_url,
            model_api_key_name=self.key_variable,
            kwargs=options,
            override_timeout_sec=self.timeout_sec,
        )
        try:
            AgentFactory.run_preflight(config)
        except ValueError as error:
            raise UsageError(f"agent {self.name}: {' '.join(str(error).split())}") from error
        return config
