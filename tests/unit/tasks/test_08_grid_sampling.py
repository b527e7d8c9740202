from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.gates import pauli
from orbit.physics.grid import GridCircuit, basis_signs, probabilities, sample
from orbit.tasks import find_task
from orbit.verification import exact
from orbit.verification.evaluator import Run, RunKind
from orbit.verification.functional import judge
from orbit.verification.probes import JointProbe, compare_joint, draw_probes
from orbit.verification.verdict import Contract, Outcome
from tests.unit.tasks.helpers import failed, judged

TASK = find_task("orbit-q/08-grid-sampling")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()
MODULE = sys.modules[type(EVALUATOR).__module__]


def small_config(side=3, seed=0):
    config = EVALUATOR.draw_probe(dict(TASK.config), np.random.default_rng(seed), 0)
    return {**config, "grid_side": side, "n_qubits": side**2}


def honest_samples(config, seed=0):
    rng = np.random.default_rng([seed, config["seed"]])
    uniforms = rng.random((config["n_samples"], config["n_qubits"]))
    return sample(MODULE.grid_circuit(config), uniforms).astype(np.int64)


@pytest.fixture(scope="module")
def default_samples():
    return honest_samples(dict(TASK.config))


def with_independent_half(samples, chosen):
    """The chosen sites of every row are those of the row before."""
    return np.where(chosen, np.roll(samples, 1, axis=0), samples)


def with_siblings(samples, chosen):
    """The second half of the rows has the chosen bits of the first."""
    first, second = np.split(samples, 2)
    return np.concatenate([first, np.where(chosen, first, second)])


def by_hand(config):
    """Amplitudes of a 2 x 2 grid with every angle written out from the statement."""
    n, c = 4, config
    state = np.zeros(2**n, dtype=complex)
    state[0] = 1

    def act(word, angle):
        matrix = np.eye(1)
        for letter in word:
            matrix = np.kron(matrix, pauli(letter))
        return expm(-0.5j * angle * matrix) @ state

    def s(name, x):
        return c[f"{name}_scale"] * np.sin(c[f"{name}_frequency"] * x)

    def k(name, x):
        return c[f"{name}_scale"] * np.cos(c[f"{name}_frequency"] * x)

    sites = [(0, 0, "I"), (0, 1, "I"), (1, 0, "I"), (1, 1, "I")]
    for q, (row, col, _) in enumerate(sites):
        word = "I" * q + "Y" + "I" * (3 - q)
        state = act(
            word, c["ry_offset"] + s("ry_row_sin", row + 1) + k("ry_col_cos", col + 1) + s("ry_diag_sin", row + col + 2)
        )
    state = act("ZZII", c["rzz_offset"] + s("rzz_edge_sin", 1) + k("rzz_site_cos", 1))
    state = act("IIZZ", c["rzz_offset"] + s("rzz_edge_sin", 2) + k("rzz_site_cos", 3))
    state = act("XIXI", c["rxx_offset"] + k("rxx_edge_cos", 1) + s("rxx_site_sin", 1))
    state = act("IXIX", c["rxx_offset"] + k("rxx_edge_cos", 2) + s("rxx_site_sin", 3))
    for q, (row, col, _) in enumerate(sites):
        word = "I" * q + "X" + "I" * (3 - q)
        state = act(
            word, c["rx_offset"] + k("rx_row_cos", row + 1) - s("rx_col_sin", col + 1) + k("rx_diag_cos", row + col + 2)
        )
    return np.abs(state) ** 2


def test_oracle_and_evaluator_equal_the_statement_written_out():
    config = small_config(2)
    expected = by_hand(config)
    assert ORACLE.solve(config)["probabilities"] == pytest.approx(expected, abs=1e-12)
    every = (basis_signs(4) < 0).astype(np.int8)
    assert probabilities(MODULE.grid_circuit(config), every) == pytest.approx(expected, abs=1e-12)


def test_evaluator_equals_oracle_on_three_by_three():
    config = small_config(3)
    distribution = ORACLE.solve(config)["probabilities"]
    assert distribution.sum() == pytest.approx(1)
    found = EVALUATOR.evaluate(config, np.empty(0)).observables["single_z"]
    assert found == pytest.approx(distribution @ basis_signs(9), abs=1e-12)


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_the_distribution(mutation):
    config = small_config(3)
    right, wrong = (ORACLE.solve(config, mutation=name)["probabilities"] for name in (None, mutation))
    assert np.abs(right - wrong).sum() > 0.01
    assert wrong.sum() == pytest.approx(1)


def test_exact_values_are_stored_and_regenerate():
    stored = TASK.exact(TASK.config)
    assert stored is not None
    assert len(stored["single_z"]) == 49
    assert exact.distance(TASK) < 1e-12


def test_draws_stay_in_the_ranges_of_the_statement():
    published = TASK.config
    for seed in range(20):
        small = EVALUATOR.draw_probe(dict(published), np.random.default_rng(seed), 0)
        assert (small["grid_side"], small["n_qubits"], small["n_samples"]) == (4, 16, 4096)
        full = EVALUATOR.draw_full_probe(dict(published), np.random.default_rng(seed))
        assert (full["grid_side"], full["n_samples"]) == (7, 512)
        for key, value in published.items():
            low, high = {"offset": (1, 3), "scale": (2, 4), "frequency": (0.7, 1.3)}.get(key.split("_")[-1], (0, 1e9))
            if high < 1e9:
                assert low <= small[key] / value <= high
                assert 0.8 <= full[key] / value <= 1.2
    timed = EVALUATOR.draw_timed(dict(published), np.random.default_rng(0))
    assert {key for key in published if timed[key] != published[key]} == {"seed"}


def test_drawn_strings_are_distinct_and_of_the_stated_kinds(default_samples):
    masks = MODULE.draw_strings(7, np.random.default_rng(0)).reshape(-1, 49)
    assert len(np.unique(masks, axis=0)) == len(masks) == 49 + 80
    sizes = masks.sum(axis=1)
    assert (sizes[:49] == 1).all()
    assert (sizes[49:89] == 2).all()
    assert set(sizes[89:109]) <= {4, 6, 8, 9, 12, 16}
    assert (sizes[109:] >= 12).all()
    assert (sizes[109:] <= 24).all()


def test_strings_depend_on_the_samples_and_on_a_secret(default_samples):
    other = default_samples.copy()
    other[0, 0] ^= 1
    first, again, of_others, with_other_secret = (
        MODULE.draw_strings(7, MODULE.strings_rng(bits, np.random.default_rng(secret)))
        for bits, secret in ((default_samples, 0), (default_samples, 0), (other, 0), (default_samples, 1))
    )
    assert (first == again).all()
    assert (first != of_others).any()
    assert (first != with_other_secret).any()


def test_the_judge_draws_the_strings_with_its_secret(default_samples):
    run = Run(RunKind.TIMED, "timed", {**TASK.config, "n_samples": 512})

    def mean_error(secret):
        rng = np.random.default_rng(secret)
        evidence = judge(EVALUATOR, run, {"samples": default_samples[:512]}, contract=Contract.ORBIT_2, rng=rng)
        return next(item.value for item in evidence if item.check == "hidden_z_string_mean")

    assert mean_error(0) == mean_error(0) != mean_error(1)


# --- judgement --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contract", Contract)
def test_honest_samples_pass_everything(default_samples, contract):
    evidence = judged(EVALUATOR, dict(TASK.config), {"samples": default_samples}, contract=contract)
    assert {item.outcome for item in evidence} == {Outcome.PASS}
    names = {item.check for item in evidence}
    assert {"form", "binary", "single_z", "hidden_z_string_max", "hidden_z_string_mean", "hotelling_all"} <= names


def test_an_honest_full_size_probe_passes():
    config = EVALUATOR.draw_full_probe(dict(TASK.config), np.random.default_rng(3))
    evidence = judged(EVALUATOR, config, {"samples": honest_samples(config)}, kind=RunKind.FULL_PROBE)
    assert failed(evidence) == set()
    assert "hotelling_all" in {item.check for item in evidence}


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda s: s[:-1], "form"),
        (lambda s: s.astype(float), "form"),
        (lambda s: 1 - 2 * s, "binary"),
        (lambda s: s + 2**62, "binary"),
        (lambda s: 0 * s, "row_lags"),
        (lambda s: 1 - s, "single_z"),
        (lambda s: np.where(np.arange(49) == 7, 0, s), "single_z"),
        (lambda s: np.stack([np.roll(s[:, q], 17 * q) for q in range(49)], axis=1), "hidden_z_string_max"),
        (lambda s: np.stack([np.roll(s[:, q], 17 * q) for q in range(49)], axis=1), "hidden_z_string_mean"),
        (lambda s: s[:, ::-1], "hotelling_sites"),
        (lambda s: s.reshape(-1, 7, 7).swapaxes(1, 2).reshape(-1, 49), "hotelling_all"),
        (lambda s: np.repeat(s[::2], 2, axis=0), "equal_neighbours"),
        (lambda s: np.concatenate([s[:-40], np.repeat(s[:1], 40, axis=0)]), "longest_run"),
        (lambda s: np.concatenate([s[:4096], s[np.random.default_rng(0).permutation(4096)]]), "rare_rows"),
        (lambda s: with_siblings(s, np.arange(49) < 24), "rare_beginnings"),
        (lambda s: with_siblings(s, np.arange(49) > 24), "rare_endings"),
        (lambda s: with_independent_half(s, np.arange(49) // 7 > 3), "cut_scores"),
        (lambda s: np.repeat(s[::2], 2, axis=0), "block_means_2"),
        (lambda s: s[np.argsort(s[:, 7], kind="stable")], "block_means_half"),
        (lambda s: np.concatenate([s[:4096], s[:4096]]), "row_lags"),
        (lambda s: np.concatenate([s[:4096], s[:4096][::-1]]), "row_mirrors"),
        (lambda s: np.repeat(s[::4], 4, axis=0), "row_spectrum"),
    ],
)
def test_bad_samples_fail_the_check_made_for_them(default_samples, change, check):
    assert check in failed(judged(EVALUATOR, dict(TASK.config), {"samples": change(default_samples)}))


@pytest.mark.parametrize("cut", [0, 3, 5])
def test_a_grid_without_the_edges_between_two_columns_fails(cut):
    circuit = MODULE.grid_circuit(dict(TASK.config))
    rzz = circuit.rzz.copy()
    rzz[:, cut] = 0
    samples = sample(replace(circuit, rzz=rzz), np.random.default_rng(cut).random((8192, 49)))
    assert failed(judged(EVALUATOR, dict(TASK.config), {"samples": samples.astype(np.int64)})) >= {"cut_scores"}


def test_only_the_published_criteria_fail_under_the_published_contract(default_samples):
    halves = {"samples": np.concatenate([default_samples[:4096], default_samples[:4096]])}
    evidence = judged(EVALUATOR, dict(TASK.config), halves, contract=Contract.ORBIT_Q_1)
    assert failed(evidence) == set()
    assert "row_lags" in {item.check for item in evidence if item.outcome is Outcome.FLAG}
    flipped = judged(EVALUATOR, dict(TASK.config), {"samples": 1 - default_samples}, contract=Contract.ORBIT_Q_1)
    assert {"single_z", "hidden_z_string_max", "hidden_z_string_mean"} <= failed(flipped)


# --- the probe --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def probe():
    (drawn,) = draw_probes(EVALUATOR, ORACLE, dict(TASK.config), [np.random.default_rng(5), np.random.default_rng(6)])
    assert isinstance(drawn, JointProbe)
    return drawn


def probe_failures(probe, outputs):
    found = [{"samples": samples} for samples in outputs]
    return failed(compare_joint(EVALUATOR, ORACLE, probe, found, np.random.default_rng(0)))


def test_the_probe_has_seeds_a_a_and_b(probe):
    first, second, third = (run.config for run in probe.runs)
    assert first == second
    assert {key for key in first if first[key] != third[key]} == {"seed"}


def test_an_honest_sampler_passes_the_probe(probe):
    assert probe_failures(probe, [honest_samples(run.config) for run in probe.runs]) == set()


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda a, b: (a, a[::-1], b), "probe:seed_repeats"),
        (lambda a, b: (a, a, a), "probe:seed_differs"),
        (lambda a, b: (a, a, np.roll(a, 5, axis=0)), "probe:seed_independent"),
        (lambda a, b: (a[:, ::-1],) * 2 + (b[:, ::-1],), "probe:strings"),
        (lambda a, b: (a[:, ::-1],) * 2 + (b[:, ::-1],), "probe:distribution"),
        (lambda a, b: (np.repeat(a[::2], 2, axis=0),) * 2 + (b,), "probe:block_means_2"),
        (lambda a, b: (np.concatenate([a[:2048], a[:2048]]),) * 2 + (b,), "probe:row_lags"),
        (lambda a, b: (a, a, np.concatenate([b[:2048], b[:2048][::-1]])), "probe:row_mirrors"),
        (lambda a, b: (a, a, b + 1), "binary"),
        (lambda a, b: (a, a, b[1:]), "form"),
    ],
)
def test_bad_probe_runs_fail_the_check_made_for_them(probe, change, check):
    first, _, third = (honest_samples(run.config) for run in probe.runs)
    assert check in probe_failures(probe, change(first, third))


def test_every_wrong_circuit_fails_a_sharp_probe(probe):
    for mutation in ORACLE.mutations:
        distribution = ORACLE.solve(probe.runs[0].config, mutation=mutation)["probabilities"]
        rng = np.random.default_rng(1)
        a, b = (rng.choice(len(distribution), 4096, p=distribution / distribution.sum()) for _ in range(2))
        bits = [key[:, None] >> np.arange(15, -1, -1) & 1 for key in (a, a, b)]
        assert {"probe:strings", "probe:distribution"} & probe_failures(probe, bits), mutation


def test_a_blunt_probe_is_refused(monkeypatch):
    from orbit.errors import HarnessError

    monkeypatch.setattr(MODULE, "MAX_PROBE_DRAWS", 1)
    monkeypatch.setattr(type(ORACLE), "mutations", ("no such mutation",))
    with pytest.raises(HarnessError, match="cannot tell all wrong circuits apart"):
        EVALUATOR.draw_joint_probe(dict(TASK.config), ORACLE, np.random.default_rng(0))


def test_the_circuit_has_the_shapes_of_the_grid():
    circuit = MODULE.grid_circuit(dict(TASK.config))
    assert isinstance(circuit, GridCircuit)
    assert [part.shape for part in (circuit.ry, circuit.rzz, circuit.rxx, circuit.rx)] == [
        (7, 7),
        (7, 6),
        (6, 7),
        (7, 7),
    ]
