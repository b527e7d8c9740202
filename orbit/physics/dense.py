"""Dense states and a small reverse-mode tape with exact gradients.

A state of n sites of local dimension d is a complex128 array of shape (d**n,), site 0 most significant. Cotangents are
`dL/d(conj psi)`, so that a change `dpsi` moves the real loss by `2 Re <cotangent|dpsi>`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

State = NDArray[np.complex128]
Matrix = NDArray[np.complex128]
Pullback = Callable[[State, NDArray[np.float64]], State]


def product_state(digits: Sequence[int], local_dimension: int = 2) -> State:
    """The basis state |digits[0] digits[1] ...>."""
    index = 0
    for digit in digits:
        index = index * local_dimension + digit
    state = np.zeros(local_dimension ** len(digits), dtype=np.complex128)
    state[index] = 1
    return state


def plus_state(n_qubits: int) -> State:
    """|+> on every qubit."""
    return np.full(2**n_qubits, 2 ** (-n_qubits / 2), dtype=np.complex128)


def _blocks(state: State, sites: Sequence[int], d: int) -> NDArray[np.complex128]:
    """View (or copy, for sites that are no ascending run) of the state as (left, d**k, right)."""
    k = len(sites)
    if list(sites) == list(range(sites[0], sites[0] + k)):
        return state.reshape(d ** sites[0], d**k, -1)
    n = round(np.log(state.size) / np.log(d))
    return np.moveaxis(state.reshape((d,) * n), sites, range(k)).reshape(1, d**k, -1)


def _unblocks(blocks: NDArray[np.complex128], sites: Sequence[int], d: int) -> State:
    k = len(sites)
    if list(sites) == list(range(sites[0], sites[0] + k)):
        return np.ascontiguousarray(blocks).reshape(-1)
    n = round(np.log(blocks.size) / np.log(d))
    return np.ascontiguousarray(np.moveaxis(blocks.reshape((d,) * n), range(k), sites)).reshape(-1)


def apply(matrix: NDArray[np.complex128], state: State, sites: Sequence[int], local_dimension: int = 2) -> State:
    """Act with a (d**k, d**k) matrix on k sites; the first named site is the matrix's most significant."""
    return _unblocks(matrix @ _blocks(state, sites, local_dimension), sites, local_dimension)


def transition(bra: State, ket: State, sites: Sequence[int], local_dimension: int = 2) -> Matrix:
    """`T[a, b] = sum_rest ket[a, rest] conj(bra[b, rest])`, so that `<bra|A|ket> = trace(A T)` for A on the sites."""
    left, right = _blocks(ket, sites, local_dimension), _blocks(bra, sites, local_dimension)
    return np.asarray(np.einsum("lar,lbr->ab", left, right.conj(), optimize=True))


@dataclass
class Tape:
    """Evolves a state and remembers how, so that `gradient` can run backwards.

    Attributes:
        state: the current state, shape (d**n,).
        local_dimension: d.
    """

    state: State
    local_dimension: int = 2
    _pullbacks: list[Pullback] = field(default_factory=list, repr=False)

    @property
    def position(self) -> int:
        """Names the current state, for cotangents that act on it."""
        return len(self._pullbacks)

    def gate(
        self, matrix: Matrix, sites: Sequence[int], derivatives: Sequence[tuple[int, NDArray[np.complex128]]] = ()
    ) -> None:
        """Act with a matrix, unitary or not, on some sites.

        Args:
            matrix: of shape (d**k, d**k).
            sites: the k sites.
            derivatives: pairs of a parameter's index and the matrix's derivative by it.
        """
        before, d = self.state, self.local_dimension
        self.state = apply(matrix, before, sites, d)

        def pullback(cotangent: State, gradient: NDArray[np.float64]) -> State:
            if derivatives:
                moved = transition(cotangent, before, sites, d)
                for index, derivative in derivatives:
                    gradient[index] += 2 * np.sum(derivative * moved.T).real
            return apply(matrix.conj().T, cotangent, sites, d)

        self._pullbacks.append(pullback)

    def diagonal(self, values: NDArray[np.complex128] | NDArray[np.float64]) -> None:
        """Multiply the amplitudes by `values`, shape (d**n,)."""
        self.state = self.state * values
        self._pullbacks.append(lambda cotangent, gradient: cotangent * np.conj(values))

    def project(self, kept: NDArray[np.complex128], n_left: int) -> None:
        """Project the first `n_left` sites on the span of the orthonormal columns of `kept`, which is held fixed."""

        def projected(state: State) -> State:
            return np.asarray((kept @ (kept.conj().T @ state.reshape(self.local_dimension**n_left, -1))).reshape(-1))

        self.state = projected(self.state)
        self._pullbacks.append(lambda cotangent, gradient: projected(cotangent))

    def normalize(self) -> float:
        """Rescale to unit norm, inside the gradient; returns the norm before."""
        norm = float(np.linalg.norm(self.state))
        self.state = unit = self.state / norm

        def pullback(cotangent: State, gradient: NDArray[np.float64]) -> State:
            return np.asarray((cotangent - np.vdot(unit, cotangent).real * unit) / norm)

        self._pullbacks.append(pullback)
        return norm

    def gradient(self, n_parameters: int, cotangents: Sequence[tuple[int, State]]) -> NDArray[np.float64]:
        """Gradient of a loss whose cotangents at the named positions are given, shape (n_parameters,)."""
        gradient = np.zeros(n_parameters)
        pending: dict[int, State] = {}
        for position, cotangent in cotangents:
            pending[position] = pending[position] + cotangent if position in pending else cotangent
        running = np.zeros_like(self.state)
        for position in range(len(self._pullbacks), 0, -1):
            if position in pending:
                running = running + pending[position]
            running = self._pullbacks[position - 1](running, gradient)
        return gradient


def renyi_2_entropy(state: State, n_left: int, local_dimension: int = 2) -> tuple[float, State]:
    """Second Renyi entropy `-log tr rho_A^2` (nats) of the first `n_left` sites, and its cotangent."""
    block = state.reshape(local_dimension**n_left, -1)
    density = block @ block.conj().T
    purity = float(np.vdot(density, density).real)
    return -np.log(purity), (-2 / purity * (density @ block)).reshape(-1)
