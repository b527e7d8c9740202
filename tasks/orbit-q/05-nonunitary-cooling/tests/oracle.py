"""Oracle of `nonunitary-cooling`: the filters one by one on the dense state, with reverse-mode gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import Tape, plus_state, product_state
from orbit.physics.gates import bonds, pauli
from orbit.physics.hamiltonians import Hamiltonian, pauli_sum
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters


class NonunitaryCoolingOracle(Oracle):
    """Every gate separately, the state rescaled after every layer and the rescaling differentiated."""

    mutations = (
        "zz_sign",
        "x_sign",
        "last_bond_missing",
        "parity_swapped",
        "bonds_of_both_parities",
        "half_strength",
        "filters_inverted",
        "zz_before_x",
        "start_in_zero",
        "norm_detached",
        "energy_not_divided_by_n",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Energy per qubit, the filter strengths in their two tables, and the gradient."""
        n = config["n_qubits"]
        tape = Tape(product_state([0] * n) if mutation == "start_in_zero" else plus_state(n))
        for layer in range(config["n_layers"]):
            _layer(tape, n, layer, parameters, mutation)
            if mutation == "norm_detached":
                tape.diagonal(np.full(2**n, 1 / np.linalg.norm(tape.state)))
            else:
                tape.normalize()
        divisor = 1 if mutation == "energy_not_divided_by_n" else n
        image = _hamiltonian(config, mutation).apply(tape.state)
        energy = float(np.vdot(tape.state, image).real) / divisor
        gradient = tape.gradient(parameters.size, [(tape.position, image / divisor)])
        tables = {"final_a": parameters[0::2].reshape(-1, 2), "final_b": parameters[1::2].reshape(-1, 2)}
        return Evaluation({"energy_density_history": energy, **tables}, gradient)

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The history, the final strengths as tables and the parameters."""
        return {
            "energy_density_history": trajectory.history("energy_density_history"),
            "final_a": trajectory.final.observables["final_a"],
            "final_b": trajectory.final.observables["final_b"],
            **trajectory_parameters(config, trajectory),
        }


def _layer(tape: Tape, n: int, layer: int, parameters: NDArray[np.float64], mutation: str | None) -> None:
    """`exp(a X)` on every qubit and `exp(b ZZ)` on the bonds of the layer's parity."""
    parity = (layer + (mutation == "parity_swapped")) % 2
    pairs = bonds(n, parity)
    if mutation == "last_bond_missing":
        pairs = [pair for pair in pairs if pair[1] != n - 1]
    if mutation == "bonds_of_both_parities":
        pairs = [(left, left + 1) for left in range(n - 1)]
    gates = [("X", 2 * layer, (q,)) for q in range(n)]
    gates_zz: list[tuple[str, int, tuple[int, ...]]] = [("ZZ", 2 * layer + 1, pair) for pair in pairs]
    scale = {"half_strength": 0.5, "filters_inverted": -1.0}.get(mutation or "", 1.0)
    for word, index, sites in [*gates_zz, *gates] if mutation == "zz_before_x" else [*gates, *gates_zz]:
        strength = scale * parameters[index]
        matrix = np.cosh(strength) * pauli("I" * len(word)) + np.sinh(strength) * pauli(word)
        tape.gate(matrix, sites, [(index, scale * pauli(word) @ matrix)])


def _hamiltonian(config: Config, mutation: str | None) -> Hamiltonian:
    n = config["n_qubits"]
    zz = 1.0 if mutation == "zz_sign" else -1.0
    x = config["transverse_field"] * (1 if mutation == "x_sign" else -1)
    return pauli_sum(n, [*((zz, "ZZ", (q, q + 1)) for q in range(n - 1)), *((x, "X", (q,)) for q in range(n))])


ORACLE = NonunitaryCoolingOracle()
