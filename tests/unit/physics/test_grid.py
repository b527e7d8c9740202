from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from orbit.physics.gates import pauli
from orbit.physics.grid import (
    GridCircuit,
    basis_signs,
    conditional_probabilities,
    cut_scores,
    probabilities,
    sample,
    turned_by_half,
    z_string_expectations,
)


def drawn(side, seed=0):
    rng = np.random.default_rng(seed)
    shapes = ((side, side), (side, side - 1), (side - 1, side), (side, side))
    return GridCircuit(*(rng.uniform(-1.5, 1.5, shape) for shape in shapes))


def on(letter, sites, n):
    matrix = np.eye(1)
    for site in range(n):
        matrix = np.kron(matrix, pauli(letter if site in sites else "I"))
    return matrix


def turned(state, angle, word):
    return np.cos(angle / 2) * state - 1j * np.sin(angle / 2) * (word @ state)


def textbook_state(circuit):
    """Pauli words on the full register, `exp(-i t P / 2) = cos(t / 2) - i sin(t / 2) P`, gate by gate."""
    side, n = circuit.side, circuit.side**2
    state = np.zeros(2**n, dtype=complex)
    state[0] = 1
    for (row, column), angle in np.ndenumerate(circuit.ry):
        state = turned(state, angle, on("Y", {side * row + column}, n))
    for (row, column), angle in np.ndenumerate(circuit.rzz):
        q = side * row + column
        state = turned(state, angle, on("Z", {q, q + 1}, n))
    for (row, column), angle in np.ndenumerate(circuit.rxx):
        q = side * row + column
        state = turned(state, angle, on("X", {q, q + side}, n))
    for (row, column), angle in np.ndenumerate(circuit.rx):
        state = turned(state, angle, on("X", {side * row + column}, n))
    return state


def dense(circuit):
    """The distribution over all bit strings, by `probabilities`."""
    n = circuit.side**2
    return probabilities(circuit, (basis_signs(n) < 0).astype(np.int8))


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_equal_the_textbook_on_two_by_two(seed):
    circuit = drawn(2, seed)
    assert dense(circuit) == pytest.approx(np.abs(textbook_state(circuit)) ** 2, abs=1e-12)


def test_probabilities_equal_the_textbook_on_three_by_three():
    circuit = drawn(3)
    assert dense(circuit) == pytest.approx(np.abs(textbook_state(circuit)) ** 2, abs=1e-12)


@pytest.mark.parametrize("side", [2, 3])
def test_string_expectations_equal_sums_over_the_distribution(side):
    circuit, rng = drawn(side, 7), np.random.default_rng(1)
    masks = rng.random((12, side, side)) < 0.4
    masks[0] = False
    signs, distribution = basis_signs(side**2), dense(circuit)
    expected = [distribution @ np.prod(signs[:, mask.ravel()], axis=1) for mask in masks]
    assert z_string_expectations(circuit, masks) == pytest.approx(np.array(expected), abs=1e-12)
    assert expected[0] == pytest.approx(1)


def test_a_site_of_a_large_grid_depends_on_its_causal_cone_alone():
    rng = np.random.default_rng(3)
    large = drawn(7, 4)
    mask = np.zeros((1, 7, 7), dtype=bool)
    mask[0, 3, 3] = True
    before = z_string_expectations(large, mask)
    ry, rx = large.ry.copy(), large.rx.copy()
    ry[0], rx[5] = rng.uniform(-1, 1, (2, 7))
    outside = GridCircuit(ry, large.rzz, large.rxx, rx)
    assert z_string_expectations(outside, mask) == pytest.approx(before, abs=1e-13)
    inside = GridCircuit(ry + 0.3 * (np.arange(49).reshape(7, 7) == 25), large.rzz, large.rxx, rx)
    assert abs(z_string_expectations(inside, mask)[0] - before[0]) > 1e-6


@pytest.mark.parametrize("side", [2, 3])
def test_samples_follow_the_distribution(side):
    circuit, n_samples = drawn(side, 5), 40_000
    samples = sample(circuit, np.random.default_rng(2).random((n_samples, side**2)))
    index = samples.astype(int) @ 2 ** np.arange(side**2 - 1, -1, -1)
    expected = n_samples * dense(circuit)
    common = expected >= 10
    counts = np.bincount(index, minlength=len(expected))
    statistic = np.sum((counts[common] - expected[common]) ** 2 / expected[common])
    assert chi2.sf(statistic, common.sum()) > 1e-6
    assert statistic > chi2.ppf(1e-6, common.sum() - 1)


def test_samples_are_a_function_of_the_uniforms():
    circuit = drawn(3)
    uniforms = np.random.default_rng(0).random((50, 9))
    together = sample(circuit, uniforms)
    alone = np.concatenate([sample(circuit, row[None]) for row in uniforms])
    assert (together == alone).all()
    assert set(np.unique(together)) == {0, 1}


def test_scores_of_cuts_are_derivatives_of_log_probabilities():
    circuit, step = drawn(3, 2), 1e-6
    every = (basis_signs(9) < 0).astype(np.int8)
    scores = cut_scores(circuit, every)
    assert scores.shape == (512, 4)
    for cut in range(2):
        for kind, moved in (("rzz", np.s_[:, cut]), ("rxx", np.s_[cut])):
            angles = [getattr(circuit, kind).copy() for _ in range(2)]
            angles[0][moved] += step
            angles[1][moved] -= step
            up, down = (probabilities(replace(circuit, **{kind: part}), every) for part in angles)
            found = scores[:, cut + 2 * (kind == "rxx")] * dense(circuit)
            assert found == pytest.approx((up - down) / (2 * step), abs=1e-8)
    assert dense(circuit) @ scores == pytest.approx(np.zeros(4), abs=1e-12)


def test_bits_given_those_before_them_multiply_to_marginals():
    circuit = drawn(3, 5)
    every = (basis_signs(9) < 0).astype(np.int8)
    likely = np.cumprod(conditional_probabilities(circuit, every), axis=1)
    for length in (1, 4, 9):
        marginals = dense(circuit).reshape(2**length, -1).sum(axis=1)
        assert likely[:, length - 1] == pytest.approx(np.repeat(marginals, 2 ** (9 - length)), abs=1e-12)


def test_a_grid_turned_by_half_has_its_bits_in_reverse_order():
    circuit = drawn(3, 6)
    every = (basis_signs(9) < 0).astype(np.int8)
    assert probabilities(turned_by_half(circuit), every[:, ::-1]) == pytest.approx(dense(circuit), abs=1e-12)
