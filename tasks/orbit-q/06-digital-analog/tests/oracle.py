"""Oracle of `digital-analog`: exact exponentials of the analog blocks by eigendecomposition, gate by gate elsewhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics.analog import AnalogTape, SectorPropagator, Sparse, bounded_pulse, exchange, z_field
from orbit.physics.dense import product_state
from orbit.physics.gates import bonds, rotation_sequence
from orbit.physics.hamiltonians import Hamiltonian, pauli_sum
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters

FINAL_KEYS = ("final_analog_times", "final_analog_couplings", "final_analog_detunings")
EXCHANGE, DETUNING = 0, 1
"""Places of the two coefficients of a pulse."""


class DigitalAnalogOracle(Oracle):
    """Dense state; the evolution conserves the total Z, so that every sector is exponentiated on its own."""

    mutations = (
        "zz_sign",
        "start_flipped",
        "trotter_1",
        "trotter_4",
        "detuning_unstaggered",
        "exchange_halved",
        "analog_last",
        "time_detached",
    )
    noise = (1e-4, 1e-7)

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Energy density, its gradient, and the controls."""
        n, size = config["n_qubits"], 3 + 3 * config["n_qubits"]
        first = 1 if mutation == "start_flipped" else 0
        tape = AnalogTape(product_state([(first + i) % 2 for i in range(n)]))
        pulses = []
        for offset in range(0, parameters.size, size):
            pulse = bounded_pulse(parameters[offset : offset + 3].tolist(), config["t_min"], config["t_max"])
            pulses.append((pulse.time, pulse.coupling, pulse.detuning))
            if mutation == "analog_last":
                _rotations(tape, parameters, offset + 3, n)
            values = (pulse.time * pulse.coupling, pulse.time * pulse.detuning)
            by_time, by_coupling, by_detuning = pulse.slopes
            held = mutation == "time_detached"
            slopes = (
                [(offset, 0.0 if held else pulse.coupling * by_time), (offset + 1, pulse.time * by_coupling)],
                [(offset, 0.0 if held else pulse.detuning * by_time), (offset + 2, pulse.time * by_detuning)],
            )
            for generators, kinds, share in _factors(n, mutation):
                scaled = [share * values[kind] for kind in kinds]
                terms = [[(index, share * slope) for index, slope in slopes[kind]] for kind in kinds]
                tape.evolve(SectorPropagator(generators, scaled), terms)
            if mutation != "analog_last":
                _rotations(tape, parameters, offset + 3, n)
        image = _hamiltonian(n, mutation).apply(tape.state)
        observables = {
            "energy_density_history": float(np.vdot(tape.state, image).real) / n,
            **{key: np.array(values) for key, values in zip(FINAL_KEYS, zip(*pulses, strict=True), strict=True)},
        }
        return Evaluation(observables, tape.gradient(parameters.size, [(tape.position, image / n)]))

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The history, the controls after the last update, the parameters."""
        return {
            "energy_density_history": trajectory.history("energy_density_history"),
            **{key: np.asarray(trajectory.final.observables[key]) for key in FINAL_KEYS},
            **trajectory_parameters(config, trajectory),
        }


def _factors(n: int, mutation: str | None) -> list[tuple[list[Sparse], list[int], float]]:
    """The exponentials that make up an analog block: generators, the coefficient of each, share of the time."""
    even, odd = tuple(bonds(n, 0)), tuple(bonds(n, 1))
    field = z_field(tuple(1.0 if mutation == "detuning_unstaggered" else (-1.0) ** i for i in range(n)))
    if mutation in ("trotter_1", "trotter_4"):
        slices = int(mutation[-1])
        one = [([exchange(n, even)], [EXCHANGE]), ([exchange(n, odd)], [EXCHANGE]), ([field], [DETUNING])]
        return [(generators, kinds, 1 / slices) for generators, kinds in one * slices]
    hopping = exchange(n, even + odd)
    if mutation == "exchange_halved":
        hopping = hopping / 2
    return [([hopping, field], [EXCHANGE, DETUNING], 1.0)]


def _rotations(tape: AnalogTape, parameters: NDArray[np.float64], offset: int, n: int) -> None:
    """RZ, RY, RZ on every qubit."""
    for qubit in range(n):
        for k, axis in enumerate("ZYZ"):
            index = offset + 3 * qubit + k
            matrix, (derivative,) = rotation_sequence((axis,), [float(parameters[index])])
            tape.gate(matrix, (qubit,), [(index, derivative)])


def _hamiltonian(n: int, mutation: str | None) -> Hamiltonian:
    zz = -1.1 if mutation == "zz_sign" else 1.1
    pairs = [(c, word, (i, i + 1)) for i in range(n - 1) for c, word in ((0.7, "XX"), (0.7, "YY"), (zz, "ZZ"))]
    return pauli_sum(n, [*pairs, *((0.25 * (-1) ** i, "Z", (i,)) for i in range(n))])


ORACLE = DigitalAnalogOracle()
