"""A shallow circuit on a square grid: exact Z-string expectations, exact probabilities and exact samples.

The circuit acts on |0...0> with RY on every site, RZZ on every horizontal edge, RXX on every vertical edge and RX on
every site; gates of one kind commute. In the X basis the vertical edges and the last rotations are diagonal, so a row
is one vector of 2**side entries and rows are joined by phases. Nothing is truncated.
"""

from __future__ import annotations

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
    _, first, where = np.unique(string_indices(samples), return_index=True, return_inverse=True)
    bits = np.asarray(samples, dtype=np.int8)[first].reshape(-1, side, side)
    boundary = np.ones((2**side, len(bits)), dtype=np.complex128)
    for row in range(side):
        for column in range(side):
            blocks = boundary.reshape(2**column, 2, -1, len(bits))
            if row:
                same, other = np.exp(-0.5j * circuit.rxx[row - 1, column] * _SIGN)
                turned = blocks[:, ::-1] * other
                blocks = blocks * same
                blocks += turned
            # <bit|a> of a Hadamard matrix: its sign is the only part that depends on the string.
            blocks[:, 1] *= _SIGN[bits[:, row, column]]
            boundary = blocks.reshape(2**side, -1)
        boundary *= circuit.rows[row][:, None] / 2 ** (side / 2)
    return np.asarray(np.abs(boundary.sum(axis=0)) ** 2)[where]


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
    side, n = circuit.side, circuit.side**2
    rzz = np.pad(circuit.rzz, ((0, 0), (0, 1))).ravel()
    rxx = np.pad(circuit.rxx, ((0, 1), (0, 0))).ravel()
    windows = np.zeros((1, 2 ** (side + 1)), dtype=np.complex128)
    windows[0, 0] = 1
    group = np.zeros(len(uniforms), dtype=np.int64)
    samples = np.empty((len(uniforms), n), dtype=np.int8)
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
        samples[:, measured] = uniforms[:, measured] >= (weights[0] / weights.sum(axis=0))[group]
        branches, group = np.unique(2 * group + samples[:, measured], return_inverse=True)
        parents, bits = branches >> 1, branches & 1
        windows = np.where(bits[:, None], outcomes[1][parents], outcomes[0][parents])
        windows /= np.sqrt(weights[bits, parents])[:, None]
    return samples


def _last_gates(states: Vectors, edge: float, angle: float) -> list[Vectors]:
    """RXX between a window's first and its last but one qubit, then RX on the first, split by the first qubit's bit."""
    cosine, sine = np.cos(edge / 2), -1j * np.sin(edge / 2)
    parts = [cosine * states[:, bit] + sine * states[:, 1 - bit, :, ::-1] for bit in (0, 1)]
    last = rotation("X", angle)
    return [(row[0] * parts[0] + row[1] * parts[1]).reshape(len(states), -1) for row in last]
