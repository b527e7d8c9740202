"""The runner's parent: starts the child, takes the time, holds the limits, and leaves nothing running."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orbit.verification import _process, _protocol

POLL_SEC = 0.02
SCAN_SEC = 0.2
COUNTS_SEC = 20.0
CLOSED_SEC = 1.0
FLOOD_FACTOR = 64
"""A child that prints this many times what is kept of it is stopped: it is filling pipes, not computing."""

CHILD_STATUSES = frozenset({"load_error", "exception", "bad_result", "memory", "output_limit", "died"})
"""What a child may say of itself once the candidate is loaded; that the harness failed is not for it to say."""


class _Log:
    """Keeps the head of a stream in a file and throws the rest away."""

    def __init__(self, path: Path, limit: int) -> None:
        self._stream = path.open("wb")
        self._limit = limit
        self.n_bytes = 0

    def add(self, data: bytes) -> None:
        room = self._limit - self.n_bytes
        self.n_bytes += len(data)
        if room > 0:
            self._stream.write(data[:room])

    def close(self) -> None:
        self._stream.close()

    @property
    def truncated(self) -> bool:
        return self.n_bytes > self._limit


class Supervisor:
    """One run. The states are "starting", "loading", "running", "counting", "done".

    Args:
        job: see `runner`.
        clock: gives seconds; monotonic.
    """

    def __init__(self, job: dict[str, Any], clock: Callable[[], float] = time.perf_counter) -> None:
        self._job = job
        self._limits = job["limits"]
        self._clock = clock
        self._output_dir = Path(job["output_dir"])
        self._state = "starting"
        self._answer: dict[str, Any] = {
            "schema_version": 1,
            "name": job["name"],
            "role": job["role"],
            "sandbox": dict(job["sandbox"]),
        }
        self._reader = _protocol.FrameReader(_protocol.message_limits(self._limits["output_bytes"]))
        self._selector = selectors.DefaultSelector()
        self._logs: dict[str, _Log] = {}
        self._uid: int | None = None
        self._result: bytes | None = None
        self._peak = 0
        self._pids: list[int] = []
        self._scanned = float("-inf")
        self._times: dict[str, float] = {}
        self._closed_at: float | None = None

    def run(self) -> dict[str, Any]:
        """Run to the end, whatever the end is; the answer has the fields of `Execution`."""
        _process.adopt_orphans()
        self._output_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        process = None
        try:
            process = self._start()
            while self._state != "done":
                self._pump(POLL_SEC)
                self._check_exit(process)
                self._check_clock()
                self._check_memory()
            self._peak = max(self._peak, _process.peak_bytes(self._pids))
        finally:
            self._end()
        self._keep_result()
        self._answer["peak_memory_bytes"] = self._peak or None
        return self._answer

    # --- start and end ----------------------------------------------------------------------------------------

    def _start(self) -> subprocess.Popen[bytes]:
        job = self._job
        if job["drop_uid"]:
            self._uid = run_uid(os.getpid(), Path("/proc/self/uid_map").read_text())
        if job["scratch"]:
            scratch = Path(job["scratch"])
            scratch.mkdir(mode=0o700)
            if self._uid is not None:
                os.chown(scratch, self._uid, -1)
        orders, self._orders = os.pipe()
        messages, child_messages = os.pipe()
        places = {"{orders}": str(orders), "{messages}": str(child_messages)}
        allowed = os.sched_getaffinity(0)
        if job["cpus"]:
            os.sched_setaffinity(0, job["cpus"])  # inherited, so that thread pools started at import fit too
        self._times["started"] = self._clock()
        try:
            process = subprocess.Popen(
                [places.get(part, part) for part in job["command"]],
                env=job["env"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(orders, child_messages),
                start_new_session=True,
            )
        finally:
            os.sched_setaffinity(0, allowed)
            os.close(orders)
            os.close(child_messages)
        self._watch(process, messages)
        self._order(_protocol.SETUP, self._setup())
        return process

    @property
    def _gid(self) -> int | None:
        group: int | None = self._job["gid"]
        return self._uid if group is None else group

    def _setup(self) -> bytes:
        setup = {**self._job["setup"], "uid": self._uid, "gid": self._gid, "output_bytes": self._limits["output_bytes"]}
        return json.dumps(setup).encode()

    def _watch(self, process: subprocess.Popen[bytes], messages: int) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        watched: dict[int, Callable[[bytes], None]] = {messages: self._on_message}
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            self._logs[name] = log = _Log(self._output_dir / f"{name}.txt", self._limits["log_bytes"])
            watched[stream.fileno()] = lambda data, log=log: self._on_output(log, data)  # type: ignore[misc]
        if self._job["lifeline"]:
            watched[sys.stdin.fileno()] = self._on_lifeline
        for descriptor, handler in watched.items():
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, handler)

    def _end(self) -> None:
        """Kill, and only then look at what is left in the pipes; a second signal must not stop this."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if not _process.kill_all(self._uid):
            self._answer |= {"status": "harness_error", "message": "a process of the run could not be killed"}
        self._state = "done"
        self._pump(0.0)
        for name, log in self._logs.items():
            log.close()
            self._answer[f"{name}_truncated"] = log.truncated
        if self._answer.get("status") == "harness_error" and "stderr" in self._logs:
            said = (self._output_dir / "stderr.txt").read_text(errors="replace").strip()
            self._answer["message"] += f": {printable(said[-500:])}" if said else ""
        self._selector.close()
        if self._job["scratch"]:
            shutil.rmtree(self._job["scratch"], ignore_errors=True)

    def _keep_result(self) -> None:
        if self._result is None:
            return
        from orbit.verification import _values

        path = self._output_dir / "result.npz"
        path.write_bytes(self._result)
        try:
            self._answer["result_keys"] = list(_values.read_result(path, self._limits["output_bytes"]))
        except ValueError as error:
            path.unlink()
            self._answer |= {"status": "bad_result", "message": str(error)}

    # --- what comes in ----------------------------------------------------------------------------------------

    def _pump(self, timeout: float) -> None:
        """Hand everything that has come to its handler; close what has ended."""
        for key, _ in self._selector.select(timeout):
            try:
                data = os.read(key.fd, _protocol.CHUNK)
            except BlockingIOError:
                continue
            if not data:
                self._selector.unregister(key.fd)
            key.data(data)

    def _on_output(self, log: _Log, data: bytes) -> None:
        log.add(data)
        if log.n_bytes > FLOOD_FACTOR * self._limits["log_bytes"]:
            self._finish("output_limit", f"printed more than {FLOOD_FACTOR * self._limits['log_bytes']} bytes")

    def _on_lifeline(self, data: bytes) -> None:
        """Whoever started us has died: nobody wants the answer, and nobody else cleans up."""
        if not data:
            self._end()
            if self._job["work_dir"]:
                shutil.rmtree(self._job["work_dir"], ignore_errors=True)
            os._exit(1)

    def _on_message(self, data: bytes) -> None:
        arrived = self._clock()
        if not data:
            self._closed_at = arrived
        if self._state == "done":
            return
        self._reader.feed(data)
        try:
            for kind, payload in self._reader.frames():
                self._on_frame(kind, payload, arrived)
        except _protocol.TooLongError as error:
            if error.kind == _protocol.RESULT and self._state == "running":
                self._finish("output_limit", f"the result has more than {self._limits['output_bytes']} bytes")
            else:
                self._finish("bad_result", f"broke the runner's protocol: {error}")
        except (_protocol.ProtocolError, ValueError, RecursionError) as error:  # the latter two from hostile JSON
            self._finish("bad_result", f"broke the runner's protocol: {error}")

    def _on_frame(self, kind: int, payload: bytes, arrived: float) -> None:
        if self._state == "starting" and kind == _protocol.READY:
            ready = json.loads(payload)
            self._answer["versions"] = ready["versions"]
            self._answer["sandbox"]["network"] &= not ready["filtered"]
            self._state = "loading"
            self._times["ready"] = self._clock()
            self._order(_protocol.LOAD)
        elif self._state == "loading" and kind == _protocol.LOADED:
            self._state = "running"
            self._times["loaded"] = arrived
            self._order(_protocol.CALL)
        elif self._state == "running" and kind == _protocol.RESULT:
            self._times["handed_over"] = arrived
            self._result = payload
            self._finish("ok", "")
            self._state = "counting" if self._job["setup"]["adapter"] else "done"
        elif self._state == "counting" and kind == _protocol.COUNTS:
            (self._output_dir / "provenance.json").write_text(json.dumps(json.loads(payload), indent=2) + "\n")
            self._state = "done"
        elif self._state in ("starting", "loading", "running") and kind == _protocol.FAILED:
            self._on_failure(json.loads(payload))
        elif self._state != "done":
            raise _protocol.ProtocolError(f"a message of kind {kind} while {self._state}")

    def _on_failure(self, details: Any) -> None:
        fields = ("status", "message", "traceback")
        if not isinstance(details, dict) or any(type(details.get(field)) is not str for field in fields):
            raise _protocol.ProtocolError("a failure report of the wrong form")
        allowed = {"harness_error"} if self._state == "starting" else CHILD_STATUSES
        if details["status"] not in allowed:
            raise _protocol.ProtocolError("a failure report with a status that it may not have")
        self._answer["traceback"] = printable(details["traceback"])
        self._finish(details["status"], printable(details["message"]))

    def _order(self, kind: int, payload: bytes = b"") -> None:
        with contextlib.suppress(BrokenPipeError):  # the child is gone; its exit is noticed next
            _protocol.send(self._orders, kind, payload)

    # --- what is checked --------------------------------------------------------------------------------------

    def _check_exit(self, process: subprocess.Popen[bytes]) -> None:
        if self._state == "done":
            return
        if process.poll() is None:
            if self._closed_at is not None and self._clock() - self._closed_at > CLOSED_SEC:
                self._finish("died", "closed its connection to the runner before it handed over a result")
            return
        self._pump(0.0)
        while self._state != "done" and self._unread():
            self._pump(0.0)
        if self._state in ("done", "counting"):
            self._state = "done"
            return
        code, number = exit_reason(process.returncode, wrapped=self._job["wrapped"])
        self._answer |= {"exit_code": code, "signal": number}
        how = f"was killed by signal {number}" if number else f"exited with status {code}"
        if self._state == "starting":
            self._finish("harness_error", f"the sandbox or the child in it {how} before the framework was imported")
        elif number == signal.SIGKILL and self._peak > 0.9 * self._limits["memory_bytes"]:
            self._finish("memory", f"{how} after using {self._peak} bytes of memory")
        else:
            self._finish("died", f"{how} before it handed over a result")

    def _unread(self) -> bool:
        ready = self._selector.select(0.0)
        return any(key.data == self._on_message for key, _ in ready)

    def _check_clock(self) -> None:
        now = self._clock()
        if self._state == "starting" and now - self._times["started"] > self._limits["start_sec"]:
            limit = self._limits["start_sec"]
            self._finish("harness_error", f"importing the framework took more than {limit:g} s")
        elif self._state in ("loading", "running") and now - self._times["ready"] > self._limits["timeout_sec"]:
            self._finish("timeout", f"not finished after {self._limits['timeout_sec']:g} s")
        elif self._state == "counting" and now - self._times["handed_over"] > COUNTS_SEC:
            self._state = "done"

    def _check_memory(self) -> None:
        now = self._clock()
        if now - self._scanned > SCAN_SEC:
            self._pids = _process.descendants()
            self._scanned = now
        used = _process.resident_bytes(self._pids)
        limit = self._limits["memory_bytes"]
        if used > limit and len(self._pids) > 1:
            used = _process.proportional_bytes(self._pids)
        self._peak = max(self._peak, used)
        if used > limit and self._state in ("loading", "running"):
            self._finish("memory", f"used {used} bytes of memory, more than {limit}")

    def _finish(self, status: str, message: str) -> None:
        self._state = "done"
        if "status" in self._answer:
            return
        self._answer |= {"status": status, "message": message}
        times = self._times
        if "ready" in times:
            self._answer["framework_import_sec"] = times["ready"] - times["started"]
        if "loaded" in times:
            self._answer["import_sec"] = times["loaded"] - times["ready"]
        if "handed_over" in times:
            self._answer["runtime_sec"] = times["handed_over"] - times["ready"]


def printable(text: str) -> str:
    """Text of the candidate's without control characters and broken surrogates, for files and terminals."""
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)


def exit_reason(returncode: int, *, wrapped: bool) -> tuple[int | None, int | None]:
    """`(exit status, signal)` of the child, one of them None, from how its outermost process ended."""
    if returncode < 0:
        return None, -returncode
    if wrapped and 128 < returncode <= 128 + 64:
        return None, returncode - 128
    return returncode, None


def run_uid(pid: int, uid_map: str) -> int:
    """A user id that no other living run has, in a range that nobody assigns, or as high as this namespace maps."""
    highest = max(int(first) + int(count) for first, _, count in map(str.split, uid_map.splitlines()))
    return 1_900_000_000 + pid if highest > 2_000_000_000 else 20_000 + pid % max(1, highest - 20_001)
