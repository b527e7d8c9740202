"""Samples of `grid-sampling` that are not independent draws from the output distribution; every one must be rejected.

The exact sampler maps independent uniforms to independent samples, so whatever is wrong with the uniforms shows.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from orbit.physics.grid import GridCircuit, probabilities, sample, turned_by_half
from orbit.verification.evaluator import Array, Config, Evaluator, Oracle

Bits = NDArray[np.int8]
SHARED_BITS = 24
EVERYDAY_ONES = 5
"""Rows with more ones than that are so rare that equal siblings would show."""


def _circuit(evaluator: Evaluator, config: Config) -> GridCircuit:
    circuit: GridCircuit = sys.modules[type(evaluator).__module__].grid_circuit(config)
    return circuit


def _exact(evaluator: Evaluator, config: Config, n_samples: int, rng: np.random.Generator) -> Bits:
    return sample(_circuit(evaluator, config), rng.random((n_samples, config["n_qubits"])))


def _returned(samples: NDArray[Any]) -> dict[str, Array]:
    return {"samples": samples.astype(np.int64)}


def sobol(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """A scrambled Sobol sequence in place of independent uniforms: the means are better than chance allows."""
    points = qmc.Sobol(config["n_qubits"], seed=rng).random(config["n_samples"])
    return _returned(sample(_circuit(evaluator, config), points))


def shuffled_sobol(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """The same in random order."""
    return _returned(rng.permutation(sobol(evaluator, oracle, config, rng)["samples"]))


def _antithetic(evaluator: Evaluator, config: Config, rng: np.random.Generator) -> tuple[Bits, Bits]:
    uniforms = rng.random((config["n_samples"] // 2, config["n_qubits"]))
    both = sample(_circuit(evaluator, config), np.concatenate([uniforms, 1 - uniforms]))
    return both[: len(uniforms)], both[len(uniforms) :]


def antithetic(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Uniforms u and 1 - u, one after the other."""
    return _returned(np.stack(_antithetic(evaluator, config, rng), axis=1).reshape(-1, config["n_qubits"]))


def antithetic_halves(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Uniforms u in the first half, 1 - u in the second."""
    return _returned(np.concatenate(_antithetic(evaluator, config, rng)))


def antithetic_mirrored(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Uniforms u in the first half, 1 - u in the second in reverse order."""
    first, second = _antithetic(evaluator, config, rng)
    return _returned(np.concatenate([first, second[::-1]]))


def metropolis(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Chains of single flips, started from exact samples, in which a rejection repeats the row."""
    n, n_chains = config["n_qubits"], 256
    circuit, state = _circuit(evaluator, config), _exact(evaluator, config, n_chains, rng)
    weight, path = probabilities(circuit, state), []
    for _ in range(config["n_samples"] // n_chains):
        for _ in range(8):
            proposal = state.copy()
            proposal[np.arange(n_chains), rng.integers(0, n, n_chains)] ^= 1
            proposed = probabilities(circuit, proposal)
            accepted = rng.random(n_chains) * weight < proposed
            state, weight = np.where(accepted[:, None], proposal, state), np.where(accepted, proposed, weight)
        path.append(state)
    return _returned(np.stack(path, axis=1).reshape(-1, n))


def duplicated(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Half as many samples, each twice, in random order."""
    half = _exact(evaluator, config, config["n_samples"] // 2, rng)
    return _returned(rng.permutation(np.concatenate([half, half])))


def duplicated_halves(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """The first half of the rows once more as the second."""
    half = _exact(evaluator, config, config["n_samples"] // 2, rng)
    return _returned(np.concatenate([half, half]))


def _siblings(circuit: GridCircuit, config: Config, rng: np.random.Generator) -> Bits:
    """Pairs of distinct rows that share their first 24 bits, in random order; everyday rows may be equal."""
    first = rng.random((config["n_samples"] // 2, config["n_qubits"]))
    second = np.concatenate(
        [first[:, :SHARED_BITS], rng.random((len(first), config["n_qubits"] - SHARED_BITS))], axis=1
    )
    bits, siblings = sample(circuit, first), sample(circuit, second)
    while True:
        again = np.flatnonzero((bits == siblings).all(axis=1) & (bits.sum(axis=1) > EVERYDAY_ONES))
        if not len(again):
            return rng.permutation(np.concatenate([bits, siblings]))
        second[again, SHARED_BITS:] = rng.random((len(again), config["n_qubits"] - SHARED_BITS))
        siblings[again] = sample(circuit, second[again])


def sibling_pairs(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Pairs of rows with one beginning, every pair being continued twice by independent uniforms."""
    return _returned(_siblings(_circuit(evaluator, config), config, rng))


def sibling_endings(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """The same from the last qubit on: pairs of rows with one ending."""
    return _returned(_siblings(turned_by_half(_circuit(evaluator, config)), config, rng)[:, ::-1])


def product(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Every qubit by itself, with the right probability."""
    means = evaluator.evaluate(config, np.empty(0)).observables["single_z"]
    return _returned(rng.random((config["n_samples"], config["n_qubits"])) >= (1 + means) / 2)


def permuted_by_seed(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """One fixed set of samples that the seed only puts into another order."""
    samples = _exact(evaluator, config, config["n_samples"], np.random.default_rng(1))
    return _returned(np.random.default_rng(config["seed"]).permutation(samples))


def quotas(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Every bit string of the small grid as often as expected, up to one."""
    expected = config["n_samples"] * oracle.solve(config)["probabilities"]
    counts = np.floor(expected).astype(int)
    left = config["n_samples"] - int(counts.sum())
    rest = (expected - counts) / (expected - counts).sum()
    counts += np.bincount(rng.choice(len(expected), left, replace=False, p=rest), minlength=len(expected))
    order = np.random.default_rng(config["seed"]).permutation(np.repeat(np.arange(len(expected)), counts))
    return _returned(order[:, None] >> np.arange(config["n_qubits"] - 1, -1, -1) & 1)
