from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.gates import pauli
from orbit.physics.product_layers import IsingChain
from orbit.tasks import find_task
from orbit.verification import exact
from orbit.verification.evaluator import Run, RunKind
from orbit.verification.verdict import Contract, Outcome
from tests.unit.tasks.helpers import central_differences, failed, judged

TASK = find_task("orbit-q/05-nonunitary-cooling")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()
HISTORY = "energy_density_history"


def small_config(seed=0, n_steps=8, **changes):
    return {**EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), n_steps), **changes}


def six_qubits(n_layers=4):
    return small_config(
        n_qubits=6, n_layers=n_layers, initial_parameters=np.random.default_rng(5).normal(0.1, 0.3, 2 * n_layers)
    )


@pytest.fixture(scope="module")
def honest():
    config = small_config(4, 60, n_qubits=6, learning_rate=0.03, checkpoint_steps=(1, 2, 9))
    return config, ORACLE.solve(config)


def embedded(word, site, n):
    return np.kron(np.kron(np.eye(2**site), pauli(word)), np.eye(2 ** (n - site - len(word))))


def textbook(config, parameters):
    """Full matrices and matrix exponentials, straight from the statement."""
    n = config["n_qubits"]
    state = np.full(2**n, 2 ** (-n / 2), dtype=complex)
    for layer in range(config["n_layers"]):
        a, b = parameters[2 * layer : 2 * layer + 2]
        for qubit in range(n):
            state = expm(a * embedded("X", qubit, n)) @ state
        for left in range(layer % 2, n - 1, 2):
            state = expm(b * embedded("ZZ", left, n)) @ state
        state = state / np.linalg.norm(state)
    hamiltonian = -config["transverse_field"] * sum(embedded("X", q, n) for q in range(n))
    hamiltonian = hamiltonian - sum(embedded("ZZ", q, n) for q in range(n - 1))
    return np.vdot(state, hamiltonian @ state).real / n


def test_start_of_the_statement():
    start = EVALUATOR.initial_parameters(dict(TASK.config))
    assert start.shape == (20,)
    assert set(start) == {0.01}


def test_oracle_and_evaluator_equal_matrix_exponentials():
    config = six_qubits(2)
    expected = textbook(config, config["initial_parameters"])
    for judge in (ORACLE, EVALUATOR):
        found = judge.evaluate(config, config["initial_parameters"]).observables
        assert found[HISTORY] == pytest.approx(expected, abs=1e-12)
        assert found["final_a"][0].tolist() == config["initial_parameters"][[0, 2]].tolist()
        assert found["final_b"][0].tolist() == config["initial_parameters"][[1, 3]].tolist()


def test_gradients_equal_central_differences():
    config = six_qubits()
    point = config["initial_parameters"]
    expected = central_differences(lambda p: ORACLE.evaluate(config, p).observables[HISTORY], point)
    assert ORACLE.evaluate(config, point).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point).gradient is None


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(mutation):
    config = small_config(2, n_steps=3, n_layers=4, initial_parameters=np.linspace(0.05, 0.2, 8))
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_state_vector_equals_free_fermions_at_full_size():
    config = EVALUATOR.draw_full_probe(TASK.config, np.random.default_rng(3))
    run = Run(RunKind.TIMED, "timed", {**config, "max_steps": 1})
    energy = EVALUATOR.evaluate(config, config["initial_parameters"]).observables[HISTORY]
    (evidence,) = EVALUATOR.task_checks(run, {HISTORY: np.array([energy])})
    assert evidence.value == pytest.approx(0, abs=1e-12)


def rounding_error(config):
    """How far ten float32 roundings of every amplitude after every filter move the energy density."""
    n, rng, state = config["n_qubits"], np.random.default_rng(1), np.ones(2 ** config["n_qubits"])
    spins = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n - 1, -1, -1)) & 1)
    for layer, (a, b) in enumerate(config["initial_parameters"].reshape(-1, 2)):
        for qubit in range(n):
            state = state.reshape(2**qubit, 2, -1)
            state = state + np.tanh(a) * state[:, ::-1]
            state = state * (1 + 6e-7 * rng.standard_normal(state.shape))
        bonds = np.sum(spins[:, layer % 2 : -1 : 2] * spins[:, layer % 2 + 1 :: 2], axis=1)
        state = state.ravel() * np.exp(b * bonds) * (1 + 6e-7 * rng.standard_normal(2**n))
        state /= np.linalg.norm(state)
    exact = EVALUATOR.evaluate(config, config["initial_parameters"]).observables[HISTORY]
    return abs(IsingChain(n, config["transverse_field"]).expectation(state.astype(complex)) / n - exact)


@pytest.mark.parametrize("seed", range(3))
def test_single_precision_is_enough_for_full_size_probes(seed):
    config = EVALUATOR.draw_full_probe(TASK.config, np.random.default_rng(seed))
    assert config["initial_parameters"].min() < 0 < 0.3 < config["initial_parameters"].max()
    assert rounding_error(config) < 1e-2 * EVALUATOR.histories(config)[HISTORY].absolute


def test_strengths_of_either_sign_need_double_precision():
    config = EVALUATOR.draw_full_probe(TASK.config, np.random.default_rng(0))
    opposed = {**config, "initial_parameters": 0.3 * np.random.default_rng(4).standard_normal(20)}
    assert rounding_error(opposed) > 100 * EVALUATOR.histories(config)[HISTORY].absolute


def test_enormous_strengths_do_not_overflow():
    config = small_config(n_qubits=6, n_layers=2)
    energy = EVALUATOR.evaluate(config, np.array([12.0, 400.0, -300.0, 5e4])).observables[HISTORY]
    assert np.isfinite(energy)


def test_large_registers_are_allowed_the_error_of_single_precision_vectors():
    assert EVALUATOR.histories(dict(TASK.config))[HISTORY].allowed(np.ones(1)) == pytest.approx(1e-3)
    assert EVALUATOR.histories(small_config())[HISTORY].allowed(np.ones(1)) == pytest.approx(2e-4)


def test_exact_energy_is_stored_and_regenerates():
    stored = TASK.exact(TASK.config)
    assert stored is not None
    assert stored["ground_energy_density"] == pytest.approx(-1.32689613)
    assert exact.distance(TASK) < 1e-12


def test_draws_stay_in_the_ranges_of_the_statement():
    for seed in range(40):
        config = small_config(seed)
        assert config["n_qubits"] in (6, 8, 10)
        assert config["n_layers"] in (2, 4, 6)
        assert 0.02 <= config["initial_parameters"].min() <= config["initial_parameters"].max() <= 0.2
        assert 0.6 <= config["transverse_field"] <= 1.4
        assert 0.02 <= config["learning_rate"] <= 0.1
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0))
    changed = {key for key in TASK.config if timed[key] != TASK.config[key]}
    assert changed == {"transverse_field", "initial_filter_strength"}
    assert set(timed["initial_parameters"]) == {timed["initial_filter_strength"]}
    assert len(timed["checkpoint_steps"]) == 5


def test_an_honest_run_passes_everything(honest):
    config, outputs = honest
    assert failed(judged(EVALUATOR, config, outputs)) == set()
    single = {key: value.astype(np.float32) for key, value in outputs.items()}
    assert failed(judged(EVALUATOR, config, single)) == set()


@pytest.mark.parametrize(
    ("key", "change", "check"),
    [
        (HISTORY, lambda h: h[::-1], "energy_improvement"),
        (HISTORY, lambda h: h - 3.0, "energy_lower_bound"),
        (HISTORY, lambda h: h - 3.0 * (np.arange(len(h)) == 5), "energy_bound"),
        (HISTORY, lambda h: h + 3.0, "energy_range"),
        (HISTORY, lambda h: h + 3.0, "energy_gap"),
        (HISTORY, lambda h: h + 5e-4, f"recompute:{HISTORY}"),
        (HISTORY, lambda h: h + 1e-3 * (np.arange(len(h)) == 30), f"trajectory:{HISTORY}"),
        ("final_parameters", lambda p: p * 0, f"continuity:{HISTORY}"),
        ("final_a", lambda p: p + 1e-3, "final:final_a"),
        ("final_b", lambda p: p[:, ::-1], "final:final_b"),
        ("checkpoint_parameters", lambda p: p[::-1], "first_update"),
        ("initial_parameters", lambda p: p + 1e-3, "initial_parameters"),
    ],
)
def test_bad_outputs_fail_the_check_made_for_them(honest, key, change, check):
    config, outputs = honest
    assert check in failed(judged(EVALUATOR, config, {**outputs, key: change(outputs[key])}))


def test_absurd_numbers_fail_and_do_not_crash(honest):
    config, outputs = honest
    for key in ("initial_parameters", "final_parameters", "final_a", "checkpoint_parameters"):
        assert failed(judged(EVALUATOR, config, {**outputs, key: np.full_like(outputs[key], 1e300)}))


def test_published_keys_alone_are_judged(honest):
    config, outputs = honest
    published = {key: outputs[key] for key, form in EVALUATOR.result_spec(config).items() if form.published}
    assert set(published) == {HISTORY, "final_a", "final_b"}
    assert failed(judged(EVALUATOR, config, published, contract=Contract.ORBIT_Q_1)) == set()
    wrong = {**published, "final_b": published["final_b"] * 0}
    assert failed(judged(EVALUATOR, config, wrong, contract=Contract.ORBIT_Q_1)) == {f"continuity:{HISTORY}"}
    bent = {**published, HISTORY: published[HISTORY] + 1e-3 * (np.arange(60) == 30)}
    evidence = judged(EVALUATOR, config, bent, contract=Contract.ORBIT_Q_1)
    assert failed(evidence) == set()
    assert f"trajectory:{HISTORY}" in {item.check for item in evidence if item.outcome is Outcome.FLAG}


def test_the_trajectory_is_held_in_the_timed_run_only(honest):
    config, outputs = honest
    bent = {**outputs, HISTORY: outputs[HISTORY] + 1e-3 * (np.arange(60) == 30)}
    assert f"trajectory:{HISTORY}" not in failed(judged(EVALUATOR, config, bent, kind=RunKind.FULL_PROBE))
