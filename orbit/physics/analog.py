"""Continuous-time evolution under a driven exchange chain, with exact gradients, by two independent methods.

The generators conserve `sum Z`: the exchange `sum (XX + YY)` over some bonds, and a diagonal field. Both are real. A
pulse `exp(-i sum_k c_k G_k)` is applied either sector by sector through an eigendecomposition, for small registers, or
through a Chebyshev expansion that only needs sparse products, for large ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.special import jv

from orbit.physics.dense import State, Tape
from orbit.physics.gates import hermitian_exponential

Matrix = NDArray[np.complex128]
Sparse = Any
"""A real `scipy.sparse.csr_array`; SciPy ships no types."""

_NEGLIGIBLE = 1e-17


@cache
def exchange(n_qubits: int, bonds: tuple[tuple[int, int], ...]) -> Sparse:
    """`sum (X_i X_j + Y_i Y_j)` over the bonds, of shape (2**n, 2**n): it swaps unequal bits with amplitude 2."""
    states = np.arange(2**n_qubits)
    rows, columns = [], []
    for i, j in bonds:
        first, second = 1 << (n_qubits - 1 - i), 1 << (n_qubits - 1 - j)
        unequal = states[((states & first) == 0) != ((states & second) == 0)]
        rows.append(unequal)
        columns.append(unequal ^ first ^ second)
    entries = np.full(sum(map(len, rows)), 2.0)
    positions = (np.concatenate(rows or [states[:0]]), np.concatenate(columns or [states[:0]]))
    return csr_array(coo_array((entries, positions), shape=(len(states), len(states))))


@cache
def z_field(signs: tuple[float, ...]) -> Sparse:
    """`sum_i signs[i] Z_i`, diagonal, of shape (2**n, 2**n)."""
    n_qubits = len(signs)
    bits = (np.arange(2**n_qubits)[:, None] >> np.arange(n_qubits - 1, -1, -1)) & 1
    return csr_array(diags_array((1.0 - 2.0 * bits) @ np.asarray(signs)))


@dataclass(frozen=True)
class Pulse:
    """Bounded controls of one analog block and their slopes in the unbounded parameters (s, j, d).

    Attributes:
        time: `t_min + (t_max - t_min) sigmoid(s)`.
        coupling: `tanh(j)`.
        detuning: `tanh(d)`.
        slopes: derivatives of time, coupling and detuning by s, j and d.
    """

    time: float
    coupling: float
    detuning: float
    slopes: tuple[float, float, float]


def bounded_pulse(parameters: Sequence[float], t_min: float, t_max: float) -> Pulse:
    """The controls that (s, j, d) stand for."""
    s, j, d = (float(value) for value in parameters)
    share = 0.5 * (1 + np.tanh(s / 2))  # the logistic function without overflow
    coupling, detuning = np.tanh(j), np.tanh(d)
    slopes = ((t_max - t_min) * share * (1 - share), 1 - coupling**2, 1 - detuning**2)
    return Pulse(t_min + (t_max - t_min) * share, float(coupling), float(detuning), slopes)


class Propagator(Protocol):
    """`exp(-i sum_k c_k G_k)` at fixed coefficients, with G_k real and symmetric."""

    def forward(self, state: State) -> State:
        """Act on a state."""

    def backward(self, state: State) -> State:
        """Act with the inverse."""

    def derivatives(self, state: State) -> list[State]:
        """The derivative of `forward(state)` by each coefficient."""


class SectorPropagator:
    """Exact exponential in every sector of fixed `sum Z`, by eigendecomposition; for up to about ten qubits."""

    def __init__(self, generators: Sequence[Sparse], coefficients: Sequence[float]) -> None:
        self._n_generators = len(generators)
        self._blocks: list[tuple[NDArray[np.int64], Matrix, list[Matrix]]] = []
        for sector in _sectors(generators[0].shape[0]):
            dense = [generator[sector][:, sector].toarray().astype(np.complex128) for generator in generators]
            self._blocks.append((sector, *hermitian_exponential(dense, coefficients)))

    def forward(self, state: State) -> State:
        """Act on a state."""
        result = np.empty_like(state)
        for sector, matrix, _ in self._blocks:
            result[sector] = matrix @ state[sector]
        return result

    def backward(self, state: State) -> State:
        """Act with the inverse."""
        result = np.empty_like(state)
        for sector, matrix, _ in self._blocks:
            result[sector] = matrix.conj().T @ state[sector]
        return result

    def derivatives(self, state: State) -> list[State]:
        """The derivative of `forward(state)` by each coefficient."""
        results = [np.empty_like(state) for _ in range(self._n_generators)]
        for sector, _, parts in self._blocks:
            for result, part in zip(results, parts, strict=True):
                result[sector] = part @ state[sector]
        return results


@cache
def _sectors(size: int) -> list[NDArray[np.int64]]:
    """Basis states by their number of ones."""
    ones = np.array([state.bit_count() for state in range(size)])
    return [np.flatnonzero(ones == count) for count in range(int(ones.max()) + 1)]


class ChebyshevPropagator:
    """Chebyshev expansion to rounding (Tal-Ezer and Kosloff, J. Chem. Phys. 81, 3967, 1984).

    With `X = sum_k c_k G_k / r`, whose spectrum lies in [-1, 1] for the bound r on the norm, `exp(-i r X)` is
    `J_0(r) + 2 sum_m (-i)^m J_m(r) T_m(X)`. Derivatives follow from the differentiated
    recursion of the T_m at fixed r.
    """

    def __init__(self, generators: Sequence[Sparse], coefficients: Sequence[float]) -> None:
        bounds = [abs(c) * float(abs(g).sum(axis=1).max()) for g, c in zip(generators, coefficients, strict=True)]
        self._bound = max(sum(bounds), 1e-3)
        self._directions = [generator / self._bound for generator in generators]
        scaled = [c * g for g, c in zip(self._directions, coefficients, strict=True)]
        self._operator = sum(scaled[1:], scaled[0])
        orders = np.arange(int(1.2 * self._bound + 60))
        values = jv(orders, self._bound)
        values = values[: 1 + int(np.flatnonzero(np.abs(values) > _NEGLIGIBLE)[-1])]
        self._weights = 2 * (-1j) ** orders[: len(values)] * values
        self._weights[0] /= 2

    def forward(self, state: State) -> State:
        """Act on a state."""
        return self._expand(state, self._weights)

    def backward(self, state: State) -> State:
        """Act with the inverse."""
        return self._expand(state, self._weights.conj())

    def _expand(self, state: State, weights: NDArray[np.complex128]) -> State:
        # The operator is real: two real columns cost half of one complex product.
        earlier, current = _columns(state), self._operator @ _columns(state)
        result = weights[0] * state
        for weight in weights[1:]:
            result += weight * _complex(current)
            earlier, current = current, 2 * (self._operator @ current) - earlier
        return np.asarray(result)

    def derivatives(self, state: State) -> list[State]:
        """The derivative of `forward(state)` by each coefficient."""
        polynomials = [_columns(state), self._operator @ _columns(state)]
        while len(polynomials) < len(self._weights):
            polynomials.append(2 * (self._operator @ polynomials[-1]) - polynomials[-2])
        results = []
        for direction in self._directions:
            earlier, current = np.zeros_like(polynomials[0]), direction @ polynomials[0]
            result = np.zeros_like(state)
            for weight, polynomial in zip(self._weights[1:], polynomials[1:], strict=True):
                result += weight * _complex(current)
                following = 2 * (direction @ polynomial + self._operator @ current) - earlier
                earlier, current = current, following
            results.append(result)
        return results


def _columns(state: State) -> NDArray[np.float64]:
    """Real and imaginary part as two columns."""
    return np.ascontiguousarray(state).view(np.float64).reshape(-1, 2)


def _complex(columns: NDArray[np.float64]) -> State:
    return np.ascontiguousarray(columns).view(np.complex128).reshape(-1)


class AnalogTape(Tape):
    """A tape that also knows analog blocks."""

    def evolve(self, propagator: Propagator, slopes: Sequence[Sequence[tuple[int, float]]]) -> None:
        """Evolve under a pulse.

        Args:
            propagator: of the pulse.
            slopes: for each coefficient of the pulse, the parameters it depends on and its derivatives by them.
        """
        before = self.state
        self.state = propagator.forward(before)

        def pullback(cotangent: State, gradient: NDArray[np.float64]) -> State:
            for moved, terms in zip(propagator.derivatives(before), slopes, strict=True):
                pull = 2 * float(np.vdot(cotangent, moved).real)
                for index, slope in terms:
                    gradient[index] += slope * pull
            return propagator.backward(cotangent)

        self._pullbacks.append(pullback)
