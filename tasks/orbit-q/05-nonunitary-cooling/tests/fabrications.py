"""Outputs of `nonunitary-cooling` that nobody computed as asked; every one of them must be rejected.

Those of timed runs have honest parameters at all checkpoints, so that only the history gives them away.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.physics.gaussian import FIELD_FILTER, bond_filter, train_filters
from orbit.verification.evaluator import Array, Config, Evaluator, Oracle


def _outputs(config: Config, history: Array, rows: Array) -> dict[str, Array]:
    return {
        "energy_density_history": history,
        "final_a": rows[-1, 0::2].reshape(-1, 2),
        "final_b": rows[-1, 1::2].reshape(-1, 2),
        "initial_parameters": rows[0],
        "final_parameters": rows[-1],
        "checkpoint_parameters": rows[list(config["checkpoint_steps"])],
    }


def _honest(config: Config) -> tuple[Array, Array]:
    """The history and every row of parameters, by free fermions."""
    return train_filters(
        config["n_qubits"],
        config["transverse_field"],
        [gate for layer in range(config["n_layers"]) for gate in (FIELD_FILTER, bond_filter(layer % 2))],
        config["initial_parameters"],
        learning_rate=config["learning_rate"],
        n_steps=config["max_steps"],
    )


def exponential_decay(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Right at both ends and at the checkpoints, a smooth decay elsewhere."""
    history, rows = _honest(config)
    left = np.exp(-np.linspace(0, 5, len(history)))
    decay = history[-1] + (history[0] - history[-1]) * (left - left[-1]) / (left[0] - left[-1])
    kept = [0, *config["checkpoint_steps"], len(history) - 1]
    decay[kept] = history[kept]
    return _outputs(config, decay, rows)


def interpolated_snapshots(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Honest at the checkpoints and at every thirtieth step, straight lines between them."""
    history, rows = _honest(config)
    steps = np.arange(len(history))
    kept = np.unique([*steps[::30], *config["checkpoint_steps"], steps[-1]])
    return _outputs(config, np.interp(steps, kept, history[kept]), rows)


def published_history(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """The run at the published field and strength, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    history, rows = _honest({**config, "transverse_field": 1.1, "initial_parameters": np.full(start.shape, 0.01)})
    return {**_outputs(config, history, rows), "initial_parameters": start}


def published_outputs(
    evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator
) -> dict[str, Array]:
    """Arrays of the shapes that the published configuration has."""
    published: dict[str, Any] = {**config, "n_layers": 10, "max_steps": 600}
    return {key: rng.random(form.shape) for key, form in evaluator.result_spec(published).items()}


def other_start(evaluator: Evaluator, oracle: Oracle, config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """An honest run from a start of its own, handed in under the start that was asked for."""
    start = np.asarray(config["initial_parameters"])
    elsewhere = oracle.solve({**config, "initial_parameters": start + 0.05})
    return {**elsewhere, "initial_parameters": start}
