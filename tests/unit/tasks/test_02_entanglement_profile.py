from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.gates import pauli
from orbit.tasks import find_task
from orbit.verification import exact
from orbit.verification.evaluator import RunKind
from orbit.verification.verdict import Contract, Outcome
from tests.unit.tasks.helpers import central_differences, failed, judged, single_precision_failures

TASK = find_task("orbit-q/02-entanglement-profile")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()


def small_config(seed=0, n_steps=8, **changes):
    config = EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), n_steps)
    config.update(changes)
    config["initial_parameters"] = EVALUATOR.initial_parameters(config)
    return config


@pytest.fixture(scope="module")
def honest():
    config = small_config(4, 30, n_qubits=6, subsystem_size=3, learning_rate=0.05)
    config["checkpoint_steps"] = (1, 2, 9)
    return config, ORACLE.solve(config)


def embedded(word, site, n):
    return np.kron(np.kron(np.eye(2**site), pauli(word)), np.eye(2 ** (n - site - len(word))))


def textbook(config, parameters):
    """Full matrices and matrix exponentials, straight from the statement."""
    n, values = config["n_qubits"], iter(parameters)
    state = np.zeros(2**n, dtype=complex)
    state[int("01" * (n // 2), 2)] = 1
    entropies = []
    for sublayer in range(6):
        for qubit in range(n):
            state = expm(-0.5j * next(values) * embedded("Y", qubit, n)) @ state
            state = expm(-0.5j * next(values) * embedded("Z", qubit, n)) @ state
        for left in range(sublayer % 2, n - 1, 2):
            state = expm(-1j * sum(next(values) * embedded(word, left, n) for word in ("XX", "YY", "ZZ"))) @ state
        if sublayer % 2:
            schmidt = np.linalg.svd(state.reshape(2 ** config["subsystem_size"], -1), compute_uv=False)
            entropies.append(-np.log(np.sum(schmidt**4)))
    couplings = (("XX", 1.0), ("YY", 1.0), ("ZZ", config["zz_anisotropy"]))
    hamiltonian = sum(c * embedded(word, i, n) for i in range(n - 1) for word, c in couplings)
    hamiltonian = hamiltonian + sum(config["staggered_field"] * (-1) ** i * embedded("Z", i, n) for i in range(n))
    return np.vdot(state, hamiltonian @ state).real / n, np.array(entropies)


def test_parameter_counts_of_the_statement():
    assert EVALUATOR.initial_parameters(dict(TASK.config)).shape == (243,)
    assert small_config(n_qubits=4)["initial_parameters"].shape == (3 * (7 * 4 - 3),)


@pytest.mark.parametrize("subsystem", [1, 2])
def test_oracle_and_evaluator_equal_matrix_exponentials(subsystem):
    config = small_config(n_qubits=4, subsystem_size=subsystem)
    energy, entropies = textbook(config, config["initial_parameters"])
    mse = np.mean((entropies - config["target_entropies"]) ** 2)
    for judge in (ORACLE, EVALUATOR):
        observables = judge.evaluate(config, config["initial_parameters"]).observables
        assert observables["energy_density_history"] == pytest.approx(energy, abs=1e-12)
        assert observables["entropy_history"] == pytest.approx(entropies, abs=1e-12)
        assert observables["entropy_mse_history"] == pytest.approx(mse, abs=1e-12)
        assert observables["loss_history"] == pytest.approx(energy + config["entropy_weight"] * mse, abs=1e-12)


def test_gradients_equal_central_differences():
    config = small_config(1, n_qubits=4, subsystem_size=2)
    point = config["initial_parameters"]
    expected = central_differences(lambda p: ORACLE.evaluate(config, p).observables["loss_history"], point)
    assert ORACLE.evaluate(config, point).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-8)


def test_evaluator_equals_oracle_at_full_size():
    config = EVALUATOR.draw_full_probe(TASK.config, np.random.default_rng(3))
    one = EVALUATOR.evaluate(config, config["initial_parameters"], gradient=True)
    other = ORACLE.evaluate(config, config["initial_parameters"])
    assert one.gradient == pytest.approx(other.gradient, abs=1e-12)
    assert EVALUATOR.evaluate(config, config["initial_parameters"]).gradient is None


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(mutation):
    config = small_config(2, n_qubits=6, n_steps=3)
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_exact_energy_is_stored_and_regenerates():
    assert TASK.exact(TASK.config) is not None
    assert exact.distance(TASK) < 1e-7


def test_draws_stay_in_the_ranges_of_the_statement():
    for seed in range(40):
        config = small_config(seed)
        n = config["n_qubits"]
        assert n in (4, 6, 8)
        assert config["subsystem_size"] in {max(1, n // 2 - 1), n // 2}
        assert all(0.1 <= target <= 0.9 for target in config["target_entropies"])
        assert 0.5 <= config["zz_anisotropy"] <= 1.5
        assert 0.05 <= config["learning_rate"] <= 0.2
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0))
    assert {key: timed[key] for key in TASK.config} == TASK.config
    assert not np.array_equal(timed["initial_parameters"], EVALUATOR.initial_parameters(timed))
    assert len(timed["checkpoint_steps"]) == 5


def test_an_honest_run_passes_everything(honest):
    config, outputs = honest
    assert failed(judged(EVALUATOR, config, outputs)) == set()
    single = {key: value.astype(np.float32) for key, value in outputs.items()}
    assert failed(judged(EVALUATOR, config, single)) == set()


@pytest.mark.parametrize(
    ("key", "change", "check"),
    [
        ("loss_history", lambda h: h + 1e-4, "loss_composition"),
        ("loss_history", lambda h: h + 1e-4, "loss_composition_ends"),
        ("loss_history", lambda h: h + 1e-4 * (np.arange(len(h)) == 5), "loss_composition"),
        ("entropy_mse_history", lambda h: h * 1.01, "entropy_mse_composition"),
        ("entropy_mse_history", lambda h: h * 1.01, "entropy_mse_composition_ends"),
        ("entropy_history", lambda h: h - 2.0, "entropy_lower_bound"),
        ("entropy_history", lambda h: h + 2.0, "entropy_upper_bound"),
        ("energy_density_history", lambda h: h - 2.0, "energy_lower_bound"),
        ("energy_density_history", lambda h: h[::-1], "energy_density_improves"),
        ("energy_density_history", lambda h: h + 2.0, "final_energy_density_gap"),
        ("loss_history", lambda h: h[::-1], "loss_improves"),
        ("energy_density_history", lambda h: h + 5e-4, "recompute:energy_density_history"),
        ("entropy_history", lambda h: h + 5e-4, "recompute:entropy_history"),
        ("checkpoint_parameters", lambda p: p[::-1], "first_update"),
        ("final_parameters", lambda p: p * 0, "continuity:loss_history"),
    ],
)
def test_bad_outputs_fail_the_check_made_for_them(honest, key, change, check):
    config, outputs = honest
    assert check in failed(judged(EVALUATOR, config, {**outputs, key: change(outputs[key])}))


def test_a_wrong_middle_is_only_flagged_under_the_published_contract(honest):
    config, outputs = honest
    history = outputs["loss_history"].copy()
    history[5] += 1e-3
    evidence = judged(EVALUATOR, config, {**outputs, "loss_history": history}, contract=Contract.ORBIT_Q_1)
    assert failed(evidence) == set()
    assert "loss_composition" in {item.check for item in evidence if item.outcome is Outcome.FLAG}
    history[0] += 1e-3
    evidence = judged(EVALUATOR, config, {**outputs, "loss_history": history}, contract=Contract.ORBIT_Q_1)
    assert failed(evidence) == {"loss_composition_ends"}


def test_published_keys_alone_are_judged(honest):
    config, outputs = honest
    published = {key: form for key, form in EVALUATOR.result_spec(config).items() if form.published}
    evidence = judged(EVALUATOR, config, {key: outputs[key] for key in published}, contract=Contract.ORBIT_Q_1)
    assert failed(evidence) == set()


def test_thresholds_are_for_the_timed_run_only(honest):
    config, outputs = honest
    backwards = {**outputs, "loss_history": outputs["loss_history"][::-1]}
    assert "loss_improves" not in failed(judged(EVALUATOR, config, backwards, kind=RunKind.FULL_PROBE))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_single_precision_is_no_false_alarm(seed):
    assert single_precision_failures(TASK, seed) == []
