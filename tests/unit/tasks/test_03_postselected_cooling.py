from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.gates import pauli
from orbit.tasks import find_task
from orbit.verification import exact
from orbit.verification.evaluator import RunKind
from orbit.verification.verdict import Contract, Outcome
from tests.unit.tasks.helpers import central_differences, failed, judged

TASK = find_task("orbit-q/03-postselected-cooling")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()


def small_config(seed=0, max_steps=8, **changes):
    config = EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), max_steps)
    config.update(changes)
    config["initial_parameters"] = EVALUATOR.initial_parameters(config)
    return config


@pytest.fixture(scope="module")
def honest():
    changes = {"n_qubits": 6, "n_steps": 3, "learning_rate": 0.02, "log_probability_weight": 0.5}
    config = small_config(4, 30, initial_parameter_scale=0.2, **changes)
    config["checkpoint_steps"] = (1, 2, 9)
    return config, ORACLE.solve(config)


def embedded(word, site, n):
    return np.kron(np.kron(np.eye(2**site), pauli(word)), np.eye(2 ** (n - site - len(word))))


def textbook(config, parameters):
    """Full matrices and matrix exponentials, straight from the statement."""
    n, values = config["n_qubits"], iter(parameters)
    state = np.full(2**n, 2 ** (-n / 2), dtype=complex)
    probabilities = []
    for step in range(config["n_steps"]):
        for left in range(step % 2, n - 1, 2):
            state = expm(-1j * sum(next(values) * embedded(word, left, n) for word in ("XX", "ZZ"))) @ state
        for qubit in range(n):
            state = expm(-0.5j * next(values) * embedded("X", qubit, n)) @ state
        for qubit in range(0, n, 2):
            projected = (np.eye(2**n) + embedded("Z", qubit, n)) / 2 @ state
            probabilities.append(np.vdot(projected, projected).real)
            state = projected / np.linalg.norm(projected)
    hamiltonian = -sum(embedded("ZZ", i, n) for i in range(n - 1))
    hamiltonian = hamiltonian - config["transverse_field"] * sum(embedded("X", i, n) for i in range(n))
    return np.vdot(state, hamiltonian @ state).real / n, np.array(probabilities)


def test_parameter_counts_of_the_statement():
    assert EVALUATOR.initial_parameters(dict(TASK.config)).shape == (230,)
    assert small_config(n_qubits=4, n_steps=3)["initial_parameters"].shape == (2 * (2 * 4) + 2 * 4 - 2,)


@pytest.mark.parametrize("n_steps", [2, 3])
def test_oracle_and_evaluator_equal_matrix_exponentials(n_steps):
    config = small_config(n_qubits=4)
    config["n_steps"] = n_steps
    config["initial_parameters"] = EVALUATOR.initial_parameters(config)
    energy, probabilities = textbook(config, config["initial_parameters"])
    mean_log = np.mean(np.log(probabilities + 1e-12))
    for judge in (ORACLE, EVALUATOR):
        observables = judge.evaluate(config, config["initial_parameters"]).observables
        assert observables["energy_density_history"] == pytest.approx(energy, abs=1e-12)
        assert observables["success_probability_history"] == pytest.approx(np.prod(probabilities), rel=1e-9)
        assert observables["mean_log_probability_history"] == pytest.approx(mean_log, abs=1e-9)
        loss = energy - config["log_probability_weight"] * mean_log
        assert observables["loss_history"] == pytest.approx(loss, abs=1e-9)


def test_gradients_equal_central_differences():
    config = small_config(1, n_qubits=4)
    point = config["initial_parameters"]
    expected = central_differences(lambda p: ORACLE.evaluate(config, p).observables["loss_history"], point)
    assert ORACLE.evaluate(config, point).gradient == pytest.approx(expected, abs=1e-7)
    assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-7)


def test_evaluator_equals_oracle_at_full_size():
    config = EVALUATOR.draw_full_probe(TASK.config, np.random.default_rng(3))
    one = EVALUATOR.evaluate(config, config["initial_parameters"], gradient=True)
    other = ORACLE.evaluate(config, config["initial_parameters"])
    assert one.gradient == pytest.approx(other.gradient, abs=1e-8)
    assert EVALUATOR.evaluate(config, config["initial_parameters"]).gradient is None


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(mutation):
    config = small_config(2, n_qubits=6, n_steps=3)
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_the_other_outcome_everywhere_is_the_same_by_symmetry():
    """Why no mutation selects the outcome 1: flipping all qubits maps one onto the other."""
    flip = embedded("XXXX", 0, 4)
    hamiltonian = -embedded("ZZ", 0, 4) - embedded("X", 1, 4)
    assert flip @ hamiltonian @ flip == pytest.approx(hamiltonian)
    assert flip @ embedded("Z", 0, 4) @ flip == pytest.approx(-embedded("Z", 0, 4))


def test_exact_energy_is_stored_and_regenerates():
    assert TASK.exact(TASK.config) is not None
    assert exact.distance(TASK) < 1e-7


def test_draws_stay_in_the_ranges_of_the_statement():
    for seed in range(40):
        config = small_config(seed)
        assert config["n_qubits"] in (4, 6, 8)
        assert 2 <= EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), 5)["n_steps"] <= 6
        assert 0.5 <= config["transverse_field"] <= 1.3
        assert 0.5 <= config["log_probability_weight"] <= 2
        assert 0.05 <= config["learning_rate"] <= 0.2
        assert 0.2 <= config["initial_parameter_scale"] <= 0.6
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
        ("loss_history", lambda h: h + 1e-4, "loss_composition"),
        ("loss_history", lambda h: h + 1e-4, "loss_composition_ends"),
        ("loss_history", lambda h: h + 1e-4 * (np.arange(len(h)) == 5), "loss_composition"),
        ("loss_history", lambda h: h[::-1], "loss_improves"),
        ("success_probability_history", lambda h: h * 1.001, "success_composition"),
        ("success_probability_history", lambda h: h * 1.001, "success_composition_ends"),
        ("success_probability_history", lambda h: h - 1.0, "success_positive"),
        ("success_probability_history", lambda h: h + 1.0, "success_upper_bound"),
        ("success_probability_history", lambda h: h * 1.01, "recompute:success_probability_history"),
        ("mean_log_probability_history", lambda h: h + 5e-4, "recompute:mean_log_probability_history"),
        ("energy_density_history", lambda h: h - 2.0, "energy_lower_bound"),
        ("energy_density_history", lambda h: h[::-1], "energy_density_improves"),
        ("energy_density_history", lambda h: h + 2.0, "final_energy_density_gap"),
        ("energy_density_history", lambda h: h + 5e-4, "recompute:energy_density_history"),
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


def test_probes_hand_in_a_start_that_the_seed_does_not_give():
    for draw in (EVALUATOR.draw_full_probe, lambda defaults, rng: EVALUATOR.draw_probe(defaults, rng, 3)):
        config = draw(TASK.config, np.random.default_rng(0))
        assert np.abs(config["initial_parameters"] - EVALUATOR.initial_parameters(config)).max() > 0.1
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0))
    assert timed["initial_parameters"] == pytest.approx(EVALUATOR.initial_parameters(timed))
