from __future__ import annotations

import numpy as np
import pytest

from orbit.physics.ancillas import classical_outcomes, draw_uniforms, likelihood_gain

RNG = np.random.default_rng(0)


def test_outcomes_of_ancillas_that_never_or_always_flip():
    uniforms = np.full((2, 2, 3), 0.5)
    still = classical_outcomes(np.zeros((2, 3)), uniforms)
    assert not still.outcomes.any()
    assert still.kept.all()
    # Flipped ancillas give 1 0 1 behind the ladder. A second layer finds 1 0 1, flips it to 0 1 0, ladder 0 1 1.
    flipped = classical_outcomes(np.full((2, 3), np.pi), uniforms)
    assert flipped.coupled[..., 0].tolist() == [[1, 1, 1], [0, 1, 0]]
    assert flipped.outcomes[..., 0].tolist() == [[1, 0, 1], [0, 1, 1]]
    assert not flipped.kept.any()
    assert flipped.margins == pytest.approx([0.5, 0.5])


def test_frequencies_are_the_probabilities():
    angles = np.array([[0.8, 1.9], [1.2, 0.5]])
    fates = classical_outcomes(angles, RNG.uniform(size=(40_000, 2, 2)))
    assert fates.kept.mean(axis=-1) == pytest.approx(np.cos(angles / 2) ** 2, abs=0.01)


@pytest.mark.parametrize("drift", [0.05, 0.8])
def test_drawn_uniforms_keep_their_outcomes_under_drift(drift):
    angles = RNG.uniform(1.2, 1.9, size=(2, 8)) * RNG.choice((-1, 1), size=(2, 8))
    uniforms = draw_uniforms(angles, 64, drift, 0.02, RNG)
    assert uniforms.min() >= 0
    assert uniforms.max() <= 1
    start = classical_outcomes(angles, uniforms)
    assert 0.2 < start.outcomes.mean() < 0.8
    assert start.margins.min() >= 0.02
    for _ in range(20):
        moved = classical_outcomes(angles + RNG.uniform(-drift, drift, size=angles.shape), uniforms)
        assert np.array_equal(moved.outcomes, start.outcomes)
        assert moved.margins.min() >= 0.019  # the reach is found on a grid


def test_likelihood_gain():
    angles = np.array([[1.3, -1.7, 1.5]])
    fates = classical_outcomes(angles, RNG.uniform(size=(50, 1, 3)))
    best = 2 * np.arccos(np.sqrt(fates.kept.mean(axis=-1)))
    assert likelihood_gain(fates, angles, angles) == 0
    assert likelihood_gain(fates, angles, best) == pytest.approx(1)
    assert likelihood_gain(fates, angles, -best) == pytest.approx(1)
    assert likelihood_gain(fates, angles, angles + 0.7) < 0
