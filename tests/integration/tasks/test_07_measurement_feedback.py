from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task
from orbit.verification.evaluator import Run, RunKind
from orbit.verification.mutants import load_equivalents, source_of
from tests.unit.tasks.helpers import failed, judged

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/07-measurement-feedback")


@pytest.mark.slow
def test_reference_passes_the_timed_run_and_the_published_one(run_reference):
    evaluator = TASK.load_evaluator()
    for config in (
        evaluator.draw_timed(dict(TASK.config), np.random.default_rng(0)),
        evaluator.prepare(dict(TASK.config)),
    ):
        assert failed(judged(evaluator, config, run_reference(TASK, config))) == set()


@pytest.mark.slow
def test_rounding_neither_changes_outcomes_nor_looks_like_training(run_file):
    """Ancilla angles of a full register drift by rounding, as the reference's do not."""
    evaluator = TASK.load_evaluator()
    (full_register,) = load_equivalents(TASK)
    small = {**TASK.config, "n_data_qubits": 3, "n_ancilla_qubits": 3, "n_qubits": 6}
    for seed in range(3):
        config = evaluator.draw_timed(small, np.random.default_rng(seed))
        outputs = run_file(source_of(TASK, full_register), config)
        ancillas = [np.reshape(outputs[key], (2, 6, 3))[:, 1] for key in ("initial_parameters", "final_parameters")]
        assert 1e-3 < np.abs(ancillas[1] - ancillas[0]).max() < 0.6
        evidence = evaluator.task_checks(Run(RunKind.TIMED, "timed", config), outputs)
        assert len(evidence) == 2
        assert failed(evidence) == set()
