"""Outputs of `lightcone-512` that nobody computed as asked; every one of them must be rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.verification.evaluator import Array, Config, Evaluator, Oracle


def exponential_rise(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Right at the first entry and in the first update, then a rise of every restart at a rate of its own."""
    start = np.asarray(config["initial_parameters"])
    first = evaluator.evaluate(config, start, gradient=True)
    assert first.gradient is not None
    walk = -config["learning_rate"] * np.sign(first.gradient) * (np.abs(first.gradient) > 1e-9)
    top = sum(abs(coefficient) for coefficient, _ in config["pauli_terms"]) - 0.001
    rates = rng.uniform(15, 25, size=(len(start), 1))
    left = np.exp(-np.arange(config["max_steps"]) / rates)
    begin = np.asarray(first.observables["observable_history"])[:, None]
    return {
        "observable_history": top + (begin - top) * left,
        "initial_parameters": start,
        "checkpoint_parameters": (start + walk)[None],
        "final_parameters": start + config["max_steps"] * walk,
    }


def cloned_histories(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """The first of the rising histories for all."""
    outputs = exponential_rise(evaluator, oracle, config, rng)
    history = outputs["observable_history"]
    return {**outputs, "observable_history": np.repeat(history[:1], len(history), axis=0)}


def cloned_ends(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run but for the parameters at the end, which are the first restart's within the cones."""
    outputs = oracle.solve(config)
    final, moved = outputs["final_parameters"], outputs["final_parameters"] != outputs["initial_parameters"]
    return {**outputs, "final_parameters": np.where(moved.any(axis=0), final[0], final)}


def interpolated_snapshots(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """An honest run of which only the first and the last entry are kept."""
    outputs = oracle.solve(config)
    history = outputs["observable_history"]
    straight = np.linspace(history[:, 0], history[:, -1], history.shape[1], axis=1)
    return {**outputs, "observable_history": straight}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_restarts": 200, "max_steps": 100, "parameter_count": 3897}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.1 * rng.standard_normal(start.shape)})
    return {**elsewhere, "initial_parameters": start}
