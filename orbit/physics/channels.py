"""Quantum channels as real transfer matrices in the Pauli basis, with exact parameter derivatives.

A state is the vector of its Pauli expectation values `e[a] = tr(P_a rho)`, the words ordered I, X, Y, Z per qubit
with qubit 0 most significant; an observable `sum_a o[a] P_a` has the expectation `o @ e`. A channel acts as `R @ e` on
states and as `R.T @ o` on observables (Greenbaum, arXiv:1509.02921, section 2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orbit.physics.gates import Matrix, pauli

Real = NDArray[np.float64]


def _paulis(n_qubits: int) -> NDArray[np.complex128]:
    words = [""]
    for _ in range(n_qubits):
        words = [word + letter for word in words for letter in "IXYZ"]
    return np.array([pauli(word) for word in words])


def transfer_matrix(left: Sequence[Matrix], right: Sequence[Matrix] | None = None) -> Real:
    """Transfer matrix of `rho -> sum_k A_k rho B_k^dagger`, shape (4**n, 4**n), B being A unless given.

    The imaginary part, which a map that does not keep matrices Hermitian has, is dropped.
    """
    dimension = left[0].shape[0]
    words = _paulis(dimension.bit_length() - 1)
    other = left if right is None else right
    images = sum(np.einsum("xy,byz,wz->bxw", a, words, b.conj()) for a, b in zip(left, other, strict=True))
    return np.asarray(np.einsum("aij,bji->ab", words, images).real / dimension)


def asymmetric_flip(p01: float, p10: float) -> tuple[list[Matrix], list[list[Matrix]]]:
    """Kraus operators of jumps 0 -> 1 with probability p01 and 1 -> 0 with p10, and their derivatives by each.

    `K0 = sqrt(1-p01) |0><0| + sqrt(1-p10) |1><1|`, `K1 = sqrt(p10) |0><1|`, `K2 = sqrt(p01) |1><0|`.
    """
    unit = [[np.outer(np.eye(2)[row], np.eye(2)[column]).astype(np.complex128) for column in (0, 1)] for row in (0, 1)]
    stay0, stay1 = np.sqrt(1 - p01), np.sqrt(1 - p10)
    kraus = [stay0 * unit[0][0] + stay1 * unit[1][1], np.sqrt(p10) * unit[0][1], np.sqrt(p01) * unit[1][0]]
    nothing = np.zeros((2, 2), dtype=np.complex128)
    by_p01 = [-0.5 / stay0 * unit[0][0], nothing, 0.5 / np.sqrt(p01) * unit[1][0]]
    by_p10 = [-0.5 / stay1 * unit[1][1], 0.5 / np.sqrt(p10) * unit[0][1], nothing]
    return kraus, [by_p01, by_p10]


def kraus_transfer(kraus: Sequence[Matrix], derivatives: Sequence[Sequence[Matrix]]) -> Real:
    """Transfer matrix of a channel and its derivatives by k parameters, shape (1 + k, 4**n, 4**n)."""
    slopes = [transfer_matrix(part, kraus) + transfer_matrix(kraus, part) for part in derivatives]
    return np.array([transfer_matrix(kraus), *slopes])


def asymmetric_flip_transfer(p01: float, p10: float) -> Real:
    """Transfer matrix of `asymmetric_flip` in closed form and its derivatives by p01 and p10, shape (3, 4, 4).

    Coherences shrink by sqrt((1-p01)(1-p10)), Z by 1 - p01 - p10, and the identity feeds Z with p10 - p01.
    """
    coherence = np.sqrt((1 - p01) * (1 - p10))
    result = np.zeros((3, 4, 4))
    result[:, 1, 1] = result[:, 2, 2] = coherence, -coherence / (2 * (1 - p01)), -coherence / (2 * (1 - p10))
    result[:, 3, 3] = 1 - p01 - p10, -1, -1
    result[:, 3, 0] = p10 - p01, -1, 1
    result[0, 0, 0] = 1
    return result


def pauli_vector(state: NDArray[np.complex128]) -> Real:
    """Expectation values of all Pauli words in a pure state, shape (4**n,)."""
    n = state.size.bit_length() - 1
    tensor = np.outer(state, state.conj()).reshape((2,) * (2 * n))
    words = _paulis(1)
    for left in range(n, 0, -1):
        # The next qubit's two legs lead the rows and columns that are left; its word goes behind all others.
        tensor = np.tensordot(tensor, words, axes=([0, left], [2, 1]))
    return np.asarray(tensor.reshape(-1).real)


def act(transfer: Real, vectors: Real, site: int) -> Real:
    """Act with a transfer matrix of k qubits on qubits site .. site+k-1 of vectors, shape (4**n, ...)."""
    blocks = vectors.reshape(4**site, len(transfer), -1)
    return np.asarray(transfer @ blocks).reshape(vectors.shape)
