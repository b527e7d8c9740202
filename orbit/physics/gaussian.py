"""Fermionic Gaussian states under imaginary-time filters of the transverse-field Ising chain, with exact gradients.

With the Majorana operators `c_{2j} = X_0 ... X_{j-1} Z_j` and `c_{2j+1} = X_0 ... X_{j-1} Y_j` both kinds of terms are
neighbours on one chain of 2n operators: `X_j = i c_{2j} c_{2j+1}` and `Z_j Z_{j+1} = i c_{2j+1} c_{2j+2}` (Kitaev,
Physics-Uspekhi 44, 131, 2001). A pure Gaussian state is fixed by the n-dimensional space of combinations of Majorana
operators that annihilate it. If these are written `sum_p u_p c_p`, with the odd coefficients multiplied by -i, then
everything is real: the space has an orthonormal basis V of shape (2n, n); `exp(t i c_p c_{p+1})` acts on the rows p and
p+1 of V as a hyperbolic rotation by 2t; and with the projector `P = V V^T`, which is the covariance matrix up to signs,
`<X_j> = 2 P[2j, 2j+1]` and `<Z_j Z_{j+1}> = -2 P[2j+1, 2j+2]`. The norm of the state drops out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from orbit.physics.adam import Adam

Real = NDArray[np.float64]

_MOST_SKEWED = 2.0
"""Filters of this total strength stretch a basis by at most exp(8), which costs four of sixteen digits."""


@dataclass(frozen=True)
class Filter:
    """`exp(strength sum T)` of commuting terms T, acting on rows (p, p+1) for p = first, first + step, ..."""

    first: int
    step: int
    sign: float

    def act(self, strength: float, basis: Real) -> Real:
        """The filter on the rows of a basis; the matrix is symmetric, so this serves cotangents too."""
        upper, lower = self._rows(basis)
        cosh, sinh = np.cosh(2 * strength), self.sign * np.sinh(2 * strength)
        result = basis.copy()
        result[upper] = cosh * basis[upper] + sinh * basis[lower]
        result[lower] = sinh * basis[upper] + cosh * basis[lower]
        return result

    def slope(self, cotangent: Real, basis: Real) -> float:
        """Inner product of a cotangent with the change of a filtered basis per strength."""
        upper, lower = self._rows(basis)
        crossed = np.sum(cotangent[upper] * basis[lower]) + np.sum(cotangent[lower] * basis[upper])
        return float(2 * self.sign * crossed)

    def _rows(self, basis: Real) -> tuple[slice, slice]:
        last = len(basis) - 1
        return slice(self.first, last, self.step), slice(self.first + 1, last + 1, self.step)


FIELD_FILTER = Filter(first=0, step=2, sign=1.0)
"""`exp(strength X_j)` on every qubit."""


def bond_filter(parity: int) -> Filter:
    """`exp(strength Z_j Z_{j+1})` on the bonds of a parity."""
    return Filter(first=2 * parity + 1, step=4, sign=-1.0)


def plus_basis(n_qubits: int) -> Real:
    """|+> on every qubit, as a basis of shape (2n, n)."""
    return np.asarray(np.repeat(np.eye(n_qubits), 2, axis=0) / np.sqrt(2))


def ising_matrix(n_qubits: int, field: float, coupling: float = 1.0) -> Real:
    """C with `<-coupling sum Z_j Z_{j+1} - field sum X_j> = trace(V^T C V)`, shape (2n, 2n)."""
    beside = np.empty(2 * n_qubits - 1)
    beside[0::2], beside[1::2] = -field, coupling
    return np.diag(beside, 1) + np.diag(beside, -1)


def filtered_energy(
    n_qubits: int, field: float, filters: Sequence[Filter], strengths: Sequence[float] | Real
) -> tuple[float, Real]:
    """Energy of the Ising chain after filters on |+>^n, and its derivative by each strength.

    The basis is orthonormalized at the end, and on the way before it gets ill-conditioned; that changes neither the
    space nor the energy. The cotangent of a basis is taken orthogonal to the space, so that it ignores this change on
    the way back.

    Args:
        n_qubits: length n of the open chain.
        field: transverse field; the coupling is 1.
        filters: in time order.
        strengths: one for each filter.
    """
    basis = plus_basis(n_qubits)
    records: list[tuple[Real, Real | None]] = []
    skewed = 0.0
    for k, (gate, strength) in enumerate(zip(filters, strengths, strict=True)):
        basis, triangle = gate.act(strength, basis), None
        skewed += abs(strength)
        if skewed > _MOST_SKEWED or k == len(filters) - 1:
            basis, triangle = np.linalg.qr(basis)
            skewed = 0.0
        records.append((basis, triangle))
    image = ising_matrix(n_qubits, field) @ basis
    energy = float(np.sum(basis * image))
    cotangent = 2 * (image - basis @ (basis.T @ image))
    gradient = np.empty(len(records))
    for k in range(len(records) - 1, -1, -1):
        after, triangle = records[k]
        if triangle is not None:
            # The cotangent of what was orthonormalized; the slope below is then that of `after @ triangle`.
            cotangent = solve_triangular(triangle, cotangent.T, check_finite=False).T
            after = after @ triangle
        gradient[k] = filters[k].slope(cotangent, after)
        cotangent = filters[k].act(strengths[k], cotangent)
    return energy, gradient


def train_filters(
    n_qubits: int, field: float, filters: Sequence[Filter], start: Real, *, learning_rate: float, n_steps: int
) -> tuple[Real, Real]:
    """Minimize the energy per qubit by Adam.

    Returns:
        The energies per qubit before each update, shape (n_steps,), and the strengths before the updates and after the
        last one, shape (n_steps + 1, number of filters).
    """
    optimizer = Adam(learning_rate)
    energies = np.empty(n_steps)
    rows = np.empty((n_steps + 1, len(filters)))
    rows[0] = start
    for step in range(n_steps):
        energy, gradient = filtered_energy(n_qubits, field, filters, rows[step])
        energies[step] = energy / n_qubits
        rows[step + 1] = optimizer.update(rows[step], gradient / n_qubits)
    return energies, rows
