from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.dense import apply, transition
from orbit.physics.gates import pauli
from orbit.physics.hamiltonians import transverse_field_ising
from orbit.physics.product_layers import (
    IsingChain,
    apply_layer,
    bond_diagonal,
    field_diagonal,
    product_vector,
    pull_back,
)


def random_state(rng, n):
    state = rng.standard_normal(2**n) + 1j * rng.standard_normal(2**n)
    return state / np.linalg.norm(state)


def random_layer(rng, n):
    generators = rng.standard_normal((n, 3))
    words = np.array([pauli(word) for word in "XYZ"])
    return np.array([expm(-1j * np.tensordot(row, words, 1)) for row in generators])


@pytest.mark.parametrize("n", [2, 3, 5, 9, 11])
def test_a_layer_equals_its_gates_one_by_one(n):
    rng = np.random.default_rng(n)
    state, layer = random_state(rng, n), random_layer(rng, n)
    expected = state
    for qubit in range(n):
        expected = apply(layer[qubit], expected, (qubit,))
    assert apply_layer(layer, state) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("n", [3, 9])
def test_pull_back_undoes_a_layer_and_finds_the_transition_matrices(n):
    rng = np.random.default_rng(n)
    layer = random_layer(rng, n)
    before, cotangent_before = random_state(rng, n), random_state(rng, n)
    state, cotangent = apply_layer(layer, before), apply_layer(layer, cotangent_before)
    pulled = pull_back(layer, state, cotangent)
    assert pulled.state == pytest.approx(before, abs=1e-13)
    assert pulled.cotangent == pytest.approx(cotangent_before, abs=1e-13)
    for qubit in range(n):
        assert pulled.transitions[qubit] == pytest.approx(transition(cotangent, state, (qubit,)), abs=1e-13)


def test_product_vector_has_the_first_factor_in_front():
    zero, one = np.array([1, 0]), np.array([0, 1])
    assert product_vector([zero, one, one]).argmax() == 0b011


def test_diagonals_of_three_qubits():
    bits = np.array([[(index >> (2 - q)) & 1 for q in range(3)] for index in range(8)])
    signs = 1 - 2 * bits
    assert field_diagonal(3).tolist() == signs.sum(axis=1).tolist()
    assert bond_diagonal(3).tolist() == (signs[:, 0] * signs[:, 1] + signs[:, 1] * signs[:, 2]).tolist()


@pytest.mark.parametrize("n", [2, 6])
def test_ising_chain_equals_the_sum_of_its_terms(n):
    state = random_state(np.random.default_rng(n), n)
    expected = transverse_field_ising(n, 0.7, 1.3)
    chain = IsingChain(n, 0.7, 1.3)
    assert chain.apply(state) == pytest.approx(expected.apply(state), abs=1e-13)
    assert chain.expectation(state) == pytest.approx(expected.expectation(state), abs=1e-13)
