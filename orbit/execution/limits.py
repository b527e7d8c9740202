"""What a trial may use: the task's limits, what the user asked for instead, and what the machine has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from orbit.assembly import N_RUNS
from orbit.errors import UsageError
from orbit.execution.trials import LimitsRecord, OptionValue
from orbit.tasks import Task, TaskLimits

_RESOURCES = {"cpus": "cores", "memory_mb": "MiB of memory", "storage_mb": "MiB of disk"}


@dataclass(frozen=True)
class Overrides:
    """Limits instead of the task's own; None keeps the task's. Seconds, cores, MiB."""

    cpus: int | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    run_timeout_sec: float | None = None
    verification_timeout_sec: float | None = None

    def record(self) -> LimitsRecord:
        """As it is written down."""
        return LimitsRecord(**asdict(self))

    def check(self) -> None:
        """Find out early what no machine can give.

        Raises:
            UsageError: one of them is not above 0.
        """
        for name, value in asdict(self).items():
            if value is not None and not value > 0:
                flag = name.removesuffix("_sec").replace("_", "-")
                raise UsageError(f"--{flag} {value:g}: must be above 0")


@dataclass(frozen=True)
class Capacity:
    """What the machine has that runs the trials; None where that cannot be known. Cores, MiB."""

    cpus: int | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None


def with_limits(task: Task, changes: Mapping[str, float | None]) -> Task:
    """The task with other limits; None keeps its own."""
    known = {name: value for name, value in changes.items() if value is not None and name in TaskLimits.model_fields}
    return task.model_copy(update={"limits": task.limits.model_copy(update=known)})


def effective_limits(
    task: TaskLimits, asked: Overrides, capacity: Capacity, options: Mapping[str, OptionValue]
) -> tuple[LimitsRecord, tuple[str, ...]]:
    """The limits of a cell, and a note for each that the machine cannot give.

    The time of a verification grows with what is asked of it: a task's own limit is meant for one pair and two probes.

    Args:
        task: the task's limits.
        asked: instead of them.
        capacity: of the machine.
        options: of the verification.
    """
    limits, notes = {}, []
    for name, unit in _RESOURCES.items():
        wanted = getattr(asked, name) or getattr(task, name)
        there = getattr(capacity, name)
        limits[name] = wanted if there is None else min(wanted, there)
        if limits[name] < wanted:
            notes.append(f"{limits[name]} {unit} instead of {wanted}: the machine has no more")
    run_sec = asked.run_timeout_sec or task.run_timeout_sec
    n_runs = max(N_RUNS, 2 * _number(options, "n_pairs", 1) + _number(options, "n_probes", 2) + 1)
    verification_sec = asked.verification_timeout_sec or n_runs * run_sec + task.verification_extra_sec
    record = LimitsRecord(**limits, run_timeout_sec=run_sec, verification_timeout_sec=verification_sec)
    return record, tuple(notes)


def _number(options: Mapping[str, OptionValue], name: str, default: int) -> int:
    value = options.get(name)
    return value if isinstance(value, int) else default
