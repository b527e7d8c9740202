"""A run against the paired reference's on the same draw: histories entry by entry, and the trained parameters.

Distances are compared with how far reference runs stray from each other whose start differs by rounding only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orbit.verification.evaluator import Config, Evaluator, Outputs, Tolerance, at_most
from orbit.verification.verdict import Evidence

REPLAY_FIRST = 20
"""So many entries must follow the paired reference; later ones are flagged first, and fail when they are far off."""
REPLAY_FACTOR = 10.0
"""Distance from the reference allowed, in units of how far two perturbed reference runs stray."""
FAR = 10.0
"""Allowances from which a late entry, or trained parameters, fail instead of asking for a review."""
COLUMN_QUANTILES = (0.5, 0.9, 1.0)
"""Of the distances of one step's entries. A single restart that rounding sends elsewhere must not excuse all others.

Only the largest can fail: which share of the restarts goes elsewhere varies from run to run, and so do the quantiles.
"""
PARAMETER_FACTOR = 5.0
"""As `REPLAY_FACTOR`, for quantiles over all parameters: these vary less than the farthest of them."""
PARAMETER_FLOOR = 1e-3
"""Learning rates that parameters may be off wherever they do not stray at all."""
PARAMETER_FLOOR_PER_STEP = 1e-5
"""As many more with every update: rounding that all reference runs share, as of Adam's bias correction, adds up."""
PARAMETER_QUANTILES = (0.5, 0.9)
"""Flat directions let a few parameters go anywhere, and a few that are pinned tell nothing about the others."""
STEADY_SHARE = 0.1
MIN_STEADY = 10
"""So large a share of the trained parameters, and so many, are also looked at by themselves: the steadiest."""
STEADY_QUANTILES = (0.5,)
"""The farthest of these may have been picked for agreeing by chance; runs in double precision stray more there."""


@dataclass(frozen=True)
class Replay:
    """The paired reference's outputs on the same configuration, and those of two perturbed reference runs."""

    reference: Outputs
    perturbed: Sequence[Outputs]


def check_replay(evaluator: Evaluator, config: Config, outputs: Outputs, replay: Replay) -> list[Evidence]:
    """Histories and trained parameters; `outputs` are by step."""
    right = evaluator.by_step(config, replay.reference)
    perturbed = [evaluator.by_step(config, run) for run in replay.perturbed]
    evidence: list[Evidence] = []
    for key, tolerance in evaluator.replay_tolerances(config).items():
        if key in outputs and key in right:
            others = [run[key] for run in perturbed]
            evidence += _replay_history(key, tolerance, outputs[key], right[key], others)
    return evidence + _replay_parameters(evaluator.replay_slack(config), config, outputs, replay)


def _replay_history(
    key: str,
    tolerance: Tolerance,
    history: NDArray[np.float64],
    right: NDArray[np.float64],
    others: Sequence[NDArray[np.float64]],
) -> list[Evidence]:
    """One history, step by step; entries of one step are compared by their quantiles."""
    reference = np.asarray(right, dtype=np.float64)
    n_steps = len(reference)
    distance = _quantiles(history - reference, n_steps, COLUMN_QUANTILES)
    strays = [_quantiles(np.asarray(other) - reference, n_steps, COLUMN_QUANTILES) for other in others]
    # A difference, once there, stays possible: the allowance never shrinks along the run.
    spread = np.maximum.accumulate(np.max(strays, axis=0), axis=1) if strays else np.zeros_like(distance)
    allowed = tolerance.allowed(reference).reshape(n_steps, -1).max(axis=1) + REPLAY_FACTOR * spread
    evidence = []
    early, late = slice(0, REPLAY_FIRST), slice(REPLAY_FIRST, None)
    largest = len(COLUMN_QUANTILES) - 1
    for family, part, lowest, share, flag in (
        ("replay", early, largest, 1.0, False),
        ("replay_late", late, 0, 1.0, True),
        ("replay_far", late, largest, FAR, False),
    ):
        ratio = distance[lowest:, part] / allowed[lowest:, part]
        if not ratio.size:
            continue
        row, column = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        which, step = int(row) + lowest, int(column) + (part.start or 0)
        message = f"step {step} against the paired reference"
        if history[0].size > 1:
            message += f", quantile {COLUMN_QUANTILES[which]:g} of its entries"
        value, limit = float(distance[which, step]), share * float(allowed[which, step])
        evidence.append(at_most(f"{family}:{key}", value, limit, message, flag=flag))
    return evidence


def _replay_parameters(slack: float, config: Config, outputs: Outputs, replay: Replay) -> list[Evidence]:
    """Trained parameters against the paired reference's: whoever stops updating them early does not get there.

    A loss that has nearly converged hides thousands of updates that were not made; parameters still move in them. Those
    that the reference never moves, since no gradient reaches them, are left out.
    """
    evidence = []
    for key in ("checkpoint_parameters", "final_parameters"):
        if key not in outputs or key not in replay.reference or not replay.perturbed:
            continue
        runs = [np.asarray(run[key], dtype=np.float64) for run in (replay.reference, outputs, *replay.perturbed)]
        n_rows = len(runs[0]) if key == "checkpoint_parameters" else 1
        right, mine, *others = (run.reshape(n_rows, -1) for run in runs)
        trained = _trained(right, replay.reference, config["learning_rate"])
        distance, strays = np.abs(mine - right), [np.abs(run - right) for run in others]
        updates = config["checkpoint_steps"] if key == "checkpoint_parameters" else (config["max_steps"],)
        floor = config["learning_rate"] * (slack + PARAMETER_FLOOR + PARAMETER_FLOOR_PER_STEP * np.asarray(updates))
        ratio, where = _parameter_ratio(distance, strays, trained, floor, PARAMETER_QUANTILES), "trained"
        if len(strays) > 1:  # chosen by one and allowed by the same one, they would be off in every other run
            steady = _steady(strays[0], trained)
            ratio, where = max(
                (ratio, where), (_parameter_ratio(distance, strays, steady, floor, STEADY_QUANTILES), "steadiest")
            )
        message = f"{where} parameters, in allowances from those of the paired reference"
        evidence.append(at_most(f"replay_late:{key}", ratio, 1.0, message, flag=True))
        evidence.append(at_most(f"replay_far:{key}", ratio, FAR, message))
    return evidence


def _parameter_ratio(
    distance: NDArray[np.float64],
    strays: Sequence[NDArray[np.float64]],
    chosen: NDArray[np.int64],
    floor: NDArray[np.float64],
    levels: tuple[float, ...],
) -> float:
    """Largest quantile of the chosen parameters' distances over what strays of reference runs allow."""
    found = _quantiles(distance[:, chosen], len(distance), levels)
    spread = _quantiles(np.max(strays, axis=0)[:, chosen], len(distance), levels)
    return float((found / (floor + PARAMETER_FACTOR * np.maximum.accumulate(spread, axis=1))).max())


def _trained(rows: NDArray[np.float64], reference: Outputs, learning_rate: float) -> NDArray[np.int64]:
    """Which parameters the reference moved; all of them where it moved none or does not say where it started."""
    everything = np.arange(rows.shape[1])
    start = reference.get("initial_parameters")
    if start is None:
        return everything
    # Adam's first update is a whole learning rate; less than a thousandth is rounding of what was stored.
    moved = np.abs(rows - np.asarray(start, dtype=np.float64).reshape(1, -1)) > 1e-3 * learning_rate
    return np.flatnonzero(moved.any(axis=0)) if moved.any() else everything


def _steady(strays: NDArray[np.float64], trained: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of the trained parameters that the first perturbed run leaves closest to where the reference takes them.

    Flat directions, along which rounding alone goes far, drown what steep ones say. The choice depends on one perturbed
    run and the allowance on both, so that it is not made for the parameters that happen to agree.
    """
    size = max(MIN_STEADY, int(STEADY_SHARE * len(trained)))
    return trained[np.argsort(strays[:, trained].max(axis=0), kind="stable")[:size]]


def _quantiles(difference: NDArray[np.float64], n_rows: int, levels: tuple[float, ...]) -> NDArray[np.float64]:
    """Quantiles of the sizes in every row, shape (n_levels, n_rows)."""
    return np.asarray(np.quantile(np.abs(difference).reshape(n_rows, -1), levels, axis=1))
