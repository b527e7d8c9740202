"""Trusted checks of `haldane-chain`: VQE of a spin-1 bilinear-biquadratic chain with its string order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from orbit.physics.dense import Tape, product_state
from orbit.physics.gates import bonds
from orbit.physics.hamiltonians import Hamiltonian
from orbit.physics.spin_one import bilinear_biquadratic, bond_exponential, site_rotation, string_orders
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

FLOAT32_ALLOWANCE = 1e-4
"""Room that the exact bound leaves for single-precision sums over the chain."""
STRING_TOLERANCE = 5e-4


class HaldaneChain(Evaluator):
    """Dense simulation in which each even bond's exponential absorbs the rotations before it."""

    # --- inputs -----------------------------------------------------------------------------------------------

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Normal with the configured scale."""
        rng = np.random.default_rng(config["seed"])
        return rng.normal(0.0, config["initial_parameter_scale"], size=_n_parameters(config))

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published sizes from another seed."""
        return self._with_start({**defaults, "seed": int(rng.integers(2**31))}, rng, from_seed=True)

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """Four to six sites, every scalar drawn in the range that the statement gives."""
        config = {
            **defaults,
            "n_sites": int(rng.integers(4, 7)),
            "n_layers": int(rng.integers(1, 4)),
            "beta": float(rng.uniform(0.1, 0.4)),
            "single_ion_anisotropy": float(rng.uniform(0.05, 0.4)),
            "max_steps": n_steps,
            "learning_rate": float(rng.uniform(0.03, 0.1)),
            "initial_parameter_scale": float(rng.uniform(0.2, 0.5)),
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
        """The history, the final energy density and strings, and the parameters."""
        return {
            "energy_density_history": ArraySpec((config["max_steps"],), published=True),
            "final_energy_density": ArraySpec((), published=True),
            "final_string_orders": ArraySpec((3,), published=True),
            **parameter_specs(config, (_n_parameters(config),)),
        }

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """No energy lies below the ground state, and no string of spins 1 is longer than one."""
        energies = np.append(outputs["energy_density_history"], outputs["final_energy_density"])
        bound = self._ground_energy_density(config) - FLOAT32_ALLOWANCE
        largest = float(np.abs(outputs["final_string_orders"]).max())
        return [
            at_least("energy_lower_bound", float(energies.min()), bound, "exact ground-state energy density"),
            at_most("string_order_bound", largest, 1 + FLOAT32_ALLOWANCE),
        ]

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The energy improves and ends near the ground state, whose string order the state shows."""
        final = float(outputs["final_energy_density"])
        improvement = float(outputs["energy_density_history"][0]) - final
        gap = final - self._ground_energy_density(config)
        exact = np.asarray(self.exact(config)["ground_string_orders"])
        error = float(np.abs(outputs["final_string_orders"] - exact).mean())
        return [
            at_least("energy_improvement", improvement, config["minimum_energy_improvement"]),
            at_most("energy_density_gap", gap, config["maximum_energy_density_gap"]),
            at_most("string_order_mae", error, config["maximum_string_order_mae"], "against the exact ground state"),
        ]

    def published_criteria(self) -> frozenset[str]:
        """Improvement, gap, strings, and the lower bound."""
        return frozenset({"energy_improvement", "energy_density_gap", "string_order_mae", "energy_lower_bound"})

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """The circuit with one fused gate per even bond."""
        n = config["n_sites"]
        tape = Tape(product_state([0 if site % 2 == 0 else 2 for site in range(n)], 3), 3)
        per_layer = 3 * n + 2 * (n - 1)
        for layer in range(config["n_layers"]):
            _fused_layer(tape, parameters, layer * per_layer, n, config["beta"])
        image = _hamiltonian(config).apply(tape.state)
        density = float(np.vdot(tape.state, image).real) / n
        observables = {
            "energy_density_history": density,
            "final_energy_density": density,
            "final_string_orders": string_orders(tape.state, n),
        }
        slope = tape.gradient(parameters.size, [(tape.position, image / n)]) if gradient else None
        return Evaluation(observables, slope)

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """The energy density."""
        return {"energy_density_history": Tolerance(absolute=3e-4)}

    def final_quantities(self, config: Config, outputs: Outputs) -> dict[str, Tolerance]:
        """Energy density and strings after the last update."""
        return {
            "final_energy_density": Tolerance(absolute=3e-4),
            "final_string_orders": Tolerance(absolute=STRING_TOLERANCE),
        }

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """Energies as scalars of order one, strings absolutely, parameters by the number of updates."""
        return {
            "energy_density_history": SCALAR,
            "final_energy_density": SCALAR,
            "final_string_orders": Tolerance(absolute=STRING_TOLERANCE),
            **parameter_tolerances(config),
        }

    # --- exact references -------------------------------------------------------------------------------------

    def exact_keys(self) -> tuple[str, ...]:
        """What the Hamiltonian depends on."""
        return ("n_sites", "beta", "single_ion_anisotropy")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Ground-state energy and string orders by Lanczos on the full spin-1 space from a seeded start."""
        energy, state = _ground_state(_hamiltonian(config))
        return {
            "ground_energy_density": energy / config["n_sites"],
            "ground_string_orders": string_orders(state, config["n_sites"]).tolist(),
        }

    def _ground_energy_density(self, config: Config) -> float:
        value = self.exact(config)["ground_energy_density"]
        assert isinstance(value, float)
        return value


def _n_parameters(config: Config) -> int:
    n: int = config["n_sites"]
    return int(config["n_layers"] * (3 * n + 2 * (n - 1)))


def _hamiltonian(config: Config) -> Hamiltonian:
    return bilinear_biquadratic(config["n_sites"], config["beta"], config["single_ion_anisotropy"])


def _ground_state(hamiltonian: Hamiltonian) -> tuple[float, NDArray[np.complex128]]:
    """Lowest eigenpair. The chain is real in this basis, so a real start keeps Lanczos real.

    The next level lies above by the splitting of the two end spins, which shrinks with the length: the tolerance is
    that of machine precision, or the strings would mix the two.
    """
    size = 3**hamiltonian.n_sites
    if size <= 243:
        values, vectors = np.linalg.eigh(hamiltonian.dense())
        return float(values[0]), vectors[:, 0]
    operator = LinearOperator(
        (size, size), matvec=lambda v: hamiltonian.apply(v.astype(np.complex128)).real, dtype=np.float64
    )
    start = np.random.default_rng(0).normal(size=size)
    values, vectors = eigsh(operator, k=1, which="SA", v0=start, tol=0)
    return float(values[0]), vectors[:, 0].astype(np.complex128)


def _fused_layer(tape: Tape, parameters: NDArray[np.float64], offset: int, n: int, beta: float) -> None:
    turns = [site_rotation(*parameters[offset + 3 * site : offset + 3 * site + 3]) for site in range(n)]
    bond_offset = offset + 3 * n
    for number, bond in enumerate(bonds(n, 0) + bonds(n, 1)):
        index = bond_offset + 2 * number
        transverse, longitudinal = parameters[index : index + 2].tolist()
        matrix, derivatives = bond_exponential(transverse, longitudinal, beta)
        moves = list(enumerate(derivatives, index))
        if bond[0] % 2 == 0:
            (left, d_left), (right, d_right) = (turns[site] for site in bond)
            both = np.kron(left, right)
            moves = [(k, derivative @ both) for k, derivative in moves]
            for k in range(3):
                moves.append((offset + 3 * bond[0] + k, matrix @ np.kron(d_left[k], right)))
                moves.append((offset + 3 * bond[1] + k, matrix @ np.kron(left, d_right[k])))
            matrix = matrix @ both
        tape.gate(matrix, bond, moves)
        if number == len(bonds(n, 0)) - 1 and n % 2:
            last, derivatives = turns[n - 1]
            tape.gate(last, (n - 1,), list(enumerate(derivatives, offset + 3 * (n - 1))))


EVALUATOR = HaldaneChain()
