"""Batches of dense states that mid-circuit outcomes tell apart, with exact gradients at fixed outcomes.

A batch of T states of n qubits is one flat complex128 array of shape (2**n * T,), the trajectory least significant.
Gates of `Tape` on neighbouring qubits act on all trajectories alike; what differs between them is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import State, Tape, product_state
from orbit.physics.gates import pauli
from orbit.physics.hamiltonians import Hamiltonian

Bits = NDArray[np.int64]

CNOT = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=np.complex128)
"""Controlled by the first qubit."""
CNOT_ACROSS = np.kron(np.diag([1, 0]), pauli("II")) + np.kron(np.diag([0, 1]), pauli("IX"))
"""Controlled by the first of three qubits, on the third; the one between them is left alone."""


@dataclass(frozen=True)
class Angles:
    """Rotation angles of every qubit in every trajectory as weighted parameters.

    Attributes:
        values: the angles, shape (n_qubits, T).
        terms: pairs of arrays that broadcast to that shape: indices of parameters, and the angle's derivative by them.
    """

    values: NDArray[np.float64]
    terms: Sequence[tuple[Bits, NDArray[np.float64]]]


@dataclass
class BatchTape(Tape):
    """A tape over T trajectories. `Tape.normalize` would mix them and must not be used.

    Attributes:
        n_trajectories: T.
    """

    n_trajectories: int = 1

    @property
    def columns(self) -> NDArray[np.complex128]:
        """The states side by side, shape (2**n, T)."""
        return self.state.reshape(-1, self.n_trajectories)

    def probability_of_zero(self, qubit: int) -> NDArray[np.float64]:
        """Probability of outcome 0 on a qubit, per trajectory."""
        return np.asarray(np.sum(np.abs(self._split(self.state, qubit)[:, 0]) ** 2, axis=(0, 1)))

    def collapse(self, qubit: int, outcomes: Bits) -> None:
        """Project a qubit on the outcome of each trajectory (0 or 1, shape (T,)) and rescale to unit norm.

        The gradient holds the outcomes fixed and differentiates the normalized state.
        """
        kept = np.stack([outcomes == 0, outcomes == 1]).astype(np.float64)[None, :, None, :]
        projected = self._split(self.state, qubit) * kept
        norms = np.sqrt(np.sum(np.abs(projected) ** 2, axis=(0, 1, 2)))
        unit = (projected / norms).reshape(-1, self.n_trajectories)
        self.state = unit.reshape(-1)

        def pullback(cotangent: State, gradient: NDArray[np.float64]) -> State:
            inward = cotangent.reshape(unit.shape)
            inward = inward - np.sum((unit.conj() * inward).real, axis=0) * unit
            return np.asarray(self._split(inward / norms, qubit) * kept).reshape(-1)

        self._pullbacks.append(pullback)

    def z_rotations(self, angles: Angles) -> None:
        """RZ on every qubit, by an angle of its own in every trajectory."""
        signs = _z_signs(len(angles.values))
        after = self.columns * np.exp(-0.5j * (signs @ angles.values))
        undo = np.exp(0.5j * (signs @ angles.values))
        self.state = after.reshape(-1)

        def pullback(cotangent: State, gradient: NDArray[np.float64]) -> State:
            inward = cotangent.reshape(after.shape)
            # d/dt exp(-i t Z / 2) = -i Z / 2, so that the loss moves by 2 Re(conj(cotangent) (-i/2) Z after).
            by_angle = signs.T @ (inward.conj() * after).imag
            for indices, weights in angles.terms:
                full = np.broadcast_to(indices, by_angle.shape)
                np.add.at(gradient, full, weights * by_angle)
            return np.asarray(inward * undo).reshape(-1)

        self._pullbacks.append(pullback)

    def energies(self, hamiltonian: Hamiltonian) -> tuple[NDArray[np.float64], State]:
        """`<H>` of every trajectory, shape (T,), and the cotangent of their mean."""
        image = hamiltonian.apply(self.state)
        energies = np.sum((self.columns.conj() * image.reshape(self.columns.shape)).real, axis=0)
        return energies, image / self.n_trajectories

    def _split(self, state: NDArray[np.complex128], qubit: int) -> NDArray[np.complex128]:
        return state.reshape(2**qubit, 2, -1, self.n_trajectories)


def zero_batch(n_qubits: int, n_trajectories: int) -> BatchTape:
    """|00...0> in every trajectory."""
    state = np.repeat(product_state([0] * n_qubits), n_trajectories)
    return BatchTape(state, n_trajectories=n_trajectories)


def _z_signs(n_qubits: int) -> NDArray[np.float64]:
    """Eigenvalue of Z of every qubit on every basis state, shape (2**n, n)."""
    states = np.arange(2**n_qubits)[:, None]
    return np.asarray(1.0 - 2.0 * ((states >> np.arange(n_qubits - 1, -1, -1)) & 1), dtype=np.float64)
