"""Exact local expectations in a wide shallow circuit, given gate by gate, by the observables' causal cones.

An observable sees only the gates of its causal cone, and a gate only the qubits that it is entangled with by then. The
state of a cone is therefore kept as a product of components that grow together as gates join them. Many parameter rows
are evaluated at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbit.physics.gates import pauli

Gate = tuple[Any, ...]
"""`(name, q, p)` or `(name, qa, qb, p)`: one of rx, ry, rz, rxx, ryy, rzz, its qubits, the index of its parameter."""
Batch = NDArray[np.complex128]
"""States or matrices with the parameter row as leading axis."""

MAX_AMPLITUDES = 2**20
"""Amplitudes of one array; so many rows are evaluated together as keep below it."""


@dataclass(frozen=True)
class Cone:
    """The qubits, ascending, and the gates, in time order, that an observable depends on."""

    sites: tuple[int, ...]
    gates: tuple[Gate, ...]

    @property
    def parameters(self) -> tuple[int, ...]:
        """Indices of the parameters of its gates."""
        return tuple(gate[-1] for gate in self.gates)


def causal_cone(tape: Sequence[Gate], support: Iterable[int]) -> Cone:
    """The cone of an observable on the qubits of `support`, measured after the last gate."""
    sites, backwards = set(support), []
    for gate in reversed(tape):
        if sites.intersection(gate[1:-1]):
            sites.update(gate[1:-1])
            backwards.append(gate)
    return Cone(tuple(sorted(sites)), tuple(reversed(backwards)))


def expectations(
    cone: Cone, word: str, support: Sequence[int], parameters: NDArray[np.float64], *, gradient: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Expectation of a Pauli word in the circuit started from |+> everywhere.

    Args:
        cone: of the word's qubits.
        word: letters X, Y, Z.
        support: qubit of each letter.
        parameters: rows of all parameters of the circuit, shape (R, P).
        gradient: whether to differentiate.

    Returns:
        Values, shape (R,), and their gradients, shape (R, P) and zero outside the cone, or None.
    """
    rows = max(1, MAX_AMPLITUDES >> len(cone.sites))
    values, slopes = [], []
    for first in range(0, len(parameters), rows):
        value, slope = _chunk(cone, word, support, parameters[first : first + rows], gradient)
        values.append(value)
        slopes.append(slope)
    return np.concatenate(values), np.concatenate(slopes) if gradient else None


def _chunk(
    cone: Cone, word: str, support: Sequence[int], parameters: NDArray[np.float64], gradient: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    growth = _Growth(cone.sites, len(parameters))
    for block in _schedule(cone):
        matrix, generators = _block_matrix(block, parameters, gradient)
        growth.act(matrix, block.sites, generators)
    state = growth.gathered(support)
    image = pauli(word) @ state
    values = np.einsum("rab,rab->r", state.conj(), image, optimize=True).real
    slopes = np.zeros(parameters.shape)
    if gradient:
        growth.pull_back(image, slopes)
    return values, slopes


# --- order of work ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    """A two-qubit gate with the one-qubit gates before it, or one-qubit gates that no two-qubit gate follows."""

    sites: tuple[int, ...]
    gates: tuple[Gate, ...]


def _blocks(gates: Sequence[Gate]) -> list[_Block]:
    waiting: dict[int, list[Gate]] = {}
    found = []
    for gate in gates:
        sites = gate[1:-1]
        if len(sites) == 1:
            waiting.setdefault(sites[0], []).append(gate)
        else:
            before = [early for site in sites for early in waiting.pop(site, [])]
            found.append(_Block(sites, (*before, gate)))
    return found + [_Block((site,), tuple(left)) for site, left in waiting.items()]


@cache
def _schedule(cone: Cone) -> tuple[_Block, ...]:
    """The blocks in an order that keeps components small for as long as possible."""
    component = {site: {site} for site in cone.sites}
    left, order = _blocks(cone.gates), []
    while left:
        ready, touched = [], set[int]()
        for block in left:
            if not touched.intersection(block.sites):
                ready.append(block)
            touched.update(block.sites)
        chosen = min(ready, key=lambda block: len(set().union(*(component[site] for site in block.sites))))
        joined = set().union(*(component[site] for site in chosen.sites))
        component.update(dict.fromkeys(joined, joined))
        left.remove(chosen)
        order.append(chosen)
    return tuple(order)


def _block_matrix(
    block: _Block, parameters: NDArray[np.float64], gradient: bool
) -> tuple[Batch, list[tuple[int, Batch]]]:
    """The block's matrices, shape (R, D, D), and Hermitian A_k with `d matrix / d p_k = -i/2 A_k matrix`."""
    words = [_word(gate, block.sites) for gate in block.gates]
    identity = np.eye(len(pauli(words[0])))
    after: Batch = np.broadcast_to(identity, (len(parameters), *identity.shape)).astype(np.complex128)
    generators = []
    for gate, word in zip(reversed(block.gates), reversed(words), strict=True):
        if gradient:
            generators.append((int(gate[-1]), after @ pauli(word) @ after.conj().swapaxes(1, 2)))
        half = parameters[:, gate[-1], None, None] / 2
        after = after @ (np.cos(half) * identity - 1j * np.sin(half) * pauli(word))
    return after, generators


def _word(gate: Gate, sites: tuple[int, ...]) -> str:
    """The gate's Pauli word on the sites of its block."""
    letters = dict(zip(gate[1:-1], gate[0][1:].upper(), strict=True))
    return "".join(letters.get(site, "I") for site in sites)


# --- growing components -----------------------------------------------------------------------------------------


class _Growth:
    """A product state whose components merge when a gate joins them, with a tape for gradients.

    A component is a list of sites and an array of shape (R, 2**n_sites), first site most significant. Each step makes
    a new component of a new number, so that cotangents can be kept by number.
    """

    def __init__(self, sites: Sequence[int], n_rows: int) -> None:
        self._sites = {number: [site] for number, site in enumerate(sites)}
        self._states = {number: np.full((n_rows, 2), 2**-0.5, dtype=np.complex128) for number in self._sites}
        self._count = len(sites)
        self._pullbacks: list[Callable[[dict[int, Batch], NDArray[np.float64]], None]] = []

    def _add(self, sites: list[int], state: Batch, *replaced: int) -> int:
        for number in replaced:
            del self._sites[number], self._states[number]
        self._sites[self._count], self._states[self._count] = sites, state
        self._count += 1
        return self._count - 1

    def _front(self, sites: Sequence[int]) -> int:
        """Merge the components of some sites, bring these sites to the front, return the component's number."""
        numbers = list(dict.fromkeys(self._number(site) for site in sites))
        while len(numbers) > 1:
            numbers = [self._merge(*numbers[:2]), *numbers[2:]]
        number = numbers[0]
        old, state = self._sites[number], self._states[number]
        new = [*sites, *(site for site in old if site not in sites)]
        order = [old.index(site) for site in new]
        moved = _permuted(state, order)
        result = self._add(new, moved, number)
        self._pullbacks.append(
            lambda cotangents, _: cotangents.update({number: _permuted(cotangents.pop(result), np.argsort(order))})
        )
        return result

    def _number(self, site: int) -> int:
        return next(number for number, sites in self._sites.items() if site in sites)

    def _merge(self, a: int, b: int) -> int:
        left, right = self._states[a], self._states[b]
        joined = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
        result = self._add(self._sites[a] + self._sites[b], joined, a, b)

        def pullback(cotangents: dict[int, Batch], _: NDArray[np.float64]) -> None:
            block = cotangents.pop(result).reshape(len(left), left.shape[1], right.shape[1])
            cotangents[a] = (block @ right.conj()[:, :, None])[:, :, 0]
            cotangents[b] = (left.conj()[:, None, :] @ block)[:, 0, :]

        self._pullbacks.append(pullback)
        return result

    def act(self, matrix: Batch, sites: Sequence[int], generators: Sequence[tuple[int, Batch]]) -> None:
        """Act with matrices (R, D, D) of derivative `-i/2 A matrix` by the parameter of each generator (index, A)."""
        number, dimension = self._front(sites), matrix.shape[1]
        before = self._states[number].reshape(len(matrix), dimension, -1)
        after = matrix @ before
        result = self._add(self._sites[number], after.reshape(len(matrix), -1), number)

        def pullback(cotangents: dict[int, Batch], slopes: NDArray[np.float64]) -> None:
            cotangent = cotangents.pop(result).reshape(after.shape)
            transition = after @ cotangent.conj().swapaxes(1, 2)
            for index, generator in generators:
                slopes[:, index] += np.einsum("rab,rba->r", generator, transition).imag
            cotangents[number] = (matrix.conj().swapaxes(1, 2) @ cotangent).reshape(len(matrix), -1)

        self._pullbacks.append(pullback)

    def gathered(self, sites: Sequence[int]) -> Batch:
        """The component of some sites as (R, 2**k, rest)."""
        state = self._states[self._front(sites)]
        return state.reshape(len(state), 2 ** len(sites), -1)

    def pull_back(self, cotangent: Batch, slopes: NDArray[np.float64]) -> None:
        """Add to `slopes` the gradient of a value whose cotangent at the last gathered component is given."""
        cotangents = {self._count - 1: cotangent.reshape(len(cotangent), -1)}
        for pullback in reversed(self._pullbacks):
            pullback(cotangents, slopes)


def _permuted(state: Batch, order: Sequence[int] | NDArray[np.int64]) -> Batch:
    if list(order) == sorted(order):
        return state
    axes = state.reshape(len(state), *(2,) * len(order))
    return np.ascontiguousarray(axes.transpose(0, *(1 + np.asarray(order)))).reshape(len(state), -1)
