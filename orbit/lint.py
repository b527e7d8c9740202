"""Hold a task directory to what a task must be: `orbit tasks lint`.

The quick checks read files and make one draw. The deep ones regenerate the exact references and run correct solutions
and every mutant, which takes minutes.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from orbit import assembly
from orbit.environments import environment_python
from orbit.errors import OrbitError
from orbit.frameworks import REFERENCE_FRAMEWORK, all_frameworks, find_framework
from orbit.records import read_record
from orbit.reports.checks import joint_configs
from orbit.tasks import SHARED_STATEMENT, ExactReferences, Task
from orbit.verification import exact
from orbit.verification.evaluator import Config, Evaluator
from orbit.verification.mutants import (
    REFERENCE,
    MutantTable,
    WarmWorker,
    load_equivalents,
    load_mutants,
    source_of,
)
from orbit.verification.pipeline import VerifyOptions
from orbit.verification.verdict import Contract, Evidence, Outcome

MIN_MUTANTS = 8
COPIED_LINES, COPIED_CHARACTERS = 3, 60
"""So many lines of the judge in a row, that long together, are no coincidence."""
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
EXACT_LIMIT = 1e-7
"""Regenerated exact references agree to this; Lanczos is converged to 1e-10 of the energy."""
REQUIRED_FILES = (
    "task.toml",
    "instruction.md",
    "environment/Dockerfile",
    "tests/test.sh",
    "tests/evaluator.py",
    "tests/oracle.py",
    "tests/exact.json",
    "tests/mutants.toml",
)

Progress = Callable[[str], None]


def lint_task(task: Task, *, deep: bool = False, progress: Progress | None = None) -> list[Evidence]:
    """Every check of one task; a directory that lacks files is not looked at further.

    Args:
        task: the task.
        deep: regenerate exact references, run correct solutions and all mutants.
        progress: receives a line per long step.
    """
    missing = list(_missing_files(task))
    if missing:
        return missing
    if Contract.ORBIT_2 not in task.contracts:
        return [_failed("contracts", f"{task.directory / 'task.toml'}: contracts lack {Contract.ORBIT_2}; add it")]
    evaluator = task.load_evaluator()
    evidence = [_passed("files", f"{len(REQUIRED_FILES)} files and a reference")]
    evidence += _collect("statement", _statement_gaps(task, evaluator))
    evidence += _collect("contracts", _contract_gaps(task, evaluator))
    evidence += _collect("mutants_listed", _mutant_gaps(task))
    evidence += _collect("staging", _leaks(task))
    if deep and not any(item.outcome is Outcome.FAIL for item in evidence):
        evidence += _deep(task, progress or (lambda line: None))
    return evidence


def _passed(check: str, message: str) -> Evidence:
    return Evidence(check=check, outcome=Outcome.PASS, message=message)


def _failed(check: str, message: str) -> Evidence:
    return Evidence(check=check, outcome=Outcome.FAIL, message=message)


def _collect(check: str, problems: Iterator[str]) -> list[Evidence]:
    return [_failed(check, problem) for problem in problems] or [_passed(check, "")]


def _missing_files(task: Task) -> Iterator[Evidence]:
    for name in REQUIRED_FILES:
        if not (task.directory / name).exists():
            yield _failed("files", f"{task.directory / name}: missing; see CONTRIBUTING.md, 'add a task'")
    if task.reference_path(REFERENCE_FRAMEWORK) is None:
        place = f"references/{task.name}/{REFERENCE_FRAMEWORK}.py"
        yield _failed("files", f"{place}: missing; times are measured against it")


def _drawn(task: Task, evaluator: Evaluator) -> Config:
    """A default-size configuration with the keys that every run has."""
    return evaluator.prepare(evaluator.draw_full_probe(dict(task.config), np.random.default_rng(0)))


def _statement_gaps(task: Task, evaluator: Evaluator) -> Iterator[str]:
    """Keys that the statement does not document, and framework names that it must not know."""
    text = task.instruction()
    config = _drawn(task, evaluator)
    for key in config:
        if f"`{key}`" not in text:
            yield f"{task.instruction_path}: configuration key `{key}` is not documented"
    for key in evaluator.result_spec(config):
        if f"`{key}`" not in text:
            yield f"{task.instruction_path}: result key `{key}` is not documented"
    for framework in all_frameworks():
        for word in {framework.name, framework.title, framework.package, framework.import_name}:
            if re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE):
                yield f"{task.instruction_path}: names the framework {word}; statements are framework-neutral"
    yield from _probe_gaps(task, evaluator)


def _probe_gaps(task: Task, evaluator: Evaluator) -> Iterator[str]:
    """Numbers of small probes, and of the runs of a joint one, that are not those that are made."""
    shared = task.directory.parent / SHARED_STATEMENT
    said = re.search(r"\*Small probes\*, (\w+) by default", task.instruction())
    made = NUMBERS[VerifyOptions().n_probes]
    if said and said[1] != made:
        yield f"{shared}: says that {said[1]} small probes are made by default; it is {made}"
    joint = len(joint_configs(task, evaluator, dict(task.config), np.random.default_rng(0)))
    runs = re.search(r"made of (\w+) runs", task.instruction_path.read_text())
    if joint and (runs is None or runs[1] != NUMBERS[joint]):
        yield f"{task.instruction_path}: the small probe is not said to be made of {NUMBERS[joint]} runs"
    if runs and not joint:
        yield f"{task.instruction_path}: describes a small probe made of {runs[1]} runs; they are single runs"


def _contract_gaps(task: Task, evaluator: Evaluator) -> Iterator[str]:
    published = [key for key, form in evaluator.result_spec(dict(task.config)).items() if form.published]
    if Contract.ORBIT_Q_1 in task.contracts and not published:
        yield f"{task.evaluator_path}: no result key is marked published, but {Contract.ORBIT_Q_1} is offered"
    if Contract.ORBIT_Q_1 in task.contracts and not evaluator.published_criteria():
        yield f"{task.evaluator_path}: no published criteria, so {Contract.ORBIT_Q_1} could fail nothing"


def _mutant_gaps(task: Task) -> Iterator[str]:
    mutants = load_mutants(task)
    if len(mutants) < MIN_MUTANTS:
        yield f"{task.directory / 'tests' / 'mutants.toml'}: {len(mutants)} mutants; at least {MIN_MUTANTS} are needed"
    for rewrite in (*(mutant for mutant in mutants if mutant.fabricate is None), *load_equivalents(task)):
        try:
            source_of(task, rewrite)
        except OrbitError as error:
            yield str(error)


def _leaks(task: Task) -> Iterator[str]:
    """What would reach an agent of the judge: whole files, lines of them, exact values."""
    tests = task.directory / "tests"
    secrets = [path for path in sorted(tests.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    secrets = [path for path in secrets if path.name != "test.sh"]
    texts = _texts_for_agents(task)
    for name, text in texts.items():
        for path in secrets:
            if Path(name).name == path.name:
                yield f"{name}: would be staged where an agent can read it"
            elif any(passage in text for passage in _passages(path.read_text(errors="replace"))):
                yield f"{name}: would show an agent lines of {path.relative_to(task.directory)}"
        for answer in sorted({json.dumps(value) for value in _stored_values(task)}):
            if answer in text:
                yield f"{name}: would tell an agent the exact value {answer}"


def _texts_for_agents(task: Task) -> dict[str, str]:
    """Every file of the staged task, and the build context of the stand-in image, by name."""
    with tempfile.TemporaryDirectory(prefix="orbit-lint-") as directory:
        staged = assembly.stage(
            task,
            find_framework(REFERENCE_FRAMEWORK),
            contract=Contract.ORBIT_2,
            target=Path(directory) / "task",
            environment=assembly.EnvironmentSpec(),
        ).directory
        found = {path.relative_to(staged).as_posix(): path for path in staged.rglob("*")}
        found |= {path.relative_to(task.directory).as_posix(): path for path in task.directory.glob("environment/**/*")}
        return {name: path.read_text(errors="replace") for name, path in sorted(found.items()) if path.is_file()}


def _passages(text: str) -> Iterator[str]:
    """All runs of a few lines that are long enough to be recognized."""
    lines = text.splitlines()
    for start in range(len(lines) - COPIED_LINES + 1):
        passage = "\n".join(lines[start : start + COPIED_LINES])
        if len(passage) >= COPIED_CHARACTERS:
            yield passage


def _stored_values(task: Task) -> list[float]:
    """Exact values with enough digits to be recognized."""
    entries = read_record(task.exact_path, ExactReferences).entries
    flat = [np.ravel(value).tolist() for entry in entries for value in entry.values.values()]
    return [value for values in flat for value in values if len(repr(value)) > 8]


def _exact(task: Task) -> Evidence:
    again = f"python -m orbit.verification.exact {task.name}"
    if not read_record(task.exact_path, ExactReferences).entries:
        return _failed("exact", f"{task.exact_path}: has no entries; make it with {again}")
    apart = exact.distance(task)
    outcome = Outcome.PASS if apart <= EXACT_LIMIT else Outcome.FAIL
    message = "" if outcome is Outcome.PASS else f"{task.exact_path}: does not regenerate; make it with {again}"
    return Evidence(check="exact", outcome=outcome, value=apart, limit=EXACT_LIMIT, message=message)


def _deep(task: Task, progress: Progress) -> list[Evidence]:
    progress(f"{task.id}: regenerating exact references")
    evidence = [_exact(task)]
    with WarmWorker(environment_python(find_framework(REFERENCE_FRAMEWORK), progress=progress)) as worker:
        table = MutantTable(task, worker)
        for correct in (REFERENCE, *load_equivalents(task)):
            for run in correct.runs:
                progress(f"{task.id}: {correct.name}, {run}")
                found = table.false_alarms(run, correct)
                evidence += _collect("correct", (f"{correct.name}, {run}: {alarm}" for alarm in found))
        for mutant in load_mutants(task):
            progress(f"{task.id}: mutant {mutant.name}")
            fate = table.fate(mutant)
            if fate.killed and fate.evidence is not None:
                evidence.append(fate.evidence.model_copy(update={"check": "mutant", "outcome": Outcome.PASS}))
                evidence[-1].message = f"{mutant.name}: caught by {fate.evidence.check}"
            else:
                others = ", ".join(fate.caught_by) or "nothing"
                reason = fate.error or f"escapes {mutant.check}; caught by {others}"
                evidence.append(_failed("mutant", f"{mutant.name} ({mutant.why}): {reason}"))
                progress(f"{task.id}: {evidence[-1].message}")
    return evidence
