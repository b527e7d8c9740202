"""Matrix-product states in NumPy: exact brickwork evolution, overlaps, environments for exact gradients, DMRG states.

A state is a list of complex128 tensors of shape (left, physical, right), site 0 first, outer bonds of size 1. Nothing
but `compress` truncates: a two-site gate is split into its operator Schmidt terms, so a bond grows by at most d**2 per
gate.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orbit.paths import cache_dir
from orbit.records import write_bytes

if TYPE_CHECKING:
    from quimb.tensor import MatrixProductState

Tensor = NDArray[np.complex128]
Mps = list[Tensor]
Layer = Mapping[tuple[int, int], NDArray[np.complex128]]
"""Matrices (d**2, d**2) on disjoint bonds (i, i+1), the left site being the more significant."""

CACHE_VERSION = 1
DMRG_CUTOFF = 1e-8


# --- states -----------------------------------------------------------------------------------------------------


def product_mps(digits: Sequence[int], local_dimension: int = 2) -> Mps:
    """The basis state |digits[0] digits[1] ...>."""
    basis = np.eye(local_dimension, dtype=np.complex128)
    return [basis[digit].reshape(1, local_dimension, 1) for digit in digits]


def random_mps(n_sites: int, max_bond: int, rng: np.random.Generator, *, min_bond: int = 2) -> Mps:
    """A normalized complex state with uneven bonds and no canonical form.

    Every inner bond is drawn between `min_bond` and `max_bond`, though never above what the sites on either side allow.
    """
    bonds = [1]
    for cut in range(1, n_sites):
        largest = min(max_bond, 2 ** min(cut, n_sites - cut))
        bonds.append(int(rng.integers(min(min_bond, largest), largest + 1)))
    bonds.append(1)
    tensors: Mps = []
    for left, right in pairwise(bonds):
        entries = rng.standard_normal((2, left, 2, right)) / np.sqrt(4 * left)
        tensors.append(entries[0] + 1j * entries[1])
    norm = np.sqrt(overlap(tensors, tensors).real)
    # Spread over the sites, unevenly, so that no single tensor carries the normalization.
    weights = rng.dirichlet(np.ones(n_sites))
    return [tensor / norm**weight for tensor, weight in zip(tensors, weights, strict=True)]


def dense_state(tensors: Mps) -> Tensor:
    """The amplitudes, shape (d**n,), site 0 most significant."""
    state = np.ones((1, 1), dtype=np.complex128)
    for tensor in tensors:
        state = np.tensordot(state, tensor, axes=1).reshape(-1, tensor.shape[2])
    return state.reshape(-1)


def from_quimb(state: MatrixProductState) -> Mps:
    """Tensors of an open-boundary quimb state, whatever the order of its axes; read by index name."""
    tensors: Mps = []
    for site in range(state.L):
        array = np.asarray(state[site].transpose(*_index_names(state, site)).data, dtype=np.complex128)
        shape = (1,) * (site == 0) + array.shape + (1,) * (site == state.L - 1)
        scale = 10.0 ** float(state.exponent) if site == 0 else 1.0
        tensors.append(np.asarray(array.reshape(shape) * scale, dtype=np.complex128))
    return tensors


def to_quimb(tensors: Mps) -> MatrixProductState:
    """A quimb state with physical indices k0, k1, ... and the axis order that two-site DMRG leaves.

    That is (left, physical, right) with the outer bonds left out; quimb's constructor would put the physical axis last.
    """
    from quimb.tensor import MatrixProductState

    state = MatrixProductState([tensors[0][0], *tensors[1:-1], tensors[-1][:, :, 0]], shape="lpr")
    for site in range(state.L):
        state[site].transpose_(*_index_names(state, site))
    return state


def _index_names(state: MatrixProductState, site: int) -> list[str]:
    """Left bond, physical index and right bond of a site, as far as they exist."""
    tensor, names = state[site], [state.site_ind(site)]
    if site > 0:
        names.insert(0, next(iter(tensor.bonds(state[site - 1]))))
    if site < state.L - 1:
        names.append(next(iter(tensor.bonds(state[site + 1]))))
    return names


# --- evolution and overlaps -------------------------------------------------------------------------------------


def apply_layer(tensors: Mps, layer: Layer) -> Mps:
    """Act with matrices, unitary or not, on disjoint bonds, exactly."""
    result = list(tensors)
    for (left, right), matrix in layer.items():
        first, second = _operator_schmidt(matrix)
        a, b = tensors[left], tensors[right]
        grown_left = np.einsum("kps,lsr->lprk", first, a).reshape(a.shape[0], a.shape[1], -1)
        grown_right = np.einsum("kps,lsr->lkpr", second, b).reshape(-1, b.shape[1], b.shape[2])
        result[left], result[right] = grown_left, grown_right
    return result


def compress(tensors: Mps, max_bond: int) -> Mps:
    """The state with at most `max_bond` largest Schmidt values kept at every cut, from the left, and norm one."""
    result = list(tensors)
    for site in reversed(range(1, len(result))):
        tensor = result[site]
        basis, rest = np.linalg.qr(tensor.reshape(len(tensor), -1).conj().T)
        result[site] = basis.conj().T.reshape(-1, *tensor.shape[1:])
        result[site - 1] = np.tensordot(result[site - 1], rest.conj().T, axes=1)
    for site in range(len(result) - 1):
        tensor = result[site]
        left, values, right = np.linalg.svd(tensor.reshape(-1, tensor.shape[2]), full_matrices=False)
        kept = slice(min(max_bond, len(values)))
        result[site] = left[:, kept].reshape(*tensor.shape[:2], -1)
        result[site + 1] = np.tensordot(values[kept, None] * right[kept], result[site + 1], axes=1)
    result[-1] = result[-1] / np.linalg.norm(result[-1])  # all other tensors are isometries
    return result


def _operator_schmidt(matrix: NDArray[np.complex128]) -> tuple[Tensor, Tensor]:
    """`matrix = sum_k first[k] (x) second[k]`, shapes (rank, d, d); terms that are only rounding are left out."""
    d = round(np.sqrt(len(matrix)))
    regrouped = matrix.reshape(d, d, d, d).transpose(0, 2, 1, 3).reshape(d * d, d * d)
    left, weights, right = np.linalg.svd(regrouped)
    kept = weights > 1e-15 * weights[0]
    roots = np.sqrt(weights[kept])
    first = (left[:, kept] * roots).T.reshape(-1, d, d)
    second = (right[kept] * roots[:, None]).reshape(-1, d, d)
    return first, second


def adjoint(layer: Layer) -> Layer:
    """The layer that undoes a layer of unitaries."""
    return {bond: matrix.conj().T for bond, matrix in layer.items()}


def overlap(bra: Mps, ket: Mps) -> complex:
    """`<bra|ket>`."""
    return complex(_left_environments(bra, ket)[-1][0, 0])


def _left_environments(bra: Mps, ket: Mps) -> list[Tensor]:
    """Entry i contracts the sites left of i, shape (bond of bra, bond of ket)."""
    environments = [np.ones((1, 1), dtype=np.complex128)]
    for upper, lower in zip(bra, ket, strict=True):
        moved = np.tensordot(environments[-1], lower, axes=(1, 0))
        environments.append(np.tensordot(upper.conj(), moved, axes=([0, 1], [0, 1])))
    return environments


def _right_environments(bra: Mps, ket: Mps) -> list[Tensor]:
    """Entry i contracts the sites right of and including i, shape (bond of bra, bond of ket)."""
    environments = [np.ones((1, 1), dtype=np.complex128)]
    for upper, lower in zip(reversed(bra), reversed(ket), strict=True):
        moved = np.tensordot(lower, environments[-1], axes=(2, 1))
        environments.append(np.tensordot(upper.conj(), moved, axes=([1, 2], [1, 2])))
    return environments[::-1]


def circuit_transitions(
    bra: Mps, ket: Mps, layers: Sequence[Layer]
) -> tuple[complex, list[dict[tuple[int, int], NDArray[np.complex128]]]]:
    """Overlap of `bra` with the circuit's output on `ket`, and its derivative by every gate.

    Returns:
        `<bra|layers[-1] ... layers[0]|ket>` and, per layer and bond, the matrix T of shape (d**2, d**2) with
        `trace(A T)` the overlap with this gate replaced by A and all others in place.
    """
    kets = [ket]
    for layer in layers:
        kets.append(apply_layer(kets[-1], layer))
    transitions: list[dict[tuple[int, int], NDArray[np.complex128]]] = [{} for _ in layers]
    for number in reversed(range(len(layers))):
        before, after = kets[number], kets[number + 1]
        lefts, rights = _left_environments(bra, after), _right_environments(bra, after)
        for left, right in layers[number]:
            # The bonds that enter the pair from outside are those of `before`: gates of one layer are disjoint.
            lower = np.tensordot(lefts[left], np.tensordot(before[left], before[right], axes=1), axes=1)
            lower = np.tensordot(lower, rights[right + 1], axes=(3, 1))
            upper = np.tensordot(bra[left], bra[right], axes=1).conj()
            pair = lower.shape[1] * lower.shape[2]
            transitions[number][left, right] = np.tensordot(lower, upper, axes=([0, 3], [0, 3])).reshape(pair, pair)
        bra = apply_layer(bra, adjoint(layers[number]))
    return overlap(bra, ket), transitions


# --- DMRG -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DmrgProblem:
    """A spin-1/2 chain and how far to go.

    Attributes:
        couplings: coefficient of nearest-neighbour XX, YY and ZZ, in Pauli matrices.
        fields: coefficients of X and of Z on every site, in Pauli matrices.
        chi: largest bond dimension.
        sweeps: largest number of two-site sweeps.
        tolerance: relative energy change at which sweeping ends early.
        seed: of the random start.
    """

    couplings: tuple[float, float, float]
    fields: tuple[tuple[float, float], ...]
    chi: int
    sweeps: int
    tolerance: float
    seed: int

    @property
    def digest(self) -> str:
        """Names the result in the cache."""
        text = json.dumps([CACHE_VERSION, DMRG_CUTOFF, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def dmrg_state(problem: DmrgProblem) -> tuple[Mps, float]:
    """A normalized approximate ground state by two-site DMRG from a seeded start, and its energy; cached."""
    path = cache_dir() / "dmrg" / f"{problem.digest}.npz"
    if not path.is_file():
        tensors, energy = _run_dmrg(problem)
        stream = io.BytesIO()
        arrays: dict[str, Any] = {f"site{number}": tensor for number, tensor in enumerate(tensors)}
        np.savez(stream, energy=energy, **arrays)
        write_bytes(path, stream.getvalue())
    with np.load(path, allow_pickle=False) as stored:
        return [stored[f"site{number}"] for number in range(len(problem.fields))], float(stored["energy"])


def _run_dmrg(problem: DmrgProblem) -> tuple[Mps, float]:
    from quimb.tensor import DMRG2, SpinHam1D, tensor_network_align

    n = len(problem.fields)
    spins = SpinHam1D(S=1 / 2)
    for coefficient, axis in zip(problem.couplings, "XYZ", strict=True):
        if coefficient:
            spins.add_term(4 * coefficient, axis, axis)  # Pauli matrices are twice the spin operators
    for site, values in enumerate(problem.fields):
        for coefficient, axis in zip(values, "XZ", strict=True):
            if coefficient:
                spins[site] += 2 * coefficient, axis
    hamiltonian = spins.build_mpo(n)
    start = to_quimb(random_mps(n, problem.chi, np.random.default_rng(problem.seed)))
    dmrg = DMRG2(hamiltonian, bond_dims=problem.chi, cutoffs=DMRG_CUTOFF, p0=start)
    dmrg.solve(tol=problem.tolerance, max_sweeps=problem.sweeps, verbosity=0)
    state = dmrg.state
    state.normalize()
    # Not `expec_TN_1D`, whose search for a contraction order starts a process pool that keeps a worker from ending.
    sandwich = functools.reduce(operator.or_, tensor_network_align(state.H, hamiltonian, state))
    return from_quimb(state), float(np.real(sandwich.contract(all, optimize="greedy")))
