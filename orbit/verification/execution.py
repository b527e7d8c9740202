"""One run of candidate code as data: what is asked, what limits hold, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field

from orbit.records import Record, Text
from orbit.verification.verdict import Sandbox

Role = Literal["candidate", "reference"]


@dataclass(frozen=True)
class Limits:
    """What one run may use. Seconds, bytes, counts."""

    timeout_sec: float = 900.0
    memory_bytes: int = 32 * 2**30
    n_processes: int = 1024
    output_bytes: int = 256 * 2**20
    log_bytes: int = 1 * 2**20
    n_cores: int | None = None


@dataclass(frozen=True)
class ExecutionRequest:
    """Ask for one call of `run_solution(config)` in a fresh process.

    Attributes:
        name: names the run within a verification (`timed-1`, `probe-2`, `full-probe`).
        role: whose artifact it is; the reference has its own Python environment.
        solution: the artifact on the host.
        framework: the framework whose environment runs it.
        config: what the call is given; values of `orbit.verification.config`.
        output_dir: host directory that receives `result.npz`, `execution.json`, `stdout.txt`, `stderr.txt`.
    """

    name: str
    role: Role
    solution: Path
    framework: str
    config: Mapping[str, Any]
    output_dir: Path
    limits: Limits = field(default_factory=Limits)
    provenance: bool = False
    allow_child_processes: bool = False


class ExecutionStatus(StrEnum):
    """How a run ended, as seen by the runner's parent process."""

    OK = "ok"
    LOAD_ERROR = "load_error"  # unreadable file, syntax error, exception at import, no run_solution
    EXCEPTION = "exception"  # run_solution raised
    BAD_RESULT = "bad_result"  # not a dict of plain numeric arrays, or the handed-over file is malformed
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_LIMIT = "output_limit"  # the result, or what it wrote, was too large
    DIED = "died"  # exited or was killed before it handed over a result
    HARNESS_ERROR = "harness_error"


class Execution(Record):
    """What came of one run (`execution.json`). Times in seconds, memory in bytes.

    `runtime_sec` is the wall time from the call to the hand-over plus `import_sec`, the import time of the artifact
    above that of the bare framework.
    """

    schema_version: Literal[1] = 1
    name: str
    role: Role
    status: ExecutionStatus
    message: Text = ""
    traceback: Text = ""
    runtime_sec: float | None = None
    import_sec: float | None = None
    framework_import_sec: float | None = None
    peak_memory_bytes: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    result_keys: list[str] = Field(default_factory=list)
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    sandbox: Sandbox | None = None
    versions: dict[str, str] = Field(default_factory=dict)


class Executor(Protocol):
    """Runs artifacts somewhere: in the local sandbox, or in a container."""

    def run(self, request: ExecutionRequest) -> Execution:
        """Run once and block until it ended; the result, if any, lies in `request.output_dir / "result.npz"`.

        Raises:
            HarnessError: the sandbox itself could not be started.
        """
        ...


def read_outputs(output_dir: Path, limit_bytes: int) -> dict[str, Any]:
    """Read `result.npz` as plain arrays, never unpickling, refusing what is larger than `limit_bytes` once unpacked.

    Raises:
        ValueError: the file is malformed, hides objects, or is too large; the text says which.
    """
    from orbit.verification import runner

    return runner.read_result(output_dir / "result.npz", limit_bytes)
