from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.errors import HarnessError
from orbit.physics.gates import pauli
from orbit.tasks import find_task
from orbit.verification import exact
from orbit.verification.evaluator import RunKind
from orbit.verification.verdict import Contract
from tests.unit.tasks.helpers import central_differences, failed, judged

TASK = find_task("orbit-q/04-kraus-calibration")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()


def small_config(seed=0, max_steps=8, **changes):
    config = EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), max_steps)
    config.update(changes)
    config["initial_parameters"] = EVALUATOR.initial_parameters(config)
    return config


@pytest.fixture(scope="module")
def honest():
    config = {**TASK.config, "n_qubits": 6}
    config["initial_parameters"] = EVALUATOR.initial_parameters(config)
    config["checkpoint_steps"] = (1, 2, 9)
    return config, ORACLE.solve(config)


def embedded(matrix, site, n):
    return np.kron(np.kron(np.eye(2**site), matrix), np.eye(2 ** (n - site) // len(matrix)))


def basis(bits):
    vector = np.zeros(2 ** len(bits))
    vector[int(bits, 2)] = 1
    return vector


def textbook(config, p01, p10):
    """Density matrices and Kraus operators, straight from the statement."""
    n = config["n_qubits"]
    kraus = [
        np.diag([np.sqrt(1 - p01), np.sqrt(1 - p10)]),
        np.array([[0, np.sqrt(p10)], [0, 0]]),
        np.array([[0, 0], [np.sqrt(p01), 0]]),
    ]
    pair = (basis("01") + basis("10")) / np.sqrt(2)
    pairs = np.ones(1)
    for _ in range(n // 2):
        pairs = np.kron(pairs, pair)
    ghz = (basis("0" * n) + basis("1" * n)) / np.sqrt(2)
    table = []
    for state in (ghz, pairs, basis("0" * n), np.full(2**n, 2 ** (-n / 2))):
        rho = np.outer(state, state).astype(complex)
        for parity in (0, 1):
            for left in range(parity, n - 1, 2):
                gate = embedded(expm(-0.5j * config["entangler_angle"] * pauli("XX")), left, n)
                rho = gate @ rho @ gate.conj().T
                for qubit in (left, left + 1):
                    jumps = [embedded(k, qubit, n) for k in kraus]
                    rho = sum(k @ rho @ k.T for k in jumps)
        observables = [embedded(pauli("Z"), qubit, n) for qubit in range(n)] + [pauli("Z" * n)]
        table.append([np.trace(observable @ rho).real for observable in observables])
    return np.array(table)


@pytest.mark.parametrize("n", [4, 6])
def test_oracle_and_evaluator_equal_density_matrices(n):
    config = small_config(1, n_qubits=n)
    expected = textbook(config, config["initial_p01"], config["initial_p10"])
    target = textbook(config, config["true_p01"], config["true_p10"])
    for judge in (ORACLE, EVALUATOR):
        observables = judge.evaluate(config, config["initial_parameters"]).observables
        assert observables["fitted_expectations"] == pytest.approx(expected, abs=1e-12)
        assert observables["loss_history"] == pytest.approx(np.mean((expected - target) ** 2), abs=1e-12)
        rates = [config["initial_p01"], config["initial_p10"]]
        assert observables["final_probabilities"] == pytest.approx(rates, abs=1e-12)


def test_gradients_equal_central_differences():
    config = small_config(2, n_qubits=4)
    point = config["initial_parameters"]
    expected = central_differences(lambda p: ORACLE.evaluate(config, p).observables["loss_history"], point)
    assert ORACLE.evaluate(config, point).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-8)


def test_whole_runs_of_oracle_and_evaluator_agree():
    config = small_config(3, 12, n_qubits=6)
    outputs = ORACLE.solve(config)
    trusted = EVALUATOR._trajectory(config)
    losses = [item.observables["loss_history"] for item in trusted[:-1]]
    assert outputs["loss_history"] == pytest.approx(losses, abs=1e-14)
    assert outputs["fitted_expectations"] == pytest.approx(trusted[-1].observables["fitted_expectations"], abs=1e-12)


def test_a_single_z_depends_on_four_qubits_only():
    """The chain of transfer matrices is right at any length: distant qubits do not matter."""
    short, long = small_config(n_qubits=8), small_config(n_qubits=12)
    tables = [EVALUATOR.evaluate(c, c["initial_parameters"]).observables["fitted_expectations"] for c in (short, long)]
    assert tables[0][:, :4] == pytest.approx(tables[1][:, :4], abs=1e-14)
    assert tables[0][:, -5:-1] == pytest.approx(tables[1][:, -5:-1], abs=1e-14)


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(mutation):
    config = small_config(2, 3, n_qubits=6)
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_target_table_is_stored_and_regenerates():
    assert TASK.exact(TASK.config) is not None
    assert exact.distance(TASK) < 1e-7


def test_draws_stay_in_the_ranges_of_the_statement():
    rates = ("true_p01", "true_p10", "initial_p01", "initial_p10")
    for seed in range(40):
        config = small_config(seed)
        assert config["n_qubits"] in (4, 6, 8)
        assert 0.2 <= config["entangler_angle"] <= 0.9
        assert all(0.01 <= config[key] <= 0.2 for key in rates)
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0))
    assert {key for key in TASK.config if timed[key] != TASK.config[key]} == {"entangler_angle", *rates}
    ranges = ((0.25, 0.4), (0.02, 0.05), (0.005, 0.02), (0.05, 0.09), (0.03, 0.06))
    assert all(low <= timed[key] <= high for key, (low, high) in zip(("entangler_angle", *rates), ranges, strict=True))
    assert len(timed["checkpoint_steps"]) == 5


def test_a_timed_draw_is_one_that_an_exact_run_solves():
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(7))
    final = EVALUATOR._trajectory(timed)[-1].observables["final_probabilities"]
    assert np.abs(final - [timed["true_p01"], timed["true_p10"]]).max() <= 1e-4
    with pytest.raises(HarnessError, match="true rates"):
        EVALUATOR.draw_timed({**TASK.config, "max_steps": 1, "n_qubits": 4}, np.random.default_rng(7))


def test_an_honest_run_passes_everything(honest):
    config, outputs = honest
    assert failed(judged(EVALUATOR, config, outputs)) == set()
    single = {key: value.astype(np.float32) for key, value in outputs.items()}
    assert failed(judged(EVALUATOR, config, single)) == set()


@pytest.mark.parametrize(
    ("key", "change", "check"),
    [
        ("loss_history", lambda h: h[::-1], "loss_improves"),
        ("loss_history", lambda h: h - 1e-3, "loss_not_negative"),
        ("loss_history", lambda h: h * 1.01, "recompute:loss_history"),
        ("loss_history", lambda h: h * (1 + 0.03 * (np.arange(len(h)) == 5)), "trajectory:loss_history"),
        ("final_probabilities", lambda p: p - 0.05, "probabilities_positive"),
        ("final_probabilities", lambda p: p + 1, "probabilities_below_one"),
        ("final_probabilities", lambda p: p + 3e-4, "probability_error"),
        ("final_probabilities", lambda p: p + 3e-5, "final:final_probabilities"),
        ("final_probabilities", lambda p: p + 3e-5, "trajectory:final_probabilities"),
        ("fitted_expectations", lambda t: t + 1, "expectation_bound"),
        ("fitted_expectations", lambda t: t[::-1], "final:fitted_expectations"),
        ("fitted_expectations", lambda t: t + 4e-4, "trajectory:fitted_expectations"),
        ("final_parameters", lambda p: p + 0.5, "continuity:loss_history"),
    ],
)
def test_bad_outputs_fail_the_check_made_for_them(honest, key, change, check):
    config, outputs = honest
    assert check in failed(judged(EVALUATOR, config, {**outputs, key: change(outputs[key])}))


def test_published_keys_alone_are_judged(honest):
    config, outputs = honest
    keys = [key for key, form in EVALUATOR.result_spec(config).items() if form.published]
    published = {key: value for key, value in config.items() if key in TASK.config}
    few = {key: outputs[key] for key in keys}
    assert failed(judged(EVALUATOR, published, few, contract=Contract.ORBIT_Q_1)) == set()
    few["final_probabilities"] = few["final_probabilities"] + 3e-4
    assert failed(judged(EVALUATOR, published, few, contract=Contract.ORBIT_Q_1)) == {"probability_error"}


def test_thresholds_are_for_the_timed_run_only():
    config = EVALUATOR.draw_full_probe({**TASK.config, "n_qubits": 4}, np.random.default_rng(0))
    assert failed(judged(EVALUATOR, config, ORACLE.solve(config), kind=RunKind.FULL_PROBE)) == set()
