"""A shallow circuit on a square grid: exact Z-string expectations, exact probabilities and exact samples.

The circuit acts on |0...0> with RY on every site, RZZ on every horizontal edge, RXX on every vertical edge and RX on
every site; gates of one kind commute. In the X basis the vertical edges and the last rotations are diagonal, so a row
is one vector of 2**side entries and rows are joined by phases. Nothing is truncated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orbit.physics.gates import rotation

Reals = NDArray[np.float64]
Vectors = NDArray[np.complex128]
Bits = NDArray[np.integer]

_HADAMARD = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
_SIGN = np.array([1.0, -1.0])
SCORED_AT_ONCE = 1024
"""Bit strings whose boundaries between all rows are held at once."""


@dataclass(frozen=True)
class GridCircuit:
    """Angles of the circuit.

    Attributes:
        ry: of the first rotations, shape (side, side).
        rzz: of the edges (r, c)-(r, c + 1), shape (side, side - 1).
        rxx: of the edges (r, c)-(r + 1, c), shape (side - 1, side).
        rx: of the last rotations, shape (side, side).
    """

    ry: Reals
    rzz: Reals
    rxx: Reals
    rx: Reals

    @property
    def side(self) -> int:
        """Sites along an edge of the grid."""
        return len(self.ry)

    @cached_property
    def rows(self) -> list[Vectors]:
        """Amplitudes of each row in the X basis, without vertical edges, shape (2**side,)."""
        return [self._row(row) for row in range(self.side)]

    def _row(self, row: int) -> Vectors:
        side = self.side
        amplitudes = np.ones(1, dtype=np.complex128)
        for angle in self.ry[row]:
            amplitudes = np.kron(amplitudes, [np.cos(angle / 2), np.sin(angle / 2)])
        signs = basis_signs(side)
        for column, angle in enumerate(self.rzz[row]):
            amplitudes = amplitudes * np.exp(-0.5j * angle * signs[:, column] * signs[:, column + 1])
        for column in range(side):
            blocks = amplitudes.reshape(2**column, 2, -1)
            amplitudes = np.einsum("xs,lsr->lxr", _HADAMARD, blocks).reshape(-1)
        return np.asarray(amplitudes * np.exp(-0.5j * signs @ self.rx[row]))


def basis_signs(n_qubits: int) -> Reals:
    """Eigenvalue +1 or -1 of every site in every basis state, shape (2**n, n), site 0 most significant."""
    shifts = np.arange(n_qubits - 1, -1, -1)
    return np.asarray(1.0 - 2.0 * (np.arange(2**n_qubits)[:, None] >> shifts & 1), dtype=np.float64)


def string_indices(samples: Bits) -> NDArray[np.int64]:
    """Each bit string as a number, qubit 0 most significant; at most 62 qubits."""
    weights = 2 ** np.arange(samples.shape[1] - 1, -1, -1, dtype=np.int64)
    return np.asarray(np.asarray(samples, dtype=np.int64) @ weights, dtype=np.int64)


def z_string_expectations(circuit: GridCircuit, masks: NDArray[np.bool_]) -> Reals:
    """Exact `<prod Z>` over the sites that each mask selects, by a boundary contraction row after row.

    In the X basis Z turns a basis state over, so the bra's state of a row is the ket's, turned over where the mask
    selects, and the boundary between two rows has 2**side entries. A vertical edge leaves a phase only where exactly
    one of its ends is selected.

    Args:
        circuit: the angles.
        masks: shape (n_strings, side, side).

    Returns:
        Expectation values, shape (n_strings,).
    """
    side = circuit.side
    shifts = 2 ** np.arange(side - 1, -1, -1)
    flips = masks.astype(np.int64) @ shifts
    states = np.arange(2**side)
    boundary = np.ones((len(masks), 2**side), dtype=np.complex128)
    for row in range(side):
        if row:
            for column in range(side):
                differ = masks[:, row - 1, column] ^ masks[:, row, column]
                phases = np.exp(-1j * circuit.rxx[row - 1, column] * np.outer(_SIGN, _SIGN))
                links = np.where(differ[:, None, None], phases, 1.0)
                blocks = boundary.reshape(len(masks), 2**column, 2, -1)
                boundary = np.einsum("kab,klar->klbr", links, blocks, optimize=True).reshape(len(masks), -1)
        ket = circuit.rows[row]
        boundary = boundary * ket * ket.conj()[states ^ flips[:, row, None]]
    return np.asarray(boundary.sum(axis=1).real)


def probabilities(circuit: GridCircuit, samples: Bits) -> Reals:
    """Exact probabilities of bit strings of shape (n, side**2) in row-major order, shape (n,)."""
    side = circuit.side
    bits, where = _distinct(circuit, samples)
    boundary = np.ones((2**side, len(bits)), dtype=np.complex128)
    for row in range(side):
        if row:
            boundary = _linked(boundary, circuit.rxx[row - 1])
        boundary = boundary * _hadamard_signs(bits[:, row]) * circuit.rows[row][:, None] / 2 ** (side / 2)
    return np.asarray(np.abs(boundary.sum(axis=0)) ** 2)[where]


def cut_scores(circuit: GridCircuit, samples: Bits) -> Reals:
    """Derivatives of the log-probability of every bit string by the angles of all edges that cross a straight cut.

    All edges of a cut are turned by the same angle. Under the exact distribution the mean of every score is zero.

    Returns:
        Shape (n, 2 * (side - 1)): the cuts between neighbouring columns, then those between neighbouring rows.
    """
    bits, where = _distinct(circuit, samples)
    chunks = [bits[start : start + SCORED_AT_ONCE] for start in range(0, len(bits), SCORED_AT_ONCE)]
    return np.concatenate([_scores_of_distinct(circuit, chunk) for chunk in chunks])[where]


def _scores_of_distinct(circuit: GridCircuit, bits: NDArray[np.int8]) -> Reals:
    side = circuit.side
    hadamards = [_hadamard_signs(bits[:, row]) for row in range(side)]
    above = [np.ones((2**side, len(bits)), dtype=np.complex128)]
    for row in range(side - 1):
        above.append(_linked(above[-1] * hadamards[row] * circuit.rows[row][:, None], circuit.rxx[row]))
    below = np.ones_like(above[0])
    columns, rows = np.zeros((side - 1, len(bits))), np.zeros((side - 1, len(bits)))
    for row in range(side - 1, -1, -1):
        environment = above[row] * hadamards[row] * below
        amplitudes = circuit.rows[row] @ environment
        columns += 2 * (_edge_derivatives(circuit, row) @ environment / amplitudes).real
        if row:
            below = below * hadamards[row] * circuit.rows[row][:, None]
            turned = _linked_with_derivative(above[row], circuit.rxx[row - 1])
            rows[row - 1] = 2 * (np.sum(turned * below, axis=0) / amplitudes).real
            below = _linked(below, circuit.rxx[row - 1])
    return np.concatenate([columns, rows]).T


def _edge_derivatives(circuit: GridCircuit, row: int) -> Vectors:
    """Derivatives of a row's amplitudes by the angle of each horizontal edge, shape (side - 1, 2**side)."""
    side = circuit.side
    phases = np.exp(-0.5j * basis_signs(side) @ circuit.rx[row])
    # ZZ on an edge turns both its ends over in the X basis, and acts before RX.
    turned = np.arange(2**side) ^ (3 << np.arange(side - 2, -1, -1))[:, None]
    return np.asarray(-0.5j * phases * (circuit.rows[row] / phases)[turned])


def _linked_with_derivative(linked: Vectors, angles: Reals) -> Vectors:
    """The sum over columns of the derivative of what vertical edges of these angles made of a boundary."""
    total = np.zeros_like(linked)
    for column, angle in enumerate(angles):
        # An edge multiplies the even part by 2 cos(angle / 2) and the odd one by -2i sin(angle / 2).
        even, odd = -np.tan(angle / 2) / 2, 0.5 / np.tan(angle / 2)
        blocks = linked.reshape(2**column, 2, -1)
        total += ((even + odd) / 2 * blocks + (even - odd) / 2 * blocks[:, ::-1]).reshape(linked.shape)
    return total


def _distinct(circuit: GridCircuit, samples: Bits) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """The distinct bit strings by row of the grid, and the number of each sample among them."""
    _, first, where = np.unique(string_indices(samples), return_index=True, return_inverse=True)
    return np.asarray(samples, dtype=np.int8)[first].reshape(-1, circuit.side, circuit.side), where


def _hadamard_signs(bits: NDArray[np.int8]) -> Reals:
    """Signs of `<bits|a>` for every state a of a row in the X basis, shape (2**side, n)."""
    side = bits.shape[1]
    overlaps = np.arange(2**side)[:, None] & string_indices(bits)
    return np.asarray(1.0 - 2.0 * (np.bitwise_count(overlaps) & 1), dtype=np.float64)


def _linked(boundary: Vectors, angles: Reals) -> Vectors:
    """The boundary, shape (2**side, n), beyond the vertical edges of these angles."""
    for column, angle in enumerate(angles):
        same, other = np.exp(-0.5j * angle * _SIGN)
        blocks = boundary.reshape(2**column, 2, -1)
        boundary = (blocks * same + blocks[:, ::-1] * other).reshape(boundary.shape)
    return boundary


def sample(circuit: GridCircuit, uniforms: Reals) -> NDArray[np.int8]:
    """Draw qubit by qubit: bit q is 1 where uniform q is at least the conditional probability of 0.

    A window of side + 2 qubits is enough: qubit q is measured as soon as no later gate can act on it. Strings that
    begin alike share one window.

    Args:
        circuit: the angles.
        uniforms: in [0, 1), shape (n_samples, side**2).

    Returns:
        Bits, shape (n_samples, side**2).
    """
    n = circuit.side**2
    samples = np.empty((len(uniforms), n), dtype=np.int8)

    def draw(qubit: int, zero: Reals) -> NDArray[np.int8]:
        samples[:, qubit] = uniforms[:, qubit] >= zero
        return samples[:, qubit]

    _measure(circuit, len(uniforms), draw)
    return samples


def conditional_probabilities(circuit: GridCircuit, samples: Bits) -> Reals:
    """Exact probability of every bit given those before it in row-major order, shape (n, side**2)."""
    found = np.empty(samples.shape)
    bits = np.asarray(samples, dtype=np.int8)

    def look(qubit: int, zero: Reals) -> NDArray[np.int8]:
        found[:, qubit] = np.where(bits[:, qubit] == 0, zero, 1 - zero)
        return bits[:, qubit]

    _measure(circuit, len(samples), look)
    return found


def turned_by_half(circuit: GridCircuit) -> GridCircuit:
    """The grid seen from the other side: the last qubit comes first."""
    return GridCircuit(*(angles[::-1, ::-1] for angles in (circuit.ry, circuit.rzz, circuit.rxx, circuit.rx)))


def _measure(circuit: GridCircuit, n_samples: int, outcome: Callable[[int, Reals], NDArray[np.int8]]) -> None:
    """Measure qubit after qubit; `outcome(qubit, probabilities of 0)` gives the bit of every sample."""
    side, n = circuit.side, circuit.side**2
    rzz = np.pad(circuit.rzz, ((0, 0), (0, 1))).ravel()
    rxx = np.pad(circuit.rxx, ((0, 1), (0, 0))).ravel()
    windows = np.zeros((1, 2 ** (side + 1)), dtype=np.complex128)
    windows[0, 0] = 1
    group = np.zeros(n_samples, dtype=np.int64)
    for fresh in range(n + side + 1):
        measured = fresh - side - 1
        new = rotation("Y", circuit.ry.flat[fresh])[:, 0] if fresh < n else np.array([1.0, 0.0])
        states = (windows[:, :, None] * new).reshape(len(windows), 2, 2 ** (side - 1), 2, 2)
        if 0 < fresh < n:
            states = states * np.exp(-0.5j * rzz[fresh - 1] * np.outer(_SIGN, _SIGN))
        if measured < 0:
            windows = states[:, 0].reshape(len(windows), -1)
            continue
        outcomes = _last_gates(states, rxx[measured], circuit.rx.flat[measured])
        weights = np.array([np.sum(part.real**2 + part.imag**2, axis=1) for part in outcomes])
        measured_bits = outcome(measured, (weights[0] / weights.sum(axis=0))[group])
        branches, group = np.unique(2 * group + measured_bits, return_inverse=True)
        parents, bits = branches >> 1, branches & 1
        windows = np.where(bits[:, None], outcomes[1][parents], outcomes[0][parents])
        windows /= np.sqrt(weights[bits, parents])[:, None]


def _last_gates(states: Vectors, edge: float, angle: float) -> list[Vectors]:
    """RXX between a window's first and its last but one qubit, then RX on the first, split by the first qubit's bit."""
    cosine, sine = np.cos(edge / 2), -1j * np.sin(edge / 2)
    parts = [cosine * states[:, bit] + sine * states[:, 1 - bit, :, ::-1] for bit in (0, 1)]
    last = rotation("X", angle)
    return [(row[0] * parts[0] + row[1] * parts[1]).reshape(len(states), -1) for row in last]
