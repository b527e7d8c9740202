"""Outputs of `postselected-cooling` that nobody computed as asked; every one of them must be rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.verification.evaluator import Array, Config, Evaluator, Oracle


def _assembled(config: Config, energy: Array, mean_log: Array) -> dict[str, Array]:
    """Histories whose compositions hold, so that only recomputation can tell."""
    n_events = config["n_steps"] * config["n_qubits"] // 2
    return {
        "energy_density_history": energy,
        "mean_log_probability_history": mean_log,
        "success_probability_history": np.exp(n_events * mean_log),
        "loss_history": energy - config["log_probability_weight"] * mean_log,
    }


def exponential_decay(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Right at the first entry, then smooth decays to the ground-state energy and to certain success."""
    start = np.asarray(config["initial_parameters"])
    first = evaluator.evaluate(config, start, gradient=True)
    assert first.gradient is not None
    left = np.exp(-np.arange(config["max_steps"]) / 40)
    ground = float(np.max(evaluator.compute_exact(config)["ground_energy_density"])) + 0.01
    energy = ground + (first.observables["energy_density_history"] - ground) * left
    walk = -config["learning_rate"] * np.sign(first.gradient)
    return {
        **_assembled(config, energy, first.observables["mean_log_probability_history"] * left - 1e-3),
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
    energy, mean_log = (
        np.interp(steps, kept, outputs[key][kept]) for key in ("energy_density_history", "mean_log_probability_history")
    )
    return {**outputs, **_assembled(config, energy, mean_log)}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_qubits": 12, "n_steps": 10, "max_steps": 300}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.1 * rng.standard_normal(start.shape)})
    return {**elsewhere, "initial_parameters": start}
