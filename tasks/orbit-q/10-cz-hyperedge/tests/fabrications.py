"""Outputs of `cz-hyperedge` that nobody computed as asked; every one of them must be rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.verification.evaluator import Array, Config, Evaluator, Oracle


def exponential_decay(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Honest parameters and a history that is right at both ends and a smooth decay between them."""
    outputs = oracle.solve(config)
    first, last = outputs["energy_history"][[0, -1]]
    left = np.exp(-np.linspace(0, 3, config["max_steps"]))
    left = (left - left[-1]) / (left[0] - left[-1])
    return {**outputs, "energy_history": last + (first - last) * left}


def interpolated_snapshots(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """An honest run of which only the first, a middle and the last entry are kept."""
    outputs = oracle.solve(config)
    steps = np.arange(config["max_steps"])
    kept = np.array([0, len(steps) // 2, len(steps) - 1])
    return {**outputs, "energy_history": np.interp(steps, kept, outputs["energy_history"][kept])}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_qubits": 22, "n_layers": 2, "max_steps": 200}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.1 * rng.standard_normal(start.shape)})
    return {**elsewhere, "initial_parameters": start}
