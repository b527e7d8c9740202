"""Oracle of `haldane-chain`: the workflow gate by gate on the dense spin-1 state, with reverse-mode gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import Tape, product_state
from orbit.physics.gates import Matrix, bonds, hermitian_exponential
from orbit.physics.spin_one import BIQUADRATIC, LONGITUDINAL, SY, SZ, TRANSVERSE, bilinear_biquadratic, string_orders
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters


class HaldaneChainOracle(Oracle):
    """Three literal rotations per site, then one exponential per bond, as the statement lists them."""

    mutations = (
        "rotations_reversed",
        "biquadratic_left_out",
        "biquadratic_gate_left_out",
        "anisotropy_sign",
        "start_flipped",
        "odd_bonds_first",
        "longitudinal_gradient_dropped",
        "string_without_middle",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Energy density, its gradient, and the quantities reported at the end."""
        n = config["n_sites"]
        first = 2 if mutation == "start_flipped" else 0
        tape = Tape(product_state([first if site % 2 == 0 else 2 - first for site in range(n)], 3), 3)
        per_layer = 3 * n + 2 * (n - 1)
        for layer in range(config["n_layers"]):
            _layer(tape, parameters, layer * per_layer, config, mutation)
        hamiltonian = bilinear_biquadratic(
            n,
            0.0 if mutation == "biquadratic_left_out" else config["beta"],
            config["single_ion_anisotropy"] * (-1 if mutation == "anisotropy_sign" else 1),
        )
        image = hamiltonian.apply(tape.state)
        density = float(np.vdot(tape.state, image).real) / n
        observables = {
            "energy_density_history": density,
            "final_energy_density": density,
            "final_string_orders": string_orders(tape.state, n, with_middle=mutation != "string_without_middle"),
        }
        return Evaluation(observables, tape.gradient(parameters.size, [(tape.position, image / n)]))

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The history, the final energy density and strings, and the parameters."""
        final = trajectory.final.observables
        return {
            "energy_density_history": trajectory.history("energy_density_history"),
            "final_energy_density": np.array(final["final_energy_density"]),
            "final_string_orders": np.array(final["final_string_orders"]),
            **trajectory_parameters(config, trajectory),
        }


def _layer(tape: Tape, parameters: NDArray[np.float64], offset: int, config: Config, mutation: str | None) -> None:
    n = config["n_sites"]
    for site in range(n):
        turns: list[tuple[int, Matrix]] = [(0, SZ), (1, SY), (2, SZ)]
        for k, generator in reversed(turns) if mutation == "rotations_reversed" else turns:
            index = offset + 3 * site + k
            matrix, (derivative,) = hermitian_exponential([generator], [parameters[index]])
            tape.gate(matrix, (site,), [(index, derivative)])
    offset += 3 * n
    order = bonds(n, 0) + bonds(n, 1)
    index_of = {bond: offset + 2 * number for number, bond in enumerate(order)}
    beta = 0.0 if mutation == "biquadratic_gate_left_out" else config["beta"]
    for bond in bonds(n, 1) + bonds(n, 0) if mutation == "odd_bonds_first" else order:
        index = index_of[bond]
        angles = parameters[index : index + 2].tolist()
        matrix, derivatives = hermitian_exponential([TRANSVERSE, LONGITUDINAL], angles, beta * BIQUADRATIC)
        moves = [(index, derivatives[0]), (index + 1, derivatives[1])]
        tape.gate(matrix, bond, moves[:1] if mutation == "longitudinal_gradient_dropped" else moves)


ORACLE = HaldaneChainOracle()
