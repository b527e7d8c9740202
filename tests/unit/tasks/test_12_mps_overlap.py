from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics import mps
from orbit.physics.gates import TWO_QUBIT_WORDS, pauli
from orbit.tasks import find_task
from orbit.verification import _values
from orbit.verification.evaluator import RunKind
from orbit.verification.verdict import Contract, Outcome
from tests.unit.tasks.helpers import central_differences, failed, judged, single_precision_failures

TASK = find_task("orbit-q/12-mps-overlap")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()


def small_config(seed=0, n_steps=8):
    return EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), n_steps)


def of_size(n, n_steps=8):
    return next(config for config in (small_config(seed, n_steps) for seed in range(100)) if config["n_qubits"] == n)


@pytest.fixture(scope="module")
def honest():
    config = dict(of_size(4, 60), fidelity_threshold=0.5, learning_rate=0.03)
    return config, ORACLE.solve(config)


@pytest.fixture(scope="module")
def full_size():
    """Published size with a target that needs no DMRG."""
    config = EVALUATOR.draw_full_probe(TASK.config, np.random.default_rng(5))
    target = mps.random_mps(32, 8, np.random.default_rng(6))
    neel = mps.product_mps([1 - site % 2 for site in range(32)])
    mixed = [0.3 * one for one in target[:1]] + target[1:]
    joined = [np.concatenate([neel[0], mixed[0]], axis=2)]
    for one, other in zip(neel[1:-1], mixed[1:-1], strict=True):
        block = np.zeros((1 + other.shape[0], 2, 1 + other.shape[2]), dtype=complex)
        block[:1, :, :1], block[1:, :, 1:] = one, other
        joined.append(block)
    joined.append(np.concatenate([neel[-1], mixed[-1]], axis=0))
    joined[0] = joined[0] / np.sqrt(mps.overlap(joined, joined).real)
    return EVALUATOR.prepare({**config, "dmrg_state": mps.to_quimb(joined)})


def textbook(config, parameters):
    """Full matrices and matrix exponentials, straight from the statement."""
    n, rows = config["n_qubits"], iter(np.reshape(parameters, (-1, 15)))
    state = np.zeros(2**n, dtype=complex)
    state[int(("01" * n)[:n], 2)] = 1
    for layer in range(config["n_layers"]):
        for left in range(layer % 2, n - 1, 2):
            generator = sum(angle * pauli(word) for angle, word in zip(next(rows), TWO_QUBIT_WORDS, strict=True))
            state = np.kron(np.kron(np.eye(2**left), expm(-1j * generator)), np.eye(2 ** (n - left - 2))) @ state
    assert next(rows, None) is None
    return np.vdot(np.asarray(config["dmrg_state"].to_dense()).ravel(), state)


def test_parameter_counts_of_the_statement():
    assert EVALUATOR.initial_parameters(dict(TASK.config)).shape == (465,)
    assert of_size(5)["initial_parameters"].shape == (60,)


@pytest.mark.parametrize("n", [4, 5])
def test_oracle_and_evaluator_equal_matrix_exponentials(n):
    config = of_size(n)
    overlap = textbook(config, config["initial_parameters"])
    for judge in (ORACLE, EVALUATOR):
        observables = judge.evaluate(config, config["initial_parameters"]).observables
        assert observables["fidelity_history"] == pytest.approx(abs(overlap) ** 2, abs=1e-13)
        assert observables["loss_history"] == pytest.approx(1 - abs(overlap) ** 2, abs=1e-13)
        assert observables["final_overlap_phase"] == pytest.approx(np.angle(overlap), abs=1e-11)


@pytest.mark.parametrize("mutation", [None, "product_of_exponentials", "half_angle"])
def test_gradients_equal_central_differences(mutation):
    config = of_size(4)
    point = config["initial_parameters"]

    def loss(parameters):
        return ORACLE.evaluate(config, parameters, mutation).observables["loss_history"]

    expected = central_differences(loss, point)
    assert ORACLE.evaluate(config, point, mutation).gradient == pytest.approx(expected, abs=1e-8)
    if mutation is None:
        assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-8)


def test_full_size_gradient_equals_central_differences(full_size):
    point = full_size["initial_parameters"]
    evaluation = EVALUATOR.evaluate(full_size, point, gradient=True)
    assert evaluation.observables["fidelity_history"] > 1e-3
    for index in (4, 100, 300, 464):
        shift = np.zeros(point.shape)
        shift[index] = 1e-5
        ends = [EVALUATOR.evaluate(full_size, point + s).observables["loss_history"] for s in (shift, -shift)]
        assert evaluation.gradient[index] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-9)


def test_full_probe_start_is_trainable_and_away_from_zero(full_size):
    angles = full_size["initial_parameters"].reshape(-1, 15)
    assert np.all(angles[:16, [TWO_QUBIT_WORDS.index("XX"), TWO_QUBIT_WORDS.index("YY")]] > 0.5)
    assert full_size["max_steps"] == 3
    assert full_size["checkpoint_steps"] == (1, 2)


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(mutation):
    config = small_config(2, n_steps=4)
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_a_target_of_its_own_is_left_alone_and_survives_the_hand_over(tmp_path):
    config = small_config(1)
    assert EVALUATOR.prepare(config) is config
    _values.encode_config(config, tmp_path)
    handed_over = _values.decode_config(tmp_path)
    original, received = (mps.from_quimb(each["dmrg_state"]) for each in (config, handed_over))
    assert all(np.array_equal(one, other) for one, other in zip(original, received, strict=True))


def test_the_target_is_the_ground_state_of_the_statement(monkeypatch, tmp_path):
    monkeypatch.setenv("ORBIT_CACHE_DIR", str(tmp_path))
    config = EVALUATOR.prepare({**TASK.config, "n_qubits": 8})
    n, word = 8, {"XX": 1.0, "YY": 1.0, "ZZ": config["zz_anisotropy"]}
    hamiltonian = sum(
        c * np.kron(np.kron(np.eye(2**i), pauli(w)), np.eye(2 ** (n - i - 2)))
        for i in range(n - 1)
        for w, c in word.items()
    )
    for i in range(n):
        field = config["staggered_field"] * (-1) ** i
        hamiltonian = hamiltonian + field * np.kron(np.kron(np.eye(2**i), pauli("Z")), np.eye(2 ** (n - i - 1)))
    ground = np.linalg.eigh(hamiltonian)[1][:, 0]
    target = np.asarray(config["dmrg_state"].to_dense()).ravel()
    assert abs(np.vdot(ground, target)) ** 2 > 1 - 1e-4
    assert max(config["dmrg_state"].bond_sizes()) <= config["dmrg_chi"]


def test_draws_stay_in_the_ranges_of_the_statement():
    for seed in range(40):
        config = small_config(seed)
        start = ORACLE.evaluate(config, config["initial_parameters"]).observables
        assert config["n_qubits"] in (4, 5, 6, 8)
        assert 2 <= config["dmrg_chi"] <= 6
        assert start["fidelity_history"] >= 0.02**2
        assert 0.02 <= config["learning_rate"] <= 0.1
        assert 0.1 <= config["initial_parameter_scale"] <= 0.4
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0))
    assert {key: timed[key] for key in TASK.config} == TASK.config
    assert not np.array_equal(timed["initial_parameters"], EVALUATOR.initial_parameters(timed))


def test_an_honest_run_passes_everything(honest):
    config, outputs = honest
    assert failed(judged(EVALUATOR, config, outputs)) == set()
    single = {key: value.astype(np.float32) for key, value in outputs.items()}
    assert failed(judged(EVALUATOR, config, single)) == set()


@pytest.mark.parametrize(
    ("key", "change", "check"),
    [
        ("loss_history", lambda h: h + 2e-5, "loss_composition"),
        ("loss_history", lambda h: h + 2e-5, "loss_composition_ends"),
        ("loss_history", lambda h: h + 2e-5 * (np.arange(len(h)) == 5), "loss_composition"),
        ("fidelity_history", lambda h: h - 0.5, "fidelity_lower_bound"),
        ("fidelity_history", lambda h: h + 1, "fidelity_upper_bound"),
        ("fidelity_history", lambda h: h[::-1], "fidelity_improves"),
        ("fidelity_history", lambda h: h * 0.1, "final_fidelity"),
        ("fidelity_history", lambda h: h * 1.001, "recompute:fidelity_history"),
        ("loss_history", lambda h: h + 5e-4, "recompute:loss_history"),
        ("final_overlap_phase", lambda p: p + 0.01, "final:final_overlap_phase"),
        ("final_overlap_phase", lambda p: -p, "final:final_overlap_phase"),
        ("checkpoint_parameters", lambda p: p[::-1], "first_update"),
        ("final_parameters", lambda p: p * 0, "continuity:fidelity_history"),
    ],
)
def test_bad_outputs_fail_the_check_made_for_them(honest, key, change, check):
    config, outputs = honest
    assert check in failed(judged(EVALUATOR, config, {**outputs, key: change(outputs[key])}))


def test_a_phase_may_be_given_modulo_two_pi(honest):
    config, outputs = honest
    turned = {**outputs, "final_overlap_phase": outputs["final_overlap_phase"] + 2 * np.pi}
    assert failed(judged(EVALUATOR, config, turned)) == set()


def test_published_keys_alone_are_judged(honest):
    config, outputs = honest
    published = {key: outputs[key] for key, form in EVALUATOR.result_spec(config).items() if form.published}
    assert "final_parameters" in published
    assert failed(judged(EVALUATOR, config, published, contract=Contract.ORBIT_Q_1)) == set()
    loss = published["loss_history"].copy()
    loss[5] += 1e-3
    evidence = judged(EVALUATOR, config, {**published, "loss_history": loss}, contract=Contract.ORBIT_Q_1)
    assert failed(evidence) == set()
    assert "loss_composition" in {item.check for item in evidence if item.outcome is Outcome.FLAG}
    wrong = {**published, "final_overlap_phase": published["final_overlap_phase"] + 1}
    assert failed(judged(EVALUATOR, config, wrong, contract=Contract.ORBIT_Q_1)) == {"final:final_overlap_phase"}


def test_thresholds_are_for_the_timed_run_only(honest):
    config, outputs = honest
    backwards = {**outputs, "fidelity_history": outputs["fidelity_history"][::-1]}
    assert "fidelity_improves" not in failed(judged(EVALUATOR, config, backwards, kind=RunKind.FULL_PROBE))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_single_precision_is_no_false_alarm(seed):
    assert single_precision_failures(TASK, seed) == []
