from __future__ import annotations

import sys

import numpy as np
import pytest

from orbit.errors import HarnessError
from orbit.physics import mps
from orbit.tasks import find_task
from orbit.verification.evaluator import RunKind
from tests.unit.tasks.helpers import central_differences, failed, judged, single_precision_failures

TASK = find_task("orbit-q/01-mps-refinement")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()


def of_size(n, n_steps=8):
    drawn = (EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), n_steps) for seed in range(100))
    return next(config for config in drawn if config["n_qubits"] == n)


@pytest.fixture(scope="module")
def honest():
    """A short run on eight qubits that starts where the criteria of the published problem want it."""
    config = of_size(8, 30)
    start = 1e-4 * config["initial_parameters"]
    config = {**config, "initial_parameters": start, "learning_rate": 4e-6}
    outputs = ORACLE.solve(config)
    return {**config, "dmrg_energy": float(outputs["energy_history"].mean())}, outputs


def copied(outputs):
    return {key: np.array(value) for key, value in outputs.items()}


def test_parameter_count_of_the_statement():
    assert EVALUATOR.initial_parameters(dict(TASK.config)).shape == (570,)


@pytest.mark.parametrize("n", [8, 9])
def test_oracle_and_evaluator_agree_and_their_gradients_equal_central_differences(n):
    config = of_size(n)
    start = config["initial_parameters"]
    dense, cones = ORACLE.evaluate(config, start), EVALUATOR.evaluate(config, start, gradient=True)
    assert cones.observables["energy_history"] == pytest.approx(dense.observables["energy_history"], abs=1e-11)
    assert np.abs(cones.gradient - dense.gradient).max() < 1e-11
    picked = slice(0, start.size, 23)

    def energy(values):
        moved = start.copy()
        moved[picked] = values
        return ORACLE.evaluate(config, moved).observables["energy_history"]

    assert np.abs(central_differences(energy, start[picked]) - dense.gradient[picked]).max() < 1e-7


def test_the_energy_of_the_input_is_the_one_handed_over():
    config = of_size(8)
    identity = np.zeros_like(config["initial_parameters"])
    assert EVALUATOR.evaluate(config, identity).observables["energy_history"] == pytest.approx(config["dmrg_energy"])


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_the_outcome(mutation):
    config = of_size(9, 4)
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert np.abs(right["energy_history"] - wrong["energy_history"]).max() > 1e-3


def test_an_honest_outcome_passes(honest):
    assert failed(judged(EVALUATOR, *honest)) == set()


@pytest.mark.parametrize(
    ("entry", "shift", "check"),
    [
        (0, 0.01, "first_energy"),
        (-1, 0.01, "last_energy"),
        (-1, 3e-3, "energy_not_above"),
        (3, -50.0, "energy_lower_bound"),
    ],
)
def test_each_criterion_can_fail(honest, entry, shift, check):
    config, outputs = honest
    spoilt = copied(outputs)
    spoilt["energy_history"][entry] += shift
    assert check in failed(judged(EVALUATOR, config, spoilt))


def test_wrong_parameters_are_noticed(honest):
    config, outputs = honest
    spoilt = copied(outputs)
    spoilt["checkpoint_parameters"][2] += 0.1
    spoilt["final_parameters"] += 0.1
    found = failed(judged(EVALUATOR, config, spoilt, kind=RunKind.FULL_PROBE))
    assert {"recompute:energy_history", "continuity:energy_history"} <= found


@pytest.mark.parametrize("seed", range(2))
def test_single_precision_passes_a_probe(seed):
    assert single_precision_failures(TASK, seed) == []


def test_the_full_size_probe_is_drawn_so_that_a_capped_bond_shows(monkeypatch):
    small = {**TASK.config, "n_qubits": 10}
    config = EVALUATOR.draw_full_probe(small, np.random.default_rng(0))
    assert [site.shape[2] for site in mps.from_quimb(config["dmrg_state"])] == [2, 4, 8, 8, 8, 8, 8, 4, 2, 1]
    assert config["max_steps"] == 3
    assert 0.7 < config["initial_parameters"].std() < 0.9
    module = sys.modules[type(EVALUATOR).__module__]
    monkeypatch.setattr(module, "MAX_DRAWS", 2)
    monkeypatch.setattr(module, "BINDING_SHARE", 1)  # a cap at the exact bond dimension never shows
    with pytest.raises(HarnessError, match="2 draws in a row"):
        EVALUATOR.draw_full_probe(small, np.random.default_rng(0))
