from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/09-lightcone-512")


def test_reference_draws_the_prescribed_start(run_reference):
    evaluator = TASK.load_evaluator()
    config = evaluator.prepare({**TASK.config, "n_restarts": 2, "max_steps": 2})
    outputs = run_reference(TASK, config)
    assert np.array_equal(outputs["initial_parameters"], evaluator.initial_parameters(config))
    assert outputs["observable_history"].shape == (2, 2)
    assert "checkpoint_parameters" not in outputs
