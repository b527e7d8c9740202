from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task
from orbit.verification.evaluator import RunKind
from tests.unit.tasks.helpers import failed, judged

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/09-lightcone-512")


@pytest.mark.parametrize("seed", range(3))
def test_reference_agrees_with_the_oracle(failures_of_a_draw, seed):
    assert failures_of_a_draw(TASK, seed) == []


def test_reference_passes_three_steps_at_full_size(run_reference):
    evaluator = TASK.load_evaluator()
    config = evaluator.prepare(evaluator.draw_full_probe(TASK.config, np.random.default_rng(1)))
    outputs = run_reference(TASK, config)
    assert failed(judged(evaluator, config, outputs, kind=RunKind.FULL_PROBE)) == set()


def test_reference_draws_the_prescribed_start(run_reference):
    evaluator = TASK.load_evaluator()
    config = evaluator.prepare({**TASK.config, "n_restarts": 2, "max_steps": 2})
    outputs = run_reference(TASK, config)
    assert np.array_equal(outputs["initial_parameters"], evaluator.initial_parameters(config))
    assert outputs["observable_history"].shape == (2, 2)
    assert "checkpoint_parameters" not in outputs
