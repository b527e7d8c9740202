"""Tasks as data: `tasks/<suite>/<id>/` with its configuration, statement and trusted judge.

A task directory is also a valid harbor task directory; what harbor does not know lies under `[metadata.orbit]` of its
`task.toml`. Nothing here knows which tasks or suites exist.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from orbit._names import unknown_name
from orbit._toml import read_toml, validate
from orbit.errors import DataError
from orbit.paths import data_root
from orbit.records import read_record

if TYPE_CHECKING:
    from types import ModuleType

    from orbit.verification.evaluator import Evaluator, Oracle

DEFAULT_SUITE = "orbit-q"
DEFAULT_CONTRACT = "orbit-2"
SHARED_STATEMENT = "shared.md.j2"
_ID = re.compile(r"^(\d+)-[a-z0-9]+(-[a-z0-9]+)*$")


def _frozen(value: Any) -> Any:
    """TOML and JSON have lists where a configuration has tuples."""
    return tuple(_frozen(item) for item in value) if isinstance(value, list | tuple) else value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskLimits(_Strict):
    """What an agent and its artifact may use by default. Seconds, cores, MiB."""

    agent_timeout_sec: float = Field(default=1800.0, gt=0)
    run_timeout_sec: float = Field(default=900.0, gt=0)
    verification_extra_sec: float = Field(default=600.0, gt=0)
    cpus: int = Field(default=14, gt=0)
    memory_mb: int = Field(default=32768, gt=0)
    storage_mb: int = Field(default=16384, gt=0)


ConfigValue = Annotated[Any, AfterValidator(_frozen)]


class _OrbitSection(_Strict):
    """`[metadata.orbit]`."""

    schema_version: Literal[1]
    title: str = Field(min_length=1)
    max_lines: int = Field(default=200, gt=0)
    run_timeout_sec: float = Field(default=900.0, gt=0)
    recommended_runtime_sec: float = Field(default=300.0, gt=0)
    verification_extra_sec: float = Field(default=600.0, gt=0)
    contracts: tuple[str, ...] = Field(default=(DEFAULT_CONTRACT,), min_length=1)
    config: dict[str, ConfigValue] = Field(min_length=1)

    @field_validator("config")
    @classmethod
    def _plain_values(cls, config: dict[str, Any]) -> dict[str, Any]:
        for key, value in config.items():
            if not key.isidentifier():
                raise ValueError(f"{key!r} is not a Python identifier")
            flat = [value]
            while flat:
                item = flat.pop()
                if isinstance(item, tuple):
                    flat.extend(item)
                elif not isinstance(item, bool | int | float | str):
                    raise ValueError(
                        f"{key} holds a {type(item).__name__}; use numbers, strings, booleans and arrays of them"
                    )
        return config


class _Agent(BaseModel):
    timeout_sec: float = Field(default=1800.0, gt=0)


class _Environment(BaseModel):
    cpus: int = Field(default=14, gt=0)
    memory_mb: int = Field(default=32768, gt=0)
    storage_mb: int = Field(default=16384, gt=0)


class _Package(BaseModel):
    description: str = Field(min_length=1)


class _Metadata(BaseModel):
    orbit: _OrbitSection


class _TaskFile(BaseModel):
    """The part of harbor's `task.toml` that is read here; harbor validates the rest."""

    task: _Package
    agent: _Agent = _Agent()
    environment: _Environment = _Environment()
    metadata: _Metadata


class _ExactEntry(_Strict):
    config: dict[str, ConfigValue]
    values: dict[str, float | list[float]]
    method: str
    command: str


class ExactReferences(_Strict):
    """`tests/exact.json`: stored exact values, each with the configuration it depends on and how it was made."""

    schema_version: Literal[1] = 1
    entries: list[_ExactEntry]


class Task(_Strict):
    """One framework-neutral research workflow.

    Attributes:
        suite: directory under `tasks/`.
        id: directory name, such as `NN-some-name`.
        number: the digits in front of it.
        config: the published default configuration; keys that an evaluator computes are not in it.
        contracts: versions of the interface this task can be judged under, the default first.
        recommended_runtime_sec: what a submission is told to stay under.
    """

    suite: str
    id: str
    number: str
    title: str
    summary: str
    directory: Path
    config: dict[str, Any]
    limits: TaskLimits
    max_lines: int = 200
    contracts: tuple[str, ...] = (DEFAULT_CONTRACT,)
    recommended_runtime_sec: float = 300.0

    @property
    def name(self) -> str:
        """Full name, `suite/id`."""
        return f"{self.suite}/{self.id}"

    @property
    def instruction_path(self) -> Path:
        """The physics part of the statement."""
        return self.directory / "instruction.md"

    @property
    def evaluator_path(self) -> Path:
        """The trusted checks."""
        return self.directory / "tests" / "evaluator.py"

    @property
    def oracle_path(self) -> Path:
        """The independent implementation that probes are compared with."""
        return self.directory / "tests" / "oracle.py"

    @property
    def exact_path(self) -> Path:
        """Stored exact references."""
        return self.directory / "tests" / "exact.json"

    def load_evaluator(self) -> Evaluator:
        """The `EVALUATOR` of `tests/evaluator.py`.

        Raises:
            DataError: the file is missing or defines no `EVALUATOR`.
        """
        evaluator: Evaluator = _attribute(self._module("evaluator", self.evaluator_path), "EVALUATOR")
        evaluator.lookup_exact = self.exact
        return evaluator

    def load_oracle(self) -> Oracle:
        """The `ORACLE` of `tests/oracle.py`.

        Raises:
            DataError: the file is missing or defines no `ORACLE`.
        """
        oracle: Oracle = _attribute(self._module("oracle", self.oracle_path), "ORACLE")
        return oracle

    def exact(self, config: Mapping[str, Any]) -> dict[str, float | list[float]] | None:
        """Stored exact values of a configuration, or None if it is not among the stored ones."""
        if not self.exact_path.is_file():
            return None
        keys = self.load_evaluator().exact_keys()
        wanted = {key: _plain(config[key]) for key in keys}
        for entry in read_record(self.exact_path, ExactReferences).entries:
            if {key: _plain(entry.config.get(key)) for key in keys} == wanted:
                return dict(entry.values)
        return None

    def instruction(self, contract: str = DEFAULT_CONTRACT) -> str:
        """The whole statement: the physics part, then the rules that all tasks of the suite share.

        Raises:
            DataError: a part is missing.
            UsageError: the task is not judged under that contract.
        """
        from orbit.statements import render_statement

        return render_statement(self, contract)

    def reference_path(self, framework: str) -> Path | None:
        """The expert-written artifact in a framework, or None if nobody wrote one."""
        path = data_root() / "references" / self.suite / self.id / f"{framework}.py"
        return path if path.is_file() else None

    def evaluator_digest(self) -> str:
        """SHA-256 over what decides a verdict: `tests/*.py`, `tests/exact.json` and `task.toml`."""
        digest = hashlib.sha256()
        tests = sorted((self.directory / "tests").glob("*.py"))
        for path in (*tests, self.exact_path, self.directory / "task.toml"):
            if path.is_file():
                data = path.read_bytes()
                digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
        return digest.hexdigest()

    def _module(self, role: str, path: Path) -> ModuleType:
        return _import_file(f"orbit_task_{self.suite}_{self.id}_{role}".replace("-", "_"), path)


def load_task(directory: Path) -> Task:
    """Read one task directory.

    Raises:
        DataError: `task.toml` is missing or wrong, or the directory is not named `NN-some-name`.
    """
    match = _ID.match(directory.name)
    if match is None:
        raise DataError(f"{directory}: a task directory is named NN-lower-case-words; rename it")
    path = directory / "task.toml"
    file = validate(path, _TaskFile, read_toml(path))
    orbit = file.metadata.orbit
    limits = TaskLimits(
        agent_timeout_sec=file.agent.timeout_sec,
        run_timeout_sec=orbit.run_timeout_sec,
        verification_extra_sec=orbit.verification_extra_sec,
        **file.environment.model_dump(),
    )
    return Task(
        suite=directory.parent.name,
        id=directory.name,
        number=match[1],
        title=orbit.title,
        summary=file.task.description,
        directory=directory,
        config=orbit.config,
        limits=limits,
        max_lines=orbit.max_lines,
        contracts=orbit.contracts,
        recommended_runtime_sec=orbit.recommended_runtime_sec,
    )


def all_suites() -> list[str]:
    """Names of the suites: directories under `tasks/` that hold tasks."""
    return sorted({path.parent.parent.name for path in (data_root() / "tasks").glob("*/*/task.toml")})


def all_tasks(suite: str = DEFAULT_SUITE) -> list[Task]:
    """Every task of a suite, by number.

    Raises:
        UsageError: there is no such suite.
    """
    return [load_task(directory) for directory in _task_directories(suite)]


def find_task(name: str) -> Task:
    """A task by number (`2` or `02`), id or `suite/id`; without a suite the default one is meant.

    Raises:
        UsageError: there is none; the text names the near matches.
    """
    suite, _, wanted = name.strip().strip("/").rpartition("/")
    suite = suite or DEFAULT_SUITE
    directories = {directory.name: directory for directory in _task_directories(suite)}
    if wanted in directories:
        return load_task(directories[wanted])
    if wanted.isdecimal():
        for task_id, directory in directories.items():
            if int(task_id.partition("-")[0]) == int(wanted):
                return load_task(directory)
    raise unknown_name(f"task of suite {suite}", wanted, list(directories))


def _task_directories(suite: str) -> list[Path]:
    suites = all_suites()
    if suite not in suites:
        raise unknown_name("suite", suite, suites)
    return sorted(path.parent for path in (data_root() / "tasks" / suite).glob("*/task.toml"))


def _plain(value: Any) -> Any:
    """A value as JSON would give it back, so that arrays, tuples and lists compare."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return json.loads(json.dumps(value))


@cache
def _import_file(name: str, path: Path) -> ModuleType:
    """Import a file under a name of its own; once per process, so that its caches live on."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise DataError(f"{path}: no such file; the task cannot be judged without it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _attribute(module: ModuleType, name: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        raise DataError(f"{module.__file__}: defines no {name}; add an instance under that name") from None
