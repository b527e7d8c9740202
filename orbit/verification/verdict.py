"""What a verification concludes: evidence, stages, the validity rule and the failure mode.

The outcome is decided by one pure function, `decide`, from the stages alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from orbit.records import Record, Text


class Outcome(StrEnum):
    """How one named check ended."""

    PASS = "pass"
    FAIL = "fail"
    FLAG = "flag"
    NOT_APPLICABLE = "not_applicable"


class StageStatus(StrEnum):
    """How one stage ended."""

    PASS = "pass"
    FAIL = "fail"
    FLAGGED = "flagged"
    SKIPPED = "skipped"
    ERROR = "error"


class Validity(StrEnum):
    """What the verdict says of the artifact."""

    VALID = "valid"
    INVALID = "invalid"
    PROVISIONAL = "provisional"
    ERROR = "error"


class FailureMode(StrEnum):
    """The primary reason of an invalid trial."""

    AGENT_NO_ARTIFACT = "agent_no_artifact"
    RESOURCE_TIMEOUT_OOM = "resource_timeout_oom"
    RUNTIME_API_EXCEPTION = "runtime_api_exception"
    FRAMEWORK_BYPASS = "framework_bypass"
    PROBLEM_MISMATCH = "problem_mismatch"
    SAFETY_REFUSAL = "safety_refusal"
    POLICY_VIOLATION = "policy_violation"


class Contract(StrEnum):
    """The version of the task interface an artifact is judged under."""

    ORBIT_Q_1 = "orbit-q-1"
    ORBIT_2 = "orbit-2"


class Evidence(Record):
    """One named check with the measured number and its limit, for a person to read.

    `run` names the execution it speaks of (`timed`, `probe-1`, `full-probe`), or is empty.
    """

    check: str
    outcome: Outcome
    value: float | int | Text | None = None
    limit: float | int | Text | None = None
    message: Text = ""
    run: str = ""


class Stage(Record):
    """A step of the verification. `failure_mode` is set exactly when the status is `fail`."""

    status: StageStatus
    evidence: list[Evidence] = Field(default_factory=list)
    reason: Text = ""
    failure_mode: FailureMode | None = None

    @model_validator(mode="after")
    def _mode_of_a_failure(self) -> Self:
        if (self.status is StageStatus.FAIL) != (self.failure_mode is not None):
            raise ValueError(f"a stage that ended {self.status} cannot have failure mode {self.failure_mode}")
        return self

    @classmethod
    def from_evidence(cls, evidence: Iterable[Evidence], failure_mode: FailureMode) -> Stage:
        """The status that the evidence adds up to: any failure fails, else any flag flags."""
        found = list(evidence)
        outcomes = {item.outcome for item in found}
        if Outcome.FAIL in outcomes:
            return cls(status=StageStatus.FAIL, evidence=found, failure_mode=failure_mode)
        status = StageStatus.FLAGGED if Outcome.FLAG in outcomes else StageStatus.PASS
        return cls(status=status, evidence=found)

    @classmethod
    def skipped(cls, reason: str) -> Stage:
        """A stage that did not run, and why."""
        return cls(status=StageStatus.SKIPPED, reason=reason)

    @classmethod
    def error(cls, reason: str) -> Stage:
        """A stage that the harness could not carry out, and why."""
        return cls(status=StageStatus.ERROR, reason=reason)


STAGES = ("solving", "static_policy", "execution", "functional", "probes", "provenance", "semantic_audit")
"""Every stage in the order it is looked at; `solving` exists only in trials by an agent."""

REQUIRED_STAGES = ("static_policy", "execution", "functional", "probes")
"""Stages that must have run before an artifact can be anything but `error` or `invalid`."""


class Timing(Record):
    """Runtimes of the artifact and its reference. Seconds, bytes; `slowdown` is artifact over reference."""

    runtime_sec: float | None = None
    import_sec: float | None = None
    reference_sec: float | None = None
    slowdown: float | None = None
    slowdown_interval: tuple[float, float] | None = None
    pairs: list[tuple[float, float]] = Field(default_factory=list)
    peak_memory_bytes: int | None = None
    reference_peak_memory_bytes: int | None = None
    reference_sha256: str | None = None
    n_cores: int | None = None
    warnings: list[str] = Field(default_factory=list)


class Sandbox(Record):
    """How candidate code was confined, and what was not."""

    kind: Literal["bubblewrap", "container", "process"]
    network: bool
    unprivileged: bool
    warnings: list[str] = Field(default_factory=list)


class Verdict(Record):
    """The structured outcome of one verification (`verdict.json`)."""

    schema_version: Literal[1] = 1
    task: str
    suite: str
    framework: str
    contract: Contract
    validity: Validity
    failure_mode: FailureMode | None = None
    summary: Text
    reward: int = Field(ge=0, le=1)
    stages: dict[str, Stage]
    timing: Timing
    sandbox: Sandbox | None = None
    host: dict[str, str | int | float | None] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    artifact_sha256: str | None = None
    artifact_name: Text = ""
    evaluator_digest: str = ""
    seed: int
    verified_at: str
    duration_sec: float = 0.0
    warnings: list[str] = Field(default_factory=list)


class Decision(Record):
    """What `decide` concludes from the stages."""

    validity: Validity
    failure_mode: FailureMode | None = None
    deciding_stage: str | None = None


def decide(stages: Mapping[str, Stage], *, resolved: frozenset[str] = frozenset()) -> Decision:
    """The validity rule.

    A failed stage makes the artifact invalid, whatever else happened; the first in `STAGES` order gives the failure
    mode. Otherwise a stage that the harness could not carry out, or a required one that is missing, is an error.
    Otherwise flags, and an audit that did not run, leave it provisional.

    Args:
        stages: stage name to stage.
        resolved: names of stages that a reviewer decided in the artifact's favour. That settles a flag of any stage,
            but a failure only of the audit: no opinion overturns a number.
    """
    overturned = resolved & {"semantic_audit"}
    for name in STAGES:
        stage = stages.get(name)
        if stage is not None and stage.status is StageStatus.FAIL and name not in overturned:
            return Decision(validity=Validity.INVALID, failure_mode=stage.failure_mode, deciding_stage=name)
    for name in STAGES:
        stage = stages.get(name)
        if stage is not None and stage.status is StageStatus.ERROR:
            return Decision(validity=Validity.ERROR, deciding_stage=name)
    for name in REQUIRED_STAGES:
        stage = stages.get(name)
        if stage is None or stage.status is StageStatus.SKIPPED:
            return Decision(validity=Validity.ERROR, deciding_stage=name)
    for name in STAGES:
        stage = stages.get(name)
        if stage is not None and stage.status is StageStatus.FLAGGED and name not in resolved:
            return Decision(validity=Validity.PROVISIONAL, deciding_stage=name)
    audit = stages.get("semantic_audit")
    if audit is None or audit.status is StageStatus.SKIPPED:
        return Decision(validity=Validity.PROVISIONAL, deciding_stage="semantic_audit")
    return Decision(validity=Validity.VALID)


def reward(stages: Mapping[str, Stage]) -> int:
    """`functional x probes x static_policy x semantic_audit`: 0 when one of them failed or could not be judged.

    Flags and a skipped audit count as 1; the numbers beside the reward (`audited`, `flags`) say so.
    """
    for name in REQUIRED_STAGES:
        stage = stages.get(name)
        if stage is None or stage.status not in (StageStatus.PASS, StageStatus.FLAGGED):
            return 0
    audit = stages.get("semantic_audit")
    return 0 if audit is not None and audit.status in (StageStatus.FAIL, StageStatus.ERROR) else 1
