"""Trusted checks of `mps-refinement`: a shallow circuit trained on top of a matrix-product state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.errors import HarnessError
from orbit.physics import mps
from orbit.physics.gates import Matrix, bonds, commuting_exponential, pauli, rotation_sequence
from orbit.physics.hamiltonians import ising_ground_energy
from orbit.physics.windows import bond_energies
from orbit.verification.evaluator import (
    SCALAR,
    ArraySpec,
    Config,
    Evaluation,
    Evaluator,
    Evidence,
    Outputs,
    Tolerance,
    at_least,
    at_most,
    draw_checkpoints,
    parameter_specs,
    parameter_tolerances,
)

DMRG_SEED = 1234
"""Of the random state that DMRG starts from; one for all draws, so that the state is prepared once."""
FLOAT32_ALLOWANCE = 2e-3
"""Room that the exact bound leaves; a complex64 norm of a 32-site contraction costs an honest solution that much."""
RECOMPUTE = Tolerance(absolute=2e-4, relative=5e-5)
"""Of the energy: its terms sum to 41 in the published state, where the norm matters, and to about 1 in a random one."""
CLOSENESS = 2.5e-3
IMPROVEMENT_SLACK = 5e-4
PROBE_SIZES = (8, 9, 10, 12)
FULL_PROBE_SCALE = 0.8
BINDING_SHARE = 4
"""The full-size probe is drawn so that a cap at a quarter of the exact bond dimension, 32 of 128, shows."""
MAX_DRAWS = 100


class MpsRefinement(Evaluator):
    """Energies and gradients by exact causal cones on the matrix-product state."""

    # --- inputs -----------------------------------------------------------------------------------------------

    def prepare(self, config: Config) -> Config:
        """Add the state by DMRG and its energy, unless the configuration brings them."""
        if "dmrg_state" in config:
            return config
        tensors, energy = mps.dmrg_state(_dmrg_problem(config))
        return {**config, "dmrg_state": mps.to_quimb(tensors), "dmrg_energy": energy}

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Normal with the configured scale."""
        rng = np.random.default_rng(config["seed"])
        return rng.normal(0.0, config["initial_parameter_scale"], size=_n_parameters(config))

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published problem from another start."""
        return self._with_start(dict(defaults), rng)

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """A random state without canonical form on a short chain, every scalar drawn as the statement says."""
        config = {
            **defaults,
            "n_qubits": int(rng.choice(PROBE_SIZES)),
            "n_layers": int(rng.integers(2, 5)),
            "field": float(rng.uniform(0.6, 1.4)),
            "max_steps": n_steps,
            "learning_rate": float(rng.uniform(0.02, 0.1)),
            "initial_parameter_scale": float(rng.uniform(0.3, 0.6)),
        }
        config = self._with_start(config, rng)
        return _with_state(config, mps.random_mps(config["n_qubits"], int(rng.integers(3, 9)), rng))

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published sizes, three steps, a random state and start from which a cap on the bond dimension shows.

        On the published state, whose Schmidt values fall off quickly, half of the exact dimension loses 1e-9.
        """
        for _ in range(MAX_DRAWS):
            config = {**defaults, "max_steps": 3, "initial_parameter_scale": FULL_PROBE_SCALE}
            n, chi = config["n_qubits"], config["dmrg_chi"]
            state = mps.random_mps(n, chi, rng, min_bond=chi)
            config = _with_state(self._with_start(config, rng), state)
            start = config["initial_parameters"]
            energy = self.evaluate(config, start).observables["energy_history"]
            exact_bond = min(chi * 4 ** (config["n_layers"] // 2), 2 ** (n // 2))
            missed = abs(capped_energy(config, start, exact_bond // BINDING_SHARE) - energy)
            if missed > 3 * float(RECOMPUTE.allowed(np.asarray(energy))):
                return config
        raise HarnessError(f"{MAX_DRAWS} draws in a row on which a capped bond dimension is as good as the exact one")

    def _with_start(self, config: Config, rng: np.random.Generator) -> Config:
        """Hand in a start that the seed in the configuration does not give."""
        config["initial_parameters"] = self.initial_parameters({**config, "seed": int(rng.integers(2**31))})
        config["checkpoint_steps"] = draw_checkpoints(config["max_steps"], rng)
        return config

    # --- judgement --------------------------------------------------------------------------------------------

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """The history and the parameters."""
        history = ArraySpec((config["max_steps"],), published=True)
        return {"energy_history": history, **parameter_specs(config, (_n_parameters(config),))}

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """No energy lies below the ground state."""
        bound = ising_ground_energy(config["n_qubits"], config["field"]) - FLOAT32_ALLOWANCE
        return [at_least("energy_lower_bound", float(outputs["energy_history"].min()), bound, "exact ground energy")]

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The run starts at the energy of the input state, stays near it, and does not end above it."""
        first, last = (float(outputs["energy_history"][k]) - config["dmrg_energy"] for k in (0, -1))
        return [
            at_most("first_energy", abs(first), CLOSENESS, "distance of the first energy from dmrg_energy"),
            at_most("last_energy", abs(last), CLOSENESS, "distance of the last energy from dmrg_energy"),
            at_most("energy_not_above", last, IMPROVEMENT_SLACK, "last energy above dmrg_energy"),
        ]

    def published_criteria(self) -> frozenset[str]:
        """The three distances from the energy of the input state, and the lower bound."""
        return frozenset({"first_energy", "last_energy", "energy_not_above", "energy_lower_bound"})

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """The energy as a sum over bonds, each by its causal cone."""
        tensors = mps.from_quimb(config["dmrg_state"])
        gate = _Brickwork(config, parameters)
        count = parameters.size if gradient else None
        energy, slope = bond_energies(tensors, config["n_layers"], gate, _terms(config), count)
        return Evaluation({"energy_history": energy}, slope)

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """The energy."""
        return {"energy_history": RECOMPUTE}

    def replay_slack(self, config: Config) -> float:
        """Weights of 1e-8 may be discarded: amplitudes, and gradients, off by 1e-4."""
        return 0.1

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """The energy as a scalar of order one, parameters by the number of updates."""
        return {"energy_history": SCALAR, **parameter_tolerances(config)}

    # --- exact references -------------------------------------------------------------------------------------

    def exact_keys(self) -> tuple[str, ...]:
        """What the chain and the input state depend on."""
        return ("n_qubits", "field", "dmrg_chi", "dmrg_sweeps")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Ground-state energy by free fermions, and the energy of the input state by seeded two-site DMRG."""
        return {
            "ground_energy": ising_ground_energy(config["n_qubits"], config["field"]),
            "dmrg_energy": mps.dmrg_state(_dmrg_problem(config))[1],
        }


class _Brickwork:
    """Gates of the circuit: rotations of both sites and the exponential of a bond as one matrix, made once each."""

    def __init__(self, config: Config, parameters: NDArray[np.float64]) -> None:
        self._n, self._parameters = config["n_qubits"], parameters
        self._offsets = [_offset(self._n, layer) for layer in range(config["n_layers"])]
        self._known: dict[tuple[int, tuple[int, ...]], tuple[Matrix, list[tuple[int, Matrix]]]] = {}

    def __call__(self, layer: int, sites: tuple[int, ...]) -> tuple[Matrix, list[tuple[int, Matrix]]]:
        if (layer, sites) not in self._known:
            self._known[layer, sites] = self._turn(layer, *sites) if len(sites) == 1 else self._bond(layer, *sites)
        return self._known[layer, sites]

    def _turn(self, layer: int, site: int) -> tuple[Matrix, list[tuple[int, Matrix]]]:
        start = self._offsets[layer] + 3 * site
        matrix, derivatives = rotation_sequence(("Z", "Y", "Z"), self._parameters[start : start + 3].tolist())
        return matrix, list(enumerate(derivatives, start))

    def _bond(self, layer: int, left: int, right: int) -> tuple[Matrix, list[tuple[int, Matrix]]]:
        start = self._offsets[layer] + 3 * self._n + 3 * (left // 2)
        angles = self._parameters[start : start + 3].tolist()
        exponent, derivatives = commuting_exponential(("XX", "YY", "ZZ"), angles)
        (first, first_moves), (second, second_moves) = self._turn(layer, left), self._turn(layer, right)
        turned = np.kron(first, second)
        moves = [(index, derivative @ turned) for index, derivative in enumerate(derivatives, start)]
        moves += [(index, exponent @ np.kron(derivative, second)) for index, derivative in first_moves]
        moves += [(index, exponent @ np.kron(first, derivative)) for index, derivative in second_moves]
        return exponent @ turned, moves


def _with_state(config: Config, tensors: mps.Mps) -> Config:
    """Hand in another input state."""
    energy = bond_energies(tensors, 0, _no_gate, _terms(config))[0]
    largest = max(tensor.shape[2] for tensor in tensors)
    return {**config, "dmrg_state": mps.to_quimb(tensors), "dmrg_chi": largest, "dmrg_energy": energy}


def capped_energy(config: Config, parameters: NDArray[np.float64], cap: int) -> float:
    """What comes out if the whole state is evolved and every bond is cut down to `cap` after each layer."""
    tensors, gate, n = mps.from_quimb(config["dmrg_state"]), _Brickwork(config, parameters), config["n_qubits"]
    for layer in range(config["n_layers"]):
        paired = bonds(n, layer % 2)
        tensors = mps.apply_layer(tensors, {bond: gate(layer, bond)[0] for bond in paired})
        for site in set(range(n)).difference(*paired):
            tensors[site] = np.einsum("ps,lsr->lpr", gate(layer, (site,))[0], tensors[site])
        tensors = mps.compress(tensors, cap)
    return bond_energies(tensors, 0, _no_gate, _terms(config))[0]


def _no_gate(layer: int, sites: tuple[int, ...]) -> tuple[Matrix, list[tuple[int, Matrix]]]:
    raise AssertionError(f"no layer, so no gate on {sites} in layer {layer}")


def _offset(n: int, layer: int) -> int:
    return sum(3 * n + 3 * len(bonds(n, earlier % 2)) for earlier in range(layer))


def _n_parameters(config: Config) -> int:
    return _offset(config["n_qubits"], config["n_layers"])


def _terms(config: Config) -> list[tuple[tuple[int, int], Matrix]]:
    """The Hamiltonian bond by bond; the field of an inner site is shared by its two bonds."""
    n, field = config["n_qubits"], config["field"]
    terms = []
    for left, right in ((i, i + 1) for i in range(n - 1)):
        shares = (1.0 if left == 0 else 0.5, 1.0 if right == n - 1 else 0.5)
        matrix = -pauli("ZZ") - field * (shares[0] * pauli("XI") + shares[1] * pauli("IX"))
        terms.append(((left, right), matrix))
    return terms


def _dmrg_problem(config: Config) -> mps.DmrgProblem:
    return mps.DmrgProblem(
        couplings=(0.0, 0.0, -1.0),
        fields=((-config["field"], 0.0),) * config["n_qubits"],
        chi=config["dmrg_chi"],
        sweeps=config["dmrg_sweeps"],
        tolerance=1e-9,
        seed=DMRG_SEED,
    )


EVALUATOR = MpsRefinement()
