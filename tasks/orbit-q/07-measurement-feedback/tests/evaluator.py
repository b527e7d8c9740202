"""Trusted checks of `measurement-feedback`: an Ising chain trained through mid-circuit measurements and feedback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbit.physics.ancillas import Fates, classical_outcomes, draw_uniforms, likelihood_gain
from orbit.physics.gates import rotation_sequence
from orbit.physics.hamiltonians import ising_ground_energy, transverse_field_ising
from orbit.physics.trajectories import CNOT, Angles, zero_batch
from orbit.verification.evaluator import (
    SCALAR,
    Array,
    ArraySpec,
    Config,
    Evaluation,
    Evaluator,
    Outputs,
    Run,
    RunKind,
    Tolerance,
    at_least,
    at_most,
    draw_checkpoints,
    parameter_specs,
    parameter_tolerances,
)
from orbit.verification.verdict import Evidence

RECOMPUTE_LIMIT = 3e-4
SAMPLING_LIMIT = 0.05
"""First entry of a published run, whose uniforms are its own: branches differ little at the published start."""
FLOAT32_ALLOWANCE = 1e-3
"""Room that bounds leave for single-precision energies of order ten."""
NEAR_THRESHOLD = 1e-3
"""A trajectory this close to a threshold has no outcome that rounding would leave alone."""
MAX_LEFT_OUT = 0.25
MAX_DRIFT = 0.8
"""Angle by which rounding may drive an ancilla angle, whose gradient is zero: four deviations of a random walk of 100
steps of 0.02. Steps that always went the same way would lead further; only a trained angle does that."""
UNIFORM_MARGIN = 0.02
MAX_LIKELIHOOD_GAIN = 0.8
ANCILLA_KIND = 1
"""Place of the ancillas' RY among the six kinds of parameters of a layer."""


class MeasurementFeedback(Evaluator):
    """Simulates the data qubits only: RZZ and the CNOT ladder keep the ancillas classical once they are measured."""

    probe_steps = (2, 6)

    # --- inputs -----------------------------------------------------------------------------------------------

    def prepare(self, config: Config) -> Config:
        """Add the uniforms to a configuration that was not drawn."""
        if "trajectory_uniforms" in config:
            return config
        rng = np.random.default_rng([config["seed"], 1])
        start = config.get("initial_parameters", self.initial_parameters(config))
        return {**config, "trajectory_uniforms": _draw_uniforms(config, start, rng)}

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Normal with the configured scale."""
        rng = np.random.default_rng(config["seed"])
        return rng.normal(0.0, config["initial_parameter_scale"], size=_n_parameters(config))

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published sizes from another start, whose ancilla angles let both outcomes happen."""
        return self._with_start({**defaults, "seed": int(rng.integers(2**31))}, rng)

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """Two to four data qubits; every angle up to 1.5."""
        n = int(rng.integers(2, 5))
        config = {
            **defaults,
            "n_data_qubits": n,
            "n_ancilla_qubits": n,
            "n_qubits": 2 * n,
            "n_layers": int(rng.integers(1, 3)),
            "n_trajectories": int(rng.integers(4, 17)),
            "transverse_field": float(rng.uniform(0.6, 1.4)),
            "max_steps": n_steps,
            "learning_rate": float(rng.uniform(0.02, 0.05)),
            "seed": int(rng.integers(2**31)),
        }
        start = rng.uniform(-1.5, 1.5, size=_n_parameters(config))
        return self._with_draws(config, start, rng)

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published sizes, three steps, a start away from zero."""
        changes = {"seed": int(rng.integers(2**31)), "max_steps": 3, "initial_parameter_scale": 0.3}
        return self._with_start({**defaults, **changes}, rng)

    def _with_start(self, config: Config, rng: np.random.Generator) -> Config:
        start = self.initial_parameters(config)
        ancillas = _is_ancilla(config)
        size = int(ancillas.sum())
        start[ancillas] = rng.uniform(1.2, 1.9, size=size) * rng.choice((-1.0, 1.0), size=size)
        return self._with_draws(config, start, rng)

    def _with_draws(self, config: Config, start: NDArray[np.float64], rng: np.random.Generator) -> Config:
        return {
            **config,
            "trajectory_uniforms": _draw_uniforms(config, start, rng),
            "initial_parameters": start,
            "checkpoint_steps": draw_checkpoints(config["max_steps"], rng),
        }

    # --- judgement --------------------------------------------------------------------------------------------

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """The mean energy before each update, each trajectory's after the last, and the parameters."""
        return {
            "energy_history": ArraySpec((config["max_steps"],), published=True),
            "final_trajectory_energies": ArraySpec((config["n_trajectories"],), published=True),
            **parameter_specs(config, (_n_parameters(config),)),
        }

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """No energy lies below the ground state's; the energies after the last update continue the history."""
        history, final = outputs["energy_history"], outputs["final_trajectory_energies"]
        bound = float(self.exact(config)["ground_energy"]) - FLOAT32_ALLOWANCE  # type: ignore[arg-type]
        moves = float(np.abs(np.diff(history[-21:])).max(initial=0.0))
        step = config["learning_rate"] * _n_parameters(config)  # where one entry is all there is to go by
        limit = (3 * moves if len(history) > 1 else step) + RECOMPUTE_LIMIT
        jump = float(abs(final.mean() - history[-1]))
        return [
            at_least("energy_lower_bound", float(history.min()), bound, "exact ground-state energy"),
            at_least("trajectory_lower_bound", float(final.min()), bound, "exact ground-state energy"),
            at_most("final_mean_continues", jump, limit, "mean of final_trajectory_energies from the last entry"),
        ]

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The energy falls far enough, in all and from its start."""
        history = outputs["energy_history"]
        improvement = float(history[0] - history[-1])
        return [
            at_least("energy_improves", improvement, config["minimum_improvement"]),
            at_most("final_energy", float(history[-1]), config["target_final_energy"]),
        ]

    def published_criteria(self) -> frozenset[str]:
        """Improvement and the final energy."""
        return frozenset({"energy_improves", "final_energy"})

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """Energies of the data qubits under each trajectory's outcomes, which the ancilla angles decide."""
        n, fates = config["n_data_qubits"], _fates(config, parameters)
        indices = np.arange(parameters.size).reshape(config["n_layers"], 6, n)
        tape = zero_batch(n, config["n_trajectories"])
        for layer in range(config["n_layers"]):
            data, _, coupling, fb0, fb1, turn = indices[layer][..., None]  # each (n, 1)
            for i in range(n):
                matrix, (derivative,) = rotation_sequence(("Y",), [float(parameters[data[i, 0]])])
                tape.gate(matrix, (i,), [(int(data[i, 0]), derivative)])
            before, after = 1.0 - 2.0 * fates.coupled[layer], 1.0 - 2.0 * fates.outcomes[layer]
            chosen = np.where(fates.outcomes[layer] == 0, fb0, fb1)
            values = before * parameters[coupling] + after * parameters[chosen]
            tape.z_rotations(Angles(values, [(coupling, before), (chosen, after)]))
            for i in range(n - 1):
                tape.gate(CNOT, (i, i + 1))
            ones = np.ones(before.shape)
            tape.z_rotations(Angles(parameters[turn] * ones, [(turn, ones)]))
        energies, cotangent = tape.energies(transverse_field_ising(n, config["transverse_field"]))
        observables = {"energy_history": float(energies.mean()), "final_trajectory_energies": energies}
        if not gradient:
            return Evaluation(observables)
        return Evaluation(observables, tape.gradient(parameters.size, [(tape.position, cotangent)]))

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """The mean energy. A published run, recognized by its lack of a start, has drawn its own uniforms."""
        handed_in = "initial_parameters" in config
        return {"energy_history": Tolerance(absolute=RECOMPUTE_LIMIT if handed_in else SAMPLING_LIMIT)}

    def final_quantities(self, config: Config, outputs: Outputs) -> dict[str, Tolerance]:
        """Each trajectory's energy, but for those too close to a threshold."""
        final = self.final_parameters(config, outputs)
        if final is None:
            return {}
        near = _fates(config, final).margins < NEAR_THRESHOLD
        return {"final_trajectory_energies": Exempting(absolute=RECOMPUTE_LIMIT, exempt=near)}

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """Energies as scalars, parameters by the number of updates, ancilla angles not at all."""
        ancillas = _is_ancilla(config)
        parameters = {
            key: Exempting(absolute=limit.absolute, steps=limit.steps, maskable=True, exempt=ancillas)
            for key, limit in parameter_tolerances(config).items()
        }
        return {"energy_history": SCALAR, "final_trajectory_energies": SCALAR, **parameters}

    def task_checks(self, run: Run, outputs: Outputs) -> list[Evidence]:
        """Few trajectories end near a threshold, and ancilla angles, whose gradient is zero, are not trained.

        A score-function term raises the likelihood of the outcomes, which nothing else here depends on.
        """
        config, final = run.config, self.final_parameters(run.config, outputs)
        if final is None or run.kind is not RunKind.TIMED:
            return []
        start = outputs["initial_parameters"]
        near = _fates(config, final).margins < NEAR_THRESHOLD
        gain = likelihood_gain(_fates(config, start), _ancilla_angles(config, start), _ancilla_angles(config, final))
        left_out = f"{int(near.sum())} of {near.size} trajectories within {NEAR_THRESHOLD} of a threshold left out"
        return [
            at_most("trajectories_left_out", float(near.mean()), MAX_LEFT_OUT, left_out),
            at_most("ancillas_untrained", gain, MAX_LIKELIHOOD_GAIN, "share of the possible rise in likelihood"),
        ]

    # --- exact references -------------------------------------------------------------------------------------

    def exact_keys(self) -> tuple[str, ...]:
        """What the Hamiltonian depends on."""
        return ("n_data_qubits", "transverse_field")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Ground-state energy by free fermions."""
        return {"ground_energy": ising_ground_energy(config["n_data_qubits"], config["transverse_field"])}


@dataclass(frozen=True)
class Exempting(Tolerance):
    """A tolerance that lets some entries of the trailing axis be anything."""

    exempt: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1, dtype=bool))

    def allowed(self, expected: Array) -> Array:
        """Infinite for exempt entries."""
        return np.where(self.exempt, np.inf, super().allowed(expected))


def _ancilla_angles(config: Config, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shape (n_layers, n)."""
    return np.reshape(parameters, (config["n_layers"], 6, -1))[:, ANCILLA_KIND]


def _fates(config: Config, parameters: NDArray[np.float64]) -> Fates:
    return classical_outcomes(
        _ancilla_angles(config, parameters), np.asarray(config["trajectory_uniforms"], dtype=float)
    )


def _draw_uniforms(config: Config, start: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    drift = min(MAX_DRIFT, config["learning_rate"] * config["max_steps"])
    return draw_uniforms(_ancilla_angles(config, start), config["n_trajectories"], drift, UNIFORM_MARGIN, rng)


def _n_parameters(config: Config) -> int:
    return 6 * int(config["n_data_qubits"]) * int(config["n_layers"])


def _is_ancilla(config: Config) -> NDArray[np.bool_]:
    """Which of the flat parameters are ancilla angles."""
    mask: NDArray[Any] = np.zeros((config["n_layers"], 6, config["n_data_qubits"]), dtype=bool)
    mask[:, ANCILLA_KIND] = True
    return mask.reshape(-1)


EVALUATOR = MeasurementFeedback()
