from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task
from tests.unit.tasks.helpers import failed, judged

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/12-mps-overlap")


@pytest.mark.parametrize("seed", range(4))
def test_reference_agrees_with_the_oracle(failures_of_a_draw, seed):
    assert failures_of_a_draw(TASK, seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 125))
def test_reference_agrees_with_the_oracle_on_many_draws(failures_of_a_draw, seed):
    assert failures_of_a_draw(TASK, seed) == []


def test_reference_passes_the_timed_run_and_draws_its_own_start(run_reference):
    evaluator = TASK.load_evaluator()
    config = evaluator.prepare(dict(TASK.config))  # as the published contract calls it
    outputs = run_reference(TASK, config)
    assert np.abs(outputs["initial_parameters"] - evaluator.initial_parameters(config)).max() < 1e-6
    assert failed(judged(evaluator, config, outputs)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_reference_reaches_the_threshold_from_other_starts(run_reference, seed):
    evaluator = TASK.load_evaluator()
    config = evaluator.prepare(evaluator.draw_timed(TASK.config, np.random.default_rng(seed)))
    assert failed(judged(evaluator, config, run_reference(TASK, config))) == set()
