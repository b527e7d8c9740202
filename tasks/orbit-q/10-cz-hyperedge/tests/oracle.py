"""Oracle of `cz-hyperedge`: the workflow gate by gate on the dense state, with reverse-mode gradients."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import Tape, product_state
from orbit.physics.gates import rotation_sequence
from orbit.physics.hamiltonians import Hamiltonian, pauli_sum
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters


class CzHyperedgeOracle(Oracle):
    """The hyperedge is a diagonal of signs over all 2**n amplitudes."""

    mutations = (
        "zz_sign",
        "x_sign",
        "last_bond_missing",
        "start_flipped",
        "hyperedge_missing",
        "hyperedge_as_pairs",
        "hyperedge_first",
        "hyperedge_once",
        "rotations_swapped",
        "full_angle",
        "first_layer_frozen",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Energy per qubit and its gradient, shaped (n_layers, n_qubits, 3)."""
        n = config["n_qubits"]
        flip = mutation == "start_flipped"
        tape = Tape(product_state([int((q in config["initial_ones"]) != flip) for q in range(n)]))
        hyperedge = _hyperedge(config, mutation)
        for layer, angles in enumerate(parameters):
            skipped = mutation == "hyperedge_once" and layer > 0
            if mutation == "hyperedge_first":
                tape.diagonal(hyperedge)
            _rotations(tape, angles, 3 * n * layer, mutation)
            if mutation != "hyperedge_first" and not skipped:
                tape.diagonal(hyperedge)
        image = _hamiltonian(config, mutation).apply(tape.state)
        energy_density = float(np.vdot(tape.state, image).real) / n
        gradient = tape.gradient(parameters.size, [(tape.position, image / n)]).reshape(parameters.shape)
        if mutation == "first_layer_frozen":
            gradient[0] = 0
        return Evaluation({"energy_history": energy_density}, gradient)

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The history and the parameters."""
        return {
            "energy_history": trajectory.history("energy_history"),
            **trajectory_parameters(config, trajectory),
        }


def _rotations(tape: Tape, angles: NDArray[np.float64], offset: int, mutation: str | None) -> None:
    """RX, RZ, RY on every qubit; `offset` is the flat index of the layer's first angle."""
    scale = 2.0 if mutation == "full_angle" else 1.0
    order = (0, 2, 1) if mutation == "rotations_swapped" else (0, 1, 2)
    for qubit, triple in enumerate(angles):
        matrix, derivatives = rotation_sequence(["XZY"[k] for k in order], [scale * triple[k] for k in order])
        first = offset + 3 * qubit
        tape.gate(matrix, (qubit,), [(first + k, scale * part) for k, part in zip(order, derivatives, strict=True)])


def _hyperedge(config: Config, mutation: str | None) -> NDArray[np.float64]:
    """Diagonal of the controlled-Z on all selected qubits, shape (2**n,)."""
    n, selected = config["n_qubits"], sorted(config["selected_qubits"])
    if mutation == "hyperedge_missing":
        return np.ones(2**n)
    if mutation == "hyperedge_as_pairs":
        return np.prod([_controlled_z(n, pair) for pair in pairwise(selected)], axis=0)
    return _controlled_z(n, selected)


def _controlled_z(n_qubits: int, qubits: list[int] | tuple[int, ...]) -> NDArray[np.float64]:
    mask = sum(1 << (n_qubits - 1 - q) for q in qubits)
    return np.where(np.arange(2**n_qubits) & mask == mask, -1.0, 1.0)


def _hamiltonian(config: Config, mutation: str | None) -> Hamiltonian:
    n = config["n_qubits"]
    zz = -config["zz_strength"] * (-1 if mutation == "zz_sign" else 1)
    x = -config["x_strength"] * (-1 if mutation == "x_sign" else 1)
    bonds = [(zz, "ZZ", (q, q + 1)) for q in range(n - (2 if mutation == "last_bond_missing" else 1))]
    return pauli_sum(n, [*bonds, *((x, "X", (q,)) for q in range(n))])


ORACLE = CzHyperedgeOracle()
