"""Paired runtimes: the artifact against the reference on the same draw, host and cores, in alternating order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from orbit.verification.execution import Execution
from orbit.verification.verdict import Timing

Turn = Literal["candidate", "reference"]
N_RESAMPLES = 10_000
UNSTABLE_SPREAD = 0.2
"""Relative spread of the pair ratios from which a measurement is called unstable."""

BUSY_SHARE = 0.5
"""Load per core, before anything runs, from which others disturb the times."""


def order(pair: int) -> tuple[Turn, Turn]:
    """Who runs first in a pair: ABBA, so that a drift of the machine cancels."""
    return ("reference", "candidate") if pair % 2 == 0 else ("candidate", "reference")


def slowdown_interval(ratios: Sequence[float], seed: int) -> tuple[float, float] | None:
    """Percentile bootstrap interval (95%) of the median of the pair ratios; None for a single pair."""
    if len(ratios) < 2:
        return None
    values = np.asarray(ratios)
    draws = np.random.default_rng(seed).choice(values, size=(N_RESAMPLES, len(values)))
    low, high = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    return float(low), float(high)


def summarize(
    candidate: Sequence[Execution],
    reference: Sequence[Execution],
    *,
    seed: int,
    n_cores: int | None,
    load_before: float | None,
    reference_sha256: str | None,
    is_reference: bool,
) -> Timing:
    """Medians, the slowdown with its interval, and what is doubtful about them.

    Args:
        candidate: successful timed runs of the artifact, one per pair (or one alone).
        reference: the runs paired with them; empty where the task has no reference.
        seed: of the bootstrap.
        n_cores: cores that both could use.
        load_before: processes that kept the machine busy before anything ran.
        reference_sha256: of the reference.
        is_reference: whether the artifact is the reference itself, byte for byte.
    """
    mine = [run.runtime_sec for run in candidate if run.runtime_sec is not None]
    theirs = [run.runtime_sec for run in reference if run.runtime_sec is not None]
    pairs = list(zip(mine, theirs, strict=False))
    ratios = [a / b for a, b in pairs]
    slowdown = float(np.median(ratios)) if ratios else None
    warnings = []
    if len(ratios) > 2 and np.ptp(ratios) > UNSTABLE_SPREAD * float(np.median(ratios)):
        warnings.append(
            f"the pair ratios spread from {min(ratios):.2f} to {max(ratios):.2f}; "
            "repeat on a quiet machine or with more --pairs"
        )
    if n_cores and load_before is not None and load_before > BUSY_SHARE * n_cores:
        warnings.append(f"the machine was busy before the measurement (load {load_before:g} on {n_cores} cores)")
    if is_reference and slowdown is not None:
        warnings.append(f"the artifact is the reference itself: its slowdown is {abs(slowdown - 1):.1%} away from 1")
    return Timing(
        runtime_sec=float(np.median(mine)) if mine else None,
        import_sec=_median([run.import_sec for run in candidate]),
        reference_sec=float(np.median(theirs)) if theirs else None,
        slowdown=slowdown,
        slowdown_interval=slowdown_interval(ratios, seed),
        pairs=pairs,
        peak_memory_bytes=max((run.peak_memory_bytes or 0 for run in candidate), default=0) or None,
        reference_peak_memory_bytes=max((run.peak_memory_bytes or 0 for run in reference), default=0) or None,
        reference_sha256=reference_sha256,
        n_cores=n_cores,
        warnings=warnings,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None
