"""Trusted checks of `lightcone-512`: two local observables of a wide random circuit, trained from many starts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from orbit.physics.cones import Cone, Gate, causal_cone, expectations
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
    below,
    not_applicable,
    parameter_specs,
    parameter_tolerances,
)
from orbit.verification.verdict import Evidence

Term = tuple[float, tuple[tuple[int, str], ...]]

PUBLISHED_TERMS: tuple[Term, ...] = (
    (0.5645931361768194, ((388, "X"), (390, "Z"))),
    (1.0, ((16, "X"), (19, "Y"))),
)
RESTART_SEED = 100_000
"""Restart r draws its parameters with the seed of the configuration plus this plus r."""
N_RECOMPUTED = 20
"""Restarts that recomputation and first update look at."""
RECOMPUTE_LIMIT = 3e-4
FLOAT32_ALLOWANCE = 1e-4
"""Room that the bound leaves for single-precision expectations of order one."""
MAX_DRIFT_OUTSIDE = 1e-6
"""Single precision moves an angle of order one by 6e-8 when it is stored; an update moves it by the learning rate."""
MIN_DISTANCE_RATIO = 0.2
MIN_HISTORY_DISTANCE = 1e-6
PROBE_CONES = (4, 12)


class Lightcone(Evaluator):
    """Simulates causal cones only, by components that grow as gates join them."""

    # --- inputs -----------------------------------------------------------------------------------------------

    def prepare(self, config: Config) -> Config:
        """Add the tape of the configured seed and the published terms."""
        if "gate_tape" in config:
            return config
        tape = ladder_tape(config["n_qubits"], config["n_layers"], config["edge_keep_prob"], config["seed"])
        return _with_terms(config, tape, PUBLISHED_TERMS)

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Normal with the configured scale, every restart by a seed of its own."""
        count, scale = self.prepare(config)["parameter_count"], config["initial_parameter_scale"]
        seeds = [config["seed"] + RESTART_SEED + r for r in range(config["n_restarts"])]
        return np.array([np.random.default_rng(seed).normal(0.0, scale, size=count) for seed in seeds])

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published circuit from other starts."""
        return self._with_start(defaults, rng)

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """A short ladder, one to three random terms with cones of moderate size, every angle up to 1."""
        config = {
            **defaults,
            "n_qubits": 2 * int(rng.integers(6, 17)),
            "n_layers": int(rng.integers(2, 5)),
            "max_steps": n_steps,
            "n_restarts": int(rng.integers(2, 5)),
            "learning_rate": float(rng.uniform(0.03, 0.1)),
            "edge_keep_prob": float(rng.uniform(0.2, 0.6)),
        }
        tape: tuple[Gate, ...] = ()
        terms: list[Term] = []
        while len(terms) < 2:  # one term would not show whether terms are added up
            config["seed"] = int(rng.integers(2**31))
            tape = ladder_tape(config["n_qubits"], config["n_layers"], config["edge_keep_prob"], config["seed"])
            drawn = [_random_term(config["n_qubits"], rng) for _ in range(6)]
            fitting = [term for term in drawn if PROBE_CONES[0] <= len(_cone(tape, term).sites) <= PROBE_CONES[1]]
            terms = fitting[: int(rng.integers(2, 4))]
        config = _with_terms(config, tape, tuple(terms))
        config["initial_parameters"] = rng.uniform(-1.0, 1.0, size=(config["n_restarts"], config["parameter_count"]))
        return {**config, "checkpoint_steps": (1,)}

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published circuit, three steps, starts away from zero."""
        return self._with_start({**defaults, "max_steps": 3, "initial_parameter_scale": 0.3}, rng)

    def _with_start(self, defaults: Config, rng: np.random.Generator) -> Config:
        """Hand in starts that the seed in the configuration, which is the tape's, does not give."""
        config = self.prepare(defaults)
        start = self.initial_parameters({**config, "seed": int(rng.integers(2**31))})
        return {**config, "initial_parameters": start, "checkpoint_steps": (1,)}

    # --- judgement --------------------------------------------------------------------------------------------

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """The history of every restart and the parameters."""
        shape = (config["n_restarts"], self.prepare(config)["parameter_count"])
        history = ArraySpec((config["n_restarts"], config["max_steps"]), published=True)
        return {"observable_history": history, **parameter_specs(config, shape)}

    def by_step(self, config: Config, outputs: Outputs) -> Outputs:
        """The history reports restarts first."""
        if "observable_history" not in outputs:
            return outputs
        return {**outputs, "observable_history": np.asarray(outputs["observable_history"]).T}

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The observable keeps its bound, restarts differ, and nothing outside the cones moves."""
        config = self.prepare(config)
        history = outputs["observable_history"]
        bound = sum(abs(coefficient) for coefficient, _ in config["pauli_terms"]) + FLOAT32_ALLOWANCE
        apart = float(pdist(history, "chebyshev").min(initial=np.inf))
        evidence = [
            at_most("objective_bound", float(np.abs(history).max()), bound, "sum of the coefficients' sizes"),
            at_least("histories_differ", apart, MIN_HISTORY_DISTANCE, "largest distance of the two closest histories"),
        ]
        final = self.final_parameters(config, outputs)
        if final is None or "initial_parameters" not in outputs:
            names = ("outside_cones", "restarts_differ")
            return evidence + [not_applicable(name, "parameters are not among the results") for name in names]
        start, inside = outputs["initial_parameters"], inside_cones(config)
        later = [final, *outputs.get("checkpoint_parameters", ())]
        moved = max(float(np.abs((row - start)[:, ~inside]).max(initial=0.0)) for row in later)
        ratio = float(np.min(pdist(final[:, inside]) / pdist(start[:, inside]), initial=np.inf))
        return [
            *evidence,
            at_most("outside_cones", moved, MAX_DRIFT_OUTSIDE, "largest move of a parameter outside the cones"),
            at_least("restarts_differ", ratio, MIN_DISTANCE_RATIO, "final over initial distance, least of all pairs"),
        ]

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The restarts improve on average and the best succeeds."""
        first, last = outputs["observable_history"][:, 0], outputs["observable_history"][:, -1]
        return [
            below("mean_improves", float(first.mean()), float(last.mean()), "mean first entry below the mean last one"),
            at_least("best_final", float(last.max()), config["success_threshold"]),
        ]

    def published_criteria(self) -> frozenset[str]:
        """Improvement, the best restart, the bound."""
        return frozenset({"mean_improves", "best_final", "objective_bound"})

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """The observable of every row of parameters, cone by cone."""
        config = self.prepare(config)
        values, slopes = np.zeros(len(parameters)), np.zeros(parameters.shape)
        for coefficient, factors in config["pauli_terms"]:
            cone, sites = _cone(config["gate_tape"], (coefficient, factors)), [site for site, _ in factors]
            word = "".join(letter.upper() for _, letter in factors)
            value, slope = expectations(cone, word, sites, parameters, gradient=gradient)
            values += coefficient * value
            if slope is not None:
                slopes -= coefficient * slope
        return Evaluation({"observable_history": values}, slopes if gradient else None)

    def part_to_recompute(self, config: Config, outputs: Outputs, rng: np.random.Generator) -> tuple[Config, Outputs]:
        """Twenty drawn restarts."""
        total = config["n_restarts"]
        rows = np.sort(rng.choice(total, size=min(N_RECOMPUTED, total), replace=False))
        start = np.asarray(config.get("initial_parameters", outputs.get("initial_parameters")))
        if start.ndim == 0:  # neither handed in nor returned
            start = self.initial_parameters(config)
        part = {**config, "n_restarts": len(rows), "initial_parameters": start[rows]}
        # Restarts are the last axis but one of parameters and the last one of a history by step.
        return part, {
            key: value[:, rows] if key == "observable_history" else value[..., rows, :]
            for key, value in outputs.items()
        }

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """The observable."""
        return {"observable_history": Tolerance(absolute=RECOMPUTE_LIMIT)}

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """The observable as a scalar, parameters by the number of updates."""
        return {"observable_history": SCALAR, **parameter_tolerances(config)}

    # --- exact references -------------------------------------------------------------------------------------

    def exact_keys(self) -> tuple[str, ...]:
        """What the tape depends on."""
        return ("n_qubits", "n_layers", "edge_keep_prob", "seed")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Counts of the tape's entries, sizes of the cones, and the sum of the coefficients' sizes as a bound."""
        config = self.prepare(config)
        tape = config["gate_tape"]
        return {
            "tape_entries": float(len(tape)),
            "two_qubit_gates": float(sum(len(gate) == 4 for gate in tape)),
            "cone_sizes": [float(size) for size in config["pauli_cone_sizes"]],
            "objective_bound": float(sum(abs(coefficient) for coefficient, _ in config["pauli_terms"])),
        }


# --- tape and terms ---------------------------------------------------------------------------------------------


@cache
def ladder_tape(n_qubits: int, n_layers: int, keep_probability: float, seed: int) -> tuple[Gate, ...]:
    """The random circuit of the statement on a ladder whose column c has lower leg 2c and upper leg 2c + 1."""
    rng = np.random.default_rng(seed)
    edges = _ladder_edges(n_qubits)
    tape: list[Gate] = []
    for _ in range(n_layers):
        for qubit in range(n_qubits):
            tape.append((("rx", "ry", "rz")[rng.integers(3)], qubit, len(tape)))
        shuffled = list(edges)
        rng.shuffle(shuffled)
        used: set[int] = set()
        for a, b in shuffled:
            if used.intersection((a, b)) or rng.random() > keep_probability:
                continue
            tape.append((("rxx", "ryy", "rzz")[rng.integers(3)], a, b, len(tape)))
            used.update((a, b))
    return tuple(tape)


def _ladder_edges(n_qubits: int) -> list[tuple[int, int]]:
    edges = []
    for column in range(n_qubits // 2):
        lower, upper = 2 * column, 2 * column + 1
        edges.append((lower, upper))
        if column + 1 < n_qubits // 2:
            edges += [(lower, lower + 2), (upper, upper + 2)]
            edges.append((lower, upper + 2) if column % 2 == 0 else (upper, lower + 2))
    return edges


def _with_terms(config: Config, tape: tuple[Gate, ...], terms: tuple[Term, ...]) -> Config:
    sizes = tuple(len(_cone(tape, term).sites) for term in terms)
    added: dict[str, Any] = {"gate_tape": tape, "parameter_count": len(tape), "pauli_terms": terms}
    return {**config, **added, "pauli_cone_sizes": sizes}


def _random_term(n_qubits: int, rng: np.random.Generator) -> Term:
    """One or two letters not more than three qubits apart."""
    first = int(rng.integers(n_qubits - 3))
    sites = (first, first + int(rng.integers(1, 4)))[: int(rng.integers(1, 3))]
    coefficient = float(rng.uniform(0.4, 1.2) * rng.choice((-1.0, 1.0)))
    return coefficient, tuple((site, str(rng.choice(("X", "Y", "Z")))) for site in sites)


def _cone(tape: tuple[Gate, ...], term: Term) -> Cone:
    return causal_cone(tape, [site for site, _ in term[1]])


def inside_cones(config: Config) -> NDArray[np.bool_]:
    """Which parameters belong to a gate in the cone of some term."""
    inside = np.zeros(config["parameter_count"], dtype=bool)
    for term in config["pauli_terms"]:
        inside[list(_cone(config["gate_tape"], term).parameters)] = True
    return inside


EVALUATOR = Lightcone()
