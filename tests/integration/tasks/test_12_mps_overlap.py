from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task
from tests.unit.tasks.helpers import failed, judged

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/12-mps-overlap")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_reference_reaches_the_threshold_from_other_starts(run_reference, seed):
    evaluator = TASK.load_evaluator()
    config = evaluator.prepare(evaluator.draw_timed(TASK.config, np.random.default_rng(seed)))
    assert failed(judged(evaluator, config, run_reference(TASK, config))) == set()
