"""Spin-1 operators and chains in the basis |+1>, |0>, |-1>."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import State, apply
from orbit.physics.gates import Matrix, hermitian_exponential
from orbit.physics.hamiltonians import Hamiltonian, Term

SX: Matrix = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.complex128) / np.sqrt(2)
SY: Matrix = np.array([[0, -1j, 0], [1j, 0, -1j], [0, 1j, 0]], dtype=np.complex128) / np.sqrt(2)
SZ: Matrix = np.diag([1, 0, -1]).astype(np.complex128)
TRANSVERSE: Matrix = np.asarray(np.kron(SX, SX) + np.kron(SY, SY), dtype=np.complex128)
LONGITUDINAL: Matrix = np.asarray(np.kron(SZ, SZ), dtype=np.complex128)
HEISENBERG: Matrix = TRANSVERSE + LONGITUDINAL
BIQUADRATIC: Matrix = HEISENBERG @ HEISENBERG
PHASE_PI: Matrix = np.diag([-1, 1, -1]).astype(np.complex128)
"""exp(i pi Sz)."""


def site_rotation(a: float, b: float, c: float) -> tuple[Matrix, list[Matrix]]:
    """exp(-i a Sz), then exp(-i b Sy), then exp(-i c Sz), and the derivative by each angle."""
    (first, (d_first,)), (second, (d_second,)), (third, (d_third,)) = (
        hermitian_exponential([generator], [angle]) for generator, angle in ((SZ, a), (SY, b), (SZ, c))
    )
    matrix = third @ second @ first
    return matrix, [third @ second @ d_first, third @ d_second @ first, d_third @ second @ first]


def bond_exponential(transverse: float, longitudinal: float, beta: float) -> tuple[Matrix, list[Matrix]]:
    """exp[-i th (SxSx + SySy) - i ph SzSz - i beta (S.S)^2], and its derivatives by th and ph."""
    return hermitian_exponential([TRANSVERSE, LONGITUDINAL], [transverse, longitudinal], beta * BIQUADRATIC)


def bilinear_biquadratic(n_sites: int, beta: float, anisotropy: float) -> Hamiltonian:
    """`sum S.S + beta (S.S)^2` over the bonds of an open chain, plus `anisotropy sum Sz^2`."""
    bond = HEISENBERG + beta * BIQUADRATIC
    terms = [Term(1.0, bond, (i, i + 1)) for i in range(n_sites - 1)]
    terms += [Term(anisotropy, SZ @ SZ, (i,)) for i in range(n_sites)]
    return Hamiltonian(n_sites, tuple(terms), local_dimension=3)


def string_order(state: State, first: int, last: int, *, with_middle: bool = True) -> float:
    """`<Sz_first prod exp(i pi Sz_k) Sz_last>` with the product over the sites between.

    Source: den Nijs and Rommelse, Phys. Rev. B 40, 4709 (1989).
    """
    image = apply(SZ, apply(SZ, state, (first,), 3), (last,), 3)
    if with_middle:
        for site in range(first + 1, last):
            image = apply(PHASE_PI, image, (site,), 3)
    return float(np.vdot(state, image).real)


def string_pairs(n_sites: int) -> list[tuple[int, int]]:
    """The three end-to-end strings (0, n-1), (1, n-2), (2, n-3)."""
    return [(k, n_sites - 1 - k) for k in range(3)]


def string_orders(state: State, n_sites: int, *, with_middle: bool = True) -> NDArray[np.float64]:
    """Values of the three strings, 0 where one would not have its ends in order."""
    values = [string_order(state, i, j, with_middle=with_middle) if i < j else 0.0 for i, j in string_pairs(n_sites)]
    return np.array(values)
