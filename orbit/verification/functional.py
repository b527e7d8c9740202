"""The trusted checks of one run: form, invariants, thresholds, recomputation, first update, replay.

Nothing here runs candidate code; it reads arrays. `judge` applies the checks in the order of the task book and stops
after the form, since later checks rely on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orbit.verification.evaluator import (
    Array,
    ArraySpec,
    Config,
    Evaluator,
    Outputs,
    Run,
    RunKind,
    Tolerance,
    at_most,
    not_applicable,
)
from orbit.verification.replay import Replay, check_replay
from orbit.verification.verdict import Contract, Evidence, Outcome

MIN_MOVES = 5
"""Fewer say nothing of the next: a reference failed where a quantity turned around in the two moves of a probe."""

ABSURD = 1e100
"""No task has numbers of this size, and the square of a larger one is not finite."""
MIN_SHAPE_ENTRIES = 6
"""Shorter histories say nothing about being constant or linear."""


def judge(
    evaluator: Evaluator,
    run: Run,
    outputs: Outputs,
    *,
    contract: Contract,
    replay: Replay | None = None,
    rng: np.random.Generator,
) -> list[Evidence]:
    """Every check that applies to this run, in order; failures that the contract does not know become flags."""
    evidence = check_form(evaluator.result_spec(run.config), outputs, contract)
    if not any(item.outcome is Outcome.FAIL for item in evidence):
        clean = as_float64(evaluator.result_spec(run.config), outputs)
        with np.errstate(all="ignore"):  # absurd but finite numbers overflow to inf, which no limit admits
            stepwise = evaluator.by_step(run.config, clean)
            evidence += check_shape_of_histories(evaluator, run, stepwise)
            evidence += evaluator.invariants(run.config, clean)
            if run.kind is RunKind.TIMED:
                evidence += evaluator.thresholds(run.config, clean)
            if evaluator.has_parameters:
                evidence += check_start(evaluator, run.config, clean)
                config, part = evaluator.part_to_recompute(run.config, stepwise, rng)
                evidence += check_recomputation(evaluator, config, part)
                evidence += check_first_update(evaluator, config, part, rng)
            if replay is not None:
                evidence += check_replay(evaluator, run.config, stepwise, replay)
            evidence += evaluator.task_checks(run, clean)
            evidence += evaluator.drawn_checks(run, clean, rng)
    if contract is Contract.ORBIT_Q_1:
        evidence = soften(evidence, evaluator.published_criteria() | {"form"})
    return [item.model_copy(update={"run": run.name}) for item in evidence]


def soften(evidence: list[Evidence], criteria: frozenset[str]) -> list[Evidence]:
    """Turn failures of checks outside `criteria` into flags."""
    return [
        item.model_copy(update={"outcome": Outcome.FLAG})
        if item.outcome is Outcome.FAIL and item.check not in criteria
        else item
        for item in evidence
    ]


def as_float64(spec: dict[str, ArraySpec], outputs: Outputs) -> dict[str, Array]:
    """The outputs that the task names, reals as float64 and integers as int64."""
    return {
        key: np.asarray(outputs[key], dtype=np.int64 if form.integer else np.float64)
        for key, form in spec.items()
        if key in outputs
    }


# --- form -------------------------------------------------------------------------------------------------------


def check_form(spec: dict[str, ArraySpec], outputs: Outputs, contract: Contract) -> list[Evidence]:
    """Keys, shapes, real numeric types, finite values. One failure per key, or a single pass."""
    problems = []
    for key, form in spec.items():
        if key in outputs:
            problem = _form_problem(outputs[key], form)
        elif contract is Contract.ORBIT_2 or form.published:
            problem = "is missing"
        else:
            problem = None
        if problem:
            message = f"result key {key!r} {problem}"
            problems.append(
                Evidence(check="form", outcome=Outcome.FAIL, value=key, limit=str(form.shape), message=message)
            )
    if problems:
        return problems
    unknown = sorted(set(outputs) - set(spec))
    ignored = f"; ignored: {', '.join(unknown[:8])}" if unknown else ""
    return [Evidence(check="form", outcome=Outcome.PASS, message=f"{len(spec)} result keys{ignored}")]


def _form_problem(value: Array, form: ArraySpec) -> str | None:
    if value.dtype.kind not in ("iu" if form.integer else "fiu"):
        wanted = "an integer" if form.integer else "a real numeric"
        return f"has dtype {value.dtype}, not {wanted} one"
    if value.shape != form.shape:
        return f"has shape {value.shape}, not {form.shape}"
    if form.integer:
        return None
    finite = np.abs(np.asarray(value, dtype=np.float64)) <= ABSURD
    if not finite.all():
        where = np.argwhere(~finite)[0].tolist()
        return f"has {int((~finite).sum())} entries that are not finite or beyond {ABSURD:g}, the first at {where}"
    return None


def check_shape_of_histories(evaluator: Evaluator, run: Run, outputs: Outputs) -> list[Evidence]:
    """A trained quantity is neither constant nor exactly linear in the step."""
    evidence = []
    for key in evaluator.histories(run.config):
        history = outputs.get(key)
        if history is None or len(history) < MIN_SHAPE_ENTRIES:
            continue
        columns = history.reshape(len(history), -1)
        spread = float(np.ptp(columns, axis=0).max())
        check = f"shape:{key}"
        if not spread > 0:
            evidence.append(Evidence(check=check, outcome=Outcome.FAIL, value=spread, message=f"{key} is constant"))
            continue
        steps = np.linspace(-1, 1, len(history))
        line = np.outer(steps, steps @ columns / (steps @ steps)) + columns.mean(axis=0)
        bend = float(np.abs(columns - line).max() / spread)
        # Rounding of a stored straight line is 1e-7 of its values in single precision; real training bends by far more.
        straight = Outcome.PASS if bend > 1e-6 else Outcome.FAIL
        evidence.append(
            Evidence(check=check, outcome=straight, value=bend, limit=1e-6, message=f"distance of {key} from a line")
        )
    return evidence


# --- recomputation ----------------------------------------------------------------------------------------------


def check_start(evaluator: Evaluator, config: Config, outputs: Outputs) -> list[Evidence]:
    """`initial_parameters` are those handed in, or those the statement prescribes for the seed."""
    if "initial_parameters" not in outputs:
        return [not_applicable("initial_parameters", "not among the results")]
    prescribed = config.get("initial_parameters")
    start = evaluator.initial_parameters(config) if prescribed is None else np.asarray(prescribed, dtype=np.float64)
    distance = float(np.abs(outputs["initial_parameters"] - start).max(initial=0.0))
    # Single precision keeps 6e-8 of a value; the start is of order one at most.
    limit = 1e-6 * max(1.0, float(np.abs(start).max(initial=0.0)))
    return [at_most("initial_parameters", distance, limit, "distance from the prescribed start")]


def check_recomputation(evaluator: Evaluator, config: Config, outputs: Outputs) -> list[Evidence]:
    """First entry, checkpoints and final quantities from the returned parameters, by the evaluator's simulation."""
    start = np.asarray(config.get("initial_parameters", outputs.get("initial_parameters")), dtype=np.float64)
    if start.ndim == 0:  # neither handed in nor returned, as in the published contract
        start = evaluator.initial_parameters(config)
    entries = [(0, start)]
    rows = outputs.get("checkpoint_parameters")
    if rows is not None:
        entries += [(int(step), row) for step, row in zip(config["checkpoint_steps"], rows, strict=True)]
    trusted = [(step, evaluator.evaluate(config, parameters).observables) for step, parameters in entries]
    histories = {key: tolerance for key, tolerance in evaluator.histories(config).items() if key in outputs}
    evidence = []
    for key, tolerance in histories.items():
        pairs = [(f"entry {step}", outputs[key][step], observables[key]) for step, observables in trusted]
        evidence.append(_worst(f"recompute:{key}", pairs, tolerance))
    return evidence + _check_final(evaluator, config, outputs, histories)


def _check_final(
    evaluator: Evaluator, config: Config, outputs: Outputs, histories: dict[str, Tolerance]
) -> list[Evidence]:
    final = evaluator.final_parameters(config, outputs)
    if final is None:
        return [not_applicable("continuity", "no final parameters among the results")]
    observables = evaluator.evaluate(config, final).observables
    quantities = {key: value for key, value in evaluator.final_quantities(config, outputs).items() if key in outputs}
    evidence = [
        _worst(f"final:{key}", [("after the last update", outputs[key], observables[key])], tolerance)
        for key, tolerance in quantities.items()
    ]
    for key, tolerance in histories.items():
        history = outputs[key]
        moves = np.abs(np.diff(history[-21:], axis=0))
        if len(moves) < MIN_MOVES:
            continue
        expected = np.asarray(observables[key], dtype=np.float64)
        limit = 3 * float(moves.max()) + float(np.max(tolerance.allowed(expected)))
        distance = float(np.max(np.abs(history[-1] - expected)))
        evidence.append(at_most(f"continuity:{key}", distance, limit, f"{key} at final_parameters from its last entry"))
    return evidence


def _worst(check: str, pairs: Sequence[tuple[str, Array, Array]], tolerance: Tolerance) -> Evidence:
    """Evidence of the entry that is farthest from the trusted value, measured in its own tolerance."""
    worst: Evidence | None = None
    worst_ratio = -1.0
    for where, actual, expected in pairs:
        trusted = np.asarray(expected, dtype=np.float64)
        distance = np.atleast_1d(tolerance.distance(np.asarray(actual), trusted)).ravel()
        allowed = np.broadcast_to(np.atleast_1d(tolerance.allowed(trusted)).ravel(), distance.shape)
        ratio = np.nan_to_num(distance / allowed, nan=np.inf)
        index = int(np.argmax(ratio))
        if ratio[index] > worst_ratio:
            worst_ratio = float(ratio[index])
            shown, true = np.atleast_1d(np.asarray(actual)).ravel()[index], np.atleast_1d(trusted).ravel()[index]
            message = f"{where}: {shown:.9g}, recomputed {true:.9g}"
            worst = at_most(check, float(distance[index]), float(allowed[index]), message)
    assert worst is not None, f"{check} compared nothing"
    return worst


def check_first_update(
    evaluator: Evaluator, config: Config, outputs: Outputs, rng: np.random.Generator
) -> list[Evidence]:
    """Adam's first update moves every parameter by the learning rate against the sign of its gradient."""
    steps = list(config.get("checkpoint_steps", ()))
    if not {"checkpoint_parameters", "initial_parameters"} <= outputs.keys() or 1 not in steps:
        return [not_applicable("first_update", "the parameters after one update are not among the results")]
    start = np.asarray(outputs["initial_parameters"]).ravel()
    moved = np.asarray(outputs["checkpoint_parameters"])[steps.index(1)].ravel() - start
    gradient = evaluator.evaluate(config, start.reshape(outputs["initial_parameters"].shape), gradient=True).gradient
    assert gradient is not None
    chosen = _well_conditioned(gradient.ravel(), evaluator.gradient_noise, rng)
    if len(chosen) < 3:
        return [not_applicable("first_update", f"only {len(chosen)} parameters have a gradient well above noise")]
    rate = config["learning_rate"]
    distance = np.abs(moved[chosen] + rate * np.sign(gradient.ravel()[chosen]))
    worst = int(np.argmax(distance))
    # The exact move is rate * |g| / (|g| + 1e-8); 2% of the rate covers that and single-precision parameters.
    message = f"parameter {int(chosen[worst])} moved by {moved[chosen[worst]]:.6g}"
    return [at_most("first_update", float(distance[worst]), 0.02 * rate + 1e-6, message)]


def _well_conditioned(gradient: NDArray[np.float64], noise: float, rng: np.random.Generator) -> NDArray[np.int64]:
    size = np.abs(gradient)
    eligible = np.flatnonzero(size >= max(1e-2 * float(size.max(initial=0.0)), 50 * noise))
    return np.sort(rng.choice(eligible, size=min(8, len(eligible)), replace=False))
