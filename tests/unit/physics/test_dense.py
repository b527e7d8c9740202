import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.dense import Tape, apply, plus_state, product_state, renyi_2_entropy, transition
from orbit.physics.gates import (
    TWO_QUBIT_WORDS,
    bonds,
    commuting_exponential,
    exponential,
    hermitian_exponential,
    pauli,
    rotation,
    rotation_sequence,
)
from orbit.physics.hamiltonians import ising_ground_energy, transverse_field_ising, xxz_staggered

RNG = np.random.default_rng(7)


def random_state(n, d=2):
    state = RNG.normal(size=d**n) + 1j * RNG.normal(size=d**n)
    return state / np.linalg.norm(state)


def test_conventions():
    assert np.allclose(rotation("X", 0.3), expm(-0.15j * pauli("X")))
    assert np.allclose(rotation("ZZ", 0.3), expm(-0.15j * pauli("ZZ")))
    assert np.allclose(exponential("XY", 0.3), expm(-0.3j * pauli("XY")))
    assert tuple(a + b for a in "IXYZ" for b in "IXYZ" if a + b != "II") == TWO_QUBIT_WORDS
    assert (TWO_QUBIT_WORDS[0], TWO_QUBIT_WORDS[5], TWO_QUBIT_WORDS[-1]) == ("IX", "XY", "ZZ")
    assert bonds(6, 1) == [(1, 2), (3, 4)]
    assert bonds(5, 0) == [(0, 1), (2, 3)]
    assert product_state([0, 1, 1])[3] == 1


@pytest.mark.parametrize("sites", [(0,), (2,), (1, 2), (2, 0), (3, 1)])
def test_apply_is_the_kronecker_product(sites):
    n, k = 4, len(sites)
    matrix = RNG.normal(size=(2**k, 2**k)) + 1j * RNG.normal(size=(2**k, 2**k))
    state = random_state(n)
    rest = [q for q in range(n) if q not in sites]
    order = [*sites, *rest]
    full = np.kron(matrix, np.eye(2 ** (n - k))).reshape((2,) * (2 * n))
    inverse = np.argsort(order)
    full = full.transpose([*inverse, *(inverse + n)]).reshape(2**n, 2**n)
    assert np.allclose(apply(matrix, state, sites), full @ state)
    bra = random_state(n)
    assert np.vdot(bra, full @ state) == pytest.approx(np.trace(matrix @ transition(bra, state, sites)))


@pytest.mark.parametrize(
    "build",
    [
        lambda t: commuting_exponential(("XX", "YY", "ZZ"), t),
        lambda t: rotation_sequence(("Z", "Y", "Z"), t),
        lambda t: hermitian_exponential([pauli("XX"), pauli("ZI"), pauli("YX")], t, 0.4 * pauli("ZZ")),
        lambda t: hermitian_exponential([pauli("XX"), pauli("XX"), pauli("YY")], t),
    ],
)
def test_derivatives_match_central_differences(build):
    angles = np.array([0.3, -0.7, 0.2])
    matrix, derivatives = build(angles)
    assert np.allclose(matrix @ matrix.conj().T, np.eye(len(matrix)))
    for k, derivative in enumerate(derivatives):
        step = 1e-6 * np.eye(3)[k]
        assert np.allclose(derivative, (build(angles + step)[0] - build(angles - step)[0]) / 2e-6, atol=1e-8)


def test_hermitian_exponential_is_the_matrix_exponential():
    generators = [pauli("XX"), pauli("ZI"), pauli("YX")]
    exponent = 0.4 * pauli("ZZ") + 0.3 * generators[0] - 0.7 * generators[1] + 0.2 * generators[2]
    assert np.allclose(hermitian_exponential(generators, [0.3, -0.7, 0.2], 0.4 * pauli("ZZ"))[0], expm(-1j * exponent))


KEPT = np.linalg.qr(RNG.normal(size=(4, 3)) + 1j * RNG.normal(size=(4, 3)))[0]


def loss_and_gradient(parameters):
    """Unitary and non-unitary gates, a projection, a rescaling, and losses at two places."""
    tape = Tape(plus_state(4))
    for q in range(4):
        matrix, derivatives = rotation_sequence(("Y", "Z"), parameters[2 * q : 2 * q + 2])
        tape.gate(matrix, (q,), [(2 * q + k, d) for k, d in enumerate(derivatives)])
    matrix, derivatives = commuting_exponential(("XX", "ZZ"), parameters[8:10])
    tape.gate(matrix, (2, 0), [(8, derivatives[0]), (9, derivatives[1])])
    entropy, entropy_cotangent = renyi_2_entropy(tape.state, 2)
    middle = tape.position
    cooling = expm(parameters[10] * pauli("XZ"))
    tape.gate(cooling, (1, 2), [(10, pauli("XZ") @ cooling)])
    tape.normalize()
    tape.gate(np.diag([1.0, 0.0]).astype(complex), (3,))
    probability = tape.normalize() ** 2
    tape.project(KEPT, 2)
    tape.normalize()
    tape.diagonal(np.exp(1j * np.arange(16)))
    hamiltonian = transverse_field_ising(4, 0.7)
    loss = hamiltonian.expectation(tape.state) + 0.3 * entropy
    gradient = tape.gradient(11, [(tape.position, hamiltonian.apply(tape.state)), (middle, 0.3 * entropy_cotangent)])
    return loss, gradient, probability


def test_tape_gradient_matches_central_differences():
    parameters = RNG.normal(size=11)
    _, gradient, probability = loss_and_gradient(parameters)
    assert 0 < probability < 1
    steps = 1e-6 * np.eye(11)
    differences = [
        (loss_and_gradient(parameters + step)[0] - loss_and_gradient(parameters - step)[0]) / 2e-6 for step in steps
    ]
    assert np.allclose(gradient, differences, atol=1e-8)


def test_renyi_entropy_of_known_states():
    bell = (product_state([0, 0]) + product_state([1, 1])) / np.sqrt(2)
    assert renyi_2_entropy(bell, 1)[0] == pytest.approx(np.log(2))
    assert renyi_2_entropy(product_state([0, 1, 0]), 2)[0] == pytest.approx(0, abs=1e-14)
    angle = 0.4
    tilted = np.cos(angle) * product_state([0, 0]) + np.sin(angle) * product_state([1, 1])
    assert renyi_2_entropy(tilted, 1)[0] == pytest.approx(-np.log(np.cos(angle) ** 4 + np.sin(angle) ** 4))


@pytest.mark.parametrize("n", range(2, 11))
def test_free_fermion_energy_is_the_dense_ground_energy(n):
    for field in (0.4, 1.0, 1.7):
        hamiltonian = transverse_field_ising(n, field, coupling=0.8)
        assert ising_ground_energy(n, field, 0.8) == pytest.approx(hamiltonian.ground_energy(), abs=1e-8)


def test_lanczos_agrees_with_dense_diagonalization():
    hamiltonian = xxz_staggered(9, 0.7, 1.1, 0.25)
    assert hamiltonian.ground_energy() == pytest.approx(np.linalg.eigvalsh(hamiltonian.dense())[0], abs=1e-8)
    assert np.allclose(hamiltonian.dense(), hamiltonian.dense().conj().T)
