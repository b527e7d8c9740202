"""Every mutant of every task is rejected by the check that it names; the reference passes on the same draws."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orbit.environments import environment_python
from orbit.errors import DataError
from orbit.frameworks import REFERENCE_FRAMEWORK, find_framework
from orbit.tasks import Task, all_suites, all_tasks
from orbit.verification.mutants import Mutant, MutantTable, WarmWorker, load_mutants, source_of
from orbit.verification.verdict import Outcome

pytestmark = pytest.mark.integration

TASKS = [
    task for suite in all_suites() for task in all_tasks(suite) if (task.directory / "tests/mutants.toml").is_file()
]
CASES = [(task, mutant) for task in TASKS for mutant in load_mutants(task)]


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


@pytest.mark.parametrize("run", ["probe", "full-probe"])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_reference_survives_the_same_draws(task: Task, run: str, tables: dict[str, MutantTable]) -> None:
    failed = [item for item in tables[task.name].reference_evidence(run) if item.outcome is Outcome.FAIL]
    assert failed == []


def test_a_replacement_that_does_not_match_once_is_refused() -> None:
    stray = Mutant(name="stray", why="", check="form", replace=(("this text stands nowhere", "x"),))
    with pytest.raises(DataError, match="occurs 0 times"):
        source_of(TASKS[0], stray)
