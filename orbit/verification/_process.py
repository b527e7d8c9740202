"""What the runner's parent knows of, and does to, the processes below it, read from `/proc`."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_PAGE = os.sysconf("SC_PAGE_SIZE")
_KILL_SEC = 60.0


def adopt_orphans() -> None:
    """Make this process the parent of every orphan below it, and closed to tracing by others of the same user."""
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_PR_SET_CHILD_SUBREAPER, 1), (_PR_SET_DUMPABLE, 0)):
        if libc.prctl(option, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl {option} failed")


def descendants() -> list[int]:
    """Every living process below this one, zombies left out."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  a tenth of the cost, many times a second
        if name.isdigit():
            fields = _stat(int(name))
            if fields is not None and fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _stat(pid: int) -> list[str] | None:
    """State, parent, ...: the fields of `/proc/<pid>/stat` after the name, which may hold blanks and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return text[text.rindex(b")") + 2 :].decode().split(None, 2)


def resident_bytes(pids: list[int]) -> int:
    """Sum of the resident memory; pages that processes share count for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            total += int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    return total * _PAGE


def proportional_bytes(pids: list[int]) -> int:
    """Sum of the memory with shared pages divided among their users; slow, so only to confirm an excess."""
    total = 0
    for pid in pids:
        try:
            total += 1024 * _field(f"/proc/{pid}/smaps_rollup", "Pss:")
        except OSError:
            total += resident_bytes([pid])
    return total


def peak_bytes(pids: list[int]) -> int:
    """Largest peak of resident memory that the kernel recorded for one of the processes."""
    peak = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            peak = max(peak, 1024 * _field(f"/proc/{pid}/status", "VmHWM:"))
    return peak


def _field(path: str, name: str) -> int:
    for line in Path(path).read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0


def kill_all(uid: int | None = None) -> bool:
    """Kill everything below this process, and everything of `uid`; True when nothing is left.

    Args:
        uid: a user that exists for this run alone; None if the run shares our own.
    """
    deadline = time.monotonic() + _KILL_SEC
    while True:
        if uid is not None:
            _kill_user(uid)
        for pid in descendants():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not _have_children():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)


def _kill_user(uid: int) -> None:
    """One signal to all processes of a user at once: a fork bomb cannot outrun it."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass  # nobody was left to signal
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _have_children() -> bool:
    """Whether a child is left, once the dead are reaped.

    A list from `/proc` cannot tell: a chain of processes that fork and leave can run between its lines. But every
    orphan below is our child the moment it is one, so when the kernel says that we have none, nobody is left.
    """
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
