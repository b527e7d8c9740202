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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import IO, TYPE_CHECKING

import psutil

from orbit.errors import HarnessError, OrbitError, UsageError
from orbit.execution._protocol import Done, Event, Failed, JobEnded, Progress, RunJob, VerificationRequest
from orbit.execution.trials import OptionValue
from orbit.records import write_json
from orbit.verification.execution import Execution, ExecutionRequest, Executor
from orbit.verification.verdict import Contract, Verdict

if TYPE_CHECKING:
    from orbit.verification.pipeline import VerifyOptions
    from orbit.verification.sandbox import LocalExecutor

PIPELINE = "orbit.execution.worker:judge_with_pipeline"
"""The judge of every run outside tests."""

_END_SEC = 5.0

Judge = Callable[[VerificationRequest, Executor, Callable[[str], None]], Verdict]


class Channel:
    """The worker's end of the conversation."""

    def __init__(self, incoming: IO[str], outgoing: IO[str], on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._incoming = incoming
        self._outgoing = outgoing
        self._requests: queue.Queue[str] = queue.Queue()
        self._answers: dict[int, queue.Queue[JobEnded]] = {}
        self._lock = threading.Lock()

    def listen(self) -> None:
        """Start to read; when the parent closes its end or is gone, call `on_end`."""
        threading.Thread(target=self._read, name="parent", daemon=True).start()

    def request(self) -> VerificationRequest:
        """What the parent asks for."""
        return VerificationRequest.model_validate_json(self._requests.get())

    def send(self, event: Event) -> None:
        """Tell the parent."""
        with self._lock:
            self._outgoing.write(event.model_dump_json() + "\n")
            self._outgoing.flush()

    def execute(self, job: RunJob) -> None:
        """Have the parent execute a job in the verification environment. Several threads may ask at once.

        Raises:
            HarnessError: the environment could not.
        """
        with self._lock:
            number = len(self._answers)
            self._answers[number] = queue.Queue()
        self.send(job.model_copy(update={"number": number}))
        ended = self._answers[number].get()
        if ended.error is not None:
            raise HarnessError(ended.error)

    def _read(self) -> None:
        """The first line is the request, every other an answer."""
        self._requests.put(self._incoming.readline())
        for line in self._incoming:
            ended = JobEnded.model_validate_json(line)
            self._answers[ended.number].put(ended)
        self._on_end()


def judge_with_pipeline(request: VerificationRequest, executor: Executor, progress: Callable[[str], None]) -> Verdict:
    """Verify as `orbit verify` does."""
    from orbit.execution.limits import with_limits
    from orbit.frameworks import find_framework
    from orbit.tasks import find_task
    from orbit.verification.pipeline import verify

    limits = {"memory_mb": request.memory_mb, "run_timeout_sec": request.run_timeout_sec}

    return verify(
        request.solution,
        with_limits(find_task(request.task), limits),
        find_framework(request.framework),
        executor=executor,
        out_dir=request.out_dir,
        options=verify_options(request.contract, request.options),
        progress=progress,
    )


@dataclass(frozen=True)
class CoreLimit:
    """An executor whose runs use fewer cores than there are."""

    executor: Executor
    n_cores: int

    def run(self, request: ExecutionRequest) -> Execution:
        """Run once; see `Executor.run`."""
        return self.executor.run(replace(request, limits=replace(request.limits, n_cores=self.n_cores)))


def verify_options(contract: Contract, options: Mapping[str, OptionValue]) -> VerifyOptions:
    """Options of a verification from names and values.

    Raises:
        UsageError: one of them does not exist.
    """
    from orbit.verification.pipeline import VerifyOptions

    unknown = set(options) - {item.name for item in fields(VerifyOptions)} | set(options) & {"contract"}
    if unknown:
        raise UsageError(f"unknown verification options {', '.join(sorted(unknown))}")
    return VerifyOptions(contract=contract, **options)  # type: ignore[arg-type]


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
    local: list[LocalExecutor] = []
    channel = Channel(sys.stdin, outgoing, lambda: _end(local))
    channel.listen()
    request = channel.request()
    try:
        executor = _executor(request, channel, local)
        if request.n_cores is not None:
            executor = CoreLimit(executor, request.n_cores)
        verdict = load_judge(request.judge)(request, executor, lambda text: channel.send(Progress(text=text)))
        write_json(request.out_dir / "verdict.json", verdict)
        channel.send(Done())
    except (HarnessError, OrbitError) as error:
        channel.send(Failed(text=str(error), traceback=traceback.format_exc()))
    except Exception as error:  # noqa: BLE001 the process boundary: it becomes a harness error with its traceback
        channel.send(Failed(text=f"{type(error).__name__}: {error}", traceback=traceback.format_exc()))


def _executor(request: VerificationRequest, channel: Channel, local: list[LocalExecutor]) -> Executor:
    if request.bridged:
        from orbit.execution.container import ContainerExecutor

        return ContainerExecutor(channel.execute, memory_mb=request.memory_mb)
    from orbit.verification.local import local_executor

    local.append(local_executor(lambda text: channel.send(Progress(text=text))))
    return local[0]


def _end(local: list[LocalExecutor]) -> None:
    """End now: nobody waits for the verdict. Runs get a moment to remove their directories."""
    for executor in local:
        executor.stop()
    children = psutil.Process().children()
    for process in children:
        process.terminate()
    psutil.wait_procs(children, timeout=_END_SEC)
    for process in psutil.Process().children(recursive=True):
        process.kill()
    threading.main_thread().join(_END_SEC)
    os._exit(130)


if __name__ == "__main__":
    main()
