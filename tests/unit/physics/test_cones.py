from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics import cones
from orbit.physics.gates import pauli

N = 6
# Qubit 5 never meets the others; the last gate comes too late to matter to qubits 0 and 2.
TAPE = (
    ("rx", 0, 0),
    ("rz", 1, 1),
    ("ry", 4, 2),
    ("rzz", 0, 1, 3),
    ("ryy", 4, 3, 4),
    ("ry", 1, 5),
    ("rxx", 3, 1, 6),
    ("rz", 3, 7),
    ("rzz", 2, 1, 8),
    ("ry", 2, 9),
    ("rz", 5, 10),
    ("rx", 0, 11),
    ("rzz", 3, 4, 12),
)


def word_on(letters, n):
    return pauli("".join(letters.get(site, "I") for site in range(n)))


def textbook(parameters, letters):
    """Expectation of a Pauli product by full matrices and matrix exponentials."""
    state = np.full(2**N, 2 ** (-N / 2), dtype=complex)
    for name, *sites, index in TAPE:
        generator = word_on(dict(zip(sites, name[1:].upper(), strict=True)), N)
        state = expm(-0.5j * parameters[index] * generator) @ state
    return np.vdot(state, word_on(letters, N) @ state).real


@pytest.fixture
def parameters():
    return np.random.default_rng(3).uniform(-2, 2, size=(3, len(TAPE)))


def test_causal_cone_holds_what_is_seen_going_backwards():
    cone = cones.causal_cone(TAPE, (0,))
    assert cone.sites == (0, 1)
    assert cone.parameters == (0, 1, 3, 11)
    wide = cones.causal_cone(TAPE, (0, 2))
    assert wide.sites == (0, 1, 2, 3, 4)
    assert wide.parameters == (0, 1, 2, 3, 4, 5, 6, 8, 9, 11)
    assert cones.causal_cone((), (4,)) == cones.Cone((4,), ())


@pytest.mark.parametrize(
    "letters", [{0: "Z"}, {2: "Y"}, {0: "X", 2: "Z"}, {3: "Z", 4: "Y"}, {4: "X", 0: "Y"}, {5: "Y", 1: "X"}]
)
def test_expectations_equal_the_full_register_and_gradients_central_differences(parameters, letters):
    cone = cones.causal_cone(TAPE, letters)
    word, support = "".join(letters.values()), tuple(letters)
    values, slopes = cones.expectations(cone, word, support, parameters, gradient=True)
    assert values[:2] == pytest.approx([textbook(row, letters) for row in parameters[:2]], abs=1e-12)
    step = 1e-5
    for index in range(len(TAPE)):
        shift = step * np.eye(len(TAPE))[index]
        above, below = (cones.expectations(cone, word, support, parameters + s)[0] for s in (shift, -shift))
        assert slopes[:, index] == pytest.approx((above - below) / (2 * step), abs=1e-8)
    outside = sorted(set(range(len(TAPE))) - set(cone.parameters))
    assert (slopes[:, outside] == 0).all()


def test_an_observable_that_no_gate_touches_keeps_its_value_in_plus():
    parameters = np.zeros((2, 0))
    values, slopes = cones.expectations(cones.causal_cone((), (4,)), "X", (4,), parameters, gradient=True)
    assert values == pytest.approx([1.0, 1.0])
    assert slopes.shape == (2, 0)
    assert cones.expectations(cones.causal_cone((), (1, 4)), "XZ", (1, 4), parameters)[1] is None


def test_a_long_chain_costs_no_exponential():
    tape = [gate for q in range(59) for gate in (("ry", q, 2 * q), ("rzz", q, q + 1, 2 * q + 1))]
    cone = cones.causal_cone(tape, (59,))
    assert len(cone.sites) == 60
    parameters = np.random.default_rng(0).normal(size=(2, 118))
    values, slopes = cones.expectations(cone, "X", (59,), parameters, gradient=True)
    # ZZ between a qubit and |+> turns X by the angle, up to a correlation with the qubit's Z that vanishes here.
    assert values == pytest.approx(np.cos(parameters[:, 117]), abs=1e-12)
    assert slopes[:, 117] == pytest.approx(-np.sin(parameters[:, 117]), abs=1e-12)
