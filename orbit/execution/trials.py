"""The records of a run: what was asked (`run.json`) and, per trial, what came of it (`trial.json`).

harbor keeps its own files beside them; nothing here repeats what a reader would not want to join by hand. Paths are
relative to the run directory, so that it can be moved.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from orbit.accounting import AgentUsage
from orbit.execution.outcomes import Disposition, Ending
from orbit.records import Record
from orbit.verification.verdict import Contract, FailureMode, Validity

RUN_FILE = "run.json"
TRIAL_FILE = "trial.json"
OptionValue = str | int | float | bool | None


class LimitsRecord(Record):
    """Limits of a cell, or what was asked for instead of the task's (None: the task's own). Seconds, cores, MiB."""

    cpus: int | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    run_timeout_sec: float | None = None
    verification_timeout_sec: float | None = None


class CellRecord(Record):
    """One cell of the run and the task directory staged for it.

    Attributes:
        name: names the staged directory, and starts the names of the cell's trials.
        task: `suite/id`.
        staged_digest: of the staged directory; equal inputs have equal digests.
        staged_dir: that directory, relative to the run directory.
        image: container image and its digest, where there is one.
        limits: what holds in this cell, after clamping to the machine.
        warnings: what the environment cannot give or enforce.
    """

    name: str
    task: str
    framework: str
    variant: str | None = None
    contract: Contract
    staged_digest: str
    staged_dir: str
    image: str | None = None
    image_id: str | None = None
    limits: LimitsRecord = Field(default_factory=LimitsRecord)
    warnings: list[str] = Field(default_factory=list)


class AgentRecord(Record):
    """Who solves: `reference`, `file:PATH` or an agent of harbor with its model, and how it is configured.

    Attributes:
        options: of harbor's adapter; what may be a secret was refused.
        key_variable: name of the environment variable that holds the key.
        version: what was asked for; which one ran is in the record of each trial.
    """

    name: str
    model: str | None = None
    effort: str | None = None
    solution_sha256: str | None = None
    version: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    base_url: str | None = None
    key_variable: str | None = None
    timeout_sec: float | None = None


class RunRecord(Record):
    """What was asked of a run; written once, before anything starts. A repeated command must ask the same.

    Attributes:
        limits: asked for instead of those of the tasks.
        max_retries: of trials whose ending says that trying again may help.
    """

    schema_version: Literal[1] = 1
    run_id: str
    created_at: str
    agent: AgentRecord
    environment: str
    n_attempts: int
    max_retries: int = 1
    limits: LimitsRecord = Field(default_factory=LimitsRecord)
    verify_options: dict[str, OptionValue]
    cells: list[CellRecord]

    def cell(self, name: str) -> CellRecord:
        """The cell of that name.

        Raises:
            KeyError: there is none.
        """
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise KeyError(name)


class TrialRecord(Record):
    """One attempt at a cell (`trials/<name>/trial.json`). Seconds, UTC times.

    Attributes:
        reward: 0 or 1; None where nothing could be judged, which is not 0.
        disposition: what the ending led to; a harness error is repeated when the run is resumed.
        ending: why solving ended.
        usage: the agent's tokens and cost; None for one that uses no model. The audit's are in the verdict.
    """

    schema_version: Literal[1] = 1
    run_id: str
    name: str
    task: str
    suite: str
    framework: str
    agent: str
    agent_version: str | None = None
    model: str | None = None
    effort: str | None = None
    variant: str | None = None
    contract: Contract
    environment: str
    image: str | None = None
    image_id: str | None = None
    staged_digest: str
    started_at: str | None = None
    finished_at: str | None = None
    environment_setup_sec: float | None = None
    agent_setup_sec: float | None = None
    solving_sec: float | None = None
    verification_sec: float | None = None
    ending: Ending
    disposition: Disposition
    exception_type: str | None = None
    exception_message: str | None = None
    validity: Validity
    failure_mode: FailureMode | None = None
    reward: int | None = Field(default=None, ge=0, le=1)
    summary: str = ""
    usage: AgentUsage | None = None
    artifact_path: str | None = None
    artifact_sha256: str | None = None
    verdict_path: str | None = None
    harbor_trial_dir: str
    harbor_result_path: str
    host: dict[str, str | int | float | None] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)
