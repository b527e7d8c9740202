"""Outputs of `kraus-calibration` that nobody computed as asked; every one of them must be rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.verification.evaluator import Array, Config, Evaluator, Oracle


def exponential_decay(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Logits that decay exponentially to the true ones, with the losses, rates and table that really belong to them."""
    start = np.asarray(config["initial_parameters"])
    truth = np.array([config["true_p01"], config["true_p10"]])
    end = np.log(truth / (1 - truth))
    left = np.exp(-np.arange(config["max_steps"] + 1) / 15)
    path = end + np.outer(left, start - end)
    found = [evaluator.evaluate(config, row).observables for row in path]
    return {
        "loss_history": np.array([row["loss_history"] for row in found[:-1]]),
        "final_probabilities": np.array(found[-1]["final_probabilities"]),
        "fitted_expectations": np.array(found[-1]["fitted_expectations"]),
        "initial_parameters": start,
        "checkpoint_parameters": path[list(config["checkpoint_steps"])],
        "final_parameters": path[-1],
    }


def interpolated_snapshots(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """An honest run of which only the first, a middle and the last entry are kept."""
    outputs = oracle.solve(config)
    steps = np.arange(config["max_steps"])
    kept = np.array([0, len(steps) // 2, len(steps) - 1])
    return {**outputs, "loss_history": np.interp(steps, kept, outputs["loss_history"][kept])}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_qubits": 12, "max_steps": 120}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.1 * rng.standard_normal(start.shape)})
    return {**elsewhere, "initial_parameters": start}
