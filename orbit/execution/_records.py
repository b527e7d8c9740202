"""From harbor's result of a trial to our record of it."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path

from harbor.constants import MAIN_SERVICE_NAME
from harbor.models.trial.paths import TrialPaths
from harbor.models.trial.result import TimingInfo, TrialResult

from orbit.accounting import account
from orbit.assembly import ARTIFACT_PATH
from orbit.errors import DataError
from orbit.execution import outcomes
from orbit.execution.outcomes import Disposition, Ending
from orbit.execution.trials import TRIAL_FILE, RunRecord, TrialRecord
from orbit.execution.verifier import VERIFICATION_DIR, problem_with_artifact
from orbit.host import capture_host
from orbit.records import read_record, write_json
from orbit.verification.verdict import FailureMode, Validity, Verdict


def write_trial_record(run: RunRecord, result: TrialResult, out_dir: Path) -> TrialRecord:
    """Write `trials/<name>/trial.json` for a trial of harbor's that ended, however it did."""
    record = trial_record(run, result, out_dir)
    write_json(out_dir / "trials" / record.name / TRIAL_FILE, record)
    return record


def _verdict(path: Path, *, interrupted: bool) -> Verdict | None:
    """The verdict of a trial, if there is one; what an interrupted verification left half done is none."""
    if not path.is_file():
        return None
    try:
        return read_record(path, Verdict)
    except DataError:
        if interrupted:
            return None
        raise


def trial_record(run: RunRecord, result: TrialResult, out_dir: Path) -> TrialRecord:
    """The record of a trial, from harbor's result and the verdict that lies beside it."""
    cell = run.cell(result.config.task.get_local_path().name)
    paths = TrialPaths(result.config.trials_dir / result.trial_name)
    artifact = paths.host_artifact_path(MAIN_SERVICE_NAME, ARTIFACT_PATH)
    has_artifact = problem_with_artifact(artifact) is None
    verdict_path = paths.trial_dir / VERIFICATION_DIR / "verdict.json"
    error = result.exception_info
    verdict = _verdict(verdict_path, interrupted=error is not None)
    message = error.exception_message if error else ""
    ending = outcomes.classify(error.exception_type if error else None, message)
    if ending is Ending.COMPLETED and verdict is not None and verdict.failure_mode is FailureMode.SAFETY_REFUSAL:
        ending = Ending.REFUSAL
    conclusion = conclude(ending, verdict, has_artifact=has_artifact)
    suite, _, _task = cell.task.partition("/")
    return TrialRecord(
        run_id=run.run_id,
        name=result.trial_name,
        task=cell.task,
        suite=suite,
        framework=cell.framework,
        agent=run.agent.name,
        agent_version=result.agent_info.version,
        model=run.agent.model,
        effort=run.agent.effort,
        variant=cell.variant,
        contract=cell.contract,
        environment=run.environment,
        image=cell.image,
        image_id=cell.image_id,
        staged_digest=cell.staged_digest,
        started_at=_time(result.started_at),
        finished_at=_time(result.finished_at),
        environment_setup_sec=_duration(result.environment_setup),
        agent_setup_sec=_duration(result.agent_setup),
        solving_sec=_duration(result.agent_execution),
        verification_sec=_duration(result.verifier),
        ending=ending,
        exception_type=error.exception_type if error else None,
        exception_message=message or None,
        summary=verdict.summary if verdict else message.partition("\n")[0],
        usage=account(paths.agent_dir, model=run.agent.model, totals=result.agent_result),
        artifact_path=str(artifact.relative_to(out_dir)) if has_artifact else None,
        artifact_sha256=hashlib.sha256(artifact.read_bytes()).hexdigest() if has_artifact else None,
        verdict_path=str(verdict_path.relative_to(out_dir)) if verdict else None,
        harbor_trial_dir=str(paths.trial_dir.relative_to(out_dir)),
        harbor_result_path=str(paths.result_path.relative_to(out_dir)),
        warnings=cell.warnings,
        host=verdict.host if verdict and verdict.host else capture_host(),
        **conclusion,
    )


def conclude(ending: Ending, verdict: Verdict | None, *, has_artifact: bool) -> dict[str, object]:
    """Disposition, validity, failure mode and reward of a trial, from how it ended and what the verdict says.

    A trial that was to be judged but has no verdict is an error of ours, never a failure of the agent.
    """
    disposition = outcomes.dispose(ending, has_artifact=has_artifact)
    unjudged = {"validity": Validity.ERROR, "failure_mode": None, "reward": None}
    if disposition is Disposition.HARNESS_ERROR:
        return {"disposition": disposition, **unjudged}
    if disposition is Disposition.FAILED_TRIAL:
        mode: FailureMode | None = outcomes.failure_mode_without_artifact(ending)
        if mode is FailureMode.AGENT_NO_ARTIFACT and verdict is not None:
            mode = verdict.failure_mode
        return {"disposition": disposition, "validity": Validity.INVALID, "failure_mode": mode, "reward": 0}
    if verdict is None or verdict.validity is Validity.ERROR:
        return {"disposition": Disposition.HARNESS_ERROR, **unjudged}
    return {
        "disposition": disposition,
        "validity": verdict.validity,
        "failure_mode": verdict.failure_mode,
        "reward": verdict.reward,
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="milliseconds") if moment else None


def _duration(timing: TimingInfo | None) -> float | None:
    if timing is None or timing.started_at is None or timing.finished_at is None:
        return None
    return float((timing.finished_at - timing.started_at).total_seconds())
