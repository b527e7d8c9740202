"""Deliberately wrong solutions of a task, which deterministic checks must reject; correct ones, which they must not.

`tests/mutants.toml` lists them. A mutant is either the TensorCircuit reference with some text replaced, so a real
solution file, or a function of `tests/fabrications.py` that makes up outputs without any computation by the framework.
Each names the check that should catch it; being caught by another one is an accident, and counts as a defect.
An equivalent is the reference written otherwise, by another method that the statement allows, say. Nothing may fail it.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from orbit._toml import read_toml, validate
from orbit.errors import DataError, HarnessError
from orbit.frameworks import REFERENCE_FRAMEWORK
from orbit.tasks import Task
from orbit.verification import _mutant_worker, _values, functional, probes
from orbit.verification.evaluator import Evaluator, Oracle, Outputs, Run, RunKind
from orbit.verification.probes import JointProbe, Probe
from orbit.verification.replay import Replay
from orbit.verification.verdict import Contract, Evidence, Outcome

SEED = 20_261
"""Draws of the mutant table are fixed, so that it says the same every time."""


RunName = Literal["probe", "full-probe", "timed"]


class Rewrite(BaseModel):
    """The reference with some text replaced."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    why: str
    replace: tuple[tuple[str, str], ...] = ()


class Mutant(Rewrite):
    """One wrong solution. `check` may hold shell wildcards."""

    check: str
    run: RunName = "probe"
    fabricate: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.replace) == bool(self.fabricate):
            raise ValueError(f"mutant {self.name}: give either `replace` or `fabricate`")
        return self


class Equivalent(Rewrite):
    """One correct solution, and the runs on which it is looked at each time; a timed one may take minutes."""

    runs: tuple[RunName, ...] = ("probe", "full-probe")


REFERENCE = Equivalent(name="reference", why="nothing is replaced")


class _MutantFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    mutant: list[Mutant]
    equivalent: list[Equivalent] = []


@dataclass(frozen=True)
class Fate:
    """What became of a mutant. `caught_by` are the failed checks; `evidence` is that of the expected one."""

    mutant: Mutant
    caught_by: tuple[str, ...]
    evidence: Evidence | None
    error: str | None = None

    @property
    def killed(self) -> bool:
        """Rejected by the check that it names; a mutant that cannot even run proves nothing."""
        return self.error is None and self.evidence is not None


def load_mutants(task: Task) -> list[Mutant]:
    """The mutants of a task.

    Raises:
        DataError: `mutants.toml` is missing or wrong, or two entries share a name.
    """
    return _load(task).mutant


def load_equivalents(task: Task) -> list[Equivalent]:
    """Correct solutions that are not the reference.

    Raises:
        DataError: as `load_mutants`.
    """
    return _load(task).equivalent


def _load(task: Task) -> _MutantFile:
    path = task.directory / "tests" / "mutants.toml"
    entries = validate(path, _MutantFile, read_toml(path))
    names = [entry.name for entry in (REFERENCE, *entries.mutant, *entries.equivalent)]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path}: the name {name!r} is used twice; rename one")
    return entries


def source_of(task: Task, rewrite: Rewrite) -> str:
    """The reference with the replacements of a mutant or an equivalent.

    Raises:
        DataError: there is no reference, a text to replace does not occur exactly once in it, or nothing is changed.
    """
    reference = task.reference_path(REFERENCE_FRAMEWORK)
    if reference is None:
        raise DataError(f"{task.directory}: has no {REFERENCE_FRAMEWORK} reference to derive mutants from")
    source = original = reference.read_text()
    path = task.directory / "tests" / "mutants.toml"
    for old, new in rewrite.replace:
        if source.count(old) != 1:
            raise DataError(f"{path}: {rewrite.name}: {old!r} occurs {source.count(old)} times in {reference.name}")
        source = source.replace(old, new)
    if source == original and rewrite is not REFERENCE:
        raise DataError(f"{path}: {rewrite.name}: `replace` changes nothing in {reference.name}; replace something")
    return source


def alarms(evidence: Sequence[Evidence]) -> list[str]:
    """A line for each check that failed or was flagged."""
    bad = (Outcome.FAIL, Outcome.FLAG)
    return [f"{e.run} {e.check}: {e.value} against {e.limit} ({e.message})" for e in evidence if e.outcome in bad]


class WarmWorker:
    """A framework interpreter that runs trusted files one after another. Use as a context manager."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), "-B", str(Path(_mutant_worker.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream(self._process.stdin).close()
        self._process.wait(timeout=30) if exception[0] is None else self._process.kill()

    def run(self, source: str, config: dict[str, Any]) -> tuple[Outputs | None, str | None]:
        """Outputs of `run_solution(config)`, or the traceback of the exception it raised."""
        with tempfile.TemporaryDirectory(prefix="orbit-mutant-") as name:
            directory = Path(name)
            (directory / "solution.py").write_text(source)
            (directory / "config").mkdir()
            _values.encode_config(config, directory / "config")
            job = {
                "solution": str(directory / "solution.py"),
                "config": str(directory / "config"),
                "result": str(directory / "result.npz"),
            }
            requests = self._stream(self._process.stdin)
            requests.write(json.dumps(job) + "\n")
            requests.flush()
            answer = self._stream(self._process.stdout).readline()
            if not answer:
                raise HarnessError("the worker that runs mutants died; its error output says why")
            error: str | None = json.loads(answer)["error"]
            return (None, error) if error else (_values.read_result(directory / "result.npz", 2**30), None)

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


@contextmanager
def warm_worker(python: Path) -> Iterator[WarmWorker]:
    """Start and stop a worker."""
    with WarmWorker(python) as worker:
        yield worker


class MutantTable:
    """Judges the mutants of one task on one probe, one full-size probe and one timed draw, each made when needed."""

    def __init__(self, task: Task, worker: WarmWorker) -> None:
        self.task, self._worker = task, worker
        self.evaluator: Evaluator = task.load_evaluator()
        self.oracle: Oracle = task.load_oracle()
        self._runs: dict[str, tuple[Run, ...]] = {}
        self._probe: Probe | JointProbe | None = None
        self._replay: Replay | None = None

    def fate(self, mutant: Mutant) -> Fate:
        """Run, or make up, and judge one mutant."""
        runs = self._runs_for(mutant.run)
        outputs, error = self._outputs(mutant, runs)
        if error is not None:
            return Fate(mutant, (), None, error)
        replay = self._replay_of(runs[0]) if mutant.check.startswith("replay") else None
        failed = [item for item in self._judge(mutant.run, runs, outputs, replay) if item.outcome is Outcome.FAIL]
        expected = next((item for item in failed if fnmatch.fnmatchcase(item.check, mutant.check)), None)
        return Fate(mutant, tuple(dict.fromkeys(item.check for item in failed)), expected)

    def false_alarms(self, run: RunName, correct: Equivalent = REFERENCE) -> list[str]:
        """What fails or flags the reference, or an equivalent, on the same draws; a traceback if it raised."""
        runs = self._runs_for(run)
        outputs, error = self._outputs(correct, runs)
        return alarms(self._judge(run, runs, outputs)) if error is None else [error]

    def _runs_for(self, kind: str) -> tuple[Run, ...]:
        if kind not in self._runs:
            defaults, rng = dict(self.task.config), np.random.default_rng([SEED, len(kind)])
            if kind == "probe":
                (self._probe,) = probes.draw_probes(self.evaluator, self.oracle, defaults, [rng])
                self._runs[kind] = self._probe.runs
            elif kind == "full-probe":
                config = self.evaluator.prepare(self.evaluator.draw_full_probe(defaults, rng))
                self._runs[kind] = (Run(RunKind.FULL_PROBE, kind, config),)
            else:
                config = self.evaluator.prepare(self.evaluator.draw_timed(defaults, rng))
                self._runs[kind] = (Run(RunKind.TIMED, kind, config),)
        return self._runs[kind]

    def _outputs(self, rewrite: Rewrite, runs: Sequence[Run]) -> tuple[list[Outputs], str | None]:
        if isinstance(rewrite, Mutant) and rewrite.fabricate is not None:
            function = getattr(self._fabrications(), rewrite.fabricate)
            rngs = [np.random.default_rng(SEED + number) for number in range(len(runs))]
            made = zip(runs, rngs, strict=True)
            return [function(self.evaluator, self.oracle, run.config, rng) for run, rng in made], None
        results: list[Outputs] = []
        for run in runs:
            outputs, error = self._worker.run(source_of(self.task, rewrite), run.config)
            if outputs is None:
                return [], error
            results.append(outputs)
        return results, None

    def _judge(
        self, kind: RunName, runs: Sequence[Run], outputs: Sequence[Outputs], replay: Replay | None = None
    ) -> list[Evidence]:
        rng = np.random.default_rng(SEED)
        if kind == "probe":
            assert self._probe is not None
            if isinstance(self._probe, JointProbe):
                return probes.compare_joint(self.evaluator, self.oracle, self._probe, outputs, rng)
            return probes.compare(self.evaluator, self._probe, outputs[0])
        return functional.judge(self.evaluator, runs[0], outputs[0], contract=Contract.ORBIT_2, replay=replay, rng=rng)

    def _replay_of(self, run: Run) -> Replay:
        """The paired reference and two perturbed ones; three whole runs, so only for mutants that name the replay."""
        if self._replay is None:
            moved = [self.evaluator.perturbed(run.config, np.random.default_rng([SEED, k])) for k in range(2)]
            runs = [Run(run.kind, run.name, config) for config in (run.config, *moved)]
            results, error = self._outputs(REFERENCE, runs)
            if error is not None:
                raise HarnessError(f"{self.task.name}: the reference raised:\n{error}")
            self._replay = Replay(results[0], results[1:])
        return self._replay

    def _fabrications(self) -> Any:
        path = self.task.directory / "tests" / "fabrications.py"
        spec = importlib.util.spec_from_file_location(f"fabrications_{self.task.number}", path)
        if spec is None or spec.loader is None or not path.is_file():
            raise DataError(f"{path}: no such file, but a mutant names a fabrication")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
