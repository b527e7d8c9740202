"""Outputs made up without any computation by a framework, as stored arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from orbit.verification.evaluator import Array, Config, Evaluator, Oracle


def exponential_decay(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """A smooth history between the energy at the start and a slightly lower one, with parameters to match its ends."""
    start = np.asarray(config["initial_parameters"])
    moved = start + 0.01 * rng.standard_normal(start.shape)
    first, last = (evaluator.evaluate(config, point).observables["energy_history"] for point in (start, moved))
    steps = np.arange(config["max_steps"])
    blend = np.exp(-3 * steps / max(1, steps[-1]))[:, None]
    path = moved + blend * (start - moved)
    return {
        "energy_history": last + (first - last) * blend[:, 0],
        "initial_parameters": start,
        "final_parameters": moved,
        "checkpoint_parameters": path[list(config["checkpoint_steps"])],
    }


def published_whatever_is_asked(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Shapes of the published problem."""
    return {
        "energy_history": np.linspace(-41.5038, -41.5039, 500) + 1e-6 * rng.standard_normal(500),
        "initial_parameters": np.zeros(570),
        "final_parameters": np.full(570, 1e-3),
        "checkpoint_parameters": np.zeros((5, 570)),
    }


def _capped(cap: int) -> Callable[..., dict[str, Array]]:
    def run(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
        """Energies of a truncated evolution along the steps that exact gradients take at first."""
        module: Any = sys.modules[type(evaluator).__module__]
        start = np.asarray(config["initial_parameters"])
        gradient = evaluator.evaluate(config, start, gradient=True).gradient
        assert gradient is not None
        path = start - np.outer(np.arange(config["max_steps"] + 1), config["learning_rate"] * np.sign(gradient))
        return {
            "energy_history": np.array([module.capped_energy(config, row, cap) for row in path[:-1]]),
            "initial_parameters": start,
            "final_parameters": path[-1],
            "checkpoint_parameters": path[list(config["checkpoint_steps"])],
        }

    return run


capped_at_8, capped_at_16, capped_at_32 = _capped(8), _capped(16), _capped(32)
