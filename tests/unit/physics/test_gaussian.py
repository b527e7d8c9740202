from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.dense import plus_state
from orbit.physics.gates import bonds
from orbit.physics.gaussian import FIELD_FILTER, bond_filter, filtered_energy, ising_matrix, plus_basis, train_filters
from orbit.physics.hamiltonians import ising_ground_energy, pauli_sum, transverse_field_ising


def layers(n_layers):
    return [gate for layer in range(n_layers) for gate in (FIELD_FILTER, bond_filter(layer % 2))]


def dense_energy(n, field, strengths):
    state = plus_state(n)
    for k, strength in enumerate(strengths):
        if k % 2 == 0:
            generator = pauli_sum(n, [(1.0, "X", (q,)) for q in range(n)])
        else:
            generator = pauli_sum(n, [(1.0, "ZZ", bond) for bond in bonds(n, (k // 2) % 2)])
        state = expm(strength * generator.dense()) @ state
        state = state / np.linalg.norm(state)
    return transverse_field_ising(n, field).expectation(state)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_energy_equals_that_of_the_state_vector(n):
    strengths = np.random.default_rng(n).normal(0.2, 0.3, 8)
    energy, _ = filtered_energy(n, 0.8, layers(4), strengths)
    assert energy == pytest.approx(dense_energy(n, 0.8, strengths), abs=1e-12)


def test_gradient_equals_central_differences():
    strengths = np.random.default_rng(1).normal(0.1, 0.4, 12)
    _, gradient = filtered_energy(6, 1.2, layers(6), strengths)
    for k in range(12):
        shift = 1e-5 * np.eye(12)[k]
        ends = [filtered_energy(6, 1.2, layers(6), strengths + sign * shift)[0] for sign in (1, -1)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_without_filters_the_energy_is_that_of_the_plus_state():
    assert filtered_energy(5, 0.7, [], [])[0] == pytest.approx(-0.7 * 5)
    assert plus_basis(3).T @ plus_basis(3) == pytest.approx(np.eye(3))


def test_negative_eigenvalues_of_the_matrix_add_up_to_the_ground_energy():
    values = np.linalg.eigvalsh(ising_matrix(9, 1.1))
    assert values[:9].sum() == pytest.approx(ising_ground_energy(9, 1.1), abs=1e-12)


def test_strong_filters_reach_the_ground_state_without_overflow():
    """Many small steps along the Hamiltonian are imaginary time; huge ones must stay finite."""
    steps = [gate for _ in range(300) for gate in (FIELD_FILTER, bond_filter(0), bond_filter(1))]
    energy, gradient = filtered_energy(6, 1.0, steps, np.full(900, 0.02))
    assert energy == pytest.approx(ising_ground_energy(6, 1.0), abs=2e-3)
    assert np.isfinite(gradient).all()
    assert np.isfinite(filtered_energy(6, 1.0, steps[:9], np.full(9, 15.0))[0])


def test_training_follows_adam_on_the_energy_per_qubit():
    start = np.full(4, 0.05)
    energies, rows = train_filters(4, 0.9, layers(2), start, learning_rate=0.03, n_steps=20)
    energy, gradient = filtered_energy(4, 0.9, layers(2), start)
    assert energies[0] == pytest.approx(energy / 4)
    assert rows.shape == (21, 4)
    # The first X filter acts on an eigenstate, so that its gradient vanishes.
    assert rows[1, 1:] == pytest.approx(start[1:] - 0.03 * np.sign(gradient[1:]), abs=1e-6)
    assert energies[-1] < energies[0]
    assert filtered_energy(4, 0.9, layers(2), rows[-2])[0] / 4 == pytest.approx(energies[-1])
