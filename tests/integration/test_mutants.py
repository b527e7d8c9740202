"""Every mutant of every task is rejected by the check that it names; correct solutions pass on the same draws."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orbit.environments import environment_python
from orbit.errors import DataError
from orbit.frameworks import REFERENCE_FRAMEWORK, find_framework
from orbit.tasks import Task, all_suites, all_tasks
from orbit.verification.mutants import (
    REFERENCE,
    Equivalent,
    Mutant,
    MutantTable,
    RunName,
    WarmWorker,
    load_equivalents,
    load_mutants,
    source_of,
)

pytestmark = pytest.mark.integration

TASKS = [
    task for suite in all_suites() for task in all_tasks(suite) if (task.directory / "tests/mutants.toml").is_file()
]
CASES = [(task, mutant) for task in TASKS for mutant in load_mutants(task)]
CORRECT = [
    (task, correct, run) for task in TASKS for correct in (REFERENCE, *load_equivalents(task)) for run in correct.runs
]


@pytest.fixture(scope="module")
def worker() -> Iterator[WarmWorker]:
    with WarmWorker(environment_python(find_framework(REFERENCE_FRAMEWORK))) as running:
        yield running


@pytest.fixture(scope="module")
def tables(worker: WarmWorker) -> dict[str, MutantTable]:
    return {task.name: MutantTable(task, worker) for task in TASKS}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_a_task_has_at_least_eight_mutants(task: Task) -> None:
    assert len(load_mutants(task)) >= 8


@pytest.mark.parametrize(("task", "mutant"), CASES, ids=[f"{task.number}-{mutant.name}" for task, mutant in CASES])
def test_mutant_dies(task: Task, mutant: Mutant, tables: dict[str, MutantTable], record_property) -> None:
    fate = tables[task.name].fate(mutant)
    assert fate.error is None, f"{mutant.name} does not run, so it proves nothing:\n{fate.error}"
    assert fate.evidence is not None, f"{mutant.name} ({mutant.why}) escapes {mutant.check}; caught by {fate.caught_by}"
    number = f"{fate.evidence.value} against {fate.evidence.limit}"
    line = f"{task.number} {mutant.name}: {fate.evidence.check} {number}"
    record_property("fate", line)
    print(line)


@pytest.mark.parametrize(
    ("task", "correct", "run"), CORRECT, ids=[f"{task.number}-{item.name}-{run}" for task, item, run in CORRECT]
)
def test_correct_solutions_survive_the_same_draws(
    task: Task, correct: Equivalent, run: RunName, tables: dict[str, MutantTable]
) -> None:
    assert tables[task.name].false_alarms(run, correct) == []


def test_a_replacement_that_does_not_match_once_is_refused() -> None:
    stray = Mutant(name="stray", why="", check="form", replace=(("this text stands nowhere", "x"),))
    with pytest.raises(DataError, match="occurs 0 times"):
        source_of(TASKS[0], stray)
