"""Layers of one-qubit gates on large registers: a whole layer in a few matrix products, with exact gradients.

A layer acts with its own 2 x 2 matrix on every qubit. Four or five neighbouring matrices are merged into one of 16 or
32 rows, and each product also rotates the register by that group, so that BLAS always sees plain matrices and the order
of qubits is restored when every group had its turn. States are complex128 of shape (2**n,), qubit 0 most
significant; cotangents are those of `orbit.physics.dense`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce

import numpy as np
from numpy.typing import NDArray

State = NDArray[np.complex128]
Matrices = NDArray[np.complex128]

_GROUP = 4


def product_vector(factors: Sequence[NDArray[np.complex128]]) -> State:
    """Tensor product of one-qubit vectors, the first most significant."""
    return _kron(factors)


def apply_layer(matrices: Matrices, state: State) -> State:
    """Act with `matrices[q]` on qubit q; `matrices` has shape (n, 2, 2)."""
    for _, merged in _groups(matrices):
        state = _rotate(merged, state)
    return state


@dataclass(frozen=True)
class LayerPullback:
    """What `pull_back` finds.

    Attributes:
        state: the state before the layer.
        cotangent: the cotangent before the layer.
        transitions: shape (n, 2, 2); a change `A U_q` of qubit q's gate U_q moves the loss by
            `2 Re trace(A transitions[q])`.
    """

    state: State
    cotangent: State
    transitions: NDArray[np.complex128]


def pull_back(matrices: Matrices, state: State, cotangent: State) -> LayerPullback:
    """Undo a layer of unitary gates on the state and the cotangent after it.

    The gates of a layer commute, so a qubit's transition matrix is the same whichever of the others are undone already;
    that lets one sweep over the groups do it all without any stored state.
    """
    transitions = np.empty_like(matrices)
    for start, merged in _groups(matrices):
        size = len(merged)
        moved = state.reshape(size, -1) @ cotangent.reshape(size, -1).conj().T
        n_group = size.bit_length() - 1
        for k in range(n_group):
            split = moved.reshape((2**k, 2, size >> (k + 1)) * 2)
            transitions[start + k] = np.einsum("larlbr->ab", split)
        inverse = merged.conj().T
        state, cotangent = _rotate(inverse, state), _rotate(inverse, cotangent)
    return LayerPullback(state, cotangent, transitions)


@cache
def _hadamards(n_qubits: int) -> Matrices:
    matrix = np.array([[1, 1], [1, -1]], dtype=np.complex128) / np.sqrt(2)
    return np.broadcast_to(matrix, (n_qubits, 2, 2))


@cache
def field_diagonal(n_qubits: int) -> NDArray[np.float64]:
    """Diagonal of `sum Z_i`, shape (2**n,); read-only."""
    values = np.zeros(1)
    for _ in range(n_qubits):
        values = np.concatenate([values + 1, values - 1])
    values.setflags(write=False)
    return values


@cache
def bond_diagonal(n_qubits: int) -> NDArray[np.float64]:
    """Diagonal of `sum Z_i Z_{i+1}` on an open chain, shape (2**n,); read-only."""
    values = np.zeros(2)
    for _ in range(n_qubits - 1):
        upper, lower = np.split(values, 2)  # A further qubit in front agrees or disagrees with the first one.
        values = np.concatenate([upper + 1, lower - 1, upper - 1, lower + 1])
    values.setflags(write=False)
    return values


@dataclass(frozen=True)
class IsingChain:
    """`-coupling sum Z_i Z_{i+1} - field sum X_i` on an open chain, for large registers."""

    n_qubits: int
    field: float
    coupling: float = 1.0

    def expectation(self, state: State) -> float:
        """`<state|H|state>` of a normalized state."""
        bonds = float(np.dot(_weights(state), bond_diagonal(self.n_qubits)))
        turned = apply_layer(_hadamards(self.n_qubits), state)
        return -self.coupling * bonds - self.field * float(np.dot(_weights(turned), field_diagonal(self.n_qubits)))

    def apply(self, state: State) -> State:
        """`H |state>`; also the cotangent of the expectation value."""
        hadamards = _hadamards(self.n_qubits)
        turned = apply_layer(hadamards, state) * (-self.field * field_diagonal(self.n_qubits))
        return apply_layer(hadamards, turned) - self.coupling * bond_diagonal(self.n_qubits) * state


def _weights(state: State) -> NDArray[np.float64]:
    return np.asarray(state.real**2 + state.imag**2)


def _kron(factors: Iterable[NDArray[np.complex128]]) -> NDArray[np.complex128]:
    return reduce(lambda left, right: np.asarray(np.kron(left, right)), factors)


def _groups(matrices: Matrices) -> Iterator[tuple[int, NDArray[np.complex128]]]:
    """First qubit and merged matrix of each group of neighbouring qubits, none much smaller than the others."""
    n_qubits = len(matrices)
    for qubits in np.array_split(np.arange(n_qubits), max(1, n_qubits // _GROUP)):
        yield int(qubits[0]), _kron(matrices[qubits])


def _rotate(merged: NDArray[np.complex128], state: State) -> State:
    """Act on the leading qubits and move them behind all others."""
    return (state.reshape(len(merged), -1).T @ merged.T).reshape(-1)
