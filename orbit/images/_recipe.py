"""What an image is built from: the pinned agent command lines, the reference's framework, the labels."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from orbit._toml import read_toml, validate
from orbit.frameworks import find_framework
from orbit.paths import data_root

REFERENCE_FRAMEWORK = "tensorcircuit"
"""The framework whose expert programs set the time unit; every image carries its environment."""

AGENT_USER = "agent"
"""Who solves and who runs artifacts, in every image; uid 1000."""

REFERENCE_USER = "reference"
"""Who runs the reference, in every image; uid 1001. The agent's user cannot read its environment."""

FRAMEWORK_LABEL = "orbit.framework"
VERSION_LABEL = "orbit.framework-version"
PYTHON_LABEL = "orbit.python"
REQUIREMENTS_LABEL = "orbit.requirements-digest"
REFERENCE_LABEL = "orbit.reference-digest"
BASE_LABEL = "orbit.base-image"
AGENT_LABEL_PREFIX = "orbit.agent."

_Version = Annotated[str, StringConstraints(pattern=r"^\d[0-9A-Za-z.+-]*$")]


class _AgentPin(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    package: str
    version: _Version


class _AgentsFile(BaseModel):
    """`images/agents.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1]
    codex: _AgentPin
    claude_code: _AgentPin = Field(alias="claude-code")


def reference_python() -> str:
    """Path of the reference environment's interpreter in every image; only root and `REFERENCE_USER` can run it."""
    return f"/opt/orbit/reference/python/bin/python{find_framework(REFERENCE_FRAMEWORK).python}"


def agent_versions() -> dict[str, str]:
    """The version of each agent command line that an image carries, by agent name.

    Raises:
        DataError: `images/agents.toml` is missing or wrong.
    """
    path = data_root() / "images" / "agents.toml"
    file = validate(path, _AgentsFile, read_toml(path))
    return {"codex": file.codex.version, "claude-code": file.claude_code.version}
