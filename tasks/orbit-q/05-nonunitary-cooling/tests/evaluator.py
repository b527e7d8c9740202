"""Evaluator of `nonunitary-cooling`: energies by state vectors, the whole trajectory by free fermions."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from orbit.physics.gaussian import FIELD_FILTER, Filter, bond_filter, filtered_energy, train_filters
from orbit.physics.hamiltonians import ising_ground_energy
from orbit.physics.product_layers import IsingChain, apply_layer, product_vector
from orbit.verification.evaluator import (
    SCALAR,
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
    below,
    draw_checkpoints,
    parameter_specs,
    parameter_tolerances,
)
from orbit.verification.verdict import Evidence

LARGE = 14
"""From this many qubits on, norms and reductions of complex64 vectors cost more than the tolerance of probes."""
LARGE_TOLERANCE = Tolerance(absolute=1e-3)
HISTORY = "energy_density_history"


class NonunitaryCoolingEvaluator(Evaluator):
    """Energy per qubit of an Ising chain cooled by layers of imaginary-time filters."""

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Every filter at the initial strength, flat (a_0, b_0, a_1, b_1, ...)."""
        return np.full(2 * config["n_layers"], float(config["initial_filter_strength"]))

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """A drawn field and initial strength, since nothing else is random."""
        config = {
            **defaults,
            "transverse_field": float(rng.uniform(0.9, 1.3)),
            "initial_filter_strength": float(rng.uniform(0.005, 0.02)),
        }
        config["initial_parameters"] = self.initial_parameters(config)
        config["checkpoint_steps"] = draw_checkpoints(config["max_steps"], rng)
        return config

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """6 to 10 qubits, 2 to 6 layers, every filter with its own initial strength."""
        n_layers = 2 * int(rng.integers(1, 4))
        return {
            **defaults,
            "n_qubits": 2 * int(rng.integers(3, 6)),
            "transverse_field": float(rng.uniform(0.6, 1.4)),
            "n_layers": n_layers,
            "initial_filter_strength": float(rng.uniform(0.02, 0.2)),
            "max_steps": n_steps,
            "learning_rate": float(rng.uniform(0.02, 0.1)),
            "initial_parameters": rng.uniform(0.02, 0.2, 2 * n_layers),
            "checkpoint_steps": draw_checkpoints(n_steps, rng),
        }

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """Default size, three steps, strengths from -0.1 to 0.4.

        Filters of strongly opposed signs remove nearly all of a state and amplify the rest with its rounding; a third
        of the draws at scale 0.3 and either sign moved single-precision energies by more than their tolerance. Positive
        filters have no negative entry, so nothing cancels.
        """
        return {
            **defaults,
            "transverse_field": float(rng.uniform(0.9, 1.3)),
            "initial_filter_strength": float(rng.uniform(0.005, 0.02)),
            "max_steps": 3,
            "initial_parameters": rng.uniform(-0.1, 0.4, 2 * defaults["n_layers"]),
            "checkpoint_steps": draw_checkpoints(3, rng),
        }

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """The history, two tables of final strengths and the parameters."""
        table = ArraySpec((config["n_layers"] // 2, 2), published=True)
        return {
            HISTORY: ArraySpec((config["max_steps"],), published=True),
            "final_a": table,
            "final_b": table,
            **parameter_specs(config, (2 * config["n_layers"],)),
        }

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The spectrum of the chain is symmetric about zero, so the ground energy bounds it on both sides."""
        ground = _ground_energy_density(config)
        history = np.asarray(outputs[HISTORY])
        return [
            at_least("energy_bound", float(history.min()), ground - 1e-3, "no step lies below the ground state"),
            at_most("energy_range", float(history.max()), -ground + 1e-3, "no step lies above the highest state"),
        ]

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """Improvement, and a final energy between the ground state and the published gap above it."""
        history = np.asarray(outputs[HISTORY])
        above = float(history[-1]) - _ground_energy_density(config)
        message = "last energy per qubit above the ground state's"
        return [
            below(
                "energy_improvement", float(history[-1] - history[0]), 0.0, "energy per qubit, last minus first entry"
            ),
            at_least("energy_lower_bound", above, -1e-3, message),
            at_most("energy_gap", above, 0.5, message),
        ]

    def published_criteria(self) -> frozenset[str]:
        """Improvement, bounds, and the energy at the final strengths."""
        return frozenset({"energy_improvement", "energy_lower_bound", "energy_gap", f"continuity:{HISTORY}"})

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """Energy by a state vector of 2**n amplitudes; the gradient by free fermions."""
        n = config["n_qubits"]
        flat = np.asarray(parameters, dtype=np.float64)
        energy = _dense_energy(n, config["transverse_field"], flat) / n
        tables = {"final_a": flat[0::2].reshape(-1, 2), "final_b": flat[1::2].reshape(-1, 2)}
        slopes = None
        if gradient:
            slopes = filtered_energy(n, config["transverse_field"], _filters(config["n_layers"]), flat)[1] / n
        return Evaluation({HISTORY: energy, **tables}, slopes)

    def final_parameters(self, config: Config, outputs: Outputs) -> NDArray[np.float64] | None:
        """The flat vector, or else the two tables of strengths."""
        if "final_parameters" in outputs:
            return np.asarray(outputs["final_parameters"], dtype=np.float64)
        return np.stack([np.ravel(outputs["final_a"]), np.ravel(outputs["final_b"])], axis=1).ravel()

    def final_quantities(self, config: Config, outputs: Outputs) -> dict[str, Tolerance]:
        """The tables hold the same numbers as the flat vector."""
        same = Tolerance(floor_relative=1e-6)
        return {"final_a": same, "final_b": same}

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """Energies; honest complex64 solutions stray by more on large registers."""
        return {HISTORY: LARGE_TOLERANCE if config["n_qubits"] >= LARGE else SCALAR}

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """History, parameters, and the tables of strengths."""
        tolerances = parameter_tolerances(config)
        final = tolerances["final_parameters"]
        return {HISTORY: SCALAR, "final_a": final, "final_b": final, **tolerances}

    def task_checks(self, run: Run, outputs: Outputs) -> list[Evidence]:
        """Every entry of a long history against the same optimization by free fermions.

        Rounding moves this trajectory by less than 1e-6 in 600 steps, so all of it is held to the tolerance.
        """
        if run.kind is not RunKind.TIMED:
            return []
        start = run.config.get("initial_parameters")
        expected, _ = train_filters(
            run.config["n_qubits"],
            run.config["transverse_field"],
            _filters(run.config["n_layers"]),
            self.initial_parameters(run.config) if start is None else start,
            learning_rate=run.config["learning_rate"],
            n_steps=run.config["max_steps"],
        )
        tolerance = self.histories(run.config)[HISTORY]
        ratio = tolerance.distance(outputs[HISTORY], expected) / tolerance.allowed(expected)
        worst = int(np.argmax(ratio))
        message = f"step {worst}: {outputs[HISTORY][worst]:.9g}, free fermions {expected[worst]:.9g}"
        distance, allowed = abs(outputs[HISTORY][worst] - expected[worst]), tolerance.allowed(expected)[worst]
        return [at_most(f"trajectory:{HISTORY}", float(distance), float(allowed), message)]

    def exact_keys(self) -> tuple[str, ...]:
        """The Hamiltonian."""
        return ("n_qubits", "transverse_field")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Ground energy per qubit by free fermions."""
        return {"ground_energy_density": _ground_energy_density(config)}


def _ground_energy_density(config: Config) -> float:
    n: int = config["n_qubits"]
    return ising_ground_energy(n, config["transverse_field"]) / n


def _filters(n_layers: int) -> list[Filter]:
    return [gate for layer in range(n_layers) for gate in (FIELD_FILTER, bond_filter(layer % 2))]


def _dense_energy(n: int, field: float, parameters: NDArray[np.float64]) -> float:
    """Energy of the state vector after all layers; each is scaled so that no strength overflows."""
    state = product_vector([np.full(2, 2**-0.5)] * n)
    for layer, (a, b) in enumerate(parameters.reshape(-1, 2)):
        # exp(a X) = cosh(a) (1 + tanh(a) X), and the factor drops out when the state is rescaled.
        gate = np.array([[1, np.tanh(a)], [np.tanh(a), 1]], dtype=np.complex128)
        exponents = b * _bond_sums(n, layer % 2)
        state = apply_layer(np.broadcast_to(gate, (n, 2, 2)), state) * np.exp(exponents - exponents.max())
        state /= np.linalg.norm(state)
    return IsingChain(n, field).expectation(state)


@cache
def _bond_sums(n: int, parity: int) -> NDArray[np.float64]:
    """Diagonal of `sum Z_i Z_{i+1}` over the bonds of a parity, shape (2**n,)."""
    values, qubit = np.zeros(1), 0
    while qubit < n:
        bond = qubit % 2 == parity and qubit + 1 < n
        part = np.array([1.0, -1.0, -1.0, 1.0]) if bond else np.zeros(2)
        values = np.add.outer(values, part).ravel()
        qubit += 2 if bond else 1
    return values


EVALUATOR = NonunitaryCoolingEvaluator()
