"""Trusted checks of `mps-overlap`: a two-layer circuit trained towards a matrix-product state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orbit.physics import mps
from orbit.physics.gates import TWO_QUBIT_WORDS, bonds, hermitian_exponential, pauli
from orbit.verification.evaluator import (
    SCALAR,
    VANISHING,
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

WORDS_PER_BOND = 15
DMRG_SEED = 2039
"""Of the random state that DMRG starts from; one for all draws, so that the state is prepared once."""
COMPOSITION_LIMIT = 1e-5
FIDELITY_EXCESS = 1e-5
FIDELITY_TOLERANCE = Tolerance(relative=3e-4, absolute=1e-10)
"""3e-4 of a fidelity near one, and as sharp for the fidelities of 1e-9 that a run starts from."""
LOSS_TOLERANCE = Tolerance(absolute=3e-4)
PHASE_LIMIT = 1e-3
"""Over the modulus of the overlap."""
SMALLEST_OVERLAP = 2e-2
FLIP = np.pi / 4
"""`exp[-i pi/4 (XX + YY)]` takes |01> to -i |10>."""


class MpsOverlap(Evaluator):
    """Exact contraction of matrix-product states; a gate adds at most a factor of four to its bond."""

    # --- inputs -----------------------------------------------------------------------------------------------

    def prepare(self, config: Config) -> Config:
        """Add the target by DMRG, unless the configuration brings its own."""
        if "dmrg_state" in config:
            return config
        tensors, _ = mps.dmrg_state(_dmrg_problem(config))
        return {**config, "dmrg_state": mps.to_quimb(tensors)}

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Normal with the configured scale."""
        rng = np.random.default_rng(config["seed"])
        return rng.normal(0.0, config["initial_parameter_scale"], size=_n_parameters(config))

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published problem from another start."""
        return self._with_start(dict(defaults), rng)

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """A random complex target on four to eight qubits, drawn until the start overlaps it."""
        config = {
            **defaults,
            "n_qubits": int(rng.choice((4, 5, 6, 8))),
            "max_steps": n_steps,
            "learning_rate": float(rng.uniform(0.02, 0.1)),
            "initial_parameter_scale": float(rng.uniform(0.1, 0.4)),
        }
        config = self._with_start(config, rng)
        while True:
            target = mps.random_mps(config["n_qubits"], int(rng.integers(2, 7)), rng)
            config["dmrg_chi"] = max(tensor.shape[2] for tensor in target)
            config["dmrg_state"] = mps.to_quimb(target)
            if abs(_overlap(config, config["initial_parameters"])) >= SMALLEST_OVERLAP:
                return config

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published problem, three steps from near the circuit that exchanges |01> and |10> on even bonds.

        Anywhere else at random the fidelity is below 1e-8, which no update could tell from zero.
        """
        config = self._with_start({**defaults, "max_steps": 3, "initial_parameter_scale": 0.05}, rng)
        angles = config["initial_parameters"].reshape(-1, WORDS_PER_BOND)
        for word in ("XX", "YY"):
            angles[: len(bonds(config["n_qubits"], 0)), TWO_QUBIT_WORDS.index(word)] += FLIP
        return config

    def _with_start(self, config: Config, rng: np.random.Generator) -> Config:
        """Hand in a start that the seed in the configuration does not give."""
        config["initial_parameters"] = self.initial_parameters({**config, "seed": int(rng.integers(2**31))})
        config["checkpoint_steps"] = draw_checkpoints(config["max_steps"], rng)
        return config

    # --- judgement --------------------------------------------------------------------------------------------

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """Two histories, one phase, and the parameters."""
        steps, count = config["max_steps"], _n_parameters(config)
        return {
            "loss_history": ArraySpec((steps,), published=True),
            "fidelity_history": ArraySpec((steps,), published=True),
            "final_overlap_phase": ArraySpec((), published=True),
            **parameter_specs(config, (count,)),
            "final_parameters": ArraySpec((count,), published=True),
        }

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """Fidelities are possible ones, and the loss is what is missing to one."""
        found: list[Evidence] = []
        fidelity, loss = outputs.get("fidelity_history"), outputs.get("loss_history")
        if fidelity is not None:
            found.append(at_least("fidelity_lower_bound", float(np.min(fidelity)), 0.0))
            found.append(at_most("fidelity_upper_bound", float(np.max(fidelity)), 1 + FIDELITY_EXCESS))
        if fidelity is not None and loss is not None:
            distance = np.abs(loss - (1 - fidelity))
            ends = float(max(distance[0], distance[-1]))
            found.append(at_most("loss_composition", float(np.max(distance)), COMPOSITION_LIMIT, "at every step"))
            found.append(at_most("loss_composition_ends", ends, COMPOSITION_LIMIT, "at the first and last step"))
        return found

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The fidelity grows and reaches the threshold."""
        fidelity = outputs["fidelity_history"]
        return [
            below("fidelity_improves", float(fidelity[0]), float(fidelity[-1]), "first entry below the last"),
            at_least("final_fidelity", float(fidelity[-1]), config["fidelity_threshold"]),
        ]

    def published_criteria(self) -> frozenset[str]:
        """Improvement, threshold and bounds; composition at the ends; fidelity and phase at the returned parameters."""
        return frozenset(
            {
                "fidelity_improves",
                "final_fidelity",
                "fidelity_lower_bound",
                "fidelity_upper_bound",
                "loss_composition_ends",
                "continuity:fidelity_history",
                "final:final_overlap_phase",
            }
        )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """Fidelity and phase by exact contraction; the gradient from the environments of all gates."""
        if not gradient:
            return Evaluation(_observables(_overlap(config, parameters)))
        layers, derivatives = _circuit(config, parameters)
        target = mps.from_quimb(config["dmrg_state"])
        amplitude, transitions = mps.circuit_transitions(target, _start(config), layers)
        moves = [np.sum(part * transitions[layer][bond].T) for layer, bond, parts in derivatives for part in parts]
        return Evaluation(_observables(amplitude), -2 * np.real(np.conj(amplitude) * np.array(moves)))

    def final_quantities(self, config: Config, outputs: Outputs) -> dict[str, Tolerance]:
        """The phase, less sharply where the overlap is small."""
        final = self.final_parameters(config, outputs)
        overlap = 1.0 if final is None else abs(_overlap(config, final))
        return {"final_overlap_phase": _phase_tolerance(overlap)}

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """Fidelity and loss."""
        return {"fidelity_history": FIDELITY_TOLERANCE, "loss_history": LOSS_TOLERANCE}

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """The overlap at the start, which training enlarges, sets the tolerance of the final phase."""
        return {
            "fidelity_history": VANISHING,
            "loss_history": SCALAR,
            "final_overlap_phase": _phase_tolerance(abs(_overlap(config, config["initial_parameters"]))),
            **parameter_tolerances(config),
        }

    # --- exact references -------------------------------------------------------------------------------------

    def exact_keys(self) -> tuple[str, ...]:
        """What the target depends on."""
        return ("n_qubits", "zz_anisotropy", "staggered_field", "dmrg_chi", "dmrg_sweeps", "dmrg_tolerance")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Energy of the target, by seeded two-site DMRG; shows that the same state was prepared."""
        return {"dmrg_energy": mps.dmrg_state(_dmrg_problem(config))[1]}


def _phase_tolerance(overlap: float) -> Tolerance:
    return Tolerance(absolute=PHASE_LIMIT / max(overlap, 1e-12), period=2 * np.pi)


def _observables(amplitude: complex) -> dict[str, float]:
    fidelity = abs(amplitude) ** 2
    return {
        "loss_history": 1 - fidelity,
        "fidelity_history": fidelity,
        "final_overlap_phase": float(np.angle(amplitude)),
    }


def _n_parameters(config: Config) -> int:
    return WORDS_PER_BOND * sum(len(bonds(config["n_qubits"], layer % 2)) for layer in range(config["n_layers"]))


def _dmrg_problem(config: Config) -> mps.DmrgProblem:
    return mps.DmrgProblem(
        couplings=(1.0, 1.0, config["zz_anisotropy"]),
        fields=tuple((0.0, config["staggered_field"] * (-1) ** site) for site in range(config["n_qubits"])),
        chi=config["dmrg_chi"],
        sweeps=config["dmrg_sweeps"],
        tolerance=config["dmrg_tolerance"],
        seed=DMRG_SEED,
    )


def _start(config: Config) -> mps.Mps:
    return mps.product_mps([site % 2 for site in range(config["n_qubits"])])


Derivatives = list[tuple[int, tuple[int, int], list[NDArray[np.complex128]]]]


def _circuit(config: Config, parameters: NDArray[np.float64]) -> tuple[list[mps.Layer], Derivatives]:
    """The layers, and in the order of the parameters layer, bond and the fifteen derivatives of the gate there."""
    words = [pauli(word) for word in TWO_QUBIT_WORDS]
    rows = iter(np.reshape(parameters, (-1, WORDS_PER_BOND)).tolist())
    layers: list[mps.Layer] = []
    derivatives: Derivatives = []
    for number in range(config["n_layers"]):
        layer = {}
        for bond in bonds(config["n_qubits"], number % 2):
            layer[bond], parts = hermitian_exponential(words, next(rows))
            derivatives.append((number, bond, parts))
        layers.append(layer)
    return layers, derivatives


def _overlap(config: Config, parameters: Array) -> complex:
    ket = _start(config)
    for layer in _circuit(config, parameters)[0]:
        ket = mps.apply_layer(ket, layer)
    return mps.overlap(mps.from_quimb(config["dmrg_state"]), ket)


EVALUATOR = MpsOverlap()
