"""Honest samples of the published grid are not rejected: the battery on ten thousand simulated runs.

Slow on purpose and run on demand (`pytest -m slow`); what came of it is recorded in docs/sampling-battery.md. It needs
NumPy alone.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

from orbit.physics import sampling_statistics as battery
from orbit.physics.grid import sample, z_string_expectations
from orbit.tasks import find_task

pytestmark = [pytest.mark.slow, pytest.mark.integration]

TASK = find_task("orbit-q/08-grid-sampling")
EVALUATOR = TASK.load_evaluator()
MODULE = sys.modules[type(EVALUATOR).__module__]
N_RUNS = 10_000
N_STRING_SETS = 40
CHUNK, N_CHUNKS = 2**16, 8


def pool(circuit, rng):
    """Independent samples; a run is a random subset of them, without repetition."""
    chunks = [sample(circuit, rng.random((CHUNK, circuit.side**2))) for _ in range(N_CHUNKS)]
    return np.concatenate(chunks).astype(np.int64)


def runs(samples, n_samples, rng):
    """Random disjoint subsets, the samples being shuffled again when they are used up."""
    while True:
        order = rng.permutation(len(samples))
        for start in range(0, len(samples) - n_samples + 1, n_samples):
            yield order[start : start + n_samples]


def simulated(config, n_runs, rng):
    """Probabilities by test, (n_runs, n_tests), and the distance from the published criteria in their limits."""
    circuit, side = MODULE.grid_circuit(config), config["grid_side"]
    samples = pool(circuit, rng)
    rows = MODULE.exact_rows(circuit, samples, config["n_samples"])
    sets = []
    for _ in range(N_STRING_SETS):
        masks = MODULE.draw_strings(side, rng)
        sets.append((masks.reshape(len(masks), -1), z_string_expectations(circuit, masks)))
    tests, published = [], []
    for number, chosen in zip(range(n_runs), runs(samples, config["n_samples"], rng), strict=False):
        masks, exact = sets[number % N_STRING_SETS]
        bits = samples[chosen]
        tests.append(MODULE.tests_of_samples(bits, masks, exact, rows[chosen]))
        hidden = np.abs(battery.parities(bits, masks[side**2 :]).mean(axis=0) - exact[side**2 :])
        room = MODULE.STANDARD_ERRORS * np.sqrt((1 - exact[side**2 :] ** 2) / config["n_samples"])
        limits = np.maximum(config["hidden_z_string_max_tolerance"], room)
        published.append((float((hidden / limits).max()), float(hidden.mean())))
    return [test.name for test in tests[0]], np.array([[test.probability for test in run] for run in tests]), published


def test_honest_samples_are_not_rejected() -> None:
    config = dict(TASK.config)
    names, found, published = simulated(config, N_RUNS, np.random.default_rng(2034))
    for name, column in zip(names, found.T, strict=True):
        shares = ", ".join(f"{np.mean(column < level):.5f} below {level:g}" for level in (0.1, 0.01, 0.001))
        print(f"{name}: smallest {column.min():.2e}; {shares}")
        # Heavier tails than the assumed law's are foreseen in the limit, but not more than a factor of three here.
        for level in (0.1, 0.01, 0.001):
            assert np.mean(column < level) <= 3 * level + 4 * np.sqrt(level / N_RUNS), (name, level)
    largest, mean = np.max(published, axis=0)
    print(f"published criteria: hidden strings at most {largest:.3f} of their limits, mean error at most {mean:.5f}")
    assert found.min() > 10 * MODULE.REJECTED
    assert largest < 1
    assert mean < config["hidden_z_string_mean_tolerance"]
