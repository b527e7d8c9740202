"""The process that carries out one verification: `python -m orbit.execution.worker`.

A process of its own can be ended, with all it started, when a trial runs out of time or the user presses Ctrl-C, and
harbor's event loop and progress display do not share an interpreter lock with the measurement.
"""

from __future__ import annotations

import importlib
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO

import psutil

from orbit.errors import HarnessError, OrbitError, UsageError
from orbit.execution._protocol import Done, Event, Failed, JobEnded, Progress, RunJob, VerificationRequest
from orbit.records import write_json
from orbit.verification.execution import Executor
from orbit.verification.verdict import Verdict

PIPELINE = "orbit.execution.worker:judge_with_pipeline"
"""The judge of every run outside tests."""

Judge = Callable[[VerificationRequest, Executor | None, Callable[[str], None]], Verdict]


class Channel:
    """The worker's end of the conversation."""

    def __init__(self, incoming: IO[str], outgoing: IO[str]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._lines: queue.Queue[str] = queue.Queue()
        self._lock = threading.Lock()

    def listen(self) -> None:
        """Start to read; when the parent is gone, end with everything that was started here."""
        threading.Thread(target=self._read, name="parent", daemon=True).start()

    def receive(self) -> str:
        """The next line of the parent."""
        return self._lines.get()

    def send(self, event: Event) -> None:
        """Tell the parent."""
        with self._lock:
            self._outgoing.write(event.model_dump_json() + "\n")
            self._outgoing.flush()

    def execute(self, job_dir: Path, timeout_sec: float) -> None:
        """Have the parent execute a job in the verification environment.

        Raises:
            HarnessError: the environment could not.
        """
        self.send(RunJob(job_dir=job_dir, timeout_sec=timeout_sec))
        ended = JobEnded.model_validate_json(self.receive())
        if ended.error is not None:
            raise HarnessError(ended.error)

    def _read(self) -> None:
        for line in self._incoming:
            self._lines.put(line)
        for process in psutil.Process().children(recursive=True):
            process.kill()
        os._exit(130)


def judge_with_pipeline(
    request: VerificationRequest, executor: Executor | None, progress: Callable[[str], None]
) -> Verdict:
    """Verify as `orbit verify` does; without an executor of the caller's, in the local sandbox."""
    from orbit.frameworks import find_framework
    from orbit.tasks import find_task
    from orbit.verification.pipeline import VerifyOptions, verify

    return verify(
        request.solution,
        find_task(request.task),
        find_framework(request.framework),
        executor=executor or _local_executor(progress),
        out_dir=request.out_dir,
        options=VerifyOptions(contract=request.contract, **request.options),
        progress=progress,
    )


def _local_executor(progress: Callable[[str], None]) -> Executor:
    from orbit.environments import environment_python
    from orbit.frameworks import find_framework
    from orbit.verification.sandbox import LocalExecutor

    return LocalExecutor(lambda _role, framework: environment_python(find_framework(framework), progress=progress))


def load_judge(name: str) -> Judge:
    """The function that `module:function` names.

    Raises:
        UsageError: there is none.
    """
    module, _, function = name.partition(":")
    try:
        judge: Judge = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"judge {name!r} cannot be loaded ({error}); give it as module:function") from error
    return judge


def main() -> None:
    """Read one request, verify, report. Whatever else prints here goes to standard error."""
    outgoing = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    channel = Channel(sys.stdin, outgoing)
    channel.listen()
    request = VerificationRequest.model_validate_json(channel.receive())
    try:
        executor: Executor | None = None
        if request.bridged:
            from orbit.execution.container import BridgedExecutor

            executor = BridgedExecutor(channel.execute)
        verdict = load_judge(request.judge)(request, executor, lambda text: channel.send(Progress(text=text)))
        write_json(request.out_dir / "verdict.json", verdict)
        channel.send(Done())
    except (HarnessError, OrbitError) as error:
        channel.send(Failed(text=str(error), traceback=traceback.format_exc()))
    except Exception as error:  # noqa: BLE001 the process boundary: it becomes a harness error with its traceback
        channel.send(Failed(text=f"{type(error).__name__}: {error}", traceback=traceback.format_exc()))


if __name__ == "__main__":
    main()
