from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.gates import pauli
from orbit.tasks import find_task
from orbit.verification import exact
from orbit.verification.evaluator import RunKind
from orbit.verification.replay import Replay, check_replay
from orbit.verification.verdict import Contract, Outcome
from tests.unit.tasks.helpers import central_differences, failed, judged

TASK = find_task("orbit-q/06-digital-analog")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()
CONTROLS = ("final_analog_times", "final_analog_couplings", "final_analog_detunings")


def small_config(seed=0, n_steps=8, **changes):
    rng = np.random.default_rng(seed)
    while True:
        config = EVALUATOR.draw_probe(TASK.config, rng, n_steps)
        if all(config[key] == value for key, value in changes.items()):
            return config


@pytest.fixture(scope="module")
def honest():
    config = small_config(4, 25, n_qubits=6, n_blocks=2)
    config["checkpoint_steps"] = (1, 2, 9)
    return config, ORACLE.solve(config)


def embedded(word, site, n):
    return np.kron(np.kron(np.eye(2**site), pauli(word)), np.eye(2 ** (n - site - len(word))))


def textbook(config, parameters):
    """Full matrices and matrix exponentials, straight from the statement."""
    n = config["n_qubits"]
    state = np.zeros(2**n, dtype=complex)
    state[int("01" * (n // 2), 2)] = 1
    staggered = sum((-1) ** i * embedded("Z", i, n) for i in range(n))
    exchange = sum(embedded(word, i, n) for i in range(n - 1) for word in ("XX", "YY"))
    controls = []
    for row in np.reshape(parameters, (config["n_blocks"], -1)):
        time = config["t_min"] + (config["t_max"] - config["t_min"]) / (1 + np.exp(-row[0]))
        coupling, detuning = np.tanh(row[1:3])
        controls.append((time, coupling, detuning))
        state = expm(-1j * time * (coupling * exchange + detuning * staggered)) @ state
        for k, angle in enumerate(row[3:]):
            state = expm(-0.5j * angle * embedded("ZYZ"[k % 3], k // 3, n)) @ state
    ising = sum(embedded("ZZ", i, n) for i in range(n - 1))
    energy = np.vdot(state, (0.7 * exchange + 1.1 * ising + 0.25 * staggered) @ state).real
    return energy / n, np.array(controls).T


def test_start_and_parameter_count_of_the_statement():
    start = EVALUATOR.initial_parameters(dict(TASK.config)).reshape(4, 45)
    assert start.size == 180
    assert start[:, :3].tolist() == [[0.0, 0.1, 0.1]] * 4
    angles = np.random.default_rng(2036).normal(0.0, 0.1, size=(4, 42))
    assert np.array_equal(start[:, 3:], angles)


@pytest.mark.parametrize("seed", range(3))
def test_oracle_and_evaluator_equal_matrix_exponentials(seed):
    config = small_config(seed, n_qubits=4)
    energy, controls = textbook(config, config["initial_parameters"])
    for judge in (ORACLE, EVALUATOR):
        observables = judge.evaluate(config, config["initial_parameters"]).observables
        assert observables["energy_density_history"] == pytest.approx(energy, abs=1e-12)
        for key, expected in zip(CONTROLS, controls, strict=True):
            assert observables[key] == pytest.approx(expected, abs=1e-12)


def test_gradients_equal_central_differences():
    config = small_config(1, n_qubits=4, n_blocks=2)
    point = config["initial_parameters"]
    expected = central_differences(lambda p: ORACLE.evaluate(config, p).observables["energy_density_history"], point)
    assert ORACLE.evaluate(config, point).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-8)


def test_evaluator_equals_oracle_beyond_probe_sizes():
    config = EVALUATOR.draw_full_probe({**TASK.config, "n_qubits": 10, "n_blocks": 1}, np.random.default_rng(3))
    one = EVALUATOR.evaluate(config, config["initial_parameters"], gradient=True)
    other = ORACLE.evaluate(config, config["initial_parameters"])
    assert one.gradient == pytest.approx(other.gradient, abs=1e-12)
    assert EVALUATOR.evaluate(config, config["initial_parameters"]).gradient is None


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(mutation):
    config = small_config(2, 3, n_qubits=6)
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_product_formula_approaches_the_exact_block():
    config = small_config(2, n_qubits=6)
    right, one, four = (
        ORACLE.evaluate(config, config["initial_parameters"], name).observables["energy_density_history"]
        for name in (None, "trotter_1", "trotter_4")
    )
    assert abs(four - right) < abs(one - right)


def test_exact_energy_is_stored_and_regenerates():
    assert TASK.exact(TASK.config) is not None
    assert exact.distance(TASK) < 1e-7


def test_draws_stay_in_the_ranges_of_the_statement():
    for seed in range(40):
        config = small_config(seed)
        assert config["n_qubits"] in (4, 6, 8)
        assert config["n_blocks"] in (1, 2, 3)
        assert 0.5 <= config["t_max"] <= 2
        assert (config["ode_max_steps"], config["ode_atol"]) == (256, 1e-8)
        assert 0.05 <= config["learning_rate"] <= 0.12
        controls = np.abs(config["initial_parameters"].reshape(config["n_blocks"], -1)[:, :3])
        assert controls.min() >= 0.2
        assert (controls.max(axis=0) <= (3, 2, 2)).all()
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0))
    assert {key for key in TASK.config if timed[key] != TASK.config[key]} == {"seed", "ode_atol", "ode_max_steps"}
    assert (timed["ode_max_steps"], timed["ode_atol"]) == (256, 1e-8)
    assert np.array_equal(timed["initial_parameters"], EVALUATOR.initial_parameters(timed))
    full = EVALUATOR.draw_full_probe(TASK.config, np.random.default_rng(0))
    pulses = full["initial_parameters"].reshape(4, -1)[:, :3]
    assert pulses[:, 0].min() >= 0.5
    assert np.abs(pulses).min() >= 0.5
    assert np.abs(pulses).max() <= 1.5
    assert 1.5 <= full["t_max"] <= 2


def test_an_honest_run_passes_everything(honest):
    config, outputs = honest
    assert failed(judged(EVALUATOR, config, outputs)) == set()
    single = {key: value.astype(np.float32) for key, value in outputs.items()}
    assert failed(judged(EVALUATOR, config, single)) == set()


@pytest.mark.parametrize(
    ("key", "change", "check"),
    [
        ("energy_density_history", lambda h: h - 2.0, "energy_lower_bound"),
        ("energy_density_history", lambda h: h[::-1], "energy_density_improves"),
        ("energy_density_history", lambda h: h + 2.0, "final_energy_density_gap"),
        ("energy_density_history", lambda h: h - 2.0, "final_energy_density_bound"),
        ("energy_density_history", lambda h: h + 2e-3, "recompute:energy_density_history"),
        ("final_analog_times", lambda t: t + 5.0, "times_inside"),
        ("final_analog_times", lambda t: t - 5.0, "times_inside"),
        ("final_analog_couplings", lambda c: c + 2.0, "controls_inside"),
        ("final_analog_detunings", lambda c: c - 2.0, "controls_inside"),
        ("final_analog_times", lambda t: t + 1e-4, "final:final_analog_times"),
        ("final_analog_couplings", lambda c: c + 1e-4, "final:final_analog_couplings"),
        ("final_analog_detunings", lambda c: c + 1e-4, "final:final_analog_detunings"),
        ("checkpoint_parameters", lambda p: p[::-1], "first_update"),
        ("final_parameters", lambda p: p * 0, "continuity:energy_density_history"),
    ],
)
def test_bad_outputs_fail_the_check_made_for_them(honest, key, change, check):
    config, outputs = honest
    assert check in failed(judged(EVALUATOR, config, {**outputs, key: change(outputs[key])}))


@pytest.mark.parametrize(
    ("t_max", "ode_atol", "offset", "bad"),
    [
        (0.5, 1e-8, 2.5e-4, False),
        (0.5, 1e-8, 3.5e-4, True),
        (0.6, 1e-8, 9e-4, False),
        (0.6, 1e-8, 1.1e-3, True),
        (0.5, 1e-6, 1.9e-3, False),
        (0.5, 1e-6, 2.1e-3, True),
    ],
)
def test_recomputed_energies_are_held_to_what_an_integrator_reaches(t_max, ode_atol, offset, bad):
    config = {**small_config(4, 4, n_qubits=4), "t_max": t_max, "ode_atol": ode_atol}
    outputs = ORACLE.solve(config)
    wrong = {**outputs, "energy_density_history": outputs["energy_density_history"] + offset}
    assert ("recompute:energy_density_history" in failed(judged(EVALUATOR, config, wrong))) == bad


@pytest.mark.parametrize(
    ("ode_atol", "offset", "shift", "flagged"),
    [
        (1e-8, 1e-3, 0.05, set()),
        (1e-8, 3e-3, 0.05, {"replay_late:energy_density_history"}),
        (1e-8, 1e-3, 0.2, {"replay_late:checkpoint_parameters", "replay_late:final_parameters"}),
        (1e-6, 8e-2, 2.0, set()),
        (1e-6, 0.15, 2.0, {"replay_late:energy_density_history"}),
        (1e-6, 8e-2, 6.0, {"replay_late:checkpoint_parameters", "replay_late:final_parameters"}),
    ],
)
def test_a_training_by_another_integrator_may_stray_as_far_as_the_tolerance_allows(
    honest, ode_atol, offset, shift, flagged
):
    config, right = honest
    config = {**config, "ode_atol": ode_atol}
    mine = dict(right)
    mine["energy_density_history"] = right["energy_density_history"] + np.where(np.arange(25) < 20, 0, offset)
    for key in ("checkpoint_parameters", "final_parameters"):
        mine[key] = right[key] + shift * config["learning_rate"]
    evidence = check_replay(EVALUATOR, config, mine, Replay(right, [right, right]))
    assert {e.check for e in evidence if e.outcome is Outcome.FLAG} == flagged
    assert failed(evidence) == set()


def test_published_keys_alone_are_judged(honest):
    config, outputs = honest
    config = {**config, "ode_atol": TASK.config["ode_atol"]}
    published = {key: form for key, form in EVALUATOR.result_spec(config).items() if form.published}
    evidence = judged(EVALUATOR, config, {key: outputs[key] for key in published}, contract=Contract.ORBIT_Q_1)
    assert failed(evidence) == set()
    wrong = {**outputs, "energy_density_history": outputs["energy_density_history"] + 3e-3}
    evidence = judged(EVALUATOR, config, {key: wrong[key] for key in published}, contract=Contract.ORBIT_Q_1)
    assert failed(evidence) == set()
    assert "recompute:energy_density_history" in {e.check for e in evidence if e.outcome is Outcome.FLAG}


def test_thresholds_are_for_the_timed_run_only(honest):
    config, outputs = honest
    backwards = {**outputs, "energy_density_history": outputs["energy_density_history"][::-1]}
    assert "energy_density_improves" not in failed(judged(EVALUATOR, config, backwards, kind=RunKind.FULL_PROBE))
