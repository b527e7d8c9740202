"""Trusted checks of `entanglement-profile`: VQE of a staggered XXZ chain with a profile of second Renyi entropies."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import Tape, product_state, renyi_2_entropy
from orbit.physics.gates import bonds, commuting_exponential, rotation_sequence
from orbit.physics.hamiltonians import Hamiltonian, xxz_staggered
from orbit.tasks import load_task
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
ENERGY_GAP_LIMIT = 1.0
FLOAT32_ALLOWANCE = 1e-4
"""Room that bounds leave for single-precision sums of energies and entropies."""


class EntanglementProfile(Evaluator):
    """Dense simulation in which each bond's exponential absorbs the rotations before it."""

    # --- inputs -----------------------------------------------------------------------------------------------

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Normal with the configured scale."""
        rng = np.random.default_rng(config["seed"])
        return rng.normal(0.0, config["initial_parameter_scale"], size=_n_parameters(config))

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published problem from another start."""
        return self._with_start(dict(defaults), rng)

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """Four to eight qubits, every scalar drawn in the range that the statement gives."""
        n = int(rng.choice((4, 6, 8)))
        config = {
            **defaults,
            "n_qubits": n,
            "subsystem_size": max(1, n // 2 - int(rng.integers(2))),
            "zz_anisotropy": float(rng.uniform(0.5, 1.5)),
            "staggered_field": float(rng.uniform(0.1, 0.6)),
            "target_entropies": tuple(float(target) for target in rng.uniform(0.1, 0.9, size=3)),
            "entropy_weight": float(rng.uniform(0.5, 2.0)),
            "max_steps": n_steps,
            "learning_rate": float(rng.uniform(0.05, 0.2)),
            "initial_parameter_scale": float(rng.uniform(0.2, 0.6)),
        }
        return self._with_start(config, rng)

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published sizes, three steps, a start away from zero."""
        return self._with_start({**defaults, "max_steps": 3, "initial_parameter_scale": 0.3}, rng)

    def _with_start(self, config: Config, rng: np.random.Generator) -> Config:
        """Hand in a start that the seed in the configuration does not give."""
        config["initial_parameters"] = self.initial_parameters({**config, "seed": int(rng.integers(2**31))})
        config["checkpoint_steps"] = draw_checkpoints(config["max_steps"], rng)
        return config

    # --- judgement --------------------------------------------------------------------------------------------

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """Three scalar histories, the entropies of three blocks, and the parameters."""
        steps, count = config["max_steps"], _n_parameters(config)
        return {
            "energy_density_history": ArraySpec((steps,), published=True),
            "loss_history": ArraySpec((steps,), published=True),
            "entropy_mse_history": ArraySpec((steps,), published=True),
            "entropy_history": ArraySpec((steps, len(config["target_entropies"])), published=True),
            **parameter_specs(config, (count,)),
        }

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The mean squared error and the loss are what they are made of; entropies and energies are possible ones."""
        found: list[Evidence] = []
        entropies = outputs.get("entropy_history")
        mse, loss = outputs.get("entropy_mse_history"), outputs.get("loss_history")
        energy = outputs.get("energy_density_history")
        if entropies is not None:
            largest = config["subsystem_size"] * np.log(2)
            found.append(at_least("entropy_lower_bound", float(np.min(entropies)), -FLOAT32_ALLOWANCE))
            found.append(at_most("entropy_upper_bound", float(np.max(entropies)), largest + FLOAT32_ALLOWANCE))
        if entropies is not None and mse is not None:
            targets = np.asarray(config["target_entropies"], dtype=np.float64)
            found.extend(_composition("entropy_mse", mse, np.mean((entropies - targets) ** 2, axis=1)))
        if energy is not None and mse is not None and loss is not None:
            found.extend(_composition("loss", loss, energy + config["entropy_weight"] * mse))
        if energy is not None:
            bound = self._ground_energy_density(config) - FLOAT32_ALLOWANCE
            found.append(
                at_least("energy_lower_bound", float(np.min(energy)), bound, "exact ground-state energy density")
            )
        return found

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """Loss and energy density improve; the last energy density is not far above the ground state."""
        loss, energy = outputs["loss_history"], outputs["energy_density_history"]
        gap = float(energy[-1]) - self._ground_energy_density(config)
        return [
            below("loss_improves", float(loss[-1]), float(loss[0])),
            below("energy_density_improves", float(energy[-1]), float(energy[0])),
            at_most("final_energy_density_gap", gap, ENERGY_GAP_LIMIT),
        ]

    def published_criteria(self) -> frozenset[str]:
        """Improvement, the final gap, and the compositions at the first and last step."""
        return frozenset(
            {
                "loss_improves",
                "energy_density_improves",
                "final_energy_density_gap",
                "loss_composition_ends",
                "entropy_mse_composition_ends",
            }
        )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """The circuit with one fused gate per bond; the gradient includes the entropies after every block."""
        n, targets = config["n_qubits"], np.asarray(config["target_entropies"], dtype=np.float64)
        tape = Tape(product_state([i % 2 for i in range(n)]))
        profile: list[float] = []
        cotangents: list[tuple[int, Any]] = []
        offset = 0
        for sublayer in range(config["n_layers"]):
            offset = _fused_sublayer(tape, parameters, offset, n, sublayer % 2)
            if sublayer % 2 == 1:
                entropy, cotangent = renyi_2_entropy(tape.state, config["subsystem_size"])
                pull = 2 * config["entropy_weight"] * (entropy - targets[len(profile)]) / len(targets)
                profile.append(entropy)
                cotangents.append((tape.position, pull * cotangent))
        image = _hamiltonian(config).apply(tape.state)
        energy_density = float(np.vdot(tape.state, image).real) / n
        mse = float(np.mean((np.array(profile) - targets) ** 2))
        observables = {
            "energy_density_history": energy_density,
            "loss_history": energy_density + config["entropy_weight"] * mse,
            "entropy_mse_history": mse,
            "entropy_history": np.array(profile),
        }
        if not gradient:
            return Evaluation(observables)
        return Evaluation(observables, tape.gradient(parameters.size, [*cotangents, (tape.position, image / n)]))

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """All four, to the recomputation tolerance."""
        tolerance = Tolerance(absolute=RECOMPUTE_LIMIT)
        keys = ("energy_density_history", "loss_history", "entropy_mse_history", "entropy_history")
        return dict.fromkeys(keys, tolerance)

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """Histories as scalars of order one, parameters by the number of updates."""
        return {**dict.fromkeys(self.histories(config), SCALAR), **parameter_tolerances(config)}

    # --- exact references -------------------------------------------------------------------------------------

    def exact_keys(self) -> tuple[str, ...]:
        """What the Hamiltonian depends on."""
        return ("n_qubits", "zz_anisotropy", "staggered_field")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Ground-state energy by sparse Lanczos."""
        return {"ground_energy": _hamiltonian(config).ground_energy()}

    def _ground_energy_density(self, config: Config) -> float:
        return _ground_energy(*(config[key] for key in self.exact_keys())) / float(config["n_qubits"])


def _n_parameters(config: Config) -> int:
    """Two rotations per qubit and three exponents per bond, sublayer by sublayer."""
    n = config["n_qubits"]
    return sum(2 * n + 3 * len(bonds(n, sublayer % 2)) for sublayer in range(config["n_layers"]))


def _hamiltonian(config: Config) -> Hamiltonian:
    return xxz_staggered(config["n_qubits"], 1.0, config["zz_anisotropy"], config["staggered_field"])


@cache
def _ground_energy(n_qubits: int, zz_anisotropy: float, staggered_field: float) -> float:
    config = {"n_qubits": n_qubits, "zz_anisotropy": zz_anisotropy, "staggered_field": staggered_field}
    stored = load_task(Path(__file__).parents[1]).exact(config)
    return float(stored["ground_energy"]) if stored else _hamiltonian(config).ground_energy()  # type: ignore[arg-type]


def _composition(quantity: str, reported: Array, expected: Array) -> list[Evidence]:
    """Distance of a history from what it is made of, at every step and at the two ends."""
    distance = np.abs(np.asarray(reported, dtype=np.float64) - expected)
    ends = float(max(distance[0], distance[-1]))
    return [
        at_most(f"{quantity}_composition", float(np.max(distance)), COMPOSITION_LIMIT, "at every step"),
        at_most(f"{quantity}_composition_ends", ends, COMPOSITION_LIMIT, "at the first and last step"),
    ]


def _fused_sublayer(tape: Tape, parameters: NDArray[np.float64], offset: int, n: int, parity: int) -> int:
    """Rotations and exponentials of one sublayer, one gate per bond; returns the offset of the next sublayer."""
    pairs = bonds(n, parity)
    bonded = {qubit for bond in pairs for qubit in bond}

    def turn(qubit: int) -> tuple[NDArray[np.complex128], list[NDArray[np.complex128]]]:
        start = offset + 2 * qubit
        return rotation_sequence(("Y", "Z"), parameters[start : start + 2].tolist())

    for qubit in sorted(set(range(n)) - bonded):
        matrix, derivatives = turn(qubit)
        tape.gate(matrix, (qubit,), [(offset + 2 * qubit + k, part) for k, part in enumerate(derivatives)])
    for number, (left, right) in enumerate(pairs):
        start = offset + 2 * n + 3 * number
        turned_left, parts_left = turn(left)
        turned_right, parts_right = turn(right)
        exponent, parts = commuting_exponential(("XX", "YY", "ZZ"), parameters[start : start + 3].tolist())
        turned = np.kron(turned_left, turned_right)
        moves = [(start + k, part @ turned) for k, part in enumerate(parts)]
        for k in range(2):
            moves.append((offset + 2 * left + k, exponent @ np.kron(parts_left[k], turned_right)))
            moves.append((offset + 2 * right + k, exponent @ np.kron(turned_left, parts_right[k])))
        tape.gate(exponent @ turned, (left, right), moves)
    return offset + 2 * n + 3 * len(pairs)


EVALUATOR = EntanglementProfile()
