"""Tests of whether bit strings are independent samples of a known distribution.

Each test gives the probability that honest samples stray at least as far, small for what is too far off and, where a
test is two-sided, for what is too close as well: quasi-random, antithetic or made-up samples are better than chance
allows. Centred features are (n_samples, n_features) arrays whose exact mean is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Reals = NDArray[np.float64]
BLOCK_SIZES = (2, 4, 16, 64, 256, 1024)
N_HALVES = 2
RARE_PAIRS = 0.02
"""Rows are called rare when no more than so many coincidences are expected among them."""
RARE_BEGINNING_PAIRS = 0.2
"""As `RARE_PAIRS`, for beginnings of rows: more of them are looked at, and more coincidences are wanted."""


@dataclass(frozen=True)
class TailTest:
    """The outcome of one test: `probability` of honest samples straying as far; `message` says where they are."""

    name: str
    probability: float
    message: str


def parities(samples: NDArray[np.integer], masks: NDArray[np.bool_]) -> Reals:
    """Values +1 and -1 of the Z strings that the masks (n_strings, n_qubits) select, shape (n_samples, n_strings)."""
    # Counts stay below 2**24, so single precision is exact; a matrix product of integers would be slow.
    counts = (samples & 1).astype(np.float32) @ masks.T.astype(np.float32)
    return np.asarray(1.0 - 2.0 * (counts.astype(np.int32) & 1), dtype=np.float64)


def two_sided(name: str, statistic: float, mean: float, variance: float, message: str) -> TailTest:
    """Test of a positive statistic by a gamma distribution of the right mean and variance."""
    shape, scale = mean**2 / variance, variance / mean
    return _both_tails(name, stats.gamma(shape, scale=scale), statistic, f"{message} {statistic:.5g}, mean {mean:.5g}")


def hotelling(name: str, centred: Reals, least_variance: float = 0.0) -> TailTest:
    """Hotelling's T^2 of the feature means with the sample covariance (Anderson, Multivariate Analysis, 5.2).

    Args:
        name: of the test.
        centred: features whose exact mean is zero.
        least_variance: directions in which the features vary less are rare events without a normal mean. They count
            with this variance where the means are too far off, and not at all where the means are too close.
    """
    n, m = centred.shape
    values, vectors = np.linalg.eigh(np.cov(centred, rowvar=False).reshape(m, m))
    squares = n * (centred.mean(axis=0) @ vectors) ** 2
    kept = values > max(least_variance, 1e-9)
    far = float(np.sum(squares / np.maximum(values, max(least_variance, 1e-9))))
    near, k = float(np.sum(squares[kept] / values[kept])), int(kept.sum())
    high = float(stats.f.sf(far * (n - m) / (m * (n - 1)), m, n - m))
    low = float(stats.f.cdf(near * (n - k) / (k * (n - 1)), k, n - k)) if k else 1.0
    return _tails(name, low, high, f"T^2 of {m} means {far:.5g}, about {m} expected")


def whitened(centred: Reals) -> Reals:
    """Features with sample mean zero and the unit matrix as sample covariance; linear dependences are dropped."""
    moved = centred - centred.mean(axis=0)
    values, vectors = np.linalg.eigh(moved.T @ moved / len(moved))
    kept = values > 1e-9
    return np.asarray(moved @ (vectors[:, kept] / np.sqrt(values[kept])))


def block_means(white: Reals, sizes: Sequence[int] = BLOCK_SIZES) -> list[TailTest]:
    """Variance of the means of consecutive blocks of several sizes, halves included.

    For white features the squared block sums depend on the products of distinct rows alone; mean and variance are those
    under random order.
    """
    n, m = white.shape
    if not m:
        return [TailTest("block_means_half", 0.0, "all rows are equal")]
    tests = []
    sums, width, squares = white, 1, np.sum(white**2, axis=1)
    for size in [*(size for size in sizes if size <= n // 4), n // N_HALVES]:
        count = n // size
        if size % width:
            sums, width = white, 1
        parts = size // width
        sums, width = sums[: count * parts].reshape(count, parts, m).sum(axis=1), size
        # The diagonal part of the squares is replaced by its mean, which takes the rows' kurtosis out.
        diagonal = float(squares[: count * size].sum()) / size
        statistic = float(np.sum(sums**2)) / size - diagonal + count * m
        left = (n - size) / (n - 1)
        variance = 2 * m * count * (size - 1) / size * left
        tests.append(
            two_sided(f"block_means_{_size_name(size, n)}", statistic, m * count * left, variance, "squared block sums")
        )
    return tests


def _size_name(size: int, n: int) -> str:
    return "half" if size == n // N_HALVES else str(size)


def row_correlations(white: Reals) -> list[TailTest]:
    """Correlations of rows with shifted rows, over all lags at once, and of rows in all mirrored pairings."""
    n, m = white.shape
    if not m:
        return [TailTest("row_lags", 0.0, "all rows are equal")]
    transforms = np.fft.rfft(white, axis=0)
    scale = np.sqrt(n * m)
    lagged = np.fft.irfft(np.sum(np.abs(transforms) ** 2, axis=1), n) / scale
    lags = lagged[1 : n // 2].copy()
    half = lagged[n // 2] / np.sqrt(2) if n % 2 == 0 else 0.0
    # Pairing i with s - i counts every pair twice and the fixed points i = s - i once, which are taken out.
    mirrored = np.fft.irfft(np.sum(transforms**2, axis=1), n)
    squares = np.sum(white**2, axis=1)
    fixed = np.bincount((2 * np.arange(n)) % n, weights=squares, minlength=n)
    mirrors = (mirrored - fixed) / np.sqrt(2 * n * m)
    rough = float(np.sum(lags**2))
    # The squares sum up like those of a periodogram whose ordinates are gamma variables of shape m.
    variance = 2.0 * len(lags) * (1 + 3 / m)
    return [
        _largest("row_lags", np.append(lags, half), "lag", first=1),
        _largest("row_mirrors", mirrors, "mirror", first=0),
        two_sided("row_spectrum", rough, float(len(lags)), variance, "sum of squared row correlations"),
    ]


def _largest(name: str, normal: Reals, what: str, *, first: int) -> TailTest:
    where = int(np.argmax(np.abs(normal)))
    size = float(abs(normal[where]))
    probability = min(1.0, 2 * len(normal) * float(stats.norm.sf(size)))
    return TailTest(name, probability, f"correlation of rows at {what} {where + first} is {size:.2f} standard errors")


def repeated_rows(keys: NDArray[np.int64], probabilities: Reals) -> list[TailTest]:
    """Equal rows: too many neighbours, long runs, and coincidences of rows so rare that there should be none.

    Args:
        keys: equal for equal rows, shape (n,).
        probabilities: exact, of each row.
    """
    n = len(keys)
    counts = np.unique(keys, return_counts=True)[1]
    pairs = float(np.sum(counts * (counts - 1.0)) / (n * (n - 1.0)))
    triples = float(np.sum(counts * (counts - 1.0) * (counts - 2.0)) / (n * (n - 1.0) * (n - 2.0)))
    neighbours = float(np.sum(keys[1:] == keys[:-1]))
    variance = n * (pairs + 2 * triples - 3 * pairs**2)
    tests = []
    if pairs * n >= 1:
        tests.append(two_sided("equal_neighbours", neighbours, (n - 1) * pairs, max(variance, 1.0), "equal neighbours"))
    run, common = _longest_run(keys), float(probabilities.max())
    expected = n * common**run
    tests.append(TailTest("longest_run", min(1.0, expected), f"the same row {run} times in a row"))
    coincidences, n_rare = _rare_coincidences(keys, probabilities, RARE_PAIRS)
    message = f"{coincidences} coincidences among {n_rare} rare rows"
    tests.append(TailTest("rare_rows", float(stats.poisson.sf(coincidences - 1, RARE_PAIRS)), message))
    return tests


def repeated_beginnings(name: str, samples: NDArray[np.integer], conditional: Reals) -> TailTest:
    """Coincidences among the rarest beginnings of rows, of whichever length tells most; at most 62 bits.

    Args:
        name: of the test.
        samples: bits, shape (n_samples, n_qubits).
        conditional: exact probability of each bit given those before it, of the same shape.
    """
    keys, best = np.zeros(len(samples), dtype=np.int64), (0, 0, 0)
    lengths = samples.shape[1] - 1
    likely = np.cumprod(conditional, axis=1)
    for bit in range(lengths):
        keys = 2 * keys + samples[:, bit]
        best = max(best, (*_rare_coincidences(keys, likely[:, bit], RARE_BEGINNING_PAIRS), bit + 1))
    coincidences, n_rare, length = best
    probability = min(1.0, lengths * float(stats.poisson.sf(coincidences - 1, RARE_BEGINNING_PAIRS)))
    return TailTest(name, probability, f"{coincidences} coincidences among {n_rare} rare rows cut to {length} bits")


def _rare_coincidences(keys: NDArray[np.int64], probabilities: Reals, expected: float) -> tuple[int, int]:
    """Rows that repeat another among the rarest, where so many are expected, and the number of rarest rows."""
    # Rows i and j are equal with probability P(row), so rows whose sum of P is S have n S / 2 expected coincidences.
    largest_sum = 2 * expected / len(keys)
    candidates = np.flatnonzero(probabilities <= largest_sum)
    order = candidates[np.argsort(probabilities[candidates], kind="stable")]
    rare = order[np.cumsum(probabilities[order]) <= largest_sum]
    # Four equal rows count as three, not as six pairs: pairs within one cluster are not independent events.
    return len(rare) - len(np.unique(keys[rare])), len(rare)


def _longest_run(keys: NDArray[np.int64]) -> int:
    breaks = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1], [True]]))
    return int(np.diff(breaks).max())


def chi_square(name: str, counts: NDArray[np.integer], distribution: Reals, smallest: float = 10.0) -> TailTest:
    """Pearson's statistic against a distribution, two-sided; rare outcomes are pooled with their neighbours.

    Args:
        name: of the test.
        counts: observed, shape (n_outcomes,).
        distribution: exact probabilities, shape (n_outcomes,).
        smallest: expected count of a cell.
    """
    n = int(counts.sum())
    cells = pooled_cells(distribution, smallest / n)
    observed = np.bincount(cells, weights=counts)
    share = np.bincount(cells, weights=distribution)
    share = share / share.sum()
    k = len(share)
    statistic = float(np.sum((observed - n * share) ** 2 / (n * share)))
    # Variance of Pearson's statistic at finite n (Haldane 1937).
    variance = 2 * (k - 1) + float(np.sum(1 / share) - k**2 - 2 * k + 2) / n
    return two_sided(name, statistic, k - 1.0, variance, f"chi-square on {k} cells")


def pooled_cells(distribution: Reals, smallest: float) -> NDArray[np.int64]:
    """A cell number per outcome: frequent outcomes have their own, runs of rare ones share one of at least `smallest`.

    Rare outcomes are pooled in the order of their index, which keeps the leading qubits apart.
    """
    frequent = distribution >= smallest
    cells = np.empty(len(distribution), dtype=np.int64)
    filled = np.cumsum(np.where(frequent, 0.0, distribution))
    n_rare = max(1, int(filled[-1] / (2 * smallest)))
    cells[~frequent] = np.minimum((filled[~frequent] / filled[-1] * n_rare).astype(np.int64), n_rare - 1)
    cells[frequent] = n_rare + np.arange(int(frequent.sum()))
    return np.unique(cells, return_inverse=True)[1].astype(np.int64)


def two_samples(name: str, first: NDArray[np.integer], second: NDArray[np.integer], distribution: Reals) -> TailTest:
    """Whether two sets of counts stem from independent samples of one distribution; copies are too close."""
    n = int(first.sum())
    cells = pooled_cells(distribution, 10.0 / n)
    one, other = np.bincount(cells, weights=first), np.bincount(cells, weights=second)
    share = np.bincount(cells, weights=distribution)
    statistic = float(np.sum((one - other) ** 2 / (2 * n * share)))
    k = len(share)
    variance = 2 * (k - 1) + float(np.sum(1 / share) - k**2 - 2 * k + 2) / (2 * n)
    return two_sided(name, statistic, k - 1.0, variance, f"chi-square of two runs on {k} cells")


def _both_tails(name: str, law: stats.rv_frozen, value: float, message: str) -> TailTest:
    return _tails(name, float(law.cdf(value)), float(law.sf(value)), message)


def _tails(name: str, low: float, high: float, message: str) -> TailTest:
    side = "too close to the mean" if low < high else "too far off"
    return TailTest(name, min(1.0, 2 * min(low, high)), f"{message} ({side})" if min(low, high) < 1e-6 else message)
