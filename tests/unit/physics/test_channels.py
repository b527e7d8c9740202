from __future__ import annotations

import numpy as np
import pytest

from orbit.physics.channels import (
    act,
    asymmetric_flip,
    asymmetric_flip_transfer,
    kraus_transfer,
    pauli_vector,
    transfer_matrix,
)
from orbit.physics.gates import pauli, rotation

RATES = (0.07, 0.13)


def random_state(n, seed=0):
    rng = np.random.default_rng(seed)
    state = rng.standard_normal(2**n) + 1j * rng.standard_normal(2**n)
    return state / np.linalg.norm(state)


def test_kraus_operators_keep_the_trace():
    kraus, _ = asymmetric_flip(*RATES)
    assert sum(k.conj().T @ k for k in kraus) == pytest.approx(np.eye(2))


def test_populations_jump_with_the_stated_rates():
    kraus, _ = asymmetric_flip(*RATES)
    for start, expected in ((0, [1 - 0.07, 0.07]), (1, [0.13, 1 - 0.13])):
        rho = np.diag(np.eye(2)[start])
        assert np.diag(sum(k @ rho @ k.conj().T for k in kraus)).real == pytest.approx(expected)


def test_closed_form_equals_kraus_operators_with_derivatives():
    assert asymmetric_flip_transfer(*RATES) == pytest.approx(kraus_transfer(*asymmetric_flip(*RATES)), abs=1e-14)


def test_derivatives_equal_central_differences():
    step = 1e-6
    for k in (0, 1):
        shift = step * np.eye(2)[k]
        upper, lower = (asymmetric_flip_transfer(*(np.array(RATES) + s))[0] for s in (shift, -shift))
        assert asymmetric_flip_transfer(*RATES)[1 + k] == pytest.approx((upper - lower) / (2 * step), abs=1e-8)


def test_pauli_vector_holds_expectation_values():
    state = random_state(3)
    vector = pauli_vector(state).reshape(4, 4, 4)
    for word in ("III", "XYZ", "ZIY", "IIX"):
        index = tuple("IXYZ".index(letter) for letter in word)
        assert vector[index] == pytest.approx(np.vdot(state, pauli(word) @ state).real)


def test_a_gate_acts_on_vectors_as_on_states():
    state, gate = random_state(3), rotation("XX", 0.7)
    turned = np.kron(np.eye(2), gate) @ state
    batch = np.array([pauli_vector(state), pauli_vector(random_state(3, 1))]).T
    assert act(transfer_matrix([gate]), batch, 1)[:, 0] == pytest.approx(pauli_vector(turned))


def test_depolarizing_textbook_value():
    p = 0.3
    kraus = [np.sqrt(1 - p) * pauli("I"), *(np.sqrt(p / 3) * pauli(letter) for letter in "XYZ")]
    shrink = 1 - 4 * p / 3  # Nielsen and Chuang, section 8.3.4
    assert transfer_matrix(kraus) == pytest.approx(np.diag([1, shrink, shrink, shrink]))
