"""Outputs of `haldane-chain` that nobody computed as asked; every one of them must be rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.verification.evaluator import Array, Config, Evaluator, Oracle


def exponential_decay(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Right at the first entry, then a smooth decay towards the ground state, with its strings."""
    start = np.asarray(config["initial_parameters"])
    first = evaluator.evaluate(config, start, gradient=True)
    assert first.gradient is not None
    exact = evaluator.exact(config)
    left = np.exp(-np.arange(config["max_steps"] + 1) / 60)
    ground = float(np.max(exact["ground_energy_density"])) + 0.01
    energy = ground + (first.observables["energy_density_history"] - ground) * left
    walk = -config["learning_rate"] * np.sign(first.gradient)
    return {
        "energy_density_history": energy[:-1],
        "final_energy_density": energy[-1],
        "final_string_orders": np.asarray(exact["ground_string_orders"]),
        "initial_parameters": start,
        "checkpoint_parameters": start + np.outer(config["checkpoint_steps"], walk),
        "final_parameters": start + config["max_steps"] * walk,
    }


def interpolated_snapshots(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """An honest run of which only the first, a middle and the last entry are kept."""
    outputs = oracle.solve(config)
    steps = np.arange(config["max_steps"])
    kept = np.array([0, len(steps) // 2, len(steps) - 1])
    history = np.interp(steps, kept, outputs["energy_density_history"][kept])
    return {**outputs, "energy_density_history": history}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_sites": 12, "n_layers": 5, "max_steps": 500}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.1 * rng.standard_normal(start.shape)})
    return {**elsewhere, "initial_parameters": start}
