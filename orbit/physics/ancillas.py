"""Chains of ancillas that stay classical: rotated, entangled by diagonal and permuting gates only, and measured.

An ancilla in the basis state b that is rotated by RY(t) shows b again with probability cos^2(t/2), whatever a diagonal
gate does with its partner, since that only sets phases. A ladder of CNOTs then turns the bits into running parities. So
outcomes need no state at all (Nielsen and Chuang, section 4.4, principle of implicit measurement).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orbit.physics.trajectories import Bits


@dataclass(frozen=True)
class Fates:
    """What the ancillas do in each of T trajectories.

    Attributes:
        coupled: bits before the ladder, which gates placed there see, shape (n_layers, n, T).
        outcomes: measured bits, same shape.
        kept: whether an ancilla shows the bit it had before its rotation, same shape.
        margins: smallest distance of a uniform from its conditional probability of 0, shape (T,).
    """

    coupled: Bits
    outcomes: Bits
    kept: NDArray[np.bool_]
    margins: NDArray[np.float64]


def classical_outcomes(angles: NDArray[np.float64], uniforms: NDArray[np.float64]) -> Fates:
    """Outcomes of ancillas that start in 0 and are not reset between layers.

    Args:
        angles: of the RY, shape (n_layers, n).
        uniforms: shape (T, n_layers, n); an outcome is 0 where the uniform is below the conditional probability of 0.
    """
    draws = np.moveaxis(uniforms, 0, -1)
    coupled, outcomes = np.zeros(draws.shape, dtype=np.int64), np.zeros(draws.shape, dtype=np.int64)
    kept = np.zeros(draws.shape, dtype=bool)
    margins = np.full(draws.shape[-1], np.inf)
    for layer, row in enumerate(angles):
        before = outcomes[layer - 1] if layer else np.zeros_like(outcomes[0])
        parity = np.zeros(draws.shape[-1], dtype=np.int64)
        for i, angle in enumerate(row):
            # Outcome i is bit i added to outcome i - 1, so it is 0 where the bit equals that.
            zero = np.where(before[i] == parity, np.cos(angle / 2) ** 2, np.sin(angle / 2) ** 2)
            outcomes[layer, i] = draws[layer, i] >= zero
            coupled[layer, i] = outcomes[layer, i] ^ parity
            margins = np.minimum(margins, np.abs(draws[layer, i] - zero))
            parity = outcomes[layer, i]
        kept[layer] = coupled[layer] == before
    return Fates(coupled, outcomes, kept, margins)


def draw_uniforms(
    angles: NDArray[np.float64], n_trajectories: int, drift: float, margin: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Uniforms whose outcomes stay what they are while the angles move by up to `drift`, shape (T, n_layers, n).

    Each is uniform on [0, 1] without the conditional probabilities that the moved angles can give and without a margin
    around these.

    Args:
        angles: where the ancilla angles start, shape (n_layers, n).
        n_trajectories: T.
        drift: in radians; with pi/2 and more nothing may be left to draw from.
        margin: in probability.
        rng: source of the draw.
    """
    n_layers, n = angles.shape
    uniforms = np.zeros((n_trajectories, n_layers, n))
    bits = np.zeros((n, n_trajectories), dtype=np.int64)
    for layer in range(n_layers):
        parity = np.zeros(n_trajectories, dtype=np.int64)
        for i in range(n):
            reach = np.cos((angles[layer, i] + np.linspace(-drift, drift, 65)) / 2) ** 2
            differs = parity != bits[i]
            low = np.where(differs, 1 - reach.max(), reach.min()) - margin
            high = np.where(differs, 1 - reach.min(), reach.max()) + margin
            below, above = np.clip(low, 0, 1), np.clip(1 - high, 0, 1)
            assert (below + above > 0).all(), "no uniform keeps its outcome under such a drift"
            point = rng.uniform(size=n_trajectories) * (below + above)
            uniforms[:, layer, i] = np.where(point < below, point, high + point - below)
            bits[i] = parity = (point >= below).astype(np.int64)
    return uniforms


def likelihood_gain(fates: Fates, start: NDArray[np.float64], end: NDArray[np.float64]) -> float:
    """Share of the possible rise of the outcomes' likelihood that lies between two sets of ancilla angles.

    It is 1 if `end` makes the outcomes as likely as any angles can, 0 if nothing moved, negative if they became less
    likely. Angles are of shape (n_layers, n).
    """
    kept = fates.kept.mean(axis=-1)

    def log_likelihood(keeping: NDArray[np.float64]) -> float:
        safe = np.clip(keeping, 1e-12, 1 - 1e-12)
        return float(np.sum(kept * np.log(safe) + (1 - kept) * np.log(1 - safe)))

    before = log_likelihood(np.cos(start / 2) ** 2)
    return (log_likelihood(np.cos(end / 2) ** 2) - before) / max(log_likelihood(kept) - before, 1e-12)
