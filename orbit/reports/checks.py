"""Every check of a task with its limit, as data taken from the judge itself.

The judge is rehearsed: the real checks run on made-up results of the right form, with the simulation they would compare
with replaced by more made-up values, which takes no time at any size. Which checks there are, how a value must compare
with its limit, and the limit then stand in the evidence. A limit that is not the same for every made-up result or draw
is not a number of the task; what it is made of is told by the tolerance it comes from.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from orbit.tasks import Task
from orbit.verification import functional, probes
from orbit.verification.comparisons import Relation, noted_relations
from orbit.verification.evaluator import (
    Array,
    Config,
    Evaluation,
    Evaluator,
    Outputs,
    Run,
    RunKind,
    Tolerance,
    draw_checkpoints,
)
from orbit.verification.probes import JointProbe, Probe
from orbit.verification.replay import (
    FAR,
    PARAMETER_FACTOR,
    PARAMETER_FLOOR,
    PARAMETER_FLOOR_PER_STEP,
    REPLAY_FACTOR,
    REPLAY_FIRST,
    Replay,
)
from orbit.verification.verdict import Contract, Evidence, Outcome

SCALES = ((0.1, 0.9), (1.5, 3.0))
"""Ranges of made-up results; limits that are relative to a result differ between them."""
BITS = (0.5, 0.02)
"""Frequencies of 1 in made-up samples."""
UNNOTED = {"form": "", "shape": ">"}
"""Relations of checks that are not built from a comparison; the others compare a distance with what is allowed."""
VARIES = "a limit set by the results or the draw"
STARTS = (1.0, 100.0)
"""Factors of the start that is handed in."""
LENGTHS = (10**9, REPLAY_FIRST + 5)
"""Most updates of a rehearsed timed run; some judges follow all of them."""

MEANINGS = {
    "form": "keys, shapes, numeric types, finite values",
    "shape": "neither constant nor exactly linear in the step: distance from a line, over the spread",
    "initial_parameters": "distance from the start that was handed in or prescribed",
    "recompute": "first entry and checkpoints, recomputed at the returned parameters",
    "final": "recomputed at the final parameters",
    "continuity": "value at the final parameters, from the last entry",
    "first_update": "drawn parameters with a clear gradient moved by learning_rate against its sign",
    "replay": f"first {REPLAY_FIRST} entries, from the expert's run on the same draw",
    "replay_late": f"entries after the first {REPLAY_FIRST}, from the expert's run on the same draw",
    "replay_far": f"entries after the first {REPLAY_FIRST}, from the expert's run on the same draw",
    "probe": "from the oracle",
}
"""What the checks that every task shares look at, by the name before the colon."""
TRAINED_PARAMETERS = (
    "trained parameters, from the expert's run on the same draw; an allowance is "
    f"{PARAMETER_FACTOR:g} x the distance of runs that differ by rounding, {PARAMETER_FLOOR:g} learning rates, "
    f"{PARAMETER_FLOOR_PER_STEP:g} more with every update, and what approximations of the statement come to"
)
"""What `replay_late` and `replay_far` look at where the result key has no tolerance; only there do these differ."""


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: as in the evidence of a verdict.
        runs: kinds of runs it is made on.
        relation: of the measured value to the limit.
        limit: None where it is not the same for all results and draws.
        rule: what the limit is made of, where that says more than the number.
        meaning: what is measured.
        on_failure: `fail`, or `flag` where a failure asks for a review, or `never` where nothing can be looked at.
    """

    name: str
    runs: tuple[str, ...]
    relation: str
    limit: float | str | None
    rule: str
    meaning: str
    on_failure: str


@dataclass
class _Found:
    """What the rehearsals of one kind of run said of a check."""

    evidence: list[Evidence] = field(default_factory=list)
    tolerances: list[tuple[Tolerance, Config]] = field(default_factory=list)


def checks_of(task: Task, contract: Contract = Contract.ORBIT_2, defaults: Config | None = None) -> list[Check]:
    """The checks of a task, in the judge's order.

    Args:
        task: the task.
        contract: version of the interface.
        defaults: the configuration whose limits are asked for; the published one if omitted.
    """
    defaults = dict(task.config if defaults is None else defaults)
    evaluator = task.load_evaluator()
    published = evaluator.published_criteria() | {"form"}
    softens = contract is Contract.ORBIT_Q_1
    found: dict[str, dict[str, _Found]] = {}
    with noted_relations() as relations, np.errstate(all="ignore"):
        _note(found, evaluator, RunKind.TIMED, _timed(evaluator, defaults, contract))
        if contract is Contract.ORBIT_2:
            _note(found, evaluator, RunKind.FULL_PROBE, _full_probe(evaluator, defaults))
            _note(found, evaluator, RunKind.PROBE, _small_probes(task, evaluator, defaults))
    return [
        _check(name, kinds, seen, relations.get(name), softened=softens and name not in published)
        for name, by_kind in found.items()
        for kinds, seen in _alike(name, by_kind)
    ]


def _alike(name: str, by_kind: dict[str, _Found]) -> list[tuple[tuple[str, ...], _Found]]:
    """Kinds of runs that hold a check to the same limit, put together."""
    merged: dict[tuple[float | str | None, str], list[str]] = {}
    for kind, seen in by_kind.items():
        merged.setdefault(_limit(name, seen), []).append(kind)
    return [(tuple(kinds), by_kind[kinds[0]]) for kinds in merged.values()]


def _check(name: str, kinds: tuple[str, ...], seen: _Found, relation: Relation | None, *, softened: bool) -> Check:
    limit, rule = _limit(name, seen)
    if all(item.outcome is Outcome.NOT_APPLICABLE for item in seen.evidence):
        return Check(name, kinds, "", None, "not applicable", seen.evidence[0].message, "never")
    flags = softened or (relation is not None and relation.flag)
    symbol = UNNOTED.get(name.partition(":")[0], "<=") if relation is None else relation.symbol
    return Check(name, kinds, symbol, limit, rule, _meaning(name, seen), "flag" if flags else "fail")


# --- rehearsals -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rehearsal:
    """A configuration, what was made up for it, and what the judge said."""

    config: Config
    outputs: Outputs
    evidence: list[Evidence]


def _note(
    found: dict[str, dict[str, _Found]], evaluator: Evaluator, kind: RunKind, rehearsals: Iterable[_Rehearsal]
) -> None:
    for rehearsal in rehearsals:
        for item in rehearsal.evidence:
            entry = found.setdefault(item.check, {}).setdefault(kind.value, _Found())
            entry.evidence.append(item)
            tolerance = _tolerance(evaluator, item.check, rehearsal)
            if tolerance is not None:
                entry.tolerances.append((tolerance, rehearsal.config))


def _timed(evaluator: Evaluator, defaults: Config, contract: Contract) -> Iterator[_Rehearsal]:
    """The published configuration, with a start and checkpoints handed in where the contract does so."""
    closer = evaluator.orbit_2_defaults(dict(defaults)) if contract is Contract.ORBIT_2 else dict(defaults)
    prepared = evaluator.prepare(closer)
    for number in range(len(SCALES)):
        config = dict(prepared)
        if "max_steps" in config:
            config["max_steps"] = min(config["max_steps"], LENGTHS[number])
        if contract is Contract.ORBIT_2 and evaluator.has_parameters:
            start = STARTS[number] * evaluator.initial_parameters({**config, "seed": number})
            steps = draw_checkpoints(config["max_steps"], np.random.default_rng(number))
            config |= {"initial_parameters": start, "checkpoint_steps": steps}
        yield _judged(evaluator, Run(RunKind.TIMED, "timed", config), contract, number)


def _full_probe(evaluator: Evaluator, defaults: Config) -> Iterator[_Rehearsal]:
    for number in range(len(SCALES)):
        config = evaluator.prepare(evaluator.draw_full_probe(dict(defaults), np.random.default_rng(number)))
        yield _judged(evaluator, Run(RunKind.FULL_PROBE, "full-probe", config), Contract.ORBIT_2, number)


def _judged(evaluator: Evaluator, run: Run, contract: Contract, number: int) -> _Rehearsal:
    stage = _Stage(evaluator, number)
    outputs = stage.results(run.config)
    replayed = run.kind is RunKind.TIMED and evaluator.histories(run.config)
    replay = Replay(outputs, [outputs]) if replayed else None
    rng = np.random.default_rng(number)
    evidence = functional.judge(stage.evaluator, run, outputs, contract=contract, replay=replay, rng=rng)
    return _Rehearsal(run.config, outputs, evidence)


def _small_probes(task: Task, evaluator: Evaluator, defaults: Config) -> Iterator[_Rehearsal]:
    rng = np.random.default_rng(0)
    joint = joint_configs(task, evaluator, defaults, rng)
    runs = tuple(Run(RunKind.PROBE, f"probe-{number + 1}", config) for number, config in enumerate(joint))
    for number in range(len(SCALES)):
        stage = _Stage(evaluator, number)
        if runs:
            outputs = [stage.results(run.config) for run in runs]
            evidence = probes.compare_joint(stage.evaluator, task.load_oracle(), JointProbe(runs), outputs, rng)
            yield _Rehearsal(runs[0].config, outputs[0], evidence)
        else:
            config = evaluator.draw_probe(dict(defaults), rng, evaluator.probe_steps[number])
            made_up = stage.results(config)
            probe = Probe(Run(RunKind.PROBE, "probe", config), made_up, {}, 0, 1)
            yield _Rehearsal(config, made_up, probes.compare(stage.evaluator, probe, made_up))


def joint_configs(task: Task, evaluator: Evaluator, defaults: Config, rng: np.random.Generator) -> list[Config]:
    """The runs of a joint probe that need not tell wrong solutions from right ones; none where probes are single."""
    oracle = copy.copy(task.load_oracle())
    vars(oracle)["mutations"] = ()
    return evaluator.draw_joint_probe(dict(defaults), oracle, rng)


class _Stage:
    """An evaluator whose simulation is made up, and results to go with it."""

    def __init__(self, evaluator: Evaluator, number: int) -> None:
        self._number = number
        self.evaluator = copy.copy(evaluator)
        simulation: Callable[..., Evaluation] = self._evaluate
        vars(self.evaluator)["evaluate"] = simulation

    def results(self, config: Config) -> dict[str, Array]:
        """Arrays of the right form; the start is the one handed in."""
        rng, scale = np.random.default_rng(self._number), SCALES[self._number]
        made_up = {
            key: (rng.random(form.shape) < BITS[self._number]).astype(np.int64)
            if form.integer
            else rng.uniform(*scale, form.shape)
            for key, form in self.evaluator.result_spec(config).items()
        }
        if "initial_parameters" in made_up:
            start = config.get("initial_parameters")
            made_up["initial_parameters"] = np.array(
                self.evaluator.initial_parameters(config) if start is None else start, dtype=np.float64
            )
        return made_up

    def _evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """The first entry of every history, and everything else as a whole."""
        results = self.evaluator.by_step(config, self.results(config))
        histories = self.evaluator.histories(config)
        observables = {key: value[0] if key in histories else value for key, value in results.items()}
        return Evaluation(observables, np.ones(np.shape(parameters)) if gradient else None)


# --- limits -----------------------------------------------------------------------------------------------------


def _tolerance(evaluator: Evaluator, check: str, rehearsal: _Rehearsal) -> Tolerance | None:
    """The tolerance that a check of a result key uses."""
    config = rehearsal.config
    family, _, key = check.partition(":")
    if family in ("recompute", "continuity"):
        return evaluator.histories(config).get(key)
    if family.startswith("replay"):
        return evaluator.replay_tolerances(config).get(key)
    if family == "final":
        return evaluator.final_quantities(config, rehearsal.outputs).get(key)
    return evaluator.probe_tolerances(config).get(key) if family == "probe" else None


def _limit(check: str, found: _Found) -> tuple[float | str | None, str]:
    """The one limit of all rehearsals or None, and what it is made of."""
    if found.tolerances:
        return _limit_of_tolerances(check.partition(":")[0], found.tolerances)
    limits = {item.limit for item in found.evidence if item.limit is not None}
    only = limits.pop() if len(limits) == 1 else None
    if only is not None and (isinstance(only, str) or isfinite(only)):
        return only, ""
    return None, VARIES if limits or only is not None else ""


def _limit_of_tolerances(family: str, found: Sequence[tuple[Tolerance, Config]]) -> tuple[float | None, str]:
    rule = _rule(found)
    if family == "continuity":
        return None, f"{rule} + 3 x the largest of the last 20 moves"
    if family.startswith("replay"):
        rule = f"{rule} + {REPLAY_FACTOR:g} x the distance of runs that differ by rounding"
        return None, f"{FAR:g} x ({rule})" if family == "replay_far" else rule
    numbers = {None if _depends_on_entry(tolerance) else tolerance.absolute for tolerance, _ in found}
    return (numbers.pop() if len(numbers) == 1 else None), rule


def _depends_on_entry(tolerance: Tolerance) -> bool:
    return bool(tolerance.relative or tolerance.floor_relative or tolerance.steps is not None)


def _rule(tolerances: Sequence[tuple[Tolerance, Config]]) -> str:
    """The one formula that holds for all draws."""
    for in_updates in (False, True):
        rules = {tolerance_rule(tolerance, config, in_updates=in_updates) for tolerance, config in tolerances}
        if len(rules) == 1:
            return rules.pop()
    return VARIES if tolerances else ""


def tolerance_rule(tolerance: Tolerance, config: Config, *, in_updates: bool = False) -> str:
    """A tolerance as a formula of the expected value x.

    Args:
        tolerance: what is put into words.
        config: the configuration that it belongs to.
        in_updates: give its constant part in units of the learning rate times the number of updates.
    """
    rate, steps = config.get("learning_rate", 1.0), config.get("checkpoint_steps", ())
    parts = []
    if tolerance.steps is not None and steps:
        parts.append(f"{tolerance.steps[-1] / (rate * steps[-1]):.6g} learning_rate k")
    if tolerance.floor_relative:
        parts.append(f"{tolerance.floor_relative:g} max(1, |x|)")
    if tolerance.relative:
        parts.append(f"{tolerance.relative:g} |x|")
    if tolerance.absolute and in_updates:
        parts.append(f"{tolerance.absolute / (rate * config.get('max_steps', 1)):.6g} learning_rate max_steps")
    elif tolerance.absolute:
        parts.append(f"{tolerance.absolute:g}")
    text = " + ".join(parts) or "0"
    text += ", of the logarithm" if tolerance.logarithm else ""
    return text if tolerance.period is None else f"{text}, modulo {tolerance.period:.6g}"


def _meaning(check: str, found: _Found) -> str:
    """What every task means by the name, or as much of the messages as does not speak of made-up values."""
    family = check.partition(":")[0]
    if family in MEANINGS and (found.tolerances or family != "probe"):
        of_parameters = family.startswith("replay") and not found.tolerances
        return TRAINED_PARAMETERS if of_parameters else MEANINGS[family]
    told = [item.message.replace("; ", ", ").split(", ") for item in found.evidence]
    same = [parts[0] for parts in zip(*told, strict=False) if len(set(parts)) == 1]
    return ", ".join(part for part in same if not any(letter.isdigit() for letter in part))
