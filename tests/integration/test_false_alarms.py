"""A correct solution is never failed: references on real draws, and the oracle rounded and perturbed like float32.

Slow on purpose and run on demand (`pytest -m slow`); what came of it is recorded in docs/false-alarms.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from orbit.environments import environment_python
from orbit.frameworks import REFERENCE_FRAMEWORK, find_framework
from orbit.tasks import Task, all_suites, all_tasks
from orbit.verification import probes
from orbit.verification.evaluator import Evaluator
from orbit.verification.mutants import WarmWorker
from orbit.verification.verdict import Evidence, Outcome

pytestmark = [pytest.mark.slow, pytest.mark.integration]

N_REFERENCE_DRAWS = 25
N_PERTURBED_DRAWS = 200


def has_single_probes(task: Task) -> bool:
    """Whether probes are compared with the oracle one by one; joint ones have tests of their own."""
    return type(task.load_evaluator()).draw_joint_probe is Evaluator.draw_joint_probe


TASKS = [
    task
    for suite in all_suites()
    for task in all_tasks(suite)
    if task.oracle_path.is_file() and has_single_probes(task)
]


@pytest.fixture(scope="module")
def worker() -> Iterator[WarmWorker]:
    with WarmWorker(environment_python(find_framework(REFERENCE_FRAMEWORK))) as running:
        yield running


def drawn(task: Task, seed: int) -> probes.Probe:
    rng = np.random.default_rng([7, seed])
    return probes.draw_probe(
        task.load_evaluator(), task.load_oracle(), dict(task.config), rng, name=f"draw-{seed}", long=seed % 2 == 0
    )


def alarms(evidence: list[Evidence]) -> list[str]:
    bad = (Outcome.FAIL, Outcome.FLAG)
    return [f"{e.run} {e.check}: {e.value} > {e.limit} ({e.message})" for e in evidence if e.outcome in bad]


def worst(evidence: list[Evidence]) -> float:
    compared = [e for e in evidence if e.check.startswith("probe:") and isinstance(e.value, float)]
    return max(e.value / e.limit for e in compared if isinstance(e.value, float) and isinstance(e.limit, float))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_the_reference_passes_every_draw(task: Task, worker: WarmWorker) -> None:
    reference = task.reference_path(REFERENCE_FRAMEWORK)
    assert reference is not None
    largest, found = 0.0, []
    for seed in range(N_REFERENCE_DRAWS):
        probe = drawn(task, seed)
        outputs, error = worker.run(reference.read_text(), probe.run.config)
        assert outputs is not None, error
        evidence = probes.compare(task.load_evaluator(), probe, outputs)
        found += alarms(evidence)
        largest = max(largest, worst(evidence))
    print(f"{task.id}: reference, {N_REFERENCE_DRAWS} draws, worst distance {largest:.3f} of its tolerance")
    assert found == []


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_the_perturbed_oracle_passes_every_draw(task: Task) -> None:
    evaluator, oracle = task.load_evaluator(), task.load_oracle()
    largest, found = 0.0, []
    for seed in range(N_PERTURBED_DRAWS):
        probe = drawn(task, seed)
        noise = probes.single_precision_noise(oracle, np.random.default_rng([8, seed]))
        exact = oracle.solve(probe.run.config, noise=noise)
        rounded = {k: v.astype(np.float32) if v.dtype.kind == "f" else v for k, v in exact.items()}
        evidence = probes.compare(evaluator, probe, rounded)
        found += alarms(evidence)
        largest = max(largest, worst(evidence))
    print(f"{task.id}: perturbed oracle, {N_PERTURBED_DRAWS} draws, worst distance {largest:.3f} of its tolerance")
    assert found == []
