"""The list of checks says what the judge does: every check that honest results meet stands in it, with its limit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orbit.cli import main
from orbit.reports.checks import VARIES, Check, checks_of
from orbit.tasks import Task, all_tasks, find_task
from orbit.verification import functional, probes
from orbit.verification.evaluator import Evaluator, Run, RunKind
from orbit.verification.probes import JointProbe, Probe
from orbit.verification.replay import Replay
from orbit.verification.verdict import Contract, Evidence, Outcome
from tests.unit.verification import toy

TASKS = all_tasks()
HOLDS = {"<=": lambda v, limit: v <= limit, ">=": lambda v, limit: v >= limit, "<": lambda v, limit: v < limit}
HOLDS[">"] = lambda v, limit: v > limit


def samples_of(evaluator: Evaluator, outputs: Mapping[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """What a solution returns, where the oracle only knows probabilities."""
    if "probabilities" not in outputs:
        return dict(outputs)
    rows = np.random.default_rng(config["seed"]).choice(
        len(outputs["probabilities"]), config["n_samples"], p=outputs["probabilities"]
    )
    return {"samples": rows[:, None] >> np.arange(config["n_qubits"])[::-1] & 1}


def honest_evidence(task: Task) -> tuple[dict[str, Any], dict[str, list[Evidence]], dict[str, Any]]:
    """A small configuration, what honest results of it meet by kind of run, and those results."""
    evaluator, oracle = task.load_evaluator(), task.load_oracle()
    rng = np.random.default_rng(5)
    config = evaluator.prepare(evaluator.draw_probe(dict(task.config), rng, evaluator.probe_steps[1]))
    outputs = samples_of(evaluator, oracle.solve(config), config)
    run = Run(RunKind.TIMED, "timed", config)
    replay = Replay(outputs, [outputs])
    timed = functional.judge(evaluator, run, outputs, contract=Contract.ORBIT_2, replay=replay, rng=rng)
    joint = evaluator.draw_joint_probe(dict(task.config), oracle, rng)
    if joint:
        runs = tuple(Run(RunKind.PROBE, f"probe-{k}", each) for k, each in enumerate(joint))
        found = [samples_of(evaluator, oracle.solve(each), each) for each in joint]
        small = probes.compare_joint(evaluator, oracle, JointProbe(runs), found, rng)
    else:
        small = probes.compare(evaluator, Probe(Run(RunKind.PROBE, "probe", config), outputs, {}, 0, 1), outputs)
    return config, {"timed": timed, "probe": small}, outputs


def disagreements(
    task: Task, checks: list[Check], evidence: Mapping[str, list[Evidence]], config, outputs
) -> list[str]:
    """Checks that are missing in the list, or stand there with another relation or limit."""
    found = []
    for kind, items in evidence.items():
        listed = {check.name: check for check in checks if kind in check.runs}
        for item in items:
            check = listed.get(item.check)
            if check is None:
                found.append(f"{kind}: {item.check} is not listed")
            elif item.outcome is not Outcome.NOT_APPLICABLE and isinstance(item.value, float):
                if HOLDS[check.relation](item.value, item.limit) != (item.outcome is Outcome.PASS):
                    found.append(f"{kind}: {item.check}: {item.value} {check.relation} {item.limit}: {item.outcome}")
                allowed = limits(task.load_evaluator(), check, config, outputs)
                if allowed is not None and not np.isclose(item.limit, allowed, rtol=1e-6, atol=0).any():
                    found.append(f"{kind}: {item.check}: {check.limit} or {check.rule!r}, but judged by {item.limit}")
    return found


def limits(
    evaluator: Evaluator, check: Check, config: dict[str, Any], outputs: Mapping[str, Any]
) -> list[float] | None:
    """The number, or every value that the formula takes on the expected results; None where the list leaves it open."""
    if check.limit is not None:
        return [check.limit]
    if check.rule == VARIES:
        return None
    key = check.name.partition(":")[2]
    expected, more = outputs.get(key, 0.0), 0.0
    moved = re.search(r" \+ (\d+) x the largest of the last (\d+) moves$", check.rule)
    if moved:
        history = evaluator.by_step(config, outputs)[key]
        more = int(moved[1]) * np.abs(np.diff(history[-int(moved[2]) - 1 :], axis=0)).max()
        final = evaluator.final_parameters(config, outputs)
        assert final is not None
        expected = evaluator.evaluate(config, final).observables[key]
    formula = re.split(r", (?:of|modulo)| \+ \d+ x ", check.rule)[0]
    formula = re.sub(r"(?<=[\w)]) (?=max|abs|learning|k\b)", " * ", formula.replace("|x|", "abs(x)"))
    names = {"max": max, "abs": abs, "learning_rate": config.get("learning_rate"), "max_steps": config.get("max_steps")}
    steps = config.get("checkpoint_steps", (0,))
    values = [(x, k) for x in np.ravel(expected).tolist() for k in steps]
    return [more + eval(formula, {"__builtins__": {}}, {**names, "x": x, "k": k}) for x, k in values]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_what_honest_results_meet_is_listed_with_its_limit(task: Task) -> None:
    config, evidence, outputs = honest_evidence(task)
    checks = checks_of(task, defaults=config)
    assert disagreements(task, checks, evidence, config, outputs) == []
    # And nothing else is listed, but for what only longer runs have.
    for kind, items in evidence.items():
        extra = {check.name for check in checks if kind in check.runs} - {item.check for item in items}
        assert {name for name in extra if not name.startswith(("shape:", "replay_late:", "replay_far:"))} == set()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("loss_composition", {"limit": 2e-5}),
        ("loss_improves", {"relation": ">="}),
        ("recompute:loss_history", {"limit": 1e-3, "rule": "0.001"}),
        ("probe:loss_history", {"rule": "0.0001 max(1, |x|)"}),
        ("probe:checkpoint_parameters", {"rule": "0.013 learning_rate k"}),
        ("replay:loss_history", {"rule": "0.001 + 10 x the distance of runs that differ by rounding"}),
        ("continuity:loss_history", {"rule": "0.0003 + 2 x the largest of the last 20 moves"}),
        ("first_update", None),
    ],
)
def test_a_list_that_drifts_is_noticed(name: str, change: dict[str, Any] | None) -> None:
    task = find_task("02")
    config, evidence, outputs = honest_evidence(task)
    right = checks_of(task, defaults=config)
    assert any(check.name == name for check in right)
    wrong = [replace(check, **change or {}) if check.name == name else check for check in right]
    if change is None:
        wrong = [check for check in right if check.name != name]
    found = disagreements(task, wrong, evidence, config, outputs)
    assert found
    assert all(name in line for line in found)


def test_limits_are_those_of_the_published_configuration() -> None:
    checks = {(check.name, "timed" in check.runs): check for check in checks_of(find_task("02"))}
    assert checks["final_energy_density_gap", True] == Check(
        "final_energy_density_gap", ("timed",), "<=", 1.0, "", "", "fail"
    )
    assert checks["first_update", True].limit == pytest.approx(0.02 * 0.015 + 1e-6)
    assert checks["energy_lower_bound", True].limit == pytest.approx(
        find_task("02").exact(find_task("02").config)["ground_energy"] / 12 - 1e-4
    )
    assert checks["energy_lower_bound", False].limit is None
    assert checks["replay_late:loss_history", True].on_failure == "flag"


def test_under_the_published_contract_only_its_criteria_fail() -> None:
    task = find_task("02")
    checks = checks_of(task, Contract.ORBIT_Q_1)
    assert {
        check.name for check in checks if check.on_failure == "fail"
    } == task.load_evaluator().published_criteria() | {"form"}
    assert {kind for check in checks for kind in check.runs} == {"timed"}


def test_a_changed_threshold_is_listed_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    task = toy.TASK
    before = {check.name: check.limit for check in checks_of(task)}
    monkeypatch.setattr(
        toy.ToyEvaluator, "histories", lambda self, config: {"loss_history": functional.Tolerance(absolute=7e-4)}
    )
    after = {check.name: check.limit for check in checks_of(task)}
    assert {name for name in before if before[name] != after[name]} == {"recompute:loss_history"}
    assert after["recompute:loss_history"] == 7e-4


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(["tasks", "show", *arguments])
    assert not end.value.code
    return capsys.readouterr().out


def test_limits_are_those_of_what_the_contract_hands_in() -> None:
    """Task 06 integrates more closely under `orbit-2` than the published configuration asks for."""
    for contract, limit in ((Contract.ORBIT_2, 3e-4), (Contract.ORBIT_Q_1, 2e-3)):
        checks = {check.name: check for check in checks_of(find_task("06"), contract) if "timed" in check.runs}
        assert checks["recompute:energy_density_history"].limit == limit


def test_what_parameters_may_be_off_is_told_apart_from_entries_of_a_history() -> None:
    meanings = {check.name: check.meaning for check in checks_of(find_task("10"))}
    for family in ("replay_late", "replay_far"):
        assert meanings[f"{family}:energy_history"].startswith("entries after the first 20")
        assert meanings[f"{family}:final_parameters"].startswith("trained parameters")
        assert "0.001 learning rates" in meanings[f"{family}:final_parameters"]


def test_show_lists_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(shown(capsys, "10", "--json"))["checks"]
    assert set(listed[0]) == {"name", "runs", "relation", "limit", "rule", "meaning", "on_failure"}
    table = shown(capsys, "10").split("Checks")[-1]
    for check in listed:
        assert check["name"] in table
        assert check["limit"] is None or f"{check['relation']} {check['limit']:.6g}" in table
    assert any(isinstance(check["limit"], float) for check in listed)
