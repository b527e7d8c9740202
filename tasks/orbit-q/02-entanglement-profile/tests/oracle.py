"""Oracle of `entanglement-profile`: the workflow gate by gate on the dense state, with reverse-mode gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import Tape, product_state, renyi_2_entropy
from orbit.physics.gates import bonds, commuting_exponential, pauli, rotation
from orbit.physics.hamiltonians import Hamiltonian, pauli_sum, xxz_staggered
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters

HISTORIES = ("energy_density_history", "loss_history", "entropy_mse_history", "entropy_history")


class EntanglementProfileOracle(Oracle):
    """Literal gates in the order of the statement; the evaluator fuses them instead."""

    mutations = (
        "zz_sign",
        "field_unstaggered",
        "start_flipped",
        "parity_swapped",
        "last_bond_missing",
        "bond_half_angle",
        "rotations_swapped",
        "entropy_detached",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Energy density, the three entropies, their mean squared error, the loss and its gradient."""
        n = config["n_qubits"]
        first = 1 if mutation == "start_flipped" else 0
        tape = Tape(product_state([(first + i) % 2 for i in range(n)]))
        entropies, marks = [], []
        offset = 0
        for sublayer in range(config["n_layers"]):
            offset = _rotations(tape, parameters, offset, n, mutation)
            offset = _bonds(tape, parameters, offset, bonds(n, _parity(sublayer, mutation)), mutation)
            if sublayer % 2:
                entropy, cotangent = renyi_2_entropy(tape.state, config["subsystem_size"])
                entropies.append(entropy)
                marks.append((tape.position, cotangent))
        misses = np.array(entropies) - np.asarray(config["target_entropies"], dtype=np.float64)
        mse = float(np.mean(misses**2))
        weight = config["entropy_weight"]
        image = _hamiltonian(config, mutation).apply(tape.state)
        energy_density = float(np.vdot(tape.state, image).real) / n
        pulls = np.zeros_like(misses) if mutation == "entropy_detached" else 2 * weight * misses / len(misses)
        cotangents = [(position, pull * part) for pull, (position, part) in zip(pulls, marks, strict=True)]
        observables = {
            "energy_density_history": energy_density,
            "loss_history": energy_density + weight * mse,
            "entropy_mse_history": mse,
            "entropy_history": np.array(entropies),
        }
        return Evaluation(observables, tape.gradient(parameters.size, [*cotangents, (tape.position, image / n)]))

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """Four histories and the parameters."""
        return {**{key: trajectory.history(key) for key in HISTORIES}, **trajectory_parameters(config, trajectory)}


def _rotations(tape: Tape, parameters: NDArray[np.float64], offset: int, n: int, mutation: str | None) -> int:
    """RY then RZ on every qubit, interleaved parameters from `offset`; returns the offset behind them."""
    for qubit in range(n):
        turns = [(offset + 2 * qubit, "Y"), (offset + 2 * qubit + 1, "Z")]
        for index, axis in reversed(turns) if mutation == "rotations_swapped" else turns:
            matrix = rotation(axis, parameters[index])
            tape.gate(matrix, (qubit,), [(index, -0.5j * pauli(axis) @ matrix)])
    return offset + 2 * n


def _bonds(
    tape: Tape, parameters: NDArray[np.float64], offset: int, pairs: list[tuple[int, int]], mutation: str | None
) -> int:
    """The exponential of each bond, three parameters each from `offset`; returns the offset behind them."""
    scale = 0.5 if mutation == "bond_half_angle" else 1.0
    for bond in pairs[:-1] if mutation == "last_bond_missing" else pairs:
        start = offset + 3 * pairs.index(bond)
        matrix, derivatives = commuting_exponential(
            ("XX", "YY", "ZZ"), (scale * parameters[start : start + 3]).tolist()
        )
        tape.gate(matrix, bond, [(start + k, scale * derivative) for k, derivative in enumerate(derivatives)])
    return offset + 3 * len(pairs)


def _parity(sublayer: int, mutation: str | None) -> int:
    return (sublayer + (mutation == "parity_swapped")) % 2


def _hamiltonian(config: Config, mutation: str | None) -> Hamiltonian:
    n, zz, field = config["n_qubits"], config["zz_anisotropy"], config["staggered_field"]
    if mutation == "field_unstaggered":
        uniform = pauli_sum(n, [(field, "Z", (i,)) for i in range(n)])
        return Hamiltonian(n, xxz_staggered(n, 1.0, zz, 0.0).terms + uniform.terms)
    return xxz_staggered(n, 1.0, -zz if mutation == "zz_sign" else zz, field)


ORACLE = EntanglementProfileOracle()
