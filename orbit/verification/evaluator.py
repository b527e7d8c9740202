"""What a task's `tests/evaluator.py` and `tests/oracle.py` provide, and the machinery they share.

A task file defines `EVALUATOR`, an instance of a subclass of `Evaluator`, and an oracle module defines `ORACLE`, an
instance of a subclass of `Oracle`. Both read arrays; neither ever runs candidate code. The generic checks (form,
recomputation, first update, replay, probes) live in `functional` and `probes` and call these hooks, so a task file
holds its physics, thresholds and draws and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbit.physics.adam import adam_for
from orbit.verification.comparisons import at_least, at_most, below, not_applicable
from orbit.verification.verdict import Contract, Evidence

Array = NDArray[Any]
Config = dict[str, Any]
Outputs = Mapping[str, Array]
Noise = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class RunKind(StrEnum):
    """Why a run is made; the candidate cannot tell."""

    TIMED = "timed"
    PROBE = "probe"
    FULL_PROBE = "full-probe"


@dataclass(frozen=True)
class Run:
    """One execution and what is known of it."""

    kind: RunKind
    name: str
    config: Config


@dataclass(frozen=True)
class ArraySpec:
    """Form of one result: `shape`, integer or real, and whether `orbit-q-1` has the key too."""

    shape: tuple[int, ...]
    integer: bool = False
    published: bool = False


@dataclass(frozen=True)
class Tolerance:
    """Allowed distance from the expected value x: `absolute + relative * |x|`, or `floor_relative * max(1, |x|)`.

    Attributes:
        period: compare modulo this period (2 pi for phases).
        logarithm: compare natural logarithms (probabilities).
        steps: for parameters; entry k of the leading axis is allowed `steps[k]` (0.02 learning_rate k).
        maskable: entries along the trailing axes that single-precision noise moves may be left out (parameters).
    """

    absolute: float = 0.0
    relative: float = 0.0
    floor_relative: float = 0.0
    period: float | None = None
    logarithm: bool = False
    steps: NDArray[np.float64] | None = None
    maskable: bool = False

    def allowed(self, expected: Array) -> Array:
        """Largest distance allowed from each entry of `expected`, of the same shape."""
        size = np.abs(np.log(expected) if self.logarithm else expected)
        allowed = self.absolute + self.relative * size + self.floor_relative * np.maximum(1.0, size)
        if self.steps is not None:
            allowed = allowed + np.reshape(self.steps, (-1,) + (1,) * (np.ndim(expected) - 1))
        return np.asarray(allowed)

    def distance(self, actual: Array, expected: Array) -> Array:
        """Entry-wise distance in the units of `allowed`; infinite where `actual` has no logarithm."""
        if self.logarithm:
            safe = np.where(actual > 0, actual, 1.0)
            return np.where(actual > 0, np.abs(np.log(safe) - np.log(expected)), np.inf)
        difference = np.asarray(actual, dtype=np.float64) - expected
        if self.period is not None:
            difference = (difference + self.period / 2) % self.period - self.period / 2
        return np.abs(difference)


SCALAR = Tolerance(floor_relative=2e-4)
"""Energies, entropies and log-probabilities of probes."""
VANISHING = Tolerance(relative=5e-3, absolute=1e-8)
"""Losses that vanish, fidelities and success probabilities of probes."""


@dataclass(frozen=True)
class Evaluation:
    """The trusted value of everything a history reports, at one parameter vector.

    Attributes:
        observables: result key of a history (or of a final quantity) to its entry at these parameters.
        gradient: of the loss, shaped like the parameters; None if it was not asked for.
    """

    observables: Mapping[str, Any]
    gradient: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Trajectory:
    """A whole optimization: `parameters[k]` are those before update k, the last row those after all updates."""

    parameters: NDArray[np.float64]
    evaluations: list[Evaluation]
    final: Evaluation

    def history(self, key: str) -> NDArray[np.float64]:
        """One entry per update, evaluated before it."""
        return np.array([evaluation.observables[key] for evaluation in self.evaluations])


class Oracle(ABC):
    """The independent float64 implementation of a task that probes are compared with.

    Attributes:
        mutations: names of deliberately wrong variants of `evaluate` beside the wrong optimizers in
            `orbit.physics.adam.MUTATIONS`; a probe draw must tell each of all of them from the truth.
        noise: relative and absolute single-precision gradient noise used to find unstable draws.
    """

    mutations: tuple[str, ...] = ()
    noise: tuple[float, float] = (1e-6, 1e-7)

    @abstractmethod
    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Observables and exact gradient at `parameters` (shape as in the task's parameter table)."""

    @abstractmethod
    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The result dictionary that a correct solution would return, parameters included."""

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Where the optimization starts: what `config` hands in."""
        return np.asarray(config["initial_parameters"], dtype=np.float64)

    def solve(self, config: Config, *, noise: Noise | None = None, mutation: str | None = None) -> dict[str, Array]:
        """Run the whole workflow: `max_steps` Adam updates from the initial parameters.

        Args:
            config: the task's configuration.
            noise: perturbs every gradient, and the optimizer then works in single precision; used to find draws
                that single precision cannot resolve.
            mutation: name of a wrong variant, of the physics or of the optimizer.
        """
        optimizer = adam_for(config["learning_rate"], mutation, single_precision=noise is not None)
        parameters = self.initial_parameters(config)
        rows, evaluations = [parameters], []
        for _ in range(config["max_steps"]):
            evaluation = self.evaluate(config, parameters, mutation)
            assert evaluation.gradient is not None
            gradient = evaluation.gradient if noise is None else noise(evaluation.gradient)
            evaluations.append(evaluation)
            parameters = optimizer.update(parameters, gradient)
            rows.append(parameters)
        final = self.evaluate(config, parameters, mutation)
        return self.outputs(config, Trajectory(np.array(rows), evaluations, final))


class Evaluator(ABC):
    """The trusted checks of one task. Subclasses override what differs.

    Attributes:
        has_parameters: whether the task has parameters at all.
        probe_steps: smallest and largest `max_steps` of a small probe.
        gradient_noise: absolute single-precision noise of a gradient entry at default size, as measured.
    """

    has_parameters: bool = True
    probe_steps: tuple[int, int] = (3, 12)
    gradient_noise: float = 1e-6

    # --- inputs -----------------------------------------------------------------------------------------------

    def orbit_2_defaults(self, defaults: Config) -> Config:
        """The published configuration with what `orbit-2` hands in otherwise, in every draw alike."""
        return defaults

    def prepare(self, config: Config) -> Config:
        """Add what is made before the timed call (a DMRG state, a gate tape, uniforms); deterministic and cached."""
        return config

    @abstractmethod
    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """The start that the statement prescribes for `config["seed"]`, or the fixed one."""

    @abstractmethod
    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """A fresh default-size configuration: drawn seed or physics, `initial_parameters`, `checkpoint_steps`."""

    @abstractmethod
    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """A small random configuration in the disclosed ranges; it may still be unstable or blunt."""

    @abstractmethod
    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """Default size, three steps, parameters away from zero: at scale 0.3 or as the statement says."""

    # --- judgement --------------------------------------------------------------------------------------------

    @abstractmethod
    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """Every result key of `orbit-2` with its form."""

    @abstractmethod
    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """What must hold at every step: composition of the loss, bounds. Keys that are absent are not looked at."""

    @abstractmethod
    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """What the timed run must reach."""

    @abstractmethod
    def published_criteria(self) -> frozenset[str]:
        """Names of the checks that `orbit-q-1` can fail; every other one can only flag there."""

    @abstractmethod
    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """Trusted observables at `parameters` by the evaluator's own simulation, at any size the task uses."""

    def final_parameters(self, config: Config, outputs: Outputs) -> NDArray[np.float64] | None:
        """The parameters after the last update, from whichever key holds them; None if the outputs do not tell."""
        value = outputs.get("final_parameters")
        return None if value is None else np.asarray(value, dtype=np.float64)

    def final_quantities(self, config: Config, outputs: Outputs) -> dict[str, Tolerance]:
        """Result keys evaluated after the last update, to be recomputed at `final_parameters`."""
        return {}

    @abstractmethod
    def histories(self, config: Config) -> dict[str, Tolerance]:
        """Result keys with one entry per step, with the tolerance of recomputation at this size."""

    def replay_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """Of histories from the paired reference's; wider where the statement allows an approximation."""
        return self.histories(config)

    def replay_slack(self, config: Config) -> float:
        """Learning rates by which trained parameters may differ from the reference's beyond rounding.

        More than zero where the statement allows an approximation.
        """
        return 0.0

    @abstractmethod
    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """Result keys that probes compare with the oracle."""

    def task_checks(self, run: Run, outputs: Outputs) -> list[Evidence]:
        """Checks that no other hook expresses (a distribution test, a trajectory against a full-size oracle)."""
        return []

    def drawn_checks(self, run: Run, outputs: Outputs, rng: np.random.Generator) -> list[Evidence]:
        """Checks of a part that `rng`, a secret of the verification, chooses, so that no result is made for them."""
        return []

    def by_step(self, config: Config, outputs: Outputs) -> Outputs:
        """The outputs with the step as the first axis of every history, for tasks that report it as another one."""
        return outputs

    def part_to_recompute(self, config: Config, outputs: Outputs, rng: np.random.Generator) -> tuple[Config, Outputs]:
        """The drawn part of a run that recomputation and first update look at, where the whole would take too long.

        `outputs` come, and go, with histories by step.
        """
        return config, outputs

    # --- probes that only tell something together -------------------------------------------------------------

    def draw_joint_probe(self, defaults: Config, oracle: Oracle, rng: np.random.Generator) -> list[Config]:
        """Small configurations whose outcomes are judged together, in place of single small probes.

        Empty where single probes are compared with the oracle. The draw must be sharp: `judge_joint_probe` has to
        reject every mutation of the oracle.
        """
        return []

    def judge_joint_probe(
        self, configs: Sequence[Config], outputs: Sequence[Outputs], oracle: Oracle, rng: np.random.Generator
    ) -> list[Evidence]:
        """Judge the outcomes of `draw_joint_probe`; they have the right form."""
        raise NotImplementedError(f"{type(self).__name__} draws joint probes but does not judge them")

    def perturbed(self, config: Config, rng: np.random.Generator) -> Config:
        """The same run, moved by single-precision rounding, to measure how far an honest history may stray."""
        changed = dict(config)
        start = np.asarray(config.get("initial_parameters", self.initial_parameters(config)), dtype=np.float64)
        changed["initial_parameters"] = start * (1 + 1e-6 * rng.standard_normal(start.shape))
        return changed

    # --- exact references -------------------------------------------------------------------------------------

    def exact_keys(self) -> tuple[str, ...]:
        """Configuration keys that the exact references depend on."""
        return ()

    lookup_exact: Callable[[Config], dict[str, float | list[float]] | None] | None = None
    """Finds stored exact references; set by whoever loads the task."""

    def exact(self, config: Config) -> dict[str, float | list[float]]:
        """Exact references of a configuration: the stored ones, else computed now and kept for this process."""
        stored = None if self.lookup_exact is None else self.lookup_exact(config)
        if stored is not None:
            return stored
        known: dict[str, dict[str, float | list[float]]] = self.__dict__.setdefault("_computed_exact", {})
        key = repr([config[name] for name in self.exact_keys()])
        if key not in known:
            known[key] = self.compute_exact(config)
        return known[key]

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Ground-state energies and the like, by a closed form or an independent method; stored in `exact.json`."""
        return {}


def parameter_tolerances(config: Config) -> dict[str, Tolerance]:
    """Tolerances of returned parameters: `0.02 learning_rate k` after k updates, ill-conditioned entries left out."""
    step = 0.02 * config["learning_rate"]
    after = step * np.asarray(config.get("checkpoint_steps", ()), dtype=np.float64)
    return {
        "checkpoint_parameters": Tolerance(steps=after, maskable=True),
        "final_parameters": Tolerance(absolute=step * config["max_steps"], maskable=True),
    }


def trajectory_parameters(config: Config, trajectory: Trajectory) -> dict[str, Array]:
    """The three parameter results that every task with parameters returns."""
    return {
        "initial_parameters": trajectory.parameters[0],
        "final_parameters": trajectory.parameters[-1],
        "checkpoint_parameters": trajectory.parameters[list(config.get("checkpoint_steps", ()))],
    }


def parameter_specs(config: Config, shape: tuple[int, ...]) -> dict[str, ArraySpec]:
    """Form of the three parameter results for parameters of the given shape."""
    specs = {"initial_parameters": ArraySpec(shape), "final_parameters": ArraySpec(shape)}
    if "checkpoint_steps" in config:
        specs["checkpoint_parameters"] = ArraySpec((len(config["checkpoint_steps"]), *shape))
    return specs


def draw_checkpoints(max_steps: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Ascending step indices: 1, 2 and three drawn ones, fewer where the run is short."""
    later = np.arange(3, max_steps)
    drawn = rng.choice(later, size=min(3, len(later)), replace=False) if len(later) else np.array([], dtype=int)
    fixed = [step for step in (1, 2) if step < max_steps]
    return tuple(int(step) for step in (*fixed, *np.sort(drawn)))


__all__ = [
    "SCALAR",
    "VANISHING",
    "Array",
    "ArraySpec",
    "Config",
    "Contract",
    "Evaluation",
    "Evaluator",
    "Oracle",
    "Outputs",
    "Run",
    "RunKind",
    "Tolerance",
    "Trajectory",
    "at_least",
    "at_most",
    "below",
    "draw_checkpoints",
    "not_applicable",
    "parameter_specs",
    "parameter_tolerances",
    "trajectory_parameters",
]
