"""Draws and judgement in a process of their own.

Oracles and evaluators are CPU-bound and read arrays that hostile code made, so they run in one spawned worker: it stays
warm over a verification, never blocks harbor's event loop, and can be killed without taking anything along.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import psutil

from orbit.errors import HarnessError, OrbitError
from orbit.tasks import Task
from orbit.verification import functional, probes
from orbit.verification.evaluator import ArraySpec, Config, Outputs, Run, RunKind
from orbit.verification.execution import read_outputs
from orbit.verification.probes import JointProbe, Probe
from orbit.verification.replay import Replay
from orbit.verification.verdict import Contract, Evidence, Outcome

OUTPUT_LIMIT_BYTES = 512 * 2**20


@dataclass(frozen=True)
class OutputFiles:
    """Where the results of one run lie; read in the worker, so that large arrays never cross processes."""

    run: Run
    directory: Path


@dataclass(frozen=True)
class ReplayFiles:
    """Results of the paired reference and of its perturbed runs."""

    reference: Path
    perturbed: tuple[Path, ...]


class Judge:
    """The trusted side of one verification, in a worker process. Use as a context manager."""

    def __init__(self, task: Task, contract: Contract, seed: int) -> None:
        self._task, self._contract, self._seed = task, contract, seed
        spawning = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(max_workers=1, mp_context=spawning, initializer=_end_with_parent)
        with _one_blas_thread():  # submitting starts the worker, which inherits the environment
            self._pool.submit(os.getpid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        # Killed with all it may have started: every call is over, and a library's own pool would keep it from ending.
        workers = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                for descendant in psutil.Process(worker.pid).children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        descendant.kill()
            worker.kill()
            worker.join()

    def timed_run(self, attempt: int) -> Run:
        """The default-size configuration: a fresh draw under `orbit-2`, the published one under `orbit-q-1`."""
        run: Run = self._call(_timed_run, self._contract, self._seed, attempt)
        return run

    def small_probes(self, count: int) -> list[Probe | JointProbe]:
        """Conditioned draws with the oracle's outcome, the first with at least ten steps; or the task's joint probe."""
        drawn: list[Probe | JointProbe] = self._call(_small_probes, self._seed, count)
        return drawn

    def full_probe(self) -> Run:
        """Three steps at default size."""
        run: Run = self._call(_full_probe, self._seed)
        return run

    def perturbed(self, run: Run, count: int) -> list[Config]:
        """The same configuration moved by single-precision rounding; none where the task has no histories."""
        configs: list[Config] = self._call(_perturbed, run, self._seed, count)
        return configs

    def judge(self, files: OutputFiles, replay: ReplayFiles | None = None) -> list[Evidence]:
        """Functional checks of a run at default size."""
        evidence: list[Evidence] = self._call(_judge, files, replay, self._contract, self._seed)
        return evidence

    def compare(self, probe: Probe | JointProbe, directories: Sequence[Path]) -> list[Evidence]:
        """A small probe against the oracle; one directory of results per run."""
        evidence: list[Evidence] = self._call(_compare, probe, directories, self._seed)
        return evidence

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return self._pool.submit(function, self._task, *arguments).result()
        except (OrbitError, HarnessError):
            raise
        except BrokenProcessPool as error:
            raise HarnessError("the judging process died, most likely for lack of memory") from error
        except Exception as error:  # process boundary: a defect of a judge is an outcome, with its traceback kept
            raise HarnessError(f"judging failed: {type(error).__name__}: {error}\n{error.__cause__ or ''}") from error


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Several threads gain little on the small matrices of a judge, and wait for each other on a busy machine."""
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ.setdefault(name, "1")
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


def _end_with_parent() -> None:
    """Have this worker end when its parent is killed; a pool's worker would wait for work for ever."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def _rng(seed: int, *purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, *purpose])


def _timed_run(task: Task, contract: Contract, seed: int, attempt: int) -> Run:
    evaluator = task.load_evaluator()
    defaults = dict(task.config)
    config = defaults if contract is Contract.ORBIT_Q_1 else evaluator.draw_timed(defaults, _rng(seed, 1, attempt))
    return Run(RunKind.TIMED, "timed", evaluator.prepare(config))


def _small_probes(task: Task, seed: int, count: int) -> list[Probe | JointProbe]:
    evaluator, oracle, defaults = task.load_evaluator(), task.load_oracle(), dict(task.config)
    return probes.draw_probes(evaluator, oracle, defaults, [_rng(seed, 2, k) for k in range(count)])


def _full_probe(task: Task, seed: int) -> Run:
    evaluator = task.load_evaluator()
    config = evaluator.draw_full_probe(dict(task.config), _rng(seed, 3))
    return Run(RunKind.FULL_PROBE, "full-probe", evaluator.prepare(config))


def _perturbed(task: Task, run: Run, seed: int, count: int) -> list[Config]:
    evaluator = task.load_evaluator()
    if not evaluator.histories(run.config):
        return []  # nothing to replay
    return [evaluator.perturbed(run.config, _rng(seed, 4, k)) for k in range(count)]


def _judge(task: Task, files: OutputFiles, replay: ReplayFiles | None, contract: Contract, seed: int) -> list[Evidence]:
    try:
        outputs = read_outputs(files.directory, OUTPUT_LIMIT_BYTES)
    except ValueError as error:
        return [_unreadable(files.run.name, error)]
    evaluator, trusted = task.load_evaluator(), None
    if replay is not None:
        form = evaluator.result_spec(files.run.config)
        right, *perturbed = [_trusted(path, form, contract) for path in (replay.reference, *replay.perturbed)]
        trusted = Replay(right, perturbed)
    return functional.judge(evaluator, files.run, outputs, contract=contract, replay=trusted, rng=_rng(seed, 5))


def _compare(task: Task, probe: Probe | JointProbe, directories: Sequence[Path], seed: int) -> list[Evidence]:
    outputs: list[Outputs] = []
    for run, directory in zip(probe.runs, directories, strict=True):
        try:
            outputs.append(read_outputs(directory, OUTPUT_LIMIT_BYTES))
        except ValueError as error:
            return [_unreadable(run.name, error)]
    if isinstance(probe, Probe):
        return probes.compare(task.load_evaluator(), probe, outputs[0])
    return probes.compare_joint(task.load_evaluator(), task.load_oracle(), probe, outputs, _rng(seed, 6))


def _trusted(directory: Path, form: dict[str, ArraySpec], contract: Contract) -> Outputs:
    """Results of a run of the reference; what is wrong with them must not be held against the candidate."""
    outputs = read_outputs(directory, OUTPUT_LIMIT_BYTES)
    wrong = [item.message for item in functional.check_form(form, outputs, contract) if item.outcome is Outcome.FAIL]
    if wrong:
        raise HarnessError(f"the reference's result of run {directory.name} is unusable: {wrong[0]}")
    return outputs


def _unreadable(run: str, error: ValueError) -> Evidence:
    return Evidence(check="form", outcome=Outcome.FAIL, message=f"the result cannot be read: {error}", run=run)


def has_margin(evidence: Sequence[Evidence]) -> bool:
    """Whether a reference met everything on a draw, so that the draw is fair to a candidate."""
    return not any(item.outcome is Outcome.FAIL for item in evidence)
