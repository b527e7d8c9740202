"""Outputs of `entanglement-profile` that nobody computed as asked; every one of them must be rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.verification.evaluator import Array, Config, Evaluator, Oracle

HISTORIES = ("energy_density_history", "entropy_history")


def _assembled(config: Config, energy: Array, entropies: Array) -> dict[str, Array]:
    """Histories whose compositions hold, so that only recomputation can tell."""
    mse = np.mean((entropies - np.asarray(config["target_entropies"])) ** 2, axis=1)
    return {
        "energy_density_history": energy,
        "entropy_history": entropies,
        "entropy_mse_history": mse,
        "loss_history": energy + config["entropy_weight"] * mse,
    }


def exponential_decay(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Right at the first entry, then smooth decays to the ground-state energy and to the target entropies."""
    start = np.asarray(config["initial_parameters"])
    first = evaluator.evaluate(config, start, gradient=True)
    assert first.gradient is not None
    left = np.exp(-np.arange(config["max_steps"]) / 60)
    ground = float(np.max(evaluator.compute_exact(config)["ground_energy"])) / config["n_qubits"] + 0.01
    energy = ground + (first.observables["energy_density_history"] - ground) * left
    targets = np.asarray(config["target_entropies"])
    entropies = targets + np.outer(left, first.observables["entropy_history"] - targets)
    walk = -config["learning_rate"] * np.sign(first.gradient)
    return {
        **_assembled(config, energy, entropies),
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

    def through(history: Array) -> Array:
        columns = history.reshape(len(steps), -1).T
        return np.array([np.interp(steps, kept, column[kept]) for column in columns]).T.reshape(history.shape)

    return {**outputs, **_assembled(config, *(through(outputs[key]) for key in HISTORIES))}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_qubits": 12, "max_steps": 500}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.1 * rng.standard_normal(start.shape)})
    return {**elsewhere, "initial_parameters": start}
