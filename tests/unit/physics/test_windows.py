"""Causal cones on a matrix-product state against the dense vector, energies and gradients alike."""

import numpy as np
import pytest

from orbit.physics.dense import Tape
from orbit.physics.gates import bonds, commuting_exponential, pauli, rotation_sequence
from orbit.physics.hamiltonians import pauli_sum
from orbit.physics.mps import dense_state, random_mps
from orbit.physics.windows import bond_energies, causal_cone, environments


def test_cones_grow_by_the_bonds_they_touch():
    assert causal_cone((3, 4), 12, 0).gates == ()
    cone = causal_cone((4, 5), 12, 2)  # layer 1 acts on (3,4) and (5,6), layer 0 on (2,3), (4,5) and (6,7)
    assert sorted(cone.gates) == [(0, (2, 3)), (0, (4, 5)), (0, (6, 7)), (1, (3, 4)), (1, (5, 6))]
    assert [layer for layer, _ in cone.gates] == [0, 0, 0, 1, 1]
    edge = causal_cone((0, 1), 4, 2)  # site 0 has no bond in layer 1, so it is turned alone
    assert (1, (0,)) in edge.gates
    assert (edge.first, edge.last) == (0, 3)


def test_environments_are_contractions_of_the_state_with_itself():
    tensors = random_mps(6, 5, np.random.default_rng(1))
    left, right = environments(tensors)
    dense = dense_state(tensors)
    assert np.linalg.norm(left[6]) == pytest.approx(np.linalg.norm(dense))
    assert np.linalg.norm(right[0]) == pytest.approx(np.linalg.norm(dense))
    block = dense_state([*tensors[:3], np.eye(tensors[3].shape[0])[:, :, None]]).reshape(8, -1)
    assert np.allclose(left[3].conj().T @ left[3], block.conj().T @ block)


@pytest.mark.parametrize(("n", "n_layers"), [(5, 1), (6, 3), (7, 4), (8, 2)])
def test_energy_and_gradient_equal_those_of_the_dense_vector(n, n_layers):
    rng = np.random.default_rng(n)
    tensors = random_mps(n, 4, rng)
    angles = rng.normal(size=(n_layers, n, 4))

    def gate(layer, sites):
        turns = [rotation_sequence(("Y", "Z", "Y"), angles[layer, site, :3]) for site in sites]
        index = 4 * (layer * n + sites[0])
        if len(sites) == 1:
            return turns[0][0], [(index + k, part) for k, part in enumerate(turns[0][1])]
        matrix, (derivative,) = commuting_exponential(("ZX",), [angles[layer, sites[0], 3]])
        both = np.kron(turns[0][0], turns[1][0])
        moves = [(index + 3, derivative @ both)]
        moves += [(index + k, matrix @ np.kron(part, turns[1][0])) for k, part in enumerate(turns[0][1])]
        moves += [(index + 4 + k, matrix @ np.kron(turns[0][0], part)) for k, part in enumerate(turns[1][1])]
        return matrix @ both, moves

    terms = [((i, i + 1), pauli("XY") + (i + 1) * pauli("ZI")) for i in range(n - 1)]
    energy, gradient = bond_energies(tensors, n_layers, gate, terms, angles.size)

    tape = Tape(dense_state(tensors))
    for layer in range(n_layers):
        paired = {site for pair in bonds(n, layer % 2) for site in pair}
        for sites in [*bonds(n, layer % 2), *((site,) for site in range(n) if site not in paired)]:
            matrix, moves = gate(layer, sites)
            tape.gate(matrix, sites, moves)
    words = [(1.0, "XY", (i, i + 1)) for i in range(n - 1)] + [(i + 1.0, "Z", (i,)) for i in range(n - 1)]
    hamiltonian = pauli_sum(n, words)
    assert energy == pytest.approx(hamiltonian.expectation(tape.state), abs=1e-12)
    expected = tape.gradient(angles.size, [(tape.position, hamiltonian.apply(tape.state))])
    assert np.allclose(gradient, expected, atol=1e-12)
