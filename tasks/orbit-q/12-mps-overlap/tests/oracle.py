"""Oracle of `mps-overlap`: dense circuit and dense target, with reverse-mode gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import State, Tape, product_state
from orbit.physics.gates import TWO_QUBIT_WORDS, bonds, exponential, hermitian_exponential, pauli
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters


class MpsOverlapOracle(Oracle):
    """For probe sizes; quimb itself expands the target, so that the reading of its tensors is independent too."""

    mutations = (
        "target_conjugated",
        "start_flipped",
        "parity_swapped",
        "last_bond_missing",
        "half_angle",
        "words_mirrored",
        "product_of_exponentials",
        "loss_is_amplitude",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Loss, fidelity, phase of the overlap, and the gradient of the loss."""
        n = config["n_qubits"]
        target: State = np.asarray(config["dmrg_state"].to_dense(), dtype=np.complex128).ravel()
        if mutation == "target_conjugated":
            target = target.conj()
        first = 1 if mutation == "start_flipped" else 0
        tape = Tape(product_state([(first + i) % 2 for i in range(n)]))
        offset = 0
        for layer in range(config["n_layers"]):
            pairs = bonds(n, (layer + (mutation == "parity_swapped")) % 2)
            for number, bond in enumerate(pairs):
                if mutation != "last_bond_missing" or number < len(pairs) - 1:
                    matrix, derivatives = _su4(parameters[offset : offset + 15], mutation)
                    tape.gate(matrix, bond, [(offset + k, part) for k, part in enumerate(derivatives)])
                offset += 15
        amplitude = complex(np.vdot(target, tape.state))
        fidelity = abs(amplitude) ** 2
        pull = amplitude / (2 * abs(amplitude)) if mutation == "loss_is_amplitude" else amplitude
        observables = {
            "loss_history": 1 - fidelity,
            "fidelity_history": fidelity,
            "final_overlap_phase": float(np.angle(amplitude)),
        }
        return Evaluation(observables, tape.gradient(parameters.size, [(tape.position, -pull * target)]))

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """Two histories, the final phase and the parameters."""
        return {
            "loss_history": trajectory.history("loss_history"),
            "fidelity_history": trajectory.history("fidelity_history"),
            "final_overlap_phase": np.asarray(trajectory.final.observables["final_overlap_phase"]),
            **trajectory_parameters(config, trajectory),
        }


def _su4(
    angles: NDArray[np.float64], mutation: str | None
) -> tuple[NDArray[np.complex128], list[NDArray[np.complex128]]]:
    """The gate and its derivative by each of the fifteen angles."""
    scale = 0.5 if mutation == "half_angle" else 1.0
    words = [word[::-1] for word in TWO_QUBIT_WORDS] if mutation == "words_mirrored" else list(TWO_QUBIT_WORDS)
    if mutation == "product_of_exponentials":
        return _product(words, angles)
    matrix, derivatives = hermitian_exponential([pauli(word) for word in words], (scale * angles).tolist())
    return matrix, [scale * part for part in derivatives]


def _product(
    words: list[str], angles: NDArray[np.float64]
) -> tuple[NDArray[np.complex128], list[NDArray[np.complex128]]]:
    """A wrong gate: one exponential per word, one after the other."""
    factors = [exponential(word, angle) for word, angle in zip(words, angles.tolist(), strict=True)]
    after = [np.eye(4, dtype=np.complex128)]
    for factor in reversed(factors):
        after.append(after[-1] @ factor)
    after = after[::-1]  # entry k: all factors from k on
    before = np.eye(4, dtype=np.complex128)
    derivatives = []
    for k, (word, factor) in enumerate(zip(words, factors, strict=True)):
        before = factor @ before
        derivatives.append(after[k + 1] @ (-1j * pauli(word)) @ before)
    return after[0], derivatives


ORACLE = MpsOverlapOracle()
