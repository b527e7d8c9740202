"""Oracle of `measurement-feedback`: the full register, measured qubit by qubit, with gradients at fixed outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbit.physics.gates import pauli, rotation_sequence
from orbit.physics.hamiltonians import Hamiltonian, pauli_sum
from orbit.physics.trajectories import CNOT_ACROSS, BatchTape, zero_batch
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters

ZERO, ONE = np.diag([1.0, 0.0]).astype(np.complex128), np.diag([0.0, 1.0]).astype(np.complex128)


class MeasurementFeedbackOracle(Oracle):
    """Data qubit i sits at site 2i and its ancilla at site 2i+1, so that every gate acts on neighbouring sites.

    Outcomes follow from the simulated conditional probabilities; nothing is known here of how ancillas behave.
    """

    mutations = (
        "zz_sign",
        "outcomes_at_zero_angles",
        "feedback_swapped",
        "feedback_detached",
        "feedback_after_ladder",
        "full_angles",
        "ancilla_ladder_missing",
        "data_ladder_missing",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Mean energy over the trajectories and its gradient, and the energy of each trajectory."""
        n, uniforms = config["n_data_qubits"], np.asarray(config["trajectory_uniforms"], dtype=np.float64)
        tape = zero_batch(2 * n, len(uniforms))
        for layer in range(config["n_layers"]):
            _layer(tape, parameters, 6 * n * layer, uniforms[:, layer], mutation)
        energies, cotangent = tape.energies(_hamiltonian(n, config["transverse_field"], mutation))
        gradient = tape.gradient(parameters.size, [(tape.position, cotangent)])
        return Evaluation({"energy_history": float(energies.mean()), "final_trajectory_energies": energies}, gradient)

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The history, the energies after the last update, the parameters."""
        return {
            "energy_history": trajectory.history("energy_history"),
            "final_trajectory_energies": np.asarray(trajectory.final.observables["final_trajectory_energies"]),
            **trajectory_parameters(config, trajectory),
        }


def _layer(
    tape: BatchTape, parameters: NDArray[np.float64], offset: int, uniforms: NDArray[np.float64], mutation: str | None
) -> None:
    """One layer; its parameters start at `offset`, six kinds of n each; `uniforms` has shape (T, n)."""
    n = uniforms.shape[1]
    kinds = {kind: offset + n * k for k, kind in enumerate(("data", "ancilla", "coupling", "fb0", "fb1", "z"))}
    scale = 2.0 if mutation == "full_angles" else 1.0

    def rotate(word: str, kind: str, i: int, sites: tuple[int, ...]) -> None:
        matrix, (derivative,) = rotation_sequence((word,), [scale * float(parameters[kinds[kind] + i])])
        tape.gate(matrix, sites, [(kinds[kind] + i, scale * derivative)])

    for i in range(n):
        rotate("Y", "data", i, (2 * i,))
        rotate("Y", "ancilla", i, (2 * i + 1,))
        rotate("ZZ", "coupling", i, (2 * i, 2 * i + 1))
    for i in range(n - 1 if mutation != "ancilla_ladder_missing" else 0):
        tape.gate(CNOT_ACROSS, (2 * i + 1, 2 * i + 2, 2 * i + 3))
    for i in range(n):
        probability = tape.probability_of_zero(2 * i + 1)
        outcomes = (uniforms[:, i] >= probability).astype(np.int64)
        if mutation == "outcomes_at_zero_angles":
            outcomes = np.zeros_like(outcomes)
        tape.collapse(2 * i + 1, outcomes)

    def ladder() -> None:
        for i in range(n - 1 if mutation != "data_ladder_missing" else 0):
            tape.gate(CNOT_ACROSS, (2 * i, 2 * i + 1, 2 * i + 2))

    if mutation == "feedback_after_ladder":
        ladder()
    for i in range(n):
        _feedback(tape, parameters, (kinds["fb0"] + i, kinds["fb1"] + i), i, scale, mutation)
    if mutation != "feedback_after_ladder":
        ladder()
    for i in range(n):
        rotate("Z", "z", i, (2 * i,))


def _feedback(
    tape: BatchTape,
    parameters: NDArray[np.float64],
    indices: tuple[int, int],
    i: int,
    scale: float,
    mutation: str | None,
) -> None:
    """RZZ by the angle that the ancilla's outcome selects: on the collapsed ancilla a controlled gate is the same."""
    matrix: NDArray[np.complex128] = np.zeros((4, 4), dtype=np.complex128)
    derivatives: list[tuple[int, Any]] = []
    projectors = (ONE, ZERO) if mutation == "feedback_swapped" else (ZERO, ONE)
    for index, projector in zip(indices, projectors, strict=True):
        chosen = np.kron(pauli("I"), projector)
        gate, (derivative,) = rotation_sequence(("ZZ",), [scale * float(parameters[index])])
        matrix = matrix + gate @ chosen
        derivatives.append((index, scale * derivative @ chosen))
    tape.gate(matrix, (2 * i, 2 * i + 1), [] if mutation == "feedback_detached" else derivatives)


def _hamiltonian(n: int, field: float, mutation: str | None) -> Hamiltonian:
    """The Ising chain on the even sites."""
    coupling = 1.0 if mutation == "zz_sign" else -1.0
    pairs = [(coupling, "ZIZ", (2 * i, 2 * i + 1, 2 * i + 2)) for i in range(n - 1)]
    return pauli_sum(2 * n, [*pairs, *((-field, "X", (2 * i,)) for i in range(n))])


ORACLE = MeasurementFeedbackOracle()
