"""Verify one artifact: the stages in order. Read `verify` first.

The artifact is read once; static policy looks at its source; then it runs, each time in a fresh sandboxed process: a
small probe first (what is broken fails quickly), the timed run paired with the reference on a secret draw, the other
probes and the full-size probe. A separate process judges the arrays that came back. The verdict is decided from the
stages alone.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orbit import __version__
from orbit.errors import HarnessError
from orbit.frameworks import REFERENCE_FRAMEWORK, Framework
from orbit.host import capture_host
from orbit.records import write_bytes, write_json
from orbit.tasks import Task
from orbit.verification import static_policy, timing
from orbit.verification._conclusion import execution_stage, summarize
from orbit.verification.evaluator import Config, Run
from orbit.verification.execution import Execution, ExecutionRequest, ExecutionStatus, Executor, Limits, Role
from orbit.verification.judging import Judge, OutputFiles, ReplayFiles, has_margin
from orbit.verification.probes import JointProbe, Probe
from orbit.verification.verdict import (
    Contract,
    Evidence,
    FailureMode,
    Outcome,
    Stage,
    StageStatus,
    Timing,
    Verdict,
    decide,
    reward,
)

MAX_DRAWS = 3
N_PERTURBED = 2
MAX_ARTIFACT_BYTES = 1 * 2**20
N_PARALLEL = 2
"""Untimed runs that go on at once, so that each may take so many times as long as a run alone."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class VerifyOptions:
    """How to verify.

    Attributes:
        contract: version of the interface.
        n_probes: small probes; `orbit-q-1` has none.
        n_pairs: timed runs of the artifact, each paired with one of the reference; 0 skips the reference.
        seed: of every secret draw; drawn afresh where None, and recorded in the verdict.
        keep_going: run the artifact even if static policy rejects it.
    """

    contract: Contract = Contract.ORBIT_2
    n_probes: int = 2
    n_pairs: int = 1
    seed: int | None = None
    keep_going: bool = False


@dataclass
class _State:
    """What is known so far of one verification."""

    solution: Path
    task: Task
    framework: Framework
    executor: Executor
    out_dir: Path
    options: VerifyOptions
    seed: int
    progress: Progress
    host: dict[str, str | int | float | None] = field(default_factory=capture_host)
    artifact: bytes | None = None
    stages: dict[str, Stage] = field(default_factory=dict)
    executions: dict[str, Execution] = field(default_factory=dict)
    timing: Timing = field(default_factory=Timing)

    @property
    def reference(self) -> Path | None:
        return self.task.reference_path(REFERENCE_FRAMEWORK)


class _CandidateFailedError(Exception):
    """A run of the artifact did not hand over a result; no later run can change the outcome."""


def verify(
    solution: Path,
    task: Task,
    framework: Framework,
    *,
    executor: Executor,
    out_dir: Path,
    options: VerifyOptions | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Verify an artifact and write `verdict.json`, with the outputs of every run under `runs/`.

    Args:
        solution: the artifact; one that is missing or unreadable gets a verdict too.
        task: what it must solve.
        framework: the package that must do the quantum computation.
        executor: where it runs.
        out_dir: receives the verdict and the outputs.
        options: contract, probes, pairs, seed.
        progress: receives a line whenever something long begins.

    Returns:
        The verdict. Whatever the artifact does ends up in it; a failure of the harness has validity `error`.
    """
    began, options = time.monotonic(), options or VerifyOptions()
    seed = secrets.randbits(62) if options.seed is None else options.seed
    silent: Progress = lambda line: None  # noqa: E731
    state = _State(solution, task, framework, executor, out_dir, options, seed, progress or silent)
    _read_artifact(state)
    if state.artifact is not None:
        _check_policy(state, state.artifact)
        rejected = state.stages["static_policy"].status is StageStatus.FAIL
        if rejected and not options.keep_going:
            _skip(state, "static policy rejected the artifact; --keep-going runs it all the same")
        else:
            _run_and_judge(state)
    verdict = _conclude(state, time.monotonic() - began)
    write_json(out_dir / "verdict.json", verdict)
    return verdict


def _read_artifact(state: _State) -> None:
    try:
        with state.solution.open("rb") as stream:
            data = stream.read(MAX_ARTIFACT_BYTES + 1)
    except OSError as error:
        reason = f"{state.solution.absolute()}: cannot be read ({error.strerror})"
        evidence = [Evidence(check="artifact", outcome=Outcome.FAIL, message=reason)]
        state.stages["solving"] = Stage.from_evidence(evidence, FailureMode.AGENT_NO_ARTIFACT)
        return _skip(state, "there is no artifact")
    if len(data) > MAX_ARTIFACT_BYTES:
        reason = f"{state.solution}: larger than {MAX_ARTIFACT_BYTES} bytes"
        evidence = [Evidence(check="artifact", outcome=Outcome.FAIL, limit=MAX_ARTIFACT_BYTES, message=reason)]
        state.stages["static_policy"] = Stage.from_evidence(evidence, FailureMode.POLICY_VIOLATION)
        return _skip(state, "the artifact is too large")
    # Judged and run from a snapshot, so that what was looked at is what runs.
    snapshot = state.out_dir / "artifact" / state.solution.name
    write_bytes(snapshot, data)
    state.solution, state.artifact = snapshot, data
    return None


def _check_policy(state: _State, source: bytes) -> None:
    evidence = static_policy.check_source(
        source, framework=state.framework, contract=state.options.contract, max_lines=state.task.max_lines
    )
    state.stages["static_policy"] = static_policy.stage(evidence)


def _skip(state: _State, reason: str) -> None:
    for name in ("static_policy", "execution", "functional", "probes"):
        state.stages.setdefault(name, Stage.skipped(reason))


def _run_and_judge(state: _State) -> None:
    try:
        with Judge(state.task, state.options.contract, state.seed) as judge:
            _run_stages(state, judge)
    except _CandidateFailedError:
        state.stages["execution"] = execution_stage(state.executions.values(), state.task.limits.run_timeout_sec)
        _skip(state, "a run of the artifact ended without a result")
    except HarnessError as error:
        state.stages["execution"] = Stage.error(str(error))
        _skip(state, "the harness failed")


def _run_stages(state: _State, judge: Judge) -> None:
    """Everything that needs runs, in an order that lets broken artifacts fail early."""
    published = state.options.contract is Contract.ORBIT_Q_1
    probes: list[Probe | JointProbe] = []
    if not published:
        state.progress("drawing the probes")
        probes = judge.small_probes(state.options.n_probes)
    probe_runs = [run for probe in probes for run in probe.runs]
    for first in probe_runs[:1]:
        _run_candidate(state, first)
    run, reference_runs, candidate_runs = _timed_runs(state, judge)
    untimed: list[Callable[[], Execution]] = [_later(_run_candidate, state, later) for later in probe_runs[1:]]
    full = None
    if not published:
        full = judge.full_probe()
        untimed.append(_later(_run_candidate, state, full))
    perturbed = judge.perturbed(run, N_PERTURBED) if reference_runs else []
    untimed += [_later(_run_reference, state, f"perturbed-{k + 1}", c, N_PARALLEL) for k, c in enumerate(perturbed)]
    _run_all(untimed)
    state.stages["execution"] = execution_stage(state.executions.values(), state.task.limits.run_timeout_sec)
    state.progress(f"judging {run.name}")
    replay = None
    if reference_runs:
        paths = tuple(_run_dir(state, f"perturbed-{k + 1}") for k in range(len(perturbed)))
        replay = ReplayFiles(_run_dir(state, reference_runs[0].name), paths)
    evidence = judge.judge(OutputFiles(run, _run_dir(state, candidate_runs[0].name)), replay)
    state.stages["functional"] = Stage.from_evidence(evidence, FailureMode.PROBLEM_MISMATCH)
    state.stages["probes"] = _judge_probes(state, judge, probes, full)


def _timed_runs(state: _State, judge: Judge) -> tuple[Run, list[Execution], list[Execution]]:
    """The timed runs in pairs with the reference, on a draw that the reference itself passes."""
    wanted = max(1, state.options.n_pairs)
    if state.reference is None or state.options.n_pairs == 0:
        run = judge.timed_run(0)
        alone = [_run_candidate(state, run, f"timed-{k + 1}") for k in range(wanted)]
        state.timing = _summary(state, alone, [])
        return run, [], alone
    for attempt in range(MAX_DRAWS):
        run = judge.timed_run(attempt)
        reference = [_run_reference(state, "reference-1", run.config)]
        evidence = judge.judge(OutputFiles(run, _run_dir(state, "reference-1")))
        if has_margin(evidence):
            break
        state.progress("the reference does not pass on this draw; drawing again")
    else:
        failed = next(item for item in evidence if item.outcome is Outcome.FAIL)
        raise HarnessError(
            f"{state.reference}: fails {failed.check} on {MAX_DRAWS} draws in a row ({failed.value} against "
            f"{failed.limit}); the reference or the task is broken"
        )
    candidate = [_run_candidate(state, run, "timed-1")]
    for pair in range(1, wanted):
        for turn in timing.order(pair):
            if turn == "candidate":
                candidate.append(_run_candidate(state, run, f"timed-{pair + 1}"))
            else:
                reference.append(_run_reference(state, f"reference-{pair + 1}", run.config))
    state.timing = _summary(state, candidate, reference)
    return run, reference, candidate


def _summary(state: _State, candidate: Sequence[Execution], reference: Sequence[Execution]) -> Timing:
    used = None if not reference or state.reference is None else hashlib.sha256(state.reference.read_bytes())
    own = None if state.artifact is None else hashlib.sha256(state.artifact).hexdigest()
    cores, load = state.host["n_cores_allowed"], state.host["load_before"]
    return timing.summarize(
        candidate,
        reference,
        seed=state.seed,
        n_cores=cores if isinstance(cores, int) else None,
        load_before=load if isinstance(load, float) else None,
        reference_sha256=None if used is None else used.hexdigest(),
        is_reference=used is not None and used.hexdigest() == own,
    )


def _run_candidate(state: _State, run: Run, name: str | None = None) -> Execution:
    """Run the artifact.

    Raises:
        _CandidateFailedError: no result came back.
    """
    execution = _run(state, name or run.name, "candidate", state.solution, state.framework.name, run.config)
    if execution.status is not ExecutionStatus.OK:
        raise _CandidateFailedError(execution.name)
    return execution


def _run_reference(state: _State, name: str, config: Config, slack: int = 1) -> Execution:
    """Run the reference; with slack where it does not run alone.

    Raises:
        HarnessError: it failed; that is never the candidate's fault.
    """
    assert state.reference is not None
    execution = _run(state, name, "reference", state.reference, REFERENCE_FRAMEWORK, config, slack=slack)
    if execution.status is not ExecutionStatus.OK:
        raise HarnessError(f"{state.reference}: the reference ended with {execution.status}: {execution.message}")
    return execution


def _run(
    state: _State, name: str, role: Role, solution: Path, framework: str, config: Config, slack: int = 1
) -> Execution:
    timeout_sec = slack * state.task.limits.run_timeout_sec
    limits = Limits(timeout_sec=timeout_sec, memory_bytes=state.task.limits.memory_mb * 2**20)
    state.progress(f"running {name}")
    request = ExecutionRequest(
        name=name,
        role=role,
        solution=solution,
        framework=framework,
        config=config,
        output_dir=_run_dir(state, name),
        limits=limits,
        allow_child_processes=state.options.contract is Contract.ORBIT_Q_1,
    )
    execution = state.executor.run(request)
    state.executions[name] = execution
    if execution.status is ExecutionStatus.HARNESS_ERROR:
        raise HarnessError(f"run {name}: {execution.message}")
    runtime = "" if execution.runtime_sec is None else f", {execution.runtime_sec:.1f} s"
    state.progress(f"{name}: {execution.status}{runtime}")
    return execution


def _run_dir(state: _State, name: str) -> Path:
    return state.out_dir / "runs" / name


def _later(function: Callable[..., Execution], *arguments: Any) -> Callable[[], Execution]:
    return lambda: function(*arguments)


def _run_all(jobs: Sequence[Callable[[], Execution]]) -> None:
    """Run untimed jobs, a few at once; the first exception wins and the rest is not begun."""
    with ThreadPoolExecutor(max_workers=N_PARALLEL) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _judge_probes(state: _State, judge: Judge, probes: Sequence[Probe | JointProbe], full: Run | None) -> Stage:
    evidence: list[Evidence] = []
    for probe in probes:
        state.progress(f"judging {', '.join(run.name for run in probe.runs)}")
        evidence += judge.compare(probe, [_run_dir(state, run.name) for run in probe.runs])
    if full is not None:
        state.progress(f"judging {full.name}")
        evidence += judge.judge(OutputFiles(full, _run_dir(state, full.name)))
    if not evidence:
        message = f"contract {state.options.contract} has no probes"
        evidence.append(Evidence(check="probes", outcome=Outcome.NOT_APPLICABLE, message=message))
    return Stage.from_evidence(evidence, FailureMode.PROBLEM_MISMATCH)


def _conclude(state: _State, duration_sec: float) -> Verdict:
    stages = dict(state.stages)
    stages.setdefault("provenance", Stage.skipped("this version does not count native calls of the framework"))
    stages.setdefault(
        "semantic_audit", Stage.skipped("no audit model was asked; without an audit a verdict stays provisional")
    )
    decision = decide(stages)
    candidate = [item for item in state.executions.values() if item.role == "candidate"]
    sandbox = next((item.sandbox for item in candidate if item.sandbox is not None), None)
    return Verdict(
        task=state.task.id,
        suite=state.task.suite,
        framework=state.framework.name,
        contract=state.options.contract,
        validity=decision.validity,
        failure_mode=decision.failure_mode,
        summary=summarize(stages, decision.validity, decision.deciding_stage),
        reward=reward(stages),
        stages=stages,
        timing=state.timing,
        sandbox=sandbox,
        host=state.host,
        versions={"orbit": __version__, **next((item.versions for item in candidate), {})},
        artifact_sha256=None if state.artifact is None else hashlib.sha256(state.artifact).hexdigest(),
        artifact_name=state.solution.name,
        evaluator_digest=state.task.evaluator_digest(),
        seed=state.seed,
        verified_at=datetime.now(UTC).isoformat(timespec="seconds"),
        duration_sec=round(duration_sec, 3),
        warnings=[] if sandbox is None else list(sandbox.warnings),
    )
