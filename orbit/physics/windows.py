"""Exact local energies of a shallow brickwork circuit on a matrix-product state, one causal cone at a time.

An operator on a bond sees only the gates of its causal cone and the state on the sites of the cone. The rest of the
matrix-product state enters through its two environments, whose square roots close the cone into a pure state. No bond
is ever cut, so nothing is truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import Tape, apply
from orbit.physics.gates import Matrix, bonds
from orbit.physics.mps import Mps, Tensor

BrickGate = Callable[[int, tuple[int, ...]], tuple[Matrix, list[tuple[int, Matrix]]]]
"""Layer and sites (a bond, or one site without a bond) to the matrix and pairs of parameter index and derivative."""


@dataclass(frozen=True)
class Cone:
    """The causal cone of a bond: its first and last site, and the gates in time order as (layer, sites)."""

    first: int
    last: int
    gates: tuple[tuple[int, tuple[int, ...]], ...]


def causal_cone(bond: tuple[int, int], n_sites: int, n_layers: int) -> Cone:
    """Gates of a brickwork circuit (layer l on bonds of parity l mod 2) that an operator on `bond` depends on."""
    support = set(bond)
    backwards: list[tuple[int, tuple[int, ...]]] = []
    for layer in reversed(range(n_layers)):
        touched = [pair for pair in bonds(n_sites, layer % 2) if support & set(pair)]
        support |= {site for pair in touched for site in pair}
        alone = support - {site for pair in touched for site in pair}
        backwards += [(layer, pair) for pair in touched] + [(layer, (site,)) for site in sorted(alone)]
    return Cone(min(support), max(support), tuple(reversed(backwards)))


def environments(tensors: Mps) -> tuple[list[Tensor], list[Tensor]]:
    """Square roots of the left and right environments at every cut.

    `left[i]`, shape (rank, bond), stands for the sites before i: `left[i]^dagger left[i]` is their contraction with
    themselves. `right[i]`, shape (bond, rank), stands for the sites from i on.
    """
    one = np.ones((1, 1), dtype=np.complex128)
    left, right = [one], [one]
    for tensor in tensors:
        left.append(_compressed(np.tensordot(left[-1], tensor, 1).reshape(-1, tensor.shape[2])))
    for tensor in reversed(tensors):
        right.append(_compressed(np.tensordot(tensor, right[-1], 1).reshape(tensor.shape[0], -1).T).T)
    return left, right[::-1]


def _compressed(matrix: Tensor) -> Tensor:
    """A matrix R with at most as many rows as columns and the same `R^dagger R` (R of a QR decomposition)."""
    return np.asarray(np.linalg.qr(matrix, mode="r"))


@dataclass(frozen=True)
class Window:
    """The state on a cone: shape (2**n_ancillas * 2**width * rank,), ancillas standing for the left environment."""

    state: Tensor
    n_ancillas: int
    cone: Cone

    def position(self, site: int) -> int:
        """Where a site of the chain is in the window."""
        return self.n_ancillas + site - self.cone.first


def window(tensors: Mps, roots: tuple[list[Tensor], list[Tensor]], cone: Cone) -> Window:
    """Contract the sites of a cone with the roots of the environments at its ends."""
    left, right = roots[0][cone.first], roots[1][cone.last + 1]
    block = left
    for tensor in tensors[cone.first : cone.last + 1]:
        block = np.tensordot(block, tensor, 1).reshape(-1, tensor.shape[2])
    rank = len(left)
    n_ancillas = int(np.ceil(np.log2(rank)))
    padded = np.zeros((2**n_ancillas, block.shape[0] // rank * right.shape[1]), dtype=np.complex128)
    padded[:rank] = (block @ right).reshape(rank, -1)
    return Window(padded.reshape(-1), n_ancillas, cone)


def bond_energies(
    tensors: Mps,
    n_layers: int,
    gate: BrickGate,
    terms: Sequence[tuple[tuple[int, int], NDArray[np.complex128]]],
    n_parameters: int | None = None,
) -> tuple[float, NDArray[np.float64] | None]:
    """Sum of bond terms in the state that the circuit makes of a normalized matrix-product state, and its gradient.

    Args:
        tensors: the matrix-product state.
        n_layers: depth of the brickwork.
        gate: its gates.
        terms: bond and Hermitian (4, 4) matrix.
        n_parameters: length of the gradient; None if it is not wanted.
    """
    roots = environments(tensors)
    energy, gradient = 0.0, None if n_parameters is None else np.zeros(n_parameters)
    for bond, matrix in terms:
        cone = causal_cone(bond, len(tensors), n_layers)
        part = window(tensors, roots, cone)
        tape = Tape(part.state)
        for layer, sites in cone.gates:
            unitary, derivatives = gate(layer, sites)
            places = [part.position(site) for site in sites]
            tape.gate(unitary, places, derivatives if gradient is not None else ())
        image = apply(matrix, tape.state, [part.position(site) for site in bond])
        energy += float(np.vdot(tape.state, image).real)
        if gradient is not None and n_parameters is not None:
            gradient += tape.gradient(n_parameters, [(tape.position, image)])
    return energy, gradient
