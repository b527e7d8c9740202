"""Oracle of `postselected-cooling`: gate by gate, event by event on the dense state, with reverse-mode gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import State, Tape, plus_state, product_state
from orbit.physics.gates import bonds, commuting_exponential, pauli, rotation
from orbit.physics.hamiltonians import Hamiltonian, pauli_sum
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters

HISTORIES = (
    "energy_density_history",
    "success_probability_history",
    "mean_log_probability_history",
    "loss_history",
)
FLOOR = 1e-12
"""Added to every probability under the logarithm."""


class PostselectedCoolingOracle(Oracle):
    """Literal gates and one projection with its own renormalization per event; the evaluator fuses both."""

    mutations = (
        "zz_sign",
        "field_sign",
        "start_zero",
        "bond_half_angle",
        "rotation_full_angle",
        "rotations_first",
        "parity_swapped",
        "last_bond_missing",
        "odd_qubits_selected",
        "last_event_missing",
        "probability_detached",
        "normalization_detached",
        "log_probability_summed",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Energy density, probabilities, the loss and its gradient."""
        n, weight = config["n_qubits"], config["log_probability_weight"]
        tape = Tape(product_state([0] * n) if mutation == "start_zero" else plus_state(n))
        probabilities: list[float] = []
        marks: list[tuple[int, State]] = []
        offset = 0
        for step in range(config["n_steps"]):
            offset = _unitaries(tape, parameters, offset, n, step % 2, mutation)
            _select(tape, n, probabilities, marks, mutation)
        n_counted = 1 if mutation == "log_probability_summed" else len(probabilities)
        mean_log = float(np.sum(np.log(np.array(probabilities) + FLOOR))) / n_counted
        image = _hamiltonian(config, mutation).apply(tape.state)
        energy_density = float(np.vdot(tape.state, image).real) / n
        pull = 0.0 if mutation == "probability_detached" else -weight / n_counted
        cotangents = [(position, pull * cotangent) for position, cotangent in marks]
        observables = {
            "energy_density_history": energy_density,
            "success_probability_history": float(np.prod(probabilities)),
            "mean_log_probability_history": mean_log,
            "loss_history": energy_density - weight * mean_log,
        }
        return Evaluation(observables, tape.gradient(parameters.size, [*cotangents, (tape.position, image / n)]))

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """Four histories and the parameters."""
        return {**{key: trajectory.history(key) for key in HISTORIES}, **trajectory_parameters(config, trajectory)}


def _unitaries(
    tape: Tape, parameters: NDArray[np.float64], offset: int, n: int, parity: int, mutation: str | None
) -> int:
    """Exponentials on the bonds, then RX on every qubit; returns the offset of the next step's parameters."""
    pairs = bonds(n, parity)
    behind = offset + 2 * len(pairs)
    if mutation == "rotations_first":
        _rotations(tape, parameters, behind, n, 1.0)
    acting = bonds(n, 1 - parity) if mutation == "parity_swapped" else pairs
    scale = 0.5 if mutation == "bond_half_angle" else 1.0
    for number, bond in enumerate(acting[:-1] if mutation == "last_bond_missing" else acting):
        start = offset + 2 * min(number, len(pairs) - 1)
        matrix, derivatives = commuting_exponential(("XX", "ZZ"), (scale * parameters[start : start + 2]).tolist())
        tape.gate(matrix, bond, [(start + k, scale * derivative) for k, derivative in enumerate(derivatives)])
    if mutation != "rotations_first":
        _rotations(tape, parameters, behind, n, 2.0 if mutation == "rotation_full_angle" else 1.0)
    return behind + n


def _rotations(tape: Tape, parameters: NDArray[np.float64], offset: int, n: int, scale: float) -> None:
    for qubit in range(n):
        matrix = rotation("X", scale * parameters[offset + qubit])
        tape.gate(matrix, (qubit,), [(offset + qubit, -0.5j * scale * pauli("X") @ matrix)])


def _select(
    tape: Tape, n: int, probabilities: list[float], marks: list[tuple[int, State]], mutation: str | None
) -> None:
    """Project the chosen qubits one at a time; notes each probability and the cotangent of its logarithm."""
    kept = np.diag([1, 0]).astype(np.complex128)
    qubits = range(1 if mutation == "odd_qubits_selected" else 0, n, 2)
    for qubit in qubits[:-1] if mutation == "last_event_missing" else qubits:
        tape.gate(kept, (qubit,))
        probability = float(np.vdot(tape.state, tape.state).real)
        marks.append((tape.position, tape.state / (probability + FLOOR)))
        probabilities.append(probability)
        if mutation == "normalization_detached":
            tape.diagonal(np.full(tape.state.shape, probability**-0.5))
        else:
            tape.normalize()


def _hamiltonian(config: Config, mutation: str | None) -> Hamiltonian:
    n = config["n_qubits"]
    coupling = 1.0 if mutation == "zz_sign" else -1.0
    field = config["transverse_field"] * (1.0 if mutation == "field_sign" else -1.0)
    pairs = [(coupling, "ZZ", (i, i + 1)) for i in range(n - 1)]
    return pauli_sum(n, [*pairs, *((field, "X", (i,)) for i in range(n))])


ORACLE = PostselectedCoolingOracle()
