from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task
from orbit.verification.evaluator import RunKind
from tests.unit.tasks.helpers import failed, judged

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/01-mps-refinement")


@pytest.mark.parametrize("seed", range(2))
def test_reference_agrees_with_the_oracle(failures_of_a_draw, seed):
    assert failures_of_a_draw(TASK, seed) == []


def test_reference_passes_three_steps_at_full_size(run_reference):
    evaluator = TASK.load_evaluator()
    config = evaluator.prepare(evaluator.draw_full_probe(TASK.config, np.random.default_rng(1)))
    outputs = run_reference(TASK, config)
    assert failed(judged(evaluator, config, outputs, kind=RunKind.FULL_PROBE)) == set()
