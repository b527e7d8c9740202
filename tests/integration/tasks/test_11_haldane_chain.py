from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task
from orbit.verification.evaluator import RunKind
from tests.unit.tasks.helpers import failed, judged

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/11-haldane-chain")


@pytest.mark.parametrize("seed", range(4))
def test_reference_agrees_with_the_oracle(failures_of_a_draw, seed):
    assert failures_of_a_draw(TASK, seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 125))
def test_reference_agrees_with_the_oracle_on_many_draws(failures_of_a_draw, seed):
    assert failures_of_a_draw(TASK, seed) == []


@pytest.mark.slow  # minutes of training
def test_reference_passes_the_timed_run_and_draws_its_own_start(run_reference):
    config = dict(TASK.config)  # as the published contract calls it
    outputs = run_reference(TASK, config)
    start = TASK.load_evaluator().initial_parameters(config)
    assert np.abs(outputs["initial_parameters"] - start).max() < 1e-6
    assert failed(judged(TASK.load_evaluator(), config, outputs)) == set()


def test_reference_passes_three_steps_at_full_size(run_reference):
    config = TASK.load_evaluator().draw_full_probe(TASK.config, np.random.default_rng(0))
    outputs = run_reference(TASK, config)
    assert failed(judged(TASK.load_evaluator(), config, outputs, kind=RunKind.FULL_PROBE)) == set()
