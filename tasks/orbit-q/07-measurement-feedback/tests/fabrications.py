"""Outputs of `measurement-feedback` that nobody computed as asked; every one of them must be rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.physics.adam import Adam
from orbit.physics.ancillas import classical_outcomes
from orbit.verification.evaluator import Array, Config, Evaluator, Oracle


def exponential_decay(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Right at the first entry, then a smooth decay to just above the ground-state energy."""
    start = np.asarray(config["initial_parameters"])
    first = evaluator.evaluate(config, start, gradient=True)
    assert first.gradient is not None
    ground = float(np.max(evaluator.compute_exact(config)["ground_energy"])) + 0.1
    left = np.exp(-np.arange(config["max_steps"]) / 20)
    walk = -config["learning_rate"] * np.sign(first.gradient) * (np.abs(first.gradient) > 1e-9)
    history = ground + (first.observables["energy_history"] - ground) * left
    return {
        "energy_history": history,
        "final_trajectory_energies": np.full(config["n_trajectories"], history[-1]),
        "initial_parameters": start,
        "checkpoint_parameters": start + np.outer(config["checkpoint_steps"], walk),
        "final_parameters": start + config["max_steps"] * walk,
    }


def interpolated_snapshots(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """An honest run of which only the first and the last entry are kept."""
    outputs = oracle.solve(config)
    history = outputs["energy_history"]
    return {**outputs, "energy_history": np.linspace(history[0], history[-1], len(history))}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_data_qubits": 8, "n_layers": 2, "n_trajectories": 64, "max_steps": 100}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.1 * rng.standard_normal(start.shape)})
    return {**elsewhere, "initial_parameters": start}


def score_function(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run but for a score-function term in the gradient, which trains the ancilla angles."""
    optimizer = Adam(config["learning_rate"])
    uniforms = np.asarray(config["trajectory_uniforms"])
    rows, history = [np.asarray(config["initial_parameters"])], []
    for _ in range(config["max_steps"]):
        evaluation = evaluator.evaluate(config, rows[-1], gradient=True)
        assert evaluation.gradient is not None
        history.append(evaluation.observables["energy_history"])
        gradient = evaluation.gradient.reshape(config["n_layers"], 6, -1).copy()
        angles = rows[-1].reshape(gradient.shape)[:, 1]
        kept = classical_outcomes(angles, uniforms).kept
        # The logarithm of cos^2(t/2) has slope -tan(t/2), that of sin^2(t/2) has slope cot(t/2).
        half = np.tan(angles / 2)[..., None]
        scores = np.where(kept, -half, 1 / half)
        gradient[:, 1] += np.mean(scores * evaluation.observables["final_trajectory_energies"], axis=-1)
        rows.append(optimizer.update(rows[-1], gradient.reshape(-1)))
    return {
        "energy_history": np.array(history),
        "final_trajectory_energies": evaluator.evaluate(config, rows[-1]).observables["final_trajectory_energies"],
        "initial_parameters": rows[0],
        "checkpoint_parameters": np.array(rows)[list(config["checkpoint_steps"])],
        "final_parameters": rows[-1],
    }
