"""Trusted checks of the small chain: matrices on the whole space, and gradients by the parameter-shift rule."""

from __future__ import annotations

import numpy as np

from orbit.physics.hamiltonians import ising_ground_energy
from orbit.verification.evaluator import (
    SCALAR,
    ArraySpec,
    Evaluation,
    Evaluator,
    Tolerance,
    at_least,
    at_most,
    below,
    draw_checkpoints,
    parameter_specs,
    parameter_tolerances,
)

GAP_LIMIT = 0.3
FLOAT32_ALLOWANCE = 1e-4


class SmallChain(Evaluator):
    def initial_parameters(self, config):
        rng = np.random.default_rng(config["seed"])
        return rng.normal(0.0, config["initial_parameter_scale"], size=_count(config))

    def draw_timed(self, defaults, rng):
        return self._with_start({**defaults, "seed": int(rng.integers(2**31))}, rng)

    def draw_probe(self, defaults, rng, n_steps):
        config = {
            **defaults,
            "n_qubits": int(rng.integers(2, 5)),
            "field": float(rng.uniform(0.5, 1.2)),
            "max_steps": n_steps,
            "learning_rate": float(rng.uniform(0.05, 0.2)),
            "initial_parameter_scale": float(rng.uniform(0.2, 0.6)),
        }
        return self._with_start(config, rng)

    def draw_full_probe(self, defaults, rng):
        return self._with_start({**defaults, "max_steps": 3, "initial_parameter_scale": 0.3}, rng)

    def _with_start(self, config, rng):
        """Hand in a start that the seed in the configuration does not give."""
        config["initial_parameters"] = self.initial_parameters({**config, "seed": int(rng.integers(2**31))})
        config["checkpoint_steps"] = draw_checkpoints(config["max_steps"], rng)
        return config

    def result_spec(self, config):
        history = ArraySpec((config["max_steps"],))
        return {"energy_density_history": history, **parameter_specs(config, (_count(config),))}

    def invariants(self, config, outputs):
        bound = _ground_energy_density(config) - FLOAT32_ALLOWANCE
        lowest = float(outputs["energy_density_history"].min())
        return [at_least("energy_lower_bound", lowest, bound, "exact ground state")]

    def thresholds(self, config, outputs):
        history = outputs["energy_density_history"]
        gap = float(history[-1]) - _ground_energy_density(config)
        return [
            below("energy_density_improves", float(history[-1]), float(history[0])),
            at_most("final_energy_density_gap", gap, GAP_LIMIT),
        ]

    def published_criteria(self):
        return frozenset()

    def evaluate(self, config, parameters, *, gradient=False):
        energy = _energy_density(config, parameters)
        if not gradient:
            return Evaluation({"energy_density_history": energy})
        shifts = np.pi / 2 * np.eye(len(parameters))
        pairs = [(_energy_density(config, parameters + s), _energy_density(config, parameters - s)) for s in shifts]
        return Evaluation({"energy_density_history": energy}, np.array([(up - down) / 2 for up, down in pairs]))

    def histories(self, config):
        return {"energy_density_history": Tolerance(absolute=3e-4)}

    def probe_tolerances(self, config):
        return {"energy_density_history": SCALAR, **parameter_tolerances(config)}

    def exact_keys(self):
        return ("n_qubits", "field")

    def compute_exact(self, config):
        """Ground-state energy density by free fermions."""
        return {"ground_energy_density": _ground_energy_density(config)}


def _count(config):
    return config["n_layers"] * (2 * config["n_qubits"] - 1)


def _ground_energy_density(config):
    return ising_ground_energy(config["n_qubits"], config["field"]) / config["n_qubits"]


def _energy_density(config, parameters):
    n = config["n_qubits"]
    bits = np.arange(2**n)[:, None] >> np.arange(n)[::-1] & 1
    bonds = np.prod(1.0 - 2.0 * np.stack([bits[:, :-1], bits[:, 1:]]), axis=0)
    state = np.eye(2**n, dtype=complex)[0]
    for layer in np.reshape(parameters, (config["n_layers"], -1)):
        turn = np.eye(1)
        for angle in layer[:n] / 2:
            turn = np.kron(turn, [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        state = np.exp(-0.5j * bonds @ layer[n:]) * (turn @ state)
    flipped = sum(np.vdot(state, state[np.arange(2**n) ^ (1 << q)]).real for q in range(n))
    return float(-(np.abs(state) ** 2) @ bonds.sum(axis=1) - config["field"] * flipped) / n


EVALUATOR = SmallChain()
