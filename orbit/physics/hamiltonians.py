"""Hamiltonians as sums of local terms, their expectation values and ground-state energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from orbit.physics.dense import State, apply
from orbit.physics.gates import pauli


@dataclass(frozen=True)
class Term:
    """`coefficient * matrix` on `sites`; the first site is the matrix's most significant."""

    coefficient: float
    matrix: NDArray[np.complex128]
    sites: tuple[int, ...]


@dataclass(frozen=True)
class Hamiltonian:
    """A sum of local Hermitian terms on an open chain of `n_sites` sites of dimension `local_dimension`."""

    n_sites: int
    terms: tuple[Term, ...]
    local_dimension: int = 2

    def apply(self, state: State) -> State:
        """`H |state>`, shape (d**n,); it is also the cotangent of the expectation value."""
        result = np.zeros_like(state)
        for (sites, _), matrix in self._merged().items():
            result += apply(matrix, state, sites, self.local_dimension)
        return result

    def expectation(self, state: State) -> float:
        """`<state|H|state>` of a normalized state."""
        return float(np.vdot(state, self.apply(state)).real)

    def dense(self) -> NDArray[np.complex128]:
        """The full matrix, for small chains."""
        identity = np.eye(self.local_dimension**self.n_sites, dtype=np.complex128)
        return np.array([self.apply(column) for column in identity]).T

    def ground_energy(self, seed: int = 0) -> float:
        """Lowest eigenvalue by Lanczos from a seeded start, to about 1e-10 relative."""
        size = self.local_dimension**self.n_sites
        if size <= 256:
            return float(np.linalg.eigvalsh(self.dense())[0])
        operator = LinearOperator((size, size), matvec=self.apply, dtype=np.complex128)
        start = np.random.default_rng(seed).normal(size=size).astype(np.complex128)
        return float(eigsh(operator, k=1, which="SA", v0=start, return_eigenvectors=False, tol=1e-10)[0])

    def _merged(self) -> dict[tuple[tuple[int, ...], int], NDArray[np.complex128]]:
        """Terms on the same sites added up, so that each group of sites is visited once."""
        merged: dict[tuple[tuple[int, ...], int], NDArray[np.complex128]] = {}
        for term in self.terms:
            key = (term.sites, len(term.sites))
            merged[key] = merged.get(key, 0) + term.coefficient * term.matrix
        return merged


def pauli_sum(n_qubits: int, terms: Sequence[tuple[float, str, tuple[int, ...]]]) -> Hamiltonian:
    """A qubit Hamiltonian from (coefficient, Pauli word, sites)."""
    return Hamiltonian(n_qubits, tuple(Term(c, pauli(word), sites) for c, word, sites in terms))


def transverse_field_ising(n_qubits: int, field: float, coupling: float = 1.0) -> Hamiltonian:
    """`-coupling sum Z_i Z_{i+1} - field sum X_i` on an open chain."""
    pairs = [(-coupling, "ZZ", (i, i + 1)) for i in range(n_qubits - 1)]
    return pauli_sum(n_qubits, [*pairs, *((-field, "X", (i,)) for i in range(n_qubits))])


def xxz_staggered(n_qubits: int, xy: float, zz: float, staggered_field: float) -> Hamiltonian:
    """`sum xy (XX + YY) + zz ZZ + staggered_field sum (-1)^i Z_i` on an open chain."""
    pairs = [(c, w, (i, i + 1)) for i in range(n_qubits - 1) for c, w in ((xy, "XX"), (xy, "YY"), (zz, "ZZ"))]
    return pauli_sum(n_qubits, [*pairs, *((staggered_field * (-1) ** i, "Z", (i,)) for i in range(n_qubits))])


def ising_ground_energy(n_qubits: int, field: float, coupling: float = 1.0) -> float:
    """Ground-state energy of `transverse_field_ising` by free fermions.

    The quasi-particle energies are twice the singular values of the bidiagonal matrix with `field` on the diagonal and
    `coupling` beside it; the ground state has all of them empty (Lieb, Schultz and Mattis, Ann. Phys. 16, 407, 1961;
    Pfeuty, Ann. Phys. 57, 79, 1970).
    """
    matrix = np.diag(np.full(n_qubits, float(field))) + np.diag(np.full(n_qubits - 1, float(coupling)), 1)
    return -float(np.linalg.svd(matrix, compute_uv=False).sum())
