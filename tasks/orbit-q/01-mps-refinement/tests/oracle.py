"""Oracle of `mps-refinement`: the matrix-product state as a dense vector, the circuit gate by gate on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import Tape
from orbit.physics.gates import bonds, commuting_exponential, pauli, rotation
from orbit.physics.hamiltonians import Hamiltonian, pauli_sum
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters

CAP = 8
"""Of the wrong variant that truncates; probes have exact bond dimensions above it."""


class MpsRefinementOracle(Oracle):
    """Literal gates; the evaluator works by causal cones instead."""

    mutations = (
        "field_sign",
        "input_left_out",
        "rotations_reversed",
        "last_bond_missing",
        "bond_half_angle",
        "bond_gradient_dropped",
        "bond_capped",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Energy and its gradient."""
        n = config["n_qubits"]
        state = np.asarray(config["dmrg_state"].to_dense(), dtype=np.complex128).reshape(-1)
        if mutation == "input_left_out":
            state = np.full(2**n, 2 ** (-n / 2), dtype=np.complex128)
        tape = Tape(state)
        offset = 0
        for layer in range(config["n_layers"]):
            for qubit in range(n):
                turns = [(offset + 3 * qubit + k, axis) for k, axis in enumerate("ZYZ")]
                for index, axis in reversed(turns) if mutation == "rotations_reversed" else turns:
                    matrix = rotation(axis, parameters[index])
                    tape.gate(matrix, (qubit,), [(index, -0.5j * pauli(axis) @ matrix)])
            offset += 3 * n
            pairs = bonds(n, layer % 2)
            for number, bond in enumerate(pairs[:-1] if mutation == "last_bond_missing" else pairs):
                start = offset + 3 * number
                scale = 0.5 if mutation == "bond_half_angle" else 1.0
                angles = (scale * parameters[start : start + 3]).tolist()
                matrix, derivatives = commuting_exponential(("XX", "YY", "ZZ"), angles)
                moves = [(start + k, scale * derivative) for k, derivative in enumerate(derivatives)]
                tape.gate(matrix, bond, moves[:2] if mutation == "bond_gradient_dropped" else moves)
            offset += 3 * len(pairs)
            if mutation == "bond_capped":
                _cap(tape, n, CAP)
        image = _hamiltonian(config, mutation).apply(tape.state)
        energy = float(np.vdot(tape.state, image).real)
        return Evaluation({"energy_history": energy}, tape.gradient(parameters.size, [(tape.position, image)]))

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The history and the parameters."""
        return {"energy_history": trajectory.history("energy_history"), **trajectory_parameters(config, trajectory)}


def _cap(tape: Tape, n: int, largest: int) -> None:
    """Truncate every cut in turn and rescale: what a bond dimension that binds does to the state."""
    for cut in range(1, n):
        left, values, _ = np.linalg.svd(tape.state.reshape(2**cut, -1), full_matrices=False)
        if len(values) > largest:
            tape.project(left[:, :largest], cut)
    tape.normalize()


def _hamiltonian(config: Config, mutation: str | None) -> Hamiltonian:
    n, field = config["n_qubits"], config["field"]
    sign = 1.0 if mutation == "field_sign" else -1.0
    terms = [(-1.0, "ZZ", (i, i + 1)) for i in range(n - 1)]
    return pauli_sum(n, [*terms, *((sign * field, "X", (i,)) for i in range(n))])


ORACLE = MpsRefinementOracle()
