"""Verifications of known outcome, so that tests of the harbor side need no framework environment.

Loaded by the verification worker as `tests.unit.execution.fake_judges:NAME`. Only the judgement is replaced: harbor's
job, the local environment, the verifier and the worker process are the real ones.
"""

import itertools
import subprocess
import time

from orbit.errors import HarnessError
from orbit.verification.execution import ExecutionRequest, Limits
from orbit.verification.verdict import (
    REQUIRED_STAGES,
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


def verdict(request, stages):
    decision = decide(stages)
    suite, _, task = request.task.partition("/")
    return Verdict(
        task=task,
        suite=suite,
        framework=request.framework,
        contract=request.contract,
        validity=decision.validity,
        failure_mode=decision.failure_mode,
        summary="judged by a fake",
        reward=reward(stages),
        stages=stages,
        timing=Timing(runtime_sec=1.5, slowdown=1.25),
        seed=1,
        verified_at="2026-01-01T00:00:00+00:00",
    )


def by_content(request, executor, progress):
    """Accepts an artifact that says `good`, and finds a problem in any other."""
    progress("reading")
    stages = {name: Stage(status=StageStatus.PASS) for name in REQUIRED_STAGES}
    if "good" not in request.solution.read_text():
        evidence = Evidence(check="says_good", outcome=Outcome.FAIL)
        stages["functional"] = Stage.from_evidence([evidence], FailureMode.PROBLEM_MISMATCH)
    return verdict(request, stages)


def slow(request, executor, progress):
    time.sleep(0.7)
    return by_content(request, executor, progress)


def harness_error(request, executor, progress):
    raise HarnessError("the sandbox did not start")


def crash(request, executor, progress):
    raise ZeroDivisionError("a defect of the judge")


def die(request, executor, progress):
    import os

    os._exit(9)


def hang_with_child(request, executor, progress):
    """Starts a process that outlives its parent unless somebody looks for it, says so, and never ends."""
    child = subprocess.Popen(["sleep", "65432"], start_new_session=True)
    (request.out_dir / "child.pid").write_text(str(child.pid))
    child.wait()


def hang_once(request, executor, progress):
    """Hangs for the second trial of a run that has no `let_go` file yet, and judges every other."""
    run_dir = request.out_dir.parents[2]
    judged = len(list(run_dir.glob("harbor/*/verification/verdict.json")))
    if judged >= 1 and not (run_dir.parent / "let_go").exists():
        hang_with_child(request, executor, progress)
    return by_content(request, executor, progress)


def fill_the_disk(request, executor, progress):
    """Writes beside the trial until the disk is full."""
    with (request.out_dir / "filler").open("wb", buffering=0) as filler:
        for block in itertools.repeat(bytes(2**16)):
            if filler.write(block) < len(block):
                filler.write(block)


def fill_the_disk_and_free_it(request, executor, progress):
    try:
        fill_the_disk(request, executor, progress)
    finally:
        (request.out_dir / "filler").unlink()


def run_once(request, executor, progress):
    """Runs the artifact as candidate, and the reference's environment once, and passes what comes back on."""
    executions = []
    for role in ("candidate", "reference"):
        execution = executor.run(
            ExecutionRequest(
                name=role,
                role=role,
                solution=request.solution,
                framework="tensorcircuit",
                config={"n": 3},
                output_dir=request.out_dir / "runs" / role,
                limits=Limits(timeout_sec=60),
            )
        )
        executions.append(execution)
    stages = {name: Stage(status=StageStatus.PASS) for name in REQUIRED_STAGES}
    stages["execution"] = Stage(
        status=StageStatus.PASS if executions[0].status == "ok" else StageStatus.FAIL,
        failure_mode=None if executions[0].status == "ok" else FailureMode.RUNTIME_API_EXCEPTION,
        reason=executions[0].message,
    )
    return verdict(request, stages)
