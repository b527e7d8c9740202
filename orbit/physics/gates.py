"""Gate matrices and their exact parameter derivatives.

Conventions of the task book: site 0 is the most significant digit; rotations `RX(t) = exp(-i t X / 2)` carry a half,
exponentials written as such do not. Matrices are complex128 of shape (D, D).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.complex128]

_PAULIS = {
    "I": np.array([[1, 0], [0, 1]], dtype=np.complex128),
    "X": np.array([[0, 1], [1, 0]], dtype=np.complex128),
    "Y": np.array([[0, -1j], [1j, 0]], dtype=np.complex128),
    "Z": np.array([[1, 0], [0, -1]], dtype=np.complex128),
}

TWO_QUBIT_WORDS = tuple(a + b for a in "IXYZ" for b in "IXYZ")[1:]
"""The fifteen two-qubit Pauli words in lexicographic order, IX to ZZ."""


@cache
def pauli(word: str) -> Matrix:
    """Tensor product of Pauli matrices, `pauli("XZ") = X (x) Z`, of shape (2**len, 2**len); read-only."""
    matrix: Matrix = np.eye(1, dtype=np.complex128)
    for letter in word:
        matrix = np.asarray(np.kron(matrix, _PAULIS[letter]), dtype=np.complex128)
    matrix.setflags(write=False)
    return matrix


def exponential(word: str, angle: float) -> Matrix:
    """`exp(-i angle P)` of a Pauli word P, without a half."""
    identity = np.eye(2 ** len(word))
    return np.asarray(np.cos(angle) * identity - 1j * np.sin(angle) * pauli(word))


def rotation(word: str, angle: float) -> Matrix:
    """`exp(-i angle P / 2)` of a Pauli word P: RX, RY, RZ, RXX, RYY, RZZ."""
    return exponential(word, angle / 2)


def commuting_exponential(words: Sequence[str], angles: Sequence[float]) -> tuple[Matrix, list[Matrix]]:
    """`exp(-i sum_k angle_k P_k)` of commuting Pauli words, and its derivative by each angle."""
    matrix = np.eye(2 ** len(words[0]), dtype=np.complex128)
    for word, angle in zip(words, angles, strict=True):
        matrix = exponential(word, angle) @ matrix
    return matrix, [-1j * pauli(word) @ matrix for word in words]


def rotation_sequence(words: Sequence[str], angles: Sequence[float]) -> tuple[Matrix, list[Matrix]]:
    """Rotations (with a half) on the same sites in time order, and the derivative by each angle."""
    factors = [rotation(word, angle) for word, angle in zip(words, angles, strict=True)]
    dimension = len(factors[0])

    def product(matrices: Sequence[Matrix]) -> Matrix:
        result: Matrix = np.eye(dimension, dtype=np.complex128)
        for matrix in matrices:
            result = matrix @ result
        return result

    derivatives = []
    for k, word in enumerate(words):
        changed = [*factors[:k], -0.5j * pauli(word) @ factors[k], *factors[k + 1 :]]
        derivatives.append(product(changed))
    return product(factors), derivatives


def hermitian_exponential(
    generators: Sequence[NDArray[np.complex128]], coefficients: Sequence[float], offset: Matrix | None = None
) -> tuple[Matrix, list[Matrix]]:
    """`exp(-i (offset + sum_k c_k G_k))` of Hermitian G_k that need not commute, and its derivative by each c_k.

    The derivative is the Daleckii-Krein formula in the eigenbasis of the exponent (Higham, Functions of Matrices,
    theorem 3.11): entry (a, b) of the transformed direction is multiplied by the divided difference of exp(-i x).
    """
    exponent = np.zeros_like(generators[0]) if offset is None else offset.astype(np.complex128)
    for generator, coefficient in zip(generators, coefficients, strict=True):
        exponent = exponent + coefficient * generator
    values, vectors = np.linalg.eigh(exponent)
    phases = np.exp(-1j * values)
    # (f(x) - f(y)) / (x - y) of f = exp(-i x) without cancellation: -i exp(-i (x+y)/2) sinc((x-y)/2).
    middle = (values[:, None] + values[None, :]) / 2
    half_gap = (values[:, None] - values[None, :]) / 2
    divided = -1j * np.exp(-1j * middle) * np.sinc(half_gap / np.pi)
    adjoint = vectors.conj().T
    matrix = (vectors * phases) @ adjoint
    derivatives = [vectors @ (divided * (adjoint @ generator @ vectors)) @ adjoint for generator in generators]
    return matrix, derivatives


def bonds(n_sites: int, parity: int) -> list[tuple[int, int]]:
    """Nearest-neighbour pairs `(p, p+1), (p+2, p+3), ...` of an open chain, p being the parity."""
    return [(left, left + 1) for left in range(parity, n_sites - 1, 2)]
