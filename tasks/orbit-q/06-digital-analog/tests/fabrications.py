"""Outputs of `digital-analog` that nobody computed as asked; every one of them must be rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.verification.evaluator import Array, Config, Evaluator, Oracle

CONTROLS = ("final_analog_times", "final_analog_couplings", "final_analog_detunings")


def exponential_decay(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Right at the first entry, then a smooth decay to just above the ground-state energy density."""
    start = np.asarray(config["initial_parameters"])
    first = evaluator.evaluate(config, start, gradient=True)
    assert first.gradient is not None
    ground = float(np.max(evaluator.exact(config)["ground_energy"])) / config["n_qubits"] + 0.01
    left = np.exp(-np.arange(config["max_steps"]) / 20)
    walk = -config["learning_rate"] * np.sign(first.gradient)
    final = start + config["max_steps"] * walk
    observables = evaluator.evaluate(config, final).observables
    return {
        "energy_density_history": ground + (first.observables["energy_density_history"] - ground) * left,
        **{key: observables[key] for key in CONTROLS},
        "initial_parameters": start,
        "checkpoint_parameters": start + np.outer(config["checkpoint_steps"], walk),
        "final_parameters": final,
    }


def interpolated_snapshots(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """An honest run of which only the first, a middle and the last entry are kept."""
    outputs = oracle.solve(config)
    history = outputs["energy_density_history"]
    kept = np.array([0, len(history) // 2, len(history) - 1])
    return {**outputs, "energy_density_history": np.interp(np.arange(len(history)), kept, history[kept])}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_qubits": 14, "n_blocks": 4, "max_steps": 100}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.1 * rng.standard_normal(start.shape)})
    return {**elsewhere, "initial_parameters": start}


def trotter_1(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Analog blocks by a first-order product formula of one slice."""
    return oracle.solve(config, mutation="trotter_1")


def trotter_4(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Analog blocks by a first-order product formula of four slices."""
    return oracle.solve(config, mutation="trotter_4")
