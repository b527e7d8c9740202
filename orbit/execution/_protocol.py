"""What the verifier and its worker process say to each other: one JSON object per line.

The worker gets a `VerificationRequest` as its first line and answers with events; a closed standard input tells it to
end, so a killed parent leaves nothing behind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from orbit.execution.trials import OptionValue
from orbit.verification.verdict import Contract


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class VerificationRequest(_Message):
    """Verify one artifact.

    Attributes:
        solution: the artifact on the host.
        task: `suite/id`.
        out_dir: receives `verdict.json` and the runs.
        judge: `module:function` called as `judge(request, executor, progress)`, returning the verdict.
        bridged: ask the parent to execute each run, instead of executing it here.
        memory_mb, run_timeout_sec: of one run, instead of the task's limits.
        n_cores: that a run may use, where they are fewer than the environment has.
    """

    solution: Path
    task: str
    framework: str
    contract: Contract
    options: dict[str, OptionValue]
    out_dir: Path
    judge: str
    bridged: bool = False
    memory_mb: int | None = None
    run_timeout_sec: float | None = None
    n_cores: int | None = None


class Progress(_Message):
    """Something a person may want to read."""

    event: Literal["progress"] = "progress"
    text: str


class RunJob(_Message):
    """Execute a run inside the verification environment.

    Attributes:
        number: tells the answers apart, since several runs may be asked for at once.
        host_dir: has the files in `run`, and receives the outputs in `out`.
        directory: where in the environment the files must lie.
        group_id: the only group, besides root, that may read the files; None for anybody.
        command: what to start there as root.
    """

    event: Literal["run"] = "run"
    number: int = 0
    host_dir: Path
    directory: str
    group_id: int | None = None
    command: list[str]
    timeout_sec: float


class Done(_Message):
    """The verdict is written."""

    event: Literal["done"] = "done"


class Failed(_Message):
    """The harness failed; `text` is one line, the traceback has the rest."""

    event: Literal["failed"] = "failed"
    text: str
    traceback: str


class JobEnded(_Message):
    """The parent's answer to `RunJob`; `error` says why the environment could not carry it out."""

    number: int
    error: str | None = None


Event = Annotated[Progress | RunJob | Done | Failed, Field(discriminator="event")]
EVENTS: TypeAdapter[Event] = TypeAdapter(Event)
