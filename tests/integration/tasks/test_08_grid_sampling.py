from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task
from orbit.verification.evaluator import RunKind
from orbit.verification.probes import compare_joint, draw_probes
from tests.unit.tasks.helpers import failed, judged

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/08-grid-sampling")


def probe_failures(run_reference, seed):
    evaluator, oracle = TASK.load_evaluator(), TASK.load_oracle()
    (probe,) = draw_probes(evaluator, oracle, dict(TASK.config), [np.random.default_rng(seed)])
    outputs = [run_reference(TASK, run.config) for run in probe.runs]
    return failed(compare_joint(evaluator, oracle, probe, outputs, np.random.default_rng(seed)))


def test_reference_samples_the_exact_distribution(run_reference):
    assert probe_failures(run_reference, 0) == set()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 125))
def test_reference_samples_the_exact_distribution_on_many_draws(run_reference, seed):
    assert probe_failures(run_reference, seed) == set()


def test_reference_passes_the_published_configuration(run_reference):
    config = dict(TASK.config)
    assert failed(judged(TASK.load_evaluator(), config, run_reference(TASK, config))) == set()


def test_reference_passes_the_full_size_probe(run_reference):
    evaluator = TASK.load_evaluator()
    config = evaluator.draw_full_probe(dict(TASK.config), np.random.default_rng(1))
    assert failed(judged(evaluator, config, run_reference(TASK, config), kind=RunKind.FULL_PROBE)) == set()
