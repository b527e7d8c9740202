from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.ancillas import classical_outcomes
from orbit.physics.gates import pauli
from orbit.tasks import find_task
from orbit.verification import exact
from orbit.verification.evaluator import RunKind
from orbit.verification.verdict import Contract
from tests.unit.tasks.helpers import central_differences, failed, judged

TASK = find_task("orbit-q/07-measurement-feedback")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()


def small_config(seed=0, n_steps=5, **changes):
    defaults = {**TASK.config, "minimum_improvement": 0.01, "target_final_energy": 10.0}
    rng = np.random.default_rng(seed)
    while True:
        config = EVALUATOR.draw_probe(defaults, rng, n_steps)
        if all(config[key] == value for key, value in changes.items()):
            return config


@pytest.fixture(scope="module")
def honest():
    config = small_config(3, n_data_qubits=3, n_layers=2)
    start = config["initial_parameters"]
    start.reshape(2, 6, 3)[:, 1] = 1.4  # so that both outcomes happen, as in the timed run
    config = EVALUATOR._with_draws({**config, "max_steps": 25}, start, np.random.default_rng(1))
    config["checkpoint_steps"] = (1, 2, 9)
    return config, ORACLE.solve(config)


def operator(words, n_qubits):
    """Tensor product with the given matrices or Pauli letters at the given qubits."""
    result = np.eye(1)
    for qubit in range(n_qubits):
        factor = words.get(qubit, "I")
        result = np.kron(result, pauli(factor) if isinstance(factor, str) else factor)
    return result


def textbook(config, parameters, trajectory):
    """One trajectory on the full register in the order of the statement, by full matrices and matrix exponentials."""
    n, layers = config["n_data_qubits"], config["n_layers"]
    size, projectors = 2 * n, (np.diag([1.0, 0.0]), np.diag([0.0, 1.0]))
    state = np.eye(2**size)[0].astype(complex)

    def cnot(control, target):
        off = operator({control: projectors[0]}, size)
        return off + operator({control: projectors[1], target: "X"}, size)

    def turned(words, angle):
        return expm(-0.5j * angle * operator(words, size)) @ state

    for layer, (data, ancilla, coupling, fb0, fb1, z) in enumerate(np.reshape(parameters, (layers, 6, n))):
        for i in range(n):
            state = turned({i: "Y"}, data[i])
            state = turned({n + i: "Y"}, ancilla[i])
            state = turned({i: "Z", n + i: "Z"}, coupling[i])
        for i in range(n - 1):
            state = cnot(n + i, n + i + 1) @ state
        outcomes = []
        for i in range(n):
            zero = np.linalg.norm(operator({n + i: projectors[0]}, size) @ state) ** 2
            outcome = 0 if config["trajectory_uniforms"][trajectory, layer, i] < zero else 1
            outcomes.append(outcome)
            state = operator({n + i: projectors[outcome]}, size) @ state
            state = state / np.linalg.norm(state)
        for i in range(n):
            state = turned({i: "Z", n + i: "Z"}, (fb0, fb1)[outcomes[i]][i])
        for i in range(n - 1):
            state = cnot(i, i + 1) @ state
        for i in range(n):
            state = turned({i: "Z"}, z[i])
    bonds = sum(operator({i: "Z", i + 1: "Z"}, size) for i in range(n - 1))
    field = sum(operator({i: "X"}, size) for i in range(n))
    return np.vdot(state, -(bonds + config["transverse_field"] * field) @ state).real


@pytest.mark.parametrize(("n", "layers"), [(2, 1), (3, 2)])
def test_oracle_and_evaluator_equal_the_full_register(n, layers):
    config = small_config(5, n_data_qubits=n, n_layers=layers)
    parameters = config["initial_parameters"]
    expected = [textbook(config, parameters, r) for r in range(config["n_trajectories"])]
    assert np.ptp(expected) > 1e-3  # outcomes differ
    for judge in (ORACLE, EVALUATOR):
        observables = judge.evaluate(config, parameters).observables
        assert observables["final_trajectory_energies"] == pytest.approx(expected, abs=1e-12)
        assert observables["energy_history"] == pytest.approx(np.mean(expected), abs=1e-12)


def test_gradients_equal_central_differences_at_fixed_outcomes():
    config = small_config(1, n_data_qubits=2, n_layers=2)
    point = config["initial_parameters"]
    expected = central_differences(lambda p: ORACLE.evaluate(config, p).observables["energy_history"], point)
    assert ORACLE.evaluate(config, point).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point).gradient is None


def test_ancilla_angles_have_no_gradient():
    config = small_config(2, n_data_qubits=4, n_layers=2)
    gradient = ORACLE.evaluate(config, config["initial_parameters"]).gradient.reshape(2, 6, 4)
    assert np.abs(gradient[:, 1]).max() < 1e-12
    assert np.abs(gradient).max() > 0.1


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(mutation):
    config = small_config(2, 3, n_data_qubits=3, n_layers=2)
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_exact_energy_is_stored_and_regenerates():
    assert TASK.exact(TASK.config) is not None
    assert exact.distance(TASK) < 1e-9


def test_draws_stay_in_the_ranges_of_the_statement():
    for seed in range(30):
        config = small_config(seed)
        n, layers = config["n_data_qubits"], config["n_layers"]
        assert (config["n_ancilla_qubits"], config["n_qubits"]) == (n, 2 * n)
        assert n in (2, 3, 4)
        assert layers in (1, 2)
        assert 4 <= config["n_trajectories"] <= 16
        assert config["trajectory_uniforms"].shape == (config["n_trajectories"], layers, n)
        assert np.abs(config["initial_parameters"]).max() <= 1.5
        assert config["initial_parameters"].shape == (6 * n * layers,)
    for config in (
        EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0)),
        EVALUATOR.draw_full_probe(TASK.config, np.random.default_rng(0)),
    ):
        ancillas = np.abs(config["initial_parameters"].reshape(2, 6, 8)[:, 1])
        assert ancillas.min() >= 1.2
        assert ancillas.max() <= 1.9
        assert 0.2 < classical_outcomes(ancillas, config["trajectory_uniforms"]).outcomes.mean() < 0.8
        assert EVALUATOR.prepare(config) is config


def test_published_configuration_gets_uniforms_of_its_own_seed():
    prepared = EVALUATOR.prepare(dict(TASK.config))
    assert prepared["trajectory_uniforms"].shape == (64, 2, 8)
    assert np.array_equal(prepared["trajectory_uniforms"], EVALUATOR.prepare(dict(TASK.config))["trajectory_uniforms"])
    assert EVALUATOR.initial_parameters(prepared).shape == (96,)


def test_an_honest_run_passes_everything(honest):
    config, outputs = honest
    assert failed(judged(EVALUATOR, config, outputs)) == set()
    single = {key: value.astype(np.float32) for key, value in outputs.items()}
    assert failed(judged(EVALUATOR, config, single)) == set()


def test_ancilla_angles_are_never_compared(honest):
    config, outputs = honest
    tolerance = EVALUATOR.probe_tolerances(config)["final_parameters"]
    allowed = tolerance.allowed(outputs["final_parameters"]).reshape(2, 6, 3)
    assert np.isinf(allowed[:, 1]).all()
    assert np.isfinite(np.delete(allowed, 1, axis=1)).all()
    steps = EVALUATOR.probe_tolerances(config)["checkpoint_parameters"].allowed(outputs["checkpoint_parameters"])
    assert np.isinf(steps).sum() == 3 * 6


def test_trajectories_near_a_threshold_are_left_out_and_counted(honest):
    config, outputs = honest
    final = outputs["final_parameters"].copy()
    angle = final.reshape(2, 6, 3)[0, 1, 0]
    uniforms = config["trajectory_uniforms"].copy()
    uniforms[0, 0, 0] = np.cos(angle / 2) ** 2 + 2e-4
    config = {**config, "trajectory_uniforms": uniforms}
    allowed = EVALUATOR.final_quantities(config, outputs)["final_trajectory_energies"].allowed(
        outputs["final_trajectory_energies"]
    )
    assert np.isinf(allowed).tolist() == [True] + [False] * (len(uniforms) - 1)
    uniforms[:, 0, 0] = uniforms[0, 0, 0]
    assert "trajectories_left_out" in failed(judged(EVALUATOR, config, outputs))


@pytest.mark.parametrize(
    ("key", "change", "check"),
    [
        ("energy_history", lambda h: h - 9.0, "energy_lower_bound"),
        ("final_trajectory_energies", lambda e: e - 9.0, "trajectory_lower_bound"),
        ("final_trajectory_energies", lambda e: e + 2.0, "final_mean_continues"),
        ("final_trajectory_energies", lambda e: e + 5e-4, "final:final_trajectory_energies"),
        ("final_trajectory_energies", lambda e: e[::-1], "final:final_trajectory_energies"),
        ("energy_history", lambda h: h[::-1], "energy_improves"),
        ("energy_history", lambda h: h + 50.0, "final_energy"),
        ("energy_history", lambda h: h + 5e-4, "recompute:energy_history"),
        ("checkpoint_parameters", lambda p: p[::-1], "first_update"),
        ("final_parameters", lambda p: p + 1.0, "continuity:energy_history"),
    ],
)
def test_bad_outputs_fail_the_check_made_for_them(honest, key, change, check):
    config, outputs = honest
    assert check in failed(judged(EVALUATOR, config, {**outputs, key: change(outputs[key])}))


def test_trained_ancillas_fail(honest):
    config, outputs = honest
    fates = classical_outcomes(outputs["initial_parameters"].reshape(2, 6, 3)[:, 1], config["trajectory_uniforms"])
    trained = outputs["final_parameters"].reshape(2, 6, 3).copy()
    trained[:, 1] = 2 * np.arccos(np.sqrt(fates.kept.mean(axis=-1)))
    changed = {**outputs, "final_parameters": trained.reshape(-1)}
    assert "ancillas_untrained" in failed(judged(EVALUATOR, config, changed))
    assert "ancillas_untrained" not in failed(judged(EVALUATOR, config, changed, kind=RunKind.FULL_PROBE))


def test_a_published_run_may_draw_its_own_uniforms():
    config = EVALUATOR.prepare({**TASK.config, "max_steps": 8})
    start = EVALUATOR.initial_parameters(config)
    other = {**config, "trajectory_uniforms": np.random.default_rng(5).uniform(size=(64, 2, 8))}
    outputs = EVALUATOR.evaluate(other, start).observables
    history = outputs["energy_history"] - 1.5 * (1 - np.exp(-np.arange(8) / 3))
    published = {"energy_history": history, "final_trajectory_energies": np.full(64, history[-1])}
    evidence = judged(EVALUATOR, config, published, contract=Contract.ORBIT_Q_1)
    assert [item.check for item in evidence if item.outcome in ("fail", "flag")] == ["final_energy"]
