from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.errors import HarnessError
from orbit.physics.gates import pauli
from orbit.tasks import find_task
from orbit.verification import exact
from orbit.verification.evaluator import RunKind
from orbit.verification.verdict import Contract, Outcome
from tests.unit.tasks.helpers import central_differences, failed, judged

TASK = find_task("orbit-q/10-cz-hyperedge")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()


def small_config(seed=0, n_steps=8, **changes):
    return {**EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), n_steps), **changes}


@pytest.fixture(scope="module")
def honest():
    config = small_config(4, 60, checkpoint_steps=(1, 2, 9), maximum_energy_density_gap=1.0)
    return config, ORACLE.solve(config)


def embedded(word, site, n):
    return np.kron(np.kron(np.eye(2**site), pauli(word)), np.eye(2 ** (n - site - len(word))))


def textbook(config, parameters):
    """Full matrices and matrix exponentials, straight from the statement."""
    n = config["n_qubits"]
    state = np.zeros(2**n, dtype=complex)
    state[sum(2 ** (n - 1 - q) for q in config["initial_ones"])] = 1
    for angles in parameters:
        for qubit in range(n):
            for word, angle in zip("XZY", angles[qubit], strict=True):
                state = expm(-0.5j * angle * embedded(word, qubit, n)) @ state
        for index in range(2**n):
            if all(index >> (n - 1 - q) & 1 for q in config["selected_qubits"]):
                state[index] *= -1
    hamiltonian = -config["x_strength"] * sum(embedded("X", q, n) for q in range(n))
    hamiltonian = hamiltonian - config["zz_strength"] * sum(embedded("ZZ", q, n) for q in range(n - 1))
    return np.vdot(state, hamiltonian @ state).real / n


def five_qubits():
    config = small_config(n_qubits=5, selected_qubits=(0, 2, 3), initial_ones=(1, 2), n_layers=3)
    config["initial_parameters"] = np.random.default_rng(5).uniform(-1.5, 1.5, (3, 5, 3))
    return config


def test_parameter_count_of_the_statement():
    assert EVALUATOR.initial_parameters(dict(TASK.config)).size == 132


def test_oracle_and_evaluator_equal_matrix_exponentials():
    config = five_qubits()
    expected = textbook(config, config["initial_parameters"])
    for judge in (ORACLE, EVALUATOR):
        found = judge.evaluate(config, config["initial_parameters"]).observables["energy_history"]
        assert found == pytest.approx(expected, abs=1e-12)


def test_gradients_equal_central_differences():
    config = five_qubits()
    point = config["initial_parameters"]
    expected = central_differences(lambda p: ORACLE.evaluate(config, p).observables["energy_history"], point)
    assert ORACLE.evaluate(config, point).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point).gradient is None


@pytest.mark.parametrize("seed", range(3))
def test_evaluator_equals_oracle(seed):
    config = small_config(seed)
    one = EVALUATOR.evaluate(config, config["initial_parameters"], gradient=True)
    other = ORACLE.evaluate(config, config["initial_parameters"])
    assert one.observables["energy_history"] == pytest.approx(other.observables["energy_history"], abs=1e-12)
    assert one.gradient == pytest.approx(other.gradient, abs=1e-12)


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(mutation):
    config = small_config(2, n_steps=3)
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_the_full_size_probe_makes_the_hyperedge_matter():
    defaults = {**TASK.config, "n_qubits": 12, "selected_qubits": tuple(range(10)), "initial_ones": (1, 3, 5, 7, 9, 11)}
    for seed in range(5):
        config = EVALUATOR.draw_full_probe(defaults, np.random.default_rng(seed))
        right = ORACLE.evaluate(config, config["initial_parameters"])
        without = ORACLE.evaluate(config, config["initial_parameters"], "hyperedge_missing")
        assert abs(right.observables["energy_history"] - without.observables["energy_history"]) > 3e-3


def test_the_timed_run_starts_where_the_hyperedge_matters():
    """At the published size: the cheapest way to cheat is to leave it out."""
    config = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(3))
    start = config["initial_parameters"]
    right = EVALUATOR.evaluate(config, start).observables["energy_history"]
    without = EVALUATOR.evaluate({**config, "selected_qubits": ()}, start).observables["energy_history"]
    allowed = EVALUATOR.histories(config)["energy_history"].absolute
    assert abs(right - without) >= 5 * allowed
    published = EVALUATOR.initial_parameters(config)
    right = EVALUATOR.evaluate(config, published).observables["energy_history"]
    without = EVALUATOR.evaluate({**config, "selected_qubits": ()}, published).observables["energy_history"]
    assert abs(right - without) < 1e-3 * allowed


def test_a_task_in_which_the_hyperedge_moves_no_energy_is_refused():
    defaults = {**TASK.config, "n_qubits": 4, "selected_qubits": (0, 1), "initial_ones": (1,)}
    EVALUATOR.draw_timed({**defaults, "initial_parameter_scale": 1.0}, np.random.default_rng(0))
    with pytest.raises(HarnessError, match="50 draws in a row"):
        EVALUATOR.draw_timed({**defaults, "initial_parameter_scale": 0.0}, np.random.default_rng(0))


def test_large_registers_are_allowed_the_error_of_single_precision_vectors():
    assert EVALUATOR.histories(dict(TASK.config))["energy_history"].allowed(np.ones(1)) == pytest.approx(3e-3)
    assert EVALUATOR.histories(small_config())["energy_history"].allowed(np.ones(1)) == pytest.approx(2e-4)


def test_exact_energy_is_stored_and_regenerates():
    stored = TASK.exact(TASK.config)
    assert stored is not None
    assert -1.3 < stored["ground_energy_density"] < -1.29
    assert exact.distance(TASK) < 1e-12


def test_draws_stay_in_the_ranges_of_the_statement():
    for seed in range(40):
        config = small_config(seed)
        n = config["n_qubits"]
        assert 5 <= n <= 10
        assert 3 <= len(config["selected_qubits"]) <= 5
        assert set(config["selected_qubits"]) | set(config["initial_ones"]) <= set(range(n))
        assert 1 <= len(config["initial_ones"]) < n
        assert np.abs(config["initial_parameters"]).max() <= 1.5
        assert 0.03 <= config["learning_rate"] <= 0.1
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0))
    assert {key for key in TASK.config if timed[key] != TASK.config[key]} == {"seed"}
    assert len(timed["checkpoint_steps"]) == 5


def test_an_honest_run_passes_everything(honest):
    config, outputs = honest
    assert failed(judged(EVALUATOR, config, outputs)) == set()
    single = {key: value.astype(np.float32) for key, value in outputs.items()}
    assert failed(judged(EVALUATOR, config, single)) == set()


@pytest.mark.parametrize(
    ("key", "change", "check"),
    [
        ("energy_history", lambda h: h[::-1], "energy_improvement"),
        ("energy_history", lambda h: h - 3.0, "energy_lower_bound"),
        ("energy_history", lambda h: h - 3.0, "energy_bound"),
        ("energy_history", lambda h: h - 3.0 * (np.arange(len(h)) == 5), "energy_bound"),
        ("energy_history", lambda h: h + 3.0, "energy_range"),
        ("energy_history", lambda h: h + 3.0, "energy_gap"),
        ("energy_history", lambda h: h + 5e-4, "recompute:energy_history"),
        ("final_parameters", lambda p: p * 0, "continuity:energy_history"),
        ("checkpoint_parameters", lambda p: p[::-1], "first_update"),
        ("initial_parameters", lambda p: p + 1e-3, "initial_parameters"),
        ("energy_history", lambda h: h[:-1], "form"),
    ],
)
def test_bad_outputs_fail_the_check_made_for_them(honest, key, change, check):
    config, outputs = honest
    assert check in failed(judged(EVALUATOR, config, {**outputs, key: change(outputs[key])}))


def test_only_published_criteria_fail_under_the_published_contract(honest):
    config, outputs = honest
    published = {key: outputs[key] for key, form in EVALUATOR.result_spec(config).items() if form.published}
    assert set(published) == {"energy_history", "final_parameters"}
    assert failed(judged(EVALUATOR, config, published, contract=Contract.ORBIT_Q_1)) == set()
    published["energy_history"] = published["energy_history"] + 5e-4
    evidence = judged(EVALUATOR, config, published, contract=Contract.ORBIT_Q_1)
    assert failed(evidence) == set()
    assert "recompute:energy_history" in {item.check for item in evidence if item.outcome is Outcome.FLAG}


def test_thresholds_are_for_the_timed_run_only(honest):
    config, outputs = honest
    backwards = {**outputs, "energy_history": outputs["energy_history"][::-1]}
    assert "energy_improvement" not in failed(judged(EVALUATOR, config, backwards, kind=RunKind.FULL_PROBE))
