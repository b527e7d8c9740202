"""Every test of the battery passes honest bits and fails on the defect that it is for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from orbit.physics import sampling_statistics as battery

N, M = 4096, 12
P = np.linspace(0.05, 0.5, M)
MEANS = 1 - 2 * P


def bits(seed=0, n=N):
    return (np.random.default_rng(seed).random((n, M)) < P).astype(np.int64)


def centred(samples):
    return 1.0 - 2.0 * samples - MEANS


def order_tests(samples):
    white = battery.whitened(centred(samples))
    return {test.name: test.probability for test in (*battery.block_means(white), *battery.row_correlations(white))}


def keys_and_probabilities(samples):
    keys = samples @ 2 ** np.arange(M)
    return keys, np.prod(np.where(samples == 1, P, 1 - P), axis=1)


def equal_rows(samples):
    return {test.name: test.probability for test in battery.repeated_rows(*keys_and_probabilities(samples))}


def test_parities_are_products_of_signs():
    samples = bits(n=50)
    masks = np.random.default_rng(1).random((5, M)) < 0.5
    expected = [[np.prod(1 - 2 * row[mask]) for mask in masks] for row in samples]
    assert (battery.parities(samples, masks) == np.array(expected)).all()


def test_honest_samples_have_ordinary_probabilities():
    for seed in range(5):
        found = order_tests(bits(seed)) | equal_rows(bits(seed))
        assert min(found.values()) > 1e-4
        assert battery.hotelling("t", centred(bits(seed))).probability > 1e-4


def test_probabilities_of_two_sided_tests_are_uniform_for_honest_samples():
    found = [order_tests(bits(seed, 512)) for seed in range(300)]
    for name in ("block_means_2", "block_means_16", "block_means_half", "row_spectrum"):
        assert kstest([one[name] for one in found], "uniform").pvalue > 1e-4, name
    squared = [battery.hotelling("t", centred(bits(seed, 1024))).probability for seed in range(300)]
    assert kstest(squared, "uniform").pvalue > 1e-4


def test_hotelling_fails_on_both_sides():
    samples = bits()
    assert battery.hotelling("t", centred(samples) + 0.05).probability < 1e-8
    too_good = centred(samples) - centred(samples).mean(axis=0)
    test = battery.hotelling("t", too_good)
    assert test.probability < 1e-8
    assert "too close" in test.message


def test_hotelling_of_features_that_hardly_vary():
    samples = bits()
    rare = np.zeros((N, 1))
    rare[0] = 1.0
    ordinary = np.hstack([centred(samples), rare - 0.2 / N])  # five times as often as expected, a matter of chance
    assert battery.hotelling("t", ordinary).probability > 1e-4
    constant = np.hstack([centred(samples), np.full((N, 1), 0.2)])  # a bit that is never drawn
    assert battery.hotelling("t", constant, 0.05).probability < 1e-8


def paired_by_last_bit(samples):
    """Each row of the lower half beside one of the upper half."""
    ordered = samples[np.argsort(samples[:, -1], kind="stable")]
    return ordered.reshape(2, -1, M).swapaxes(0, 1).reshape(-1, M)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda s: np.repeat(s[::2], 2, axis=0), {"block_means_2", "row_lags", "row_spectrum"}),
        (lambda s: np.concatenate([s[: N // 2], s[: N // 2]]), {"row_lags"}),
        (lambda s: np.concatenate([s[: N // 2], s[: N // 2][::-1]]), {"row_mirrors"}),
        (lambda s: s[np.argsort(s[:, -1], kind="stable")], {"block_means_half", "block_means_256"}),
        (paired_by_last_bit, {"block_means_2"}),
    ],
    ids=["doubled rows", "copied half", "mirrored half", "sorted", "stratified pairs"],
)
def test_order_of_rows(change, names):
    found = order_tests(change(bits()))
    assert {name for name in names if found[name] < 1e-8} == names


def test_rows_that_never_change():
    found = order_tests(np.zeros((N, M), dtype=np.int64))
    assert found == {"block_means_half": 0.0, "row_lags": 0.0}
    assert battery.hotelling("t", centred(np.zeros((N, M)))).probability < 1e-8


def test_equal_rows():
    keys, probabilities = keys_and_probabilities(bits())
    common = int(np.argmax(probabilities))
    stuck = keys.copy()
    stuck[100:140] = keys[common]
    sticky = probabilities.copy()
    sticky[100:140] = probabilities[common]
    found = {test.name: test.probability for test in battery.repeated_rows(stuck, sticky)}
    assert found["longest_run"] < 1e-8
    pairs = bits()[np.repeat(np.random.default_rng(3).permutation(N)[: N // 2], 2)]
    assert equal_rows(pairs)["equal_neighbours"] < 1e-8
    unlikely = np.full(N, 1e-9)
    test = battery.repeated_rows(np.concatenate([np.arange(N - 8), np.arange(8)]), unlikely)[-1]
    assert test.name == "rare_rows"
    assert test.probability < 1e-8


def test_equal_beginnings():
    conditional = np.where(bits() == 1, P, 1 - P)
    assert battery.repeated_beginnings("t", bits(), conditional).probability > 1e-4
    samples = np.random.default_rng(4).integers(0, 2, (N, 40))
    uniform = np.full(samples.shape, 0.5)
    assert battery.repeated_beginnings("t", samples, uniform).probability > 1e-4
    clustered = samples.copy()
    clustered[:4] = samples[0]
    assert battery.repeated_beginnings("t", clustered, uniform).message.startswith("3 coincidences")
    samples[N - 10 :, :30] = samples[:10, :30]
    test = battery.repeated_beginnings("t", samples, uniform)
    assert test.probability < 1e-10
    assert test.message == f"10 coincidences among {N} rare rows cut to 30 bits"


def test_rare_outcomes_are_pooled_and_frequent_ones_are_not():
    distribution = np.array([0.5, 0.001, 0.3, 0.001, 0.148, 0.02, 0.03])
    cells = battery.pooled_cells(distribution, 0.1)
    assert len(set(cells[[0, 2, 4]])) == 3
    assert set(cells[[1, 3, 5, 6]]).isdisjoint(cells[[0, 2, 4]])
    assert len(set(cells[[1, 3, 5, 6]])) == 1


def test_chi_square_fails_on_both_sides():
    rng = np.random.default_rng(0)
    distribution = rng.dirichlet(np.ones(300))
    honest = rng.multinomial(8192, distribution)
    assert battery.chi_square("c", honest, distribution).probability > 1e-4
    other = rng.multinomial(8192, 0.8 * distribution + 0.2 / 300)
    assert battery.chi_square("c", other, distribution).probability < 1e-8
    assert battery.chi_square("c", np.rint(8192 * distribution).astype(int), distribution).probability < 1e-8


def test_two_samples_must_differ_as_chance_makes_them():
    rng = np.random.default_rng(1)
    distribution = rng.dirichlet(np.ones(300))
    one, other = rng.multinomial(8192, distribution), rng.multinomial(8192, distribution)
    assert battery.two_samples("c", one, other, distribution).probability > 1e-4
    assert battery.two_samples("c", one, one, distribution).probability < 1e-8
    apart = rng.multinomial(8192, 0.8 * distribution + 0.2 / 300)
    assert battery.two_samples("c", one, apart, distribution).probability < 1e-8
