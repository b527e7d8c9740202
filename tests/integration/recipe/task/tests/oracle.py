"""Oracle of the small chain: gate by gate on the dense state, with reverse-mode gradients."""

from __future__ import annotations

import numpy as np

from orbit.physics.dense import Tape, product_state
from orbit.physics.gates import pauli, rotation
from orbit.physics.hamiltonians import transverse_field_ising
from orbit.verification.evaluator import Evaluation, Oracle, trajectory_parameters


class SmallChainOracle(Oracle):
    mutations = ("field_sign", "last_bond_missing", "half_angle")

    def evaluate(self, config, parameters, mutation=None):
        n = config["n_qubits"]
        per_layer = 2 * n - 1
        scale = 0.5 if mutation == "half_angle" else 1.0
        tape = Tape(product_state([0] * n))
        gates = [("Y", (q,)) for q in range(n)] + [("ZZ", (q, q + 1)) for q in range(n - 1)]
        for layer in range(config["n_layers"]):
            for k, (word, sites) in enumerate(gates):
                if mutation == "last_bond_missing" and sites == (n - 2, n - 1):
                    continue
                index = layer * per_layer + k
                matrix = rotation(word, scale * parameters[index])
                tape.gate(matrix, sites, [(index, -0.5j * scale * pauli(word) @ matrix)])
        field = -config["field"] if mutation == "field_sign" else config["field"]
        image = transverse_field_ising(n, field).apply(tape.state)
        density = float(np.vdot(tape.state, image).real) / n
        slope = tape.gradient(parameters.size, [(tape.position, image / n)])
        return Evaluation({"energy_density_history": density}, slope)

    def outputs(self, config, trajectory):
        history = trajectory.history("energy_density_history")
        return {"energy_density_history": history, **trajectory_parameters(config, trajectory)}


ORACLE = SmallChainOracle()
