"""Exact local expectations in a wide shallow circuit, given gate by gate, by the observables' causal cones.

An observable sees only the gates of its causal cone, and a gate only the qubits that it is entangled with by then. The
state of a cone is therefore kept as a product of components that grow together as gates join them. A qubit that no
later gate and no observable touches matters only through the reduced state of the others: it joins its component's
environment, which is replaced by a purification of no more than the active dimension. Nothing is truncated. Many
parameter rows are evaluated at once.
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
Pullback = Callable[[Batch, NDArray[np.float64]], dict[int, Batch]]
"""From a component's cotangent, and the gradient to add to, the cotangents of the components it was made of."""


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
    growth = _Growth(cone.sites, len(parameters))
    for block, finished in _schedule(cone, frozenset(support)):
        matrix, generators = _block_matrix(block, parameters, gradient)
        growth.act(matrix, block.sites, generators)
        growth.retire(finished)
    state = growth.gathered(support)
    image = pauli(word) @ state
    values = np.einsum("rab,rab->r", state.conj(), image).real
    if not gradient:
        return values, None
    slopes = np.zeros(parameters.shape)
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
def _schedule(cone: Cone, support: frozenset[int]) -> tuple[tuple[_Block, tuple[int, ...]], ...]:
    """The blocks in an order that keeps components small, each with those of its sites that nothing acts on later."""
    component = {site: {site} for site in cone.sites}  # active sites only
    left, order = _blocks(cone.gates), []
    while left:
        ready, touched = [], set[int]()
        for block in left:
            if not touched.intersection(block.sites):
                ready.append(block)
            touched.update(block.sites)
        chosen = min(ready, key=lambda block: len(set().union(*(component[site] for site in block.sites))))
        left.remove(chosen)
        needed = support.union(*(block.sites for block in left))
        finished = tuple(site for site in chosen.sites if site not in needed)
        joined = set().union(*(component[site] for site in chosen.sites)).difference(finished)
        component.update(dict.fromkeys(joined, joined))
        order.append((chosen, finished))
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

    A component is a list of active sites and an array of shape (R, 2**n_sites, E), first site most significant, E the
    dimension of its environment. Each step makes a new component of a new number, so that cotangents can be kept by
    number.
    """

    def __init__(self, sites: Sequence[int], n_rows: int) -> None:
        self._sites = {number: [site] for number, site in enumerate(sites)}
        self._states = {number: np.full((n_rows, 2, 1), 2**-0.5, dtype=np.complex128) for number in self._sites}
        self._count = len(sites)
        self._pullbacks: list[tuple[int, Pullback]] = []

    def _add(self, sites: list[int], state: Batch, replaced: Sequence[int], pullback: Pullback) -> int:
        """Put a new component in place of others; `pullback` tells theirs from its cotangent."""
        for number in replaced:
            del self._sites[number], self._states[number]
        number = self._count
        self._sites[number], self._states[number] = sites, state
        self._pullbacks.append((number, pullback))
        self._count += 1
        return number

    def _front(self, sites: Sequence[int]) -> int:
        """Merge the components of some sites, bring these sites to the front, return the component's number."""
        numbers = list(dict.fromkeys(self._number(site) for site in sites))
        while len(numbers) > 1:
            numbers = [self._merge(*numbers[:2]), *numbers[2:]]
        number = numbers[0]
        old = self._sites[number]
        new = [*sites, *(site for site in old if site not in sites)]
        if new == old:
            return number
        order = [old.index(site) for site in new]
        back = np.argsort(order).tolist()
        moved = _permuted(self._states[number], order)
        return self._add(new, moved, [number], lambda cotangent, _: {number: _permuted(cotangent, back)})

    def _number(self, site: int) -> int:
        return next(number for number, sites in self._sites.items() if site in sites)

    def _merge(self, a: int, b: int) -> int:
        left, right = self._states[a], self._states[b]
        shape = (len(left), left.shape[1], right.shape[1], left.shape[2], right.shape[2])
        joined = np.einsum("rae,rbf->rabef", left, right).reshape(len(left), shape[1] * shape[2], -1)

        def pullback(cotangent: Batch, _: NDArray[np.float64]) -> dict[int, Batch]:
            block = cotangent.reshape(shape)
            return {
                a: np.einsum("rabef,rbf->rae", block, right.conj(), optimize=True),
                b: np.einsum("rabef,rae->rbf", block, left.conj(), optimize=True),
            }

        return self._add(self._sites[a] + self._sites[b], joined, [a, b], pullback)

    def act(self, matrix: Batch, sites: Sequence[int], generators: Sequence[tuple[int, Batch]]) -> None:
        """Act with matrices (R, D, D) of derivative `-i/2 A matrix` by the parameter of each generator (index, A)."""
        number, (rows, dimension, _) = self._front(sites), matrix.shape
        shape = self._states[number].shape
        after = matrix @ self._states[number].reshape(rows, dimension, -1)

        def pullback(cotangent: Batch, slopes: NDArray[np.float64]) -> dict[int, Batch]:
            folded = cotangent.reshape(after.shape)
            transition = after @ folded.conj().swapaxes(1, 2)
            for index, generator in generators:
                slopes[:, index] += np.einsum("rab,rba->r", generator, transition).imag
            return {number: (matrix.conj().swapaxes(1, 2) @ folded).reshape(shape)}

        self._add(self._sites[number], after.reshape(shape), [number], pullback)

    def retire(self, sites: Sequence[int]) -> None:
        """Move sites of one component that nothing acts on any more to its environment, and make that small.

        Any value f depends on a component through `rho = psi psi^dagger` alone, and its cotangent is `(df/drho) psi`.
        With `psi = root Q` and orthonormal rows of Q it is the root's cotangent times Q.
        """
        if not sites:
            return
        number = self._number(sites[0])
        number = self._front([*(site for site in self._sites[number] if site not in sites), *sites])
        shape = self._states[number].shape
        active = self._sites[number][: -len(sites)]
        state = self._states[number].reshape(shape[0], 2 ** len(active), -1)
        if state.shape[2] <= state.shape[1]:
            self._add(active, state, [number], lambda cotangent, _: {number: cotangent.reshape(shape)})
            return
        columns, triangle = np.linalg.qr(state.swapaxes(1, 2))
        rows = columns.swapaxes(1, 2)
        root = np.ascontiguousarray(triangle.swapaxes(1, 2))
        self._add(active, root, [number], lambda cotangent, _: {number: (cotangent @ rows).reshape(shape)})

    def gathered(self, sites: Sequence[int]) -> Batch:
        """The component of some sites as (R, 2**k, rest)."""
        state = self._states[self._front(sites)]
        return state.reshape(len(state), 2 ** len(sites), -1)

    def pull_back(self, cotangent: Batch, slopes: NDArray[np.float64]) -> None:
        """Add to `slopes` the gradient of a value whose cotangent at the last component is given."""
        last = self._count - 1
        cotangents = {last: cotangent.reshape(self._states[last].shape)}
        for number, pullback in reversed(self._pullbacks):
            cotangents.update(pullback(cotangents.pop(number), slopes))


def _permuted(state: Batch, order: Sequence[int]) -> Batch:
    """Reorder the sites of a component."""
    axes = state.reshape(len(state), *(2,) * len(order), -1)
    moved = axes.transpose(0, *(1 + place for place in order), 1 + len(order))
    return np.ascontiguousarray(moved).reshape(state.shape)
