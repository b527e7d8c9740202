"""Trusted checks of `postselected-cooling`: an Ising chain cooled by post-selection, aware of its probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import State, Tape, plus_state
from orbit.physics.gates import bonds, commuting_exponential, rotation_sequence
from orbit.physics.hamiltonians import ising_ground_energy, transverse_field_ising
from orbit.verification.evaluator import (
    SCALAR,
    Array,
    ArraySpec,
    Config,
    Evaluation,
    Evaluator,
    Outputs,
    Tolerance,
    at_least,
    at_most,
    below,
    draw_checkpoints,
    parameter_specs,
    parameter_tolerances,
)
from orbit.verification.verdict import Evidence

RECOMPUTE_LIMIT = 3e-4
COMPOSITION_LIMIT = 1e-5
SUCCESS_RELATIVE_LIMIT = 1e-4
SUCCESS_LOGARITHM = Tolerance(absolute=5e-3, logarithm=True)
"""Success probabilities are compared as logarithms."""
ENERGY_GAP_LIMIT = 1.0
FLOAT32_ALLOWANCE = 1e-4
"""Room that bounds leave for single-precision sums of energies and probabilities."""


class PostselectedCooling(Evaluator):
    """Dense simulation with one fused gate per bond, which projects all chosen qubits of a step at once."""

    # --- inputs -----------------------------------------------------------------------------------------------

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Normal with the configured scale."""
        rng = np.random.default_rng(config["seed"])
        return rng.normal(0.0, config["initial_parameter_scale"], size=_n_parameters(config))

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published sizes from another seed."""
        return self._with_start({**defaults, "seed": int(rng.integers(2**31))}, rng, from_seed=True)

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """Four to eight qubits, every scalar drawn in the range that the statement gives."""
        config = {
            **defaults,
            "n_qubits": int(rng.choice((4, 6, 8))),
            "n_steps": int(rng.integers(2, 7)),
            "transverse_field": float(rng.uniform(0.5, 1.3)),
            "log_probability_weight": float(rng.uniform(0.5, 2.0)),
            "max_steps": n_steps,
            "learning_rate": float(rng.uniform(0.05, 0.2)),
            "initial_parameter_scale": float(rng.uniform(0.2, 0.6)),
            "seed": int(rng.integers(2**31)),
        }
        return self._with_start(config, rng)

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published sizes, three steps, a start away from zero."""
        seed = int(rng.integers(2**31))
        return self._with_start({**defaults, "seed": seed, "max_steps": 3, "initial_parameter_scale": 0.3}, rng)

    def _with_start(self, config: Config, rng: np.random.Generator, *, from_seed: bool = False) -> Config:
        """Hand in a start: on probes one that the seed does not give, so that ignoring it shows."""
        scale = config["initial_parameter_scale"]
        drawn = rng.normal(0.0, scale, size=_n_parameters(config))
        config["initial_parameters"] = self.initial_parameters(config) if from_seed else drawn
        config["checkpoint_steps"] = draw_checkpoints(config["max_steps"], rng)
        return config

    # --- judgement --------------------------------------------------------------------------------------------

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """Four scalar histories and the parameters."""
        history = ArraySpec((config["max_steps"],), published=True)
        return {**dict.fromkeys(self.histories(config), history), **parameter_specs(config, (_n_parameters(config),))}

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """Loss and success probability are what they are made of; energies and probabilities are possible ones."""
        energy, loss = outputs["energy_density_history"], outputs["loss_history"]
        success, mean_log = outputs["success_probability_history"], outputs["mean_log_probability_history"]
        ground = _ground_energy_density(config)
        product = np.exp(_n_events(config) * mean_log)
        apart = np.abs(success - product) / product
        return [
            at_least("energy_lower_bound", float(energy.min()), ground - FLOAT32_ALLOWANCE, "exact ground state"),
            at_least("success_positive", float(success.min()), float(np.finfo(np.float64).tiny)),
            at_most("success_upper_bound", float(success.max()), 1 + FLOAT32_ALLOWANCE),
            *_composition("success", apart, SUCCESS_RELATIVE_LIMIT),
            *_composition(
                "loss", np.abs(loss - energy + config["log_probability_weight"] * mean_log), COMPOSITION_LIMIT
            ),
        ]

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """Loss and energy density improve; the last energy density is not far above the ground state."""
        loss, energy = outputs["loss_history"], outputs["energy_density_history"]
        gap = float(energy[-1]) - _ground_energy_density(config)
        return [
            below("loss_improves", float(loss[-1]), float(loss[0])),
            below("energy_density_improves", float(energy[-1]), float(energy[0])),
            at_most("final_energy_density_gap", gap, ENERGY_GAP_LIMIT),
        ]

    def published_criteria(self) -> frozenset[str]:
        """Improvement, the final gap, possible probabilities, and the compositions at the first and last step."""
        return frozenset(
            {
                "loss_improves",
                "energy_density_improves",
                "final_energy_density_gap",
                "success_positive",
                "success_upper_bound",
                "success_composition_ends",
                "loss_composition_ends",
            }
        )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """All histories. The product of a step's conditional probabilities is the weight of the joint outcome.

        The floor of 1e-12 under each logarithm is left out: it matters for probabilities below 1e-8, which the
        loss drives away from and which would cost the run its success probability in any case.
        """
        n, weight = config["n_qubits"], config["log_probability_weight"]
        tape = Tape(plus_state(n))
        kept = _joint_outcome(n)
        log_success = 0.0
        marks: list[tuple[int, State]] = []
        offset = 0
        for step in range(config["n_steps"]):
            offset = _fused_step(tape, parameters, offset, n, step % 2)
            tape.diagonal(kept)
            joint = float(np.vdot(tape.state, tape.state).real)
            log_success += float(np.log(joint))
            marks.append((tape.position, -weight / _n_events(config) / joint * tape.state))
            tape.normalize()
        image = transverse_field_ising(n, config["transverse_field"]).apply(tape.state)
        energy_density = float(np.vdot(tape.state, image).real) / n
        mean_log = log_success / _n_events(config)
        observables = {
            "energy_density_history": energy_density,
            "success_probability_history": float(np.exp(log_success)),
            "mean_log_probability_history": mean_log,
            "loss_history": energy_density - weight * mean_log,
        }
        if not gradient:
            return Evaluation(observables)
        return Evaluation(observables, tape.gradient(parameters.size, [*marks, (tape.position, image / n)]))

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """All four, to the recomputation tolerance."""
        tolerance = Tolerance(absolute=RECOMPUTE_LIMIT)
        return {
            "energy_density_history": tolerance,
            "success_probability_history": SUCCESS_LOGARITHM,
            "mean_log_probability_history": tolerance,
            "loss_history": tolerance,
        }

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """Histories as scalars of order one, the success probability by its logarithm, parameters by updates."""
        return {
            **dict.fromkeys(self.histories(config), SCALAR),
            "success_probability_history": SUCCESS_LOGARITHM,
            **parameter_tolerances(config),
        }

    # --- exact references -------------------------------------------------------------------------------------

    def exact_keys(self) -> tuple[str, ...]:
        """What the Hamiltonian depends on."""
        return ("n_qubits", "transverse_field")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Ground-state energy density by free fermions."""
        return {"ground_energy_density": _ground_energy_density(config)}


def _n_events(config: Config) -> int:
    return int(config["n_steps"] * len(range(0, config["n_qubits"], 2)))


def _n_parameters(config: Config) -> int:
    """Two exponents per bond and one rotation per qubit, step by step."""
    n = config["n_qubits"]
    return sum(2 * len(bonds(n, step % 2)) + n for step in range(config["n_steps"]))


def _ground_energy_density(config: Config) -> float:
    n: int = config["n_qubits"]
    return ising_ground_energy(n, config["transverse_field"]) / n


def _joint_outcome(n: int) -> NDArray[np.float64]:
    """Diagonal that keeps the amplitudes with 0 on every even qubit, shape (2**n,)."""
    kept = np.zeros((2,) * n)
    kept[tuple(0 if qubit % 2 == 0 else slice(None) for qubit in range(n))] = 1
    return kept.reshape(-1)


def _composition(quantity: str, distance: Array, limit: float) -> list[Evidence]:
    """Distance of a history from what it is made of, at every step and at the two ends."""
    return [
        at_most(f"{quantity}_composition", float(np.max(distance)), limit, "at every step"),
        at_most(
            f"{quantity}_composition_ends", float(max(distance[0], distance[-1])), limit, "at the first and last step"
        ),
    ]


def _fused_step(tape: Tape, parameters: NDArray[np.float64], offset: int, n: int, parity: int) -> int:
    """Exponentials and rotations of one step, one gate per bond; returns the offset of the next step."""
    pairs = bonds(n, parity)
    behind = offset + 2 * len(pairs)

    def turn(qubit: int) -> tuple[NDArray[np.complex128], list[NDArray[np.complex128]]]:
        return rotation_sequence(("X",), [float(parameters[behind + qubit])])

    for number, (left, right) in enumerate(pairs):
        start = offset + 2 * number
        exponent, parts = commuting_exponential(("XX", "ZZ"), parameters[start : start + 2].tolist())
        turned_left, (part_left,) = turn(left)
        turned_right, (part_right,) = turn(right)
        turned = np.kron(turned_left, turned_right)
        moves = [(start + k, turned @ part) for k, part in enumerate(parts)]
        moves.append((behind + left, np.kron(part_left, turned_right) @ exponent))
        moves.append((behind + right, np.kron(turned_left, part_right) @ exponent))
        tape.gate(turned @ exponent, (left, right), moves)
    for qubit in sorted(set(range(n)) - {qubit for bond in pairs for qubit in bond}):
        matrix, (part,) = turn(qubit)
        tape.gate(matrix, (qubit,), [(behind + qubit, part)])
    return behind + n


EVALUATOR = PostselectedCooling()
