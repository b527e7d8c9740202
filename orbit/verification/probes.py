"""Probes: small random configurations whose whole outcome is known from the oracle.

A draw is used only when it is stable (single-precision noise on the gradients moves no output by more than a fifth of
its tolerance, ill-conditioned parameters left out) and sharp (every known wrong variant of the task differs from the
truth by at least five tolerances somewhere), so that a correct single-precision solution never fails and a wrong one
never passes by luck of the draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orbit.errors import HarnessError
from orbit.physics.adam import MUTATIONS as WRONG_OPTIMIZERS
from orbit.verification.evaluator import Array, Config, Evaluator, Noise, Oracle, Outputs, Run, RunKind, Tolerance
from orbit.verification.functional import as_float64, check_form
from orbit.verification.verdict import Contract, Evidence, Outcome

STABLE_FRACTION = 0.2
SHARP_FACTOR = 5.0
N_NOISE_RUNS = 3
MASK_NOISE = 4.0
"""As many runs again, with so much more noise, say which parameters cannot be compared.

An entry that noise moves by one tolerance (root mean square) stays within a fifth of it in all of three runs once in
250 times; among hundreds of parameters some did, and then moved.
"""
MAX_DRAWS = 60
MAX_LEFT_OUT = 0.5
"""A draw in which more than this share of the parameters cannot be compared is no good."""


@dataclass(frozen=True)
class Probe:
    """A conditioned draw: what is asked, what is right, and which parameter entries are comparable."""

    run: Run
    expected: Mapping[str, Array]
    comparable: Mapping[str, NDArray[np.bool_]]
    n_left_out: int
    n_draws: int

    @property
    def runs(self) -> tuple[Run, ...]:
        """The one run that is made."""
        return (self.run,)


@dataclass(frozen=True)
class JointProbe:
    """Runs that only tell something together: samples with equal and with different seeds."""

    runs: tuple[Run, ...]


def draw_probes(
    evaluator: Evaluator, oracle: Oracle, defaults: Config, rngs: Sequence[np.random.Generator]
) -> list[Probe | JointProbe]:
    """One probe per generator, the first one long; or the task's joint probe, whatever their number.

    Raises:
        HarnessError: see `draw_probe`.
    """
    if not rngs:
        return []
    joint = evaluator.draw_joint_probe(defaults, oracle, rngs[0])
    if joint:
        return [JointProbe(tuple(Run(RunKind.PROBE, f"probe-{k + 1}", config) for k, config in enumerate(joint)))]
    return [
        draw_probe(evaluator, oracle, defaults, rng, name=f"probe-{k + 1}", long=k == 0) for k, rng in enumerate(rngs)
    ]


def draw_probe(
    evaluator: Evaluator, oracle: Oracle, defaults: Config, rng: np.random.Generator, *, name: str, long: bool
) -> Probe:
    """Draw until a configuration is both stable and sharp.

    Args:
        evaluator: the task's checks.
        oracle: the task's independent implementation.
        defaults: the published default configuration.
        rng: source of the secret draw.
        name: of the run.
        long: whether to use at least ten steps, where the task allows so many.

    Raises:
        HarnessError: no draw of `MAX_DRAWS` was usable; the task's ranges do not suit its tolerances.
    """
    shortest, longest = evaluator.probe_steps
    lowest = min(10, longest) if long else shortest
    reasons: list[str] = []
    for attempt in range(1, MAX_DRAWS + 1):
        config = evaluator.draw_probe(defaults, rng, int(rng.integers(lowest, longest + 1)))
        expected = oracle.solve(config)
        comparable, problem = _stability(evaluator, oracle, config, expected, rng)
        problem = problem or _bluntness(evaluator, oracle, config, expected, comparable)
        if problem is None:
            n_left_out = sum(int((~mask).sum()) for mask in comparable.values())
            return Probe(Run(RunKind.PROBE, name, config), expected, comparable, n_left_out, attempt)
        reasons.append(problem)
    common = max(set(reasons), key=reasons.count)
    raise HarnessError(f"{MAX_DRAWS} probe draws in a row were unusable, most often because {common}")


def single_precision_noise(oracle: Oracle, rng: np.random.Generator, factor: float = 1.0) -> Noise:
    """Gradient noise of the size that single precision leaves, per entry, or `factor` times as much."""
    relative, absolute = (factor * size for size in oracle.noise)

    def perturb(gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        scale = relative * np.abs(gradient) + absolute
        return gradient + scale * rng.standard_normal(gradient.shape)

    return perturb


def ratios(
    tolerances: Mapping[str, Tolerance], actual: Outputs, expected: Outputs, comparable: Mapping[str, NDArray[np.bool_]]
) -> dict[str, Array]:
    """Distance from the expected value in units of the tolerance, entry by entry; 0 where it is not comparable."""
    found = {}
    for key, tolerance in tolerances.items():
        true = np.asarray(expected[key], dtype=np.float64)
        ratio = np.nan_to_num(tolerance.distance(np.asarray(actual[key]), true) / tolerance.allowed(true), nan=np.inf)
        found[key] = np.where(comparable.get(key, True), ratio, 0.0)
    return found


def _stability(
    evaluator: Evaluator, oracle: Oracle, config: Config, expected: Outputs, rng: np.random.Generator
) -> tuple[dict[str, NDArray[np.bool_]], str | None]:
    tolerances = evaluator.probe_tolerances(config)
    comparable = {key: np.ones(np.shape(expected[key]), dtype=bool) for key, t in tolerances.items() if t.maskable}
    for _ in range(N_NOISE_RUNS):
        noisy = oracle.solve(config, noise=single_precision_noise(oracle, rng))
        for key, ratio in ratios(tolerances, noisy, expected, {}).items():
            moved = ratio > STABLE_FRACTION
            if key in comparable:
                comparable[key] &= ~moved
            elif moved.any():
                return comparable, f"single-precision noise moves {key}"
    (mask_rng,) = rng.spawn(1)
    for _ in range(N_NOISE_RUNS if comparable else 0):
        noisy = oracle.solve(config, noise=single_precision_noise(oracle, mask_rng, MASK_NOISE))
        found = ratios({key: tolerances[key] for key in comparable}, noisy, expected, {})
        for key, ratio in found.items():
            comparable[key] &= ratio <= STABLE_FRACTION
    for key, mask in comparable.items():
        if mask.size and 1 - mask.mean() > MAX_LEFT_OUT:
            return comparable, f"too few entries of {key} are well-conditioned"
    return comparable, None


def _bluntness(
    evaluator: Evaluator,
    oracle: Oracle,
    config: Config,
    expected: Outputs,
    comparable: Mapping[str, NDArray[np.bool_]],
) -> str | None:
    tolerances = evaluator.probe_tolerances(config)
    optimizers = WRONG_OPTIMIZERS if evaluator.has_parameters else ()
    for mutation in (*oracle.mutations, *optimizers):
        wrong = oracle.solve(config, mutation=mutation)
        apart = max(float(ratio.max(initial=0.0)) for ratio in ratios(tolerances, wrong, expected, comparable).values())
        if apart < SHARP_FACTOR:
            return f"the wrong variant {mutation!r} cannot be told from the truth"
    return None


def compare(evaluator: Evaluator, probe: Probe, outputs: Outputs) -> list[Evidence]:
    """The outcome of a probe run against the oracle, one piece of evidence per compared result key."""
    spec = evaluator.result_spec(probe.run.config)
    evidence = check_form(spec, outputs, Contract.ORBIT_2)
    if not any(item.outcome is Outcome.FAIL for item in evidence):
        clean = as_float64(spec, outputs)
        tolerances = evaluator.probe_tolerances(probe.run.config)
        with np.errstate(all="ignore"):  # absurd but finite numbers overflow to inf, which no limit admits
            evidence += evaluator.invariants(probe.run.config, clean)
            found = ratios(tolerances, clean, probe.expected, probe.comparable)
            evidence += [_compared(key, tolerances[key], ratio, clean, probe) for key, ratio in found.items()]
    return [item.model_copy(update={"run": probe.run.name}) for item in evidence]


def compare_joint(
    evaluator: Evaluator,
    oracle: Oracle,
    probe: JointProbe,
    outputs: Sequence[Outputs],
    rng: np.random.Generator,
) -> list[Evidence]:
    """The outcome of all runs of a joint probe; form and invariants run by run, the rest together."""
    evidence: list[Evidence] = []
    cleaned = []
    for run, found in zip(probe.runs, outputs, strict=True):
        spec = evaluator.result_spec(run.config)
        items = check_form(spec, found, Contract.ORBIT_2)
        if not any(item.outcome is Outcome.FAIL for item in items):
            cleaned.append(as_float64(spec, found))
            with np.errstate(all="ignore"):
                items += evaluator.invariants(run.config, cleaned[-1])
        evidence += [item.model_copy(update={"run": run.name}) for item in items]
    if any(item.outcome is Outcome.FAIL for item in evidence):
        return evidence
    judged = evaluator.judge_joint_probe([run.config for run in probe.runs], cleaned, oracle, rng)
    return evidence + [item.model_copy(update={"run": item.run or probe.runs[0].name}) for item in judged]


def _compared(key: str, tolerance: Tolerance, ratio: Array, outputs: Outputs, probe: Probe) -> Evidence:
    flat = np.atleast_1d(ratio).ravel()
    if not flat.size:
        return Evidence(check=f"probe:{key}", outcome=Outcome.NOT_APPLICABLE, message="nothing to compare")
    index = int(np.argmax(flat))
    actual, expected = np.atleast_1d(outputs[key]).ravel(), np.atleast_1d(probe.expected[key]).ravel()
    distance = np.atleast_1d(tolerance.distance(outputs[key], np.asarray(probe.expected[key]))).ravel()[index]
    allowed = np.broadcast_to(tolerance.allowed(np.asarray(probe.expected[key])), np.shape(ratio))
    mask = probe.comparable.get(key)
    left_out = 0 if mask is None else int((~mask).sum())
    where = tuple(int(part) for part in np.unravel_index(index, np.shape(ratio))) if np.ndim(ratio) else ()
    message = f"{key}{list(where) if where else ''}: {actual[index]:.9g}, oracle {expected[index]:.9g}"
    if left_out:
        message += f"; {left_out} of {flat.size} entries left out as ill-conditioned"
    return Evidence(
        check=f"probe:{key}",
        outcome=Outcome.PASS if flat[index] <= 1 else Outcome.FAIL,
        value=float(distance),
        limit=float(np.atleast_1d(allowed).ravel()[index]),
        message=message,
    )
