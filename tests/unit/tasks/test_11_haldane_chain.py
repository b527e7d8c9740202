from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.tasks import find_task
from orbit.verification.evaluator import RunKind
from orbit.verification.verdict import Contract
from tests.unit.tasks.helpers import central_differences, failed, judged

TASK = find_task("orbit-q/11-haldane-chain")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()
SX = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]) / np.sqrt(2)
SY = np.array([[0, -1j, 0], [1j, 0, -1j], [0, 1j, 0]]) / np.sqrt(2)
SZ = np.diag([1, 0, -1])


def small_config(seed=0, max_steps=8, **changes):
    config = EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), max_steps)
    config.update(changes)
    config["initial_parameters"] = EVALUATOR.initial_parameters(config)
    return config


@pytest.fixture(scope="module")
def honest():
    config = small_config(4, 40, n_sites=4, n_layers=3, learning_rate=0.05, initial_parameter_scale=0.2)
    config["checkpoint_steps"] = (1, 2, 9)
    config["maximum_energy_density_gap"] = 0.5
    config["maximum_string_order_mae"] = 0.5
    return config, ORACLE.solve(config)


def embedded(matrix, site, n):
    return np.kron(np.kron(np.eye(3**site), matrix), np.eye(3 ** (n - site) // len(matrix)))


def hamiltonian(config):
    n = config["n_sites"]
    bond = sum(np.kron(s, s) for s in (SX, SY, SZ))
    bond = bond + config["beta"] * bond @ bond
    on_site = config["single_ion_anisotropy"] * sum(embedded(SZ @ SZ, i, n) for i in range(n))
    return on_site + sum(embedded(bond, i, n) for i in range(n - 1))


def strings(config, state):
    n, found = config["n_sites"], []
    for first, last in ((k, n - 1 - k) for k in range(3)):
        factors = [np.eye(3)] * n
        for site in range(first + 1, last):
            factors[site] = expm(1j * np.pi * SZ)
        factors[first] = factors[last] = SZ
        product = np.ones((1, 1))
        for factor in factors:
            product = np.kron(product, factor)
        found.append(np.vdot(state, product @ state).real if first < last else 0.0)
    return np.array(found)


def textbook(config, parameters):
    """Full matrices and matrix exponentials, straight from the statement."""
    n, values = config["n_sites"], iter(parameters)
    state = np.zeros((3,) * n, dtype=complex)
    state[tuple(2 * (site % 2) for site in range(n))] = 1
    state = state.reshape(-1)
    scalar = sum(np.kron(s, s) for s in (SX, SY, SZ))
    for _ in range(config["n_layers"]):
        for site in range(n):
            for generator in (SZ, SY, SZ):
                state = embedded(expm(-1j * next(values) * generator), site, n) @ state
        for left in (*range(0, n - 1, 2), *range(1, n - 1, 2)):
            transverse = next(values) * (np.kron(SX, SX) + np.kron(SY, SY))
            exponent = transverse + next(values) * np.kron(SZ, SZ) + config["beta"] * scalar @ scalar
            state = embedded(expm(-1j * exponent), left, n) @ state
    return np.vdot(state, hamiltonian(config) @ state).real / n, strings(config, state)


def test_parameter_counts_of_the_statement():
    assert EVALUATOR.initial_parameters(dict(TASK.config)).shape == (290,)
    assert small_config(n_sites=5, n_layers=2)["initial_parameters"].shape == (2 * (15 + 8),)


@pytest.mark.parametrize("n", [4, 5])
def test_oracle_and_evaluator_equal_matrix_exponentials(n):
    config = small_config(n_sites=n, n_layers=2)
    energy, orders = textbook(config, config["initial_parameters"])
    for judge in (ORACLE, EVALUATOR):
        observables = judge.evaluate(config, config["initial_parameters"]).observables
        assert observables["energy_density_history"] == pytest.approx(energy, abs=1e-12)
        assert observables["final_energy_density"] == pytest.approx(energy, abs=1e-12)
        assert observables["final_string_orders"] == pytest.approx(orders, abs=1e-12)


def test_gradients_equal_central_differences():
    config = small_config(1, n_sites=4, n_layers=2)
    point = config["initial_parameters"]
    expected = central_differences(lambda p: ORACLE.evaluate(config, p).observables["energy_density_history"], point)
    assert ORACLE.evaluate(config, point).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point).gradient is None


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(mutation):
    config = small_config(2, 3, n_sites=4, n_layers=2)
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_exact_ground_state_of_a_small_chain():
    config = small_config(n_sites=4)
    values, vectors = np.linalg.eigh(hamiltonian(config))
    found = EVALUATOR.compute_exact(config)
    assert found["ground_energy_density"] == pytest.approx(values[0] / 4, abs=1e-12)
    assert found["ground_string_orders"] == pytest.approx(strings(config, vectors[:, 0]), abs=1e-9)


def test_stored_ground_state_is_that_of_a_haldane_chain():
    """Heisenberg chains have -1.4015 per bond in the bulk and strings near -0.37 (White and Huse, PRB 48, 3844).

    The biquadratic term adds about 0.2 <(S.S)^2> a bond, the anisotropy weakens the order along z.
    """
    stored = TASK.exact(TASK.config)
    assert stored is not None
    assert -1.4 < stored["ground_energy_density"] < -0.5
    assert all(-0.38 < order < -0.25 for order in stored["ground_string_orders"])


def test_draws_stay_in_the_ranges_of_the_statement():
    for seed in range(40):
        config = small_config(seed)
        assert config["n_sites"] in (4, 5, 6)
        assert config["n_layers"] in (1, 2, 3)
        assert 0.1 <= config["beta"] <= 0.4
        assert 0.05 <= config["single_ion_anisotropy"] <= 0.4
        assert 0.03 <= config["learning_rate"] <= 0.1
        assert 0.2 <= config["initial_parameter_scale"] <= 0.5
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
        ("energy_density_history", lambda h: h - 2.0, "energy_lower_bound"),
        ("energy_density_history", lambda h: h - 2.0, "energy_improvement"),
        ("energy_density_history", lambda h: h + 5e-4, "recompute:energy_density_history"),
        ("final_energy_density", lambda e: e - 2.0, "energy_lower_bound"),
        ("final_energy_density", lambda e: e + 1.0, "energy_density_gap"),
        ("final_energy_density", lambda e: e + 5e-4, "final:final_energy_density"),
        ("final_string_orders", lambda s: s + 1.5, "string_order_bound"),
        ("final_string_orders", lambda s: s + 1.5, "string_order_mae"),
        ("final_string_orders", lambda s: s + 1e-3, "final:final_string_orders"),
        ("checkpoint_parameters", lambda p: p[::-1], "first_update"),
        ("final_parameters", lambda p: p * 0, "continuity:energy_density_history"),
    ],
)
def test_bad_outputs_fail_the_check_made_for_them(honest, key, change, check):
    config, outputs = honest
    assert check in failed(judged(EVALUATOR, config, {**outputs, key: change(outputs[key])}))


def test_published_keys_alone_are_judged(honest):
    config, outputs = honest
    few = {key: outputs[key] for key, form in EVALUATOR.result_spec(config).items() if form.published}
    assert failed(judged(EVALUATOR, config, few, contract=Contract.ORBIT_Q_1)) == set()
    few["final_energy_density"] = few["final_energy_density"] + 1.0
    softened = failed(judged(EVALUATOR, config, few, contract=Contract.ORBIT_Q_1))
    assert "energy_density_gap" in softened
    assert "final:final_energy_density" not in softened


def test_thresholds_are_for_the_timed_run_only(honest):
    config, outputs = honest
    shifted = {**outputs, "final_energy_density": outputs["final_energy_density"] + 1.0}
    assert "energy_density_gap" not in failed(judged(EVALUATOR, config, shifted, kind=RunKind.FULL_PROBE))


def test_probes_hand_in_a_start_that_the_seed_does_not_give():
    for draw in (EVALUATOR.draw_full_probe, lambda defaults, rng: EVALUATOR.draw_probe(defaults, rng, 3)):
        config = draw(TASK.config, np.random.default_rng(0))
        assert np.abs(config["initial_parameters"] - EVALUATOR.initial_parameters(config)).max() > 0.1
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0))
    assert timed["initial_parameters"] == pytest.approx(EVALUATOR.initial_parameters(timed))
