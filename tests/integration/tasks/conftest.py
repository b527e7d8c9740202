"""One warm interpreter of the reference framework for all task tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from orbit.environments import environment_python
from orbit.frameworks import find_framework
from orbit.tasks import Task
from orbit.verification.evaluator import Config, Outputs
from orbit.verification.mutants import WarmWorker
from orbit.verification.pipeline import REFERENCE_FRAMEWORK
from orbit.verification.probes import compare, draw_probe
from orbit.verification.verdict import Evidence, Outcome


@pytest.fixture(scope="session")
def worker() -> Iterator[WarmWorker]:
    with WarmWorker(environment_python(find_framework(REFERENCE_FRAMEWORK))) as running:
        yield running


@pytest.fixture
def run_reference(worker: WarmWorker) -> Callable[[Task, Config], Outputs]:
    """Outputs of a task's reference."""

    def run(task: Task, config: Config) -> Outputs:
        path = task.reference_path(REFERENCE_FRAMEWORK)
        assert path is not None
        outputs, error = worker.run(path.read_text(), config)
        assert outputs is not None, error
        return outputs

    return run


@pytest.fixture
def failures_of_a_draw(run_reference) -> Callable[[Task, int], list[Evidence]]:
    """What the probe with a given seed holds against a task's reference."""

    def run(task: Task, seed: int) -> list[Evidence]:
        evaluator, oracle = task.load_evaluator(), task.load_oracle()
        probe = draw_probe(
            evaluator, oracle, dict(task.config), np.random.default_rng(seed), name=f"draw-{seed}", long=seed % 2 == 1
        )
        evidence = compare(evaluator, probe, run_reference(task, probe.run.config))
        return [item for item in evidence if item.outcome is Outcome.FAIL]

    return run
