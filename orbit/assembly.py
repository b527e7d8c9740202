"""Assembly: task, framework, variant and contract become one self-contained harbor task directory.

The staged directory holds what an agent may know and nothing else: evaluator, oracle, exact values and mutants stay on
the host. Equal inputs give equal bytes, so its digest names what was asked. Task directories are only read.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orbit.errors import UsageError
from orbit.frameworks import Framework
from orbit.statements import render_prompt
from orbit.tasks import Task, TaskLimits

ARTIFACT_PATH = "/app/solution.py"
"""Where an agent leaves its file."""

# Timed run, its paired reference, two small probes and the full-size probe: a verification's limit is that of its runs.
N_RUNS = 5

_TEST_STUB = """\
#!/bin/sh
# Replaced by OrbitVerifier: the trusted judge runs on the host, so that nothing in here can be read or changed.
echo "this task is judged by orbit's verifier, which was not used; run it with 'orbit run'" >&2
exit 1
"""
_SOLVE = f"""\
#!/bin/sh
set -eu
mkdir -p "$(dirname {ARTIFACT_PATH})"
cp "$(dirname "$0")/solution.py" {ARTIFACT_PATH}
"""
_NO_IMAGE = """\
No image: the environment this task was assembled for runs the framework's own virtual environment on the host.
"""


@dataclass(frozen=True)
class EnvironmentSpec:
    """What a trial's environment is and what it can enforce.

    Attributes:
        kind: `local`, `docker` or another of harbor's environments.
        image: container image with the framework; None where there is none (`local`).
        can_enforce_no_network: whether it can cut a container off.
        can_enforce_allowlist: whether it can confine the agent to `allowed_hosts`.
        allowed_hosts: hosts the solving agent needs (its model endpoint); empty for agents that need no network.
        cpus, memory_mb, storage_mb, agent_timeout_sec: instead of the task's limits; clamping to the host is the
            caller's, who can say so.
        verifier_timeout_sec: instead of the runs' limits and the task's allowance for judging.
        agent_user: user that the agent runs as; None for the image's own.
        collect_commands: run in the solving environment after the agent ended and before its artifact is collected.
    """

    kind: str = "local"
    image: str | None = None
    can_enforce_no_network: bool = False
    can_enforce_allowlist: bool = False
    allowed_hosts: tuple[str, ...] = ()
    cpus: int | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    agent_timeout_sec: float | None = None
    verifier_timeout_sec: float | None = None
    agent_user: str | None = None
    collect_commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class StagedTask:
    """A staged task directory.

    Attributes:
        directory: a valid harbor task directory.
        digest: SHA-256 over names, executable bits and contents of its files.
        warnings: what the environment cannot enforce.
    """

    directory: Path
    digest: str
    warnings: tuple[str, ...] = ()


def stage(
    task: Task,
    framework: Framework,
    *,
    variant: str | None = None,
    contract: str,
    target: Path,
    environment: EnvironmentSpec,
    solution: Path | None = None,
) -> StagedTask:
    """Write a harbor task directory.

    Args:
        task: what is to be solved.
        framework: with what.
        variant: prompt variant of the framework.
        contract: version of the interface the artifact will be judged under.
        target: directory to make; one that exists must be equal to what would be written.
        environment: where it will run.
        solution: artifact that harbor's oracle agent copies into place, for agents that only bring a file.

    Raises:
        DataError: a statement or prompt template is missing or wrong.
        UsageError: unknown contract or variant, unreadable solution, or `target` exists and differs.
    """
    files = _files(task, framework, variant, contract, environment, solution)
    digest = _digest(files)
    if target.exists():
        if _digest(_read_directory(target)) != digest:
            raise UsageError(f"{target}: exists and differs from what would be staged; choose another run directory")
    else:
        _write(files, target)
    return StagedTask(directory=target, digest=digest, warnings=_warnings(environment))


def directory_digest(directory: Path) -> str:
    """The digest of a staged directory as it lies on disk, to notice a change."""
    return _digest(_read_directory(directory))


@dataclass(frozen=True)
class _File:
    data: bytes
    executable: bool = False


def _files(
    task: Task,
    framework: Framework,
    variant: str | None,
    contract: str,
    environment: EnvironmentSpec,
    solution: Path | None,
) -> dict[str, _File]:
    """Relative path to content."""
    instruction = f"{task.instruction(contract)}\n{render_prompt(framework, task, variant)}"
    files = {
        "instruction.md": _File(instruction.encode()),
        "task.toml": _File(_task_toml(task, framework, variant, contract, environment).encode()),
        "tests/test.sh": _File(_TEST_STUB.encode(), executable=True),
    }
    if environment.image is None:
        files["environment/README"] = _File(_NO_IMAGE.encode())
    else:
        files["environment/Dockerfile"] = _File(f"FROM {environment.image}\nWORKDIR /app\n".encode())
    if solution is not None:
        try:
            data = solution.read_bytes()
        except OSError as error:
            raise UsageError(f"{solution}: cannot be read ({error.strerror}); name a Python file") from error
        files["solution/solution.py"] = _File(data)
        files["solution/solve.sh"] = _File(_SOLVE.encode(), executable=True)
    return files


def _task_toml(
    task: Task, framework: Framework, variant: str | None, contract: str, environment: EnvironmentSpec
) -> str:
    limits = _limits(task.limits, environment)
    verifier_timeout = environment.verifier_timeout_sec
    if verifier_timeout is None:
        verifier_timeout = N_RUNS * limits.run_timeout_sec + limits.verification_extra_sec
    resources = {"cpus": limits.cpus, "memory_mb": limits.memory_mb, "storage_mb": limits.storage_mb}
    image = {} if environment.image is None else {"docker_image": environment.image}
    identity = {
        "schema_version": 1,
        "task": task.name,
        "framework": framework.name,
        "framework_version": framework.version,
        "requirements_digest": framework.requirements_digest,
        "contract": str(contract),
        "environment": environment.kind,
    }
    tables = [
        _table("task", {"name": task.name, "description": task.summary}),
        _table("metadata.orbit", identity if variant is None else {**identity, "variant": variant}),
        _table("agent", {"timeout_sec": limits.agent_timeout_sec, **_user(environment)}),
        _table("verifier", {"environment_mode": "separate", "timeout_sec": verifier_timeout}),
        *(_table("[verifier.collect]", {"command": command}) for command in environment.collect_commands),
        _table("verifier.environment", {**image, **resources, **_verifier_network(environment)}),
        _table("environment", {**image, **resources, **_agent_network(environment)}),
    ]
    head = _pairs({"schema_version": "1.4", "artifacts": [ARTIFACT_PATH]})
    return "\n".join([head, *tables])


def _limits(limits: TaskLimits, environment: EnvironmentSpec) -> TaskLimits:
    names = ("cpus", "memory_mb", "storage_mb", "agent_timeout_sec")
    return limits.model_copy(
        update={name: value for name in names if (value := getattr(environment, name)) is not None}
    )


def _user(environment: EnvironmentSpec) -> dict[str, str]:
    return {} if environment.agent_user is None else {"user": environment.agent_user}


def _agent_network(environment: EnvironmentSpec) -> dict[str, Any]:
    """The narrowest policy that the environment can enforce and the agent can work under."""
    if environment.allowed_hosts and environment.can_enforce_allowlist:
        return {"network_mode": "allowlist", "allowed_hosts": sorted(set(environment.allowed_hosts))}
    if not environment.allowed_hosts and environment.can_enforce_no_network:
        return {"network_mode": "no-network"}
    return {"network_mode": "public"}


def _verifier_network(environment: EnvironmentSpec) -> dict[str, Any]:
    return {"network_mode": "no-network" if environment.can_enforce_no_network else "public"}


def _warnings(environment: EnvironmentSpec) -> tuple[str, ...]:
    found = []
    if environment.allowed_hosts and not environment.can_enforce_allowlist:
        hosts = ", ".join(sorted(set(environment.allowed_hosts)))
        found.append(f"environment {environment.kind} cannot confine the agent to {hosts}: it has the whole network")
    if not environment.can_enforce_no_network:
        found.append(f"environment {environment.kind} does not cut the network off by itself")
    return tuple(found)


def _table(name: str, values: Mapping[str, Any]) -> str:
    return f"[{name}]\n{_pairs(values)}"


def _pairs(values: Mapping[str, Any]) -> str:
    # Strings, numbers and arrays of strings are written alike in TOML and in JSON.
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())


def _digest(files: Mapping[str, _File]) -> str:
    digest = hashlib.sha256()
    for name, file in sorted(files.items()):
        digest.update(f"{name}\0{'x' if file.executable else '-'}\0{len(file.data)}\0".encode() + file.data)
    return digest.hexdigest()


def _read_directory(directory: Path) -> dict[str, _File]:
    paths: Sequence[Path] = sorted(path for path in directory.rglob("*") if path.is_file() or path.is_symlink())
    return {
        path.relative_to(directory).as_posix(): _File(path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in paths
    }


def _write(files: Mapping[str, _File], target: Path) -> None:
    """Write beside the target and move into place, so that a crash leaves no half of a task."""
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        for name, file in files.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
        # Independent of the umask: the containers' users must be able to read it.
        for path in (work, *work.rglob("*")):
            executable = path.is_dir() or files[path.relative_to(work).as_posix()].executable
            path.chmod(0o755 if executable else 0o644)
        work.rename(target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
