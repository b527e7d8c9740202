"""Evaluator of `cz-hyperedge`: recomputes 22-qubit energies with whole layers as matrix products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orbit.errors import HarnessError
from orbit.physics.gates import rotation_sequence
from orbit.physics.hamiltonians import ising_ground_energy
from orbit.physics.product_layers import IsingChain, State, apply_layer, product_vector, pull_back
from orbit.verification.evaluator import (
    SCALAR,
    ArraySpec,
    Config,
    Evaluation,
    Evaluator,
    Outputs,
    Tolerance,
    at_least,
    at_most,
    draw_checkpoints,
    parameter_specs,
    parameter_tolerances,
)
from orbit.verification.verdict import Evidence

LARGE = 16
"""From this many qubits on, norms and reductions of complex64 vectors cost more than the tolerance of probes."""
LARGE_TOLERANCE = Tolerance(absolute=3e-3)
CLEAR = 5.0
"""Tolerances by which the energy of a timed run's start changes without the hyperedge."""
MAX_DRAWS = 50


class CzHyperedgeEvaluator(Evaluator):
    """Energy per qubit of an Ising chain after rotation layers with a many-qubit controlled-Z."""

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Normal with the scale, shape (n_layers, n_qubits, 3)."""
        shape = (config["n_layers"], config["n_qubits"], 3)
        return np.random.default_rng(config["seed"]).normal(0.0, config["initial_parameter_scale"], shape)

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """A drawn seed and a start at the published scale, around a state in which the selected qubits are 1.

        From the prescribed start the hyperedge moves no energy by more than rounding does, at any step.
        """
        scale = defaults["initial_parameter_scale"]
        for _ in range(MAX_DRAWS):
            config = self._with_start(defaults, scale, rng)
            energies = [
                self.evaluate(variant, config["initial_parameters"]).observables["energy_history"]
                for variant in (config, {**config, "selected_qubits": ()})
            ]
            if abs(np.subtract(*energies)) >= CLEAR * LARGE_TOLERANCE.absolute:
                return config
        raise HarnessError(f"{MAX_DRAWS} draws in a row do not show the hyperedge in the energy of the start")

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """5 to 10 qubits, 3 to 5 of them selected, a random basis state, angles up to 1.5."""
        n = int(rng.integers(5, 11))
        n_layers = int(rng.integers(2, 4))
        selected = np.sort(rng.choice(n, size=int(rng.integers(3, 6)), replace=False))
        ones = np.sort(rng.choice(n, size=int(rng.integers(1, n)), replace=False))
        return {
            **defaults,
            "n_qubits": n,
            "selected_qubits": tuple(int(q) for q in selected),
            "initial_ones": tuple(int(q) for q in ones),
            "n_layers": n_layers,
            "max_steps": n_steps,
            "learning_rate": float(rng.uniform(0.03, 0.1)),
            "zz_strength": float(rng.uniform(0.7, 1.3)),
            "x_strength": float(rng.uniform(0.7, 1.4)),
            "seed": int(rng.integers(1, 2**31)),
            "initial_parameters": rng.uniform(-1.5, 1.5, (n_layers, n, 3)),
            "checkpoint_steps": draw_checkpoints(n_steps, rng),
        }

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """Default size, three steps, parameters at scale 0.3 around a state in which the selected qubits are 1."""
        return self._with_start({**defaults, "max_steps": 3}, 0.3, rng)

    def _with_start(self, defaults: Config, scale: float, rng: np.random.Generator) -> Config:
        config = {**defaults, "seed": int(rng.integers(1, 2**31))}
        start = scale * rng.standard_normal((config["n_layers"], config["n_qubits"], 3))
        start[0, sorted(set(config["selected_qubits"]) - set(config["initial_ones"])), 0] += np.pi
        config["initial_parameters"] = start
        config["checkpoint_steps"] = draw_checkpoints(config["max_steps"], rng)
        return config

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """One history and the parameters."""
        specs = parameter_specs(config, (config["n_layers"], config["n_qubits"], 3))
        published = {
            "energy_history": ArraySpec((config["max_steps"],), published=True),
            "final_parameters": replace(specs["final_parameters"], published=True),
        }
        return {**specs, **published}

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The spectrum of the chain is symmetric about zero, so the ground energy bounds it on both sides."""
        if "energy_history" not in outputs:
            return []
        ground = _ground_energy_density(config)
        history = np.asarray(outputs["energy_history"], dtype=np.float64)
        allowance = float(self.histories(config)["energy_history"].allowed(np.asarray(ground)))
        return [
            at_least("energy_bound", float(history.min()), ground - allowance, "no step lies below the ground state"),
            at_most("energy_range", float(history.max()), -ground + allowance, "no step lies above the highest state"),
        ]

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """Improvement, and a final energy between the ground state and the published gap above it."""
        history = np.asarray(outputs["energy_history"], dtype=np.float64)
        above = float(history[-1]) - _ground_energy_density(config)
        return [
            at_least(
                "energy_improvement",
                float(history[0] - history[-1]),
                config["minimum_energy_improvement"],
                "energy per qubit, first minus last entry",
            ),
            at_least(
                "energy_lower_bound",
                above,
                -config["exact_lower_bound_tolerance"],
                "last energy per qubit above the ground state's",
            ),
            at_most(
                "energy_gap",
                above,
                config["maximum_energy_density_gap"],
                "last energy per qubit above the ground state's",
            ),
        ]

    def published_criteria(self) -> frozenset[str]:
        """Improvement and bounds."""
        return frozenset({"form", "energy_improvement", "energy_lower_bound", "energy_gap"})

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """Energy per qubit at any size; with the gradient about three times the cost."""
        n = config["n_qubits"]
        layers = np.asarray(parameters, dtype=np.float64)
        gates = [[rotation_sequence("XZY", triple) for triple in angles] for angles in layers]
        matrices = [np.array([matrix for matrix, _ in layer]) for layer in gates]
        bits = np.isin(np.arange(n), config["initial_ones"]).astype(int)
        # The first layer acts on a basis state, which leaves a product of one-qubit vectors.
        state = product_vector([matrices[0][q, :, bit] for q, bit in enumerate(bits)])
        _flip_selected(state, config)
        for layer in matrices[1:]:
            state = apply_layer(layer, state)
            _flip_selected(state, config)
        chain = IsingChain(n, config["x_strength"], config["zz_strength"])
        if not gradient:
            return Evaluation({"energy_history": chain.expectation(state) / n})
        cotangent = chain.apply(state) / n
        energy = float(np.vdot(state, cotangent).real)
        slopes = np.empty_like(layers)
        for k in range(len(layers) - 1, -1, -1):
            _flip_selected(state, config)
            _flip_selected(cotangent, config)
            pulled = pull_back(matrices[k], state, cotangent)
            state, cotangent = pulled.state, pulled.cotangent
            for q, (matrix, derivatives) in enumerate(gates[k]):
                turned = matrix.conj().T @ pulled.transitions[q]
                slopes[k, q] = [2 * np.sum(part * turned.T).real for part in derivatives]
        return Evaluation({"energy_history": energy}, slopes)

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """Energies; honest complex64 solutions stray by more on large registers."""
        return {"energy_history": LARGE_TOLERANCE if config["n_qubits"] >= LARGE else SCALAR}

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """History and parameters."""
        return {"energy_history": SCALAR, **parameter_tolerances(config)}

    def exact_keys(self) -> tuple[str, ...]:
        """The Hamiltonian."""
        return ("n_qubits", "zz_strength", "x_strength")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Ground energy per qubit by free fermions."""
        return {"ground_energy_density": _ground_energy_density(config)}


def _ground_energy_density(config: Config) -> float:
    n: int = config["n_qubits"]
    return ising_ground_energy(n, config["x_strength"], config["zz_strength"]) / n


def _flip_selected(state: State, config: Config) -> None:
    """The hyperedge, in place: change the sign of amplitudes in which every selected qubit is 1, if there is one."""
    selected, n = set(config["selected_qubits"]), config["n_qubits"]
    if not selected:
        return
    state.reshape((2,) * n)[tuple(1 if q in selected else slice(None) for q in range(n))] *= -1


EVALUATOR = CzHyperedgeEvaluator()
