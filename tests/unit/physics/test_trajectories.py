from __future__ import annotations

import numpy as np
import pytest

from orbit.physics.dense import Tape, product_state
from orbit.physics.gates import rotation, rotation_sequence
from orbit.physics.hamiltonians import transverse_field_ising
from orbit.physics.trajectories import CNOT, CNOT_ACROSS, Angles, zero_batch

N, T = 3, 4


def started(angles=(0.4, 1.1, -0.7), n_trajectories=T):
    tape = zero_batch(N, n_trajectories)
    for qubit, angle in enumerate(angles):
        matrix, (derivative,) = rotation_sequence(("Y",), [angle])
        tape.gate(matrix, (qubit,), [(qubit, derivative)])
    tape.gate(CNOT, (0, 1))
    tape.gate(CNOT, (1, 2))
    return tape


def single(angles=(0.4, 1.1, -0.7)):
    tape = Tape(product_state([0] * N))
    for qubit, angle in enumerate(angles):
        tape.gate(rotation("Y", angle), (qubit,))
    tape.gate(CNOT, (0, 1))
    tape.gate(CNOT, (1, 2))
    return tape.state


def test_gates_act_on_all_trajectories_alike():
    assert started().columns == pytest.approx(np.tile(single()[:, None], T))


def test_cnot_across_leaves_the_middle_alone():
    for middle in (0, 1):
        state = np.zeros(8)
        state[0b100 + 2 * middle] = 1
        assert np.argmax(CNOT_ACROSS @ state) == 0b101 + 2 * middle
        state = np.zeros(8)
        state[2 * middle] = 1
        assert np.argmax(CNOT_ACROSS @ state) == 2 * middle


def test_collapse_projects_each_trajectory_on_its_outcome():
    tape, outcomes = started(), np.array([0, 1, 1, 0])
    expected = np.sum(np.abs(single().reshape(2, 2, 2)[:, 0]) ** 2)
    assert tape.probability_of_zero(1) == pytest.approx(np.full(T, expected))
    tape.collapse(1, outcomes)
    assert tape.probability_of_zero(1) == pytest.approx(1.0 - outcomes)
    for column, outcome in zip(tape.columns.T, outcomes, strict=True):
        kept = single().reshape(2, 2, 2).copy()
        kept[:, 1 - outcome] = 0
        assert column == pytest.approx(kept.reshape(-1) / np.linalg.norm(kept))


def test_z_rotations_turn_every_qubit_in_every_trajectory_by_its_angle():
    values = np.random.default_rng(0).normal(size=(N, T))
    tape = started()
    tape.z_rotations(Angles(values, []))
    for column, angles in zip(tape.columns.T, values.T, strict=True):
        gate = np.kron(np.kron(rotation("Z", angles[0]), rotation("Z", angles[1])), rotation("Z", angles[2]))
        assert column == pytest.approx(gate @ single())


def test_gradient_through_collapse_and_rotations():
    outcomes, signs = np.array([0, 1, 1, 0]), np.array([1.0, -1.0, 1.0, -1.0])
    hamiltonian = transverse_field_ising(N, 0.8)

    def energies(x):
        tape = started(x[:3])
        tape.collapse(1, outcomes)
        weights = np.tile(signs, (N, 1))
        indices = np.array([[3], [4], [3]])
        tape.z_rotations(Angles(x[indices] * weights, [(indices, weights)]))
        matrix, (derivative,) = rotation_sequence(("Y",), [x[0]])
        tape.gate(matrix, (1,), [(0, derivative)])
        each, cotangent = tape.energies(hamiltonian)
        return each, tape.gradient(5, [(tape.position, cotangent)])

    point = np.array([0.4, 1.1, -0.7, 0.3, 0.9])
    each, gradient = energies(point)
    assert each.shape == (T,)
    assert np.ptp(each) > 1e-3  # else the trajectories would test nothing
    for k in range(5):
        shift = 1e-5 * np.eye(5)[k]
        numeric = (energies(point + shift)[0].mean() - energies(point - shift)[0].mean()) / 2e-5
        assert gradient[k] == pytest.approx(numeric, abs=1e-8)
