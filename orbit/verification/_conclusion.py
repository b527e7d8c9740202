"""From runs and stages to the words of a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orbit.verification.execution import Execution, ExecutionStatus
from orbit.verification.verdict import Evidence, FailureMode, Outcome, Stage, Validity

_FAILURES = {
    ExecutionStatus.TIMEOUT: FailureMode.RESOURCE_TIMEOUT_OOM,
    ExecutionStatus.MEMORY: FailureMode.RESOURCE_TIMEOUT_OOM,
    ExecutionStatus.OUTPUT_LIMIT: FailureMode.RESOURCE_TIMEOUT_OOM,
}


def execution_stage(executions: Iterable[Execution], timeout_sec: float) -> Stage:
    """One piece of evidence per run of the artifact; the last failure names the failure mode."""
    evidence, mode = [], FailureMode.RUNTIME_API_EXCEPTION
    for execution in executions:
        if execution.role != "candidate":
            continue
        passed = execution.status is ExecutionStatus.OK
        if not passed:
            mode = _FAILURES.get(execution.status, FailureMode.RUNTIME_API_EXCEPTION)
        message = execution.message if passed else "\n".join(filter(None, (execution.message, execution.traceback)))
        evidence.append(
            Evidence(
                check="completes" if passed else str(execution.status),
                outcome=Outcome.PASS if passed else Outcome.FAIL,
                value=execution.runtime_sec,
                limit=timeout_sec if passed or execution.status is ExecutionStatus.TIMEOUT else None,
                message=message,
                run=execution.name,
            )
        )
    return Stage.from_evidence(evidence, mode)


def summarize(stages: Mapping[str, Stage], validity: Validity, deciding: str | None) -> str:
    """One line that says why the verdict is what it is."""
    if deciding is None:
        return "every stage passed"
    stage = stages.get(deciding)
    label = deciding.replace("_", " ")
    if stage is None:
        return f"{label} did not run"
    decisive = Outcome.FAIL if validity is Validity.INVALID else Outcome.FLAG
    found = [item for item in stage.evidence if item.outcome is decisive]
    if not found:
        return f"{label} {stage.status}: {stage.reason}" if stage.reason else f"{label} {stage.status}"
    first, rest = found[0], f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    where = f" in {first.run}" if first.run else ""
    return f"{label}: {first.check}{where}: {first.message.splitlines()[0] if first.message else first.outcome}{rest}"
