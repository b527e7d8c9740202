"""What this machine can run, what is missing, and the command that fixes it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Literal

from pydantic import Field

import orbit
from orbit.errors import OrbitError
from orbit.records import Record

API_KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "DEEPSEEK_API_KEY",
    "OPENROUTER_API_KEY",
)
"""Environment variables that agents and judges read; only whether they are set is ever shown."""

ENVIRONMENT_BYTES = 3 * 2**30
"""Disk that making a framework environment may take, downloads included."""
MEMORY_BYTES = 4 * 2**30
"""Memory below which default-size runs are likely to be killed."""


class Level(StrEnum):
    """How a finding weighs."""

    OK = "ok"
    OPTIONAL = "optional"  # missing, and only some uses need it
    BROKEN = "broken"  # missing, and the embedded default needs it


class Finding(Record):
    """One thing looked at; `fix` is the command, or the sentence, that changes it."""

    name: str
    level: Level
    message: str
    fix: str = ""


class Report(Record):
    """Everything `orbit doctor` found."""

    schema_version: Literal[1] = 1
    findings: list[Finding] = Field(default_factory=list)
    works: bool
    """Whether the embedded default works: references run and are verified without Docker and without a key."""


def examine() -> Report:
    """Look at the machine; nothing is installed, started or changed."""
    checks: list[Callable[[], list[Finding]]] = [
        _python, _frameworks, _sandbox, _container_engine, _api_keys, _disk, _cores, _memory,
    ]  # fmt: skip
    findings = [finding for check in checks for finding in check()]
    return Report(findings=findings, works=all(finding.level is not Level.BROKEN for finding in findings))


def _python() -> list[Finding]:
    version = platform.python_version()
    enough = sys.version_info >= (3, 12)
    fix = "" if enough else "install Python 3.12 and reinstall orbit with it"
    message = f"{version} (orbit {orbit.__version__})"
    return [Finding(name="python", level=Level.OK if enough else Level.BROKEN, message=message, fix=fix), _harbor()]


def _harbor() -> Finding:
    """Looked up and not imported, which would take seconds."""
    try:
        return Finding(name="harbor", level=Level.OK, message=metadata.version("harbor"))
    except metadata.PackageNotFoundError:
        fix = "reinstall orbit in a fresh environment"
        return Finding(name="harbor", level=Level.BROKEN, message="not installed; runs need it", fix=fix)


def _frameworks() -> list[Finding]:
    """One line per framework; the one that the references are written in is needed by the embedded default."""
    from orbit.environments import environment_dir, environment_ready, find_interpreter
    from orbit.frameworks import REFERENCE_FRAMEWORK, all_frameworks

    findings = []
    for framework in all_frameworks():
        name, sync = f"framework {framework.name}", f"orbit frameworks sync {framework.name}"
        if environment_ready(framework):
            message = f"{framework.package} {framework.version} in {environment_dir(framework)}"
            findings.append(Finding(name=name, level=Level.OK, message=message))
            continue
        try:
            find_interpreter(framework.python)
            findings.append(
                Finding(name=name, level=Level.OPTIONAL, message="not made yet; made on first use", fix=sync)
            )
        except OrbitError as error:
            level = Level.BROKEN if framework.name == REFERENCE_FRAMEWORK else Level.OPTIONAL
            fix = f"uv python install {framework.python} && {sync}"
            findings.append(Finding(name=name, level=level, message=str(error).partition(";")[0], fix=fix))
    return findings


def _sandbox() -> list[Finding]:
    from orbit.verification.sandbox import probe_sandbox

    probe = probe_sandbox()
    if probe.kind != "process":
        return [Finding(name="sandbox", level=Level.OK, message=f"{probe.kind} works")]
    message = f"{probe.detail}; artifacts run as plain processes with limits, and the verdict says so"
    return [Finding(name="sandbox", level=Level.OPTIONAL, message=message, fix="apt-get install bubblewrap")]


def _container_engine() -> list[Finding]:
    """Docker, or anything that speaks its interface at DOCKER_HOST, such as Podman."""
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=5)
        try:
            version = str(client.version().get("Version", "unknown version"))
        finally:
            client.close()
    except DockerException:
        reason = "installed, but the engine does not answer" if shutil.which("docker") else "not found"
        fix = (
            "start it (`systemctl start docker`) or set DOCKER_HOST"
            if shutil.which("docker")
            else "apt-get install docker.io"
        )
        message = f"{reason}; only --environment docker and podman need one"
        return [Finding(name="container engine", level=Level.OPTIONAL, message=message, fix=fix)]
    return [Finding(name="container engine", level=Level.OK, message=f"docker API, engine {version}"), *_images()]


def _images() -> list[Finding]:
    """The framework images, asked for only where an engine answers."""
    from orbit.frameworks import all_frameworks
    from orbit.images import check_image

    findings = []
    for framework in all_frameworks():
        name = f"image {framework.name}"
        try:
            image = check_image(framework)
            findings.append(Finding(name=name, level=Level.OK, message=f"{image.name} is current"))
        except OrbitError as error:
            message, fix = str(error).partition(";")[0], f"orbit images build {framework.name}"
            findings.append(Finding(name=name, level=Level.OPTIONAL, message=message, fix=fix))
    return findings


def _api_keys() -> list[Finding]:
    findings = []
    for name in API_KEYS:
        if os.environ.get(name):
            findings.append(Finding(name=name, level=Level.OK, message="set"))
        else:
            message = "not set; only agents and judges of that provider need it"
            findings.append(Finding(name=name, level=Level.OPTIONAL, message=message, fix=f"export {name}=..."))
    return findings


def _disk() -> list[Finding]:
    from orbit.paths import cache_dir

    return [_free_space("disk, cache", cache_dir()), _free_space("disk, here", Path.cwd())]


def _free_space(name: str, directory: Path) -> Finding:
    from orbit.reports._text import memory

    existing = next(path for path in (directory, *directory.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    message = f"{memory(free)} free for {directory}"
    if free >= ENVIRONMENT_BYTES:
        return Finding(name=name, level=Level.OK, message=message)
    fix = f"free {memory(ENVIRONMENT_BYTES)} there, or point ORBIT_CACHE_DIR to another disk"
    return Finding(name=name, level=Level.BROKEN, message=message, fix=fix)


def _cores() -> list[Finding]:
    from orbit.host import cpu_model, n_cores_allowed

    n_cores = n_cores_allowed()
    message = f"{n_cores} allowed ({cpu_model() or 'unknown model'})"
    if n_cores >= 2:
        return [Finding(name="cores", level=Level.OK, message=message)]
    fix = "allow two cores or more; with one, judging disturbs what is timed"
    return [Finding(name="cores", level=Level.OPTIONAL, message=message, fix=fix)]


def _memory() -> list[Finding]:
    from orbit.host import memory_allowed_bytes
    from orbit.reports._text import memory

    allowed = memory_allowed_bytes()
    if allowed >= MEMORY_BYTES:
        return [Finding(name="memory", level=Level.OK, message=f"{memory(allowed)} allowed")]
    fix = f"allow {memory(MEMORY_BYTES)} or more"
    return [Finding(name="memory", level=Level.BROKEN, message=f"only {memory(allowed)} allowed", fix=fix)]
