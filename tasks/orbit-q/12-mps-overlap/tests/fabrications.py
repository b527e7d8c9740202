"""Outputs of `mps-overlap` that nobody computed as asked; every one of them must be rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.verification.evaluator import Array, Config, Evaluator, Oracle

KNOWN_END = 0.87
"""Fidelity that honest runs of the published problem reach."""


def _walk(evaluator: Evaluator, config: Config) -> dict[str, Array]:
    """Parameters that move on and on by Adam's first update, with the right phase at their end."""
    start = np.asarray(config["initial_parameters"], dtype=np.float64)
    gradient = evaluator.evaluate(config, start, gradient=True).gradient
    assert gradient is not None
    move = -config["learning_rate"] * np.sign(gradient)
    final = start + config["max_steps"] * move
    return {
        "initial_parameters": start,
        "checkpoint_parameters": start + np.outer(config["checkpoint_steps"], move),
        "final_parameters": final,
        "final_overlap_phase": np.asarray(evaluator.evaluate(config, final).observables["final_overlap_phase"]),
    }


def saturating_curve(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Right at the first entry, then an exponential approach to the fidelity that honest runs reach."""
    first = evaluator.evaluate(config, np.asarray(config["initial_parameters"])).observables["fidelity_history"]
    fidelity = KNOWN_END + (first - KNOWN_END) * np.exp(-np.arange(config["max_steps"]) / 200)
    return {"fidelity_history": fidelity, "loss_history": 1 - fidelity, **_walk(evaluator, config)}


def ideal_fidelity(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Fidelities just below one that still grow."""
    fidelity = 1 - 1e-3 * np.exp(-np.arange(config["max_steps"], dtype=np.float64))
    return {"fidelity_history": fidelity, "loss_history": 1 - fidelity, **_walk(evaluator, config)}


def interpolated_snapshots(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """An honest run of which only the first, a middle and the last entry are kept."""
    outputs = oracle.solve(config)
    steps = np.arange(config["max_steps"])
    kept = np.array([0, len(steps) // 2, len(steps) - 1])
    fidelity = np.interp(steps, kept, outputs["fidelity_history"][kept])
    return {**outputs, "fidelity_history": fidelity, "loss_history": 1 - fidelity}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_qubits": 32, "max_steps": 5000}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.1 * rng.standard_normal(start.shape)})
    return {**elsewhere, "initial_parameters": start}
