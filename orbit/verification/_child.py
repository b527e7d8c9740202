"""The runner's child: gives up its privileges, loads one candidate, calls it. Trusted only until it loads.

Everything after that runs in the candidate's process, so nothing here is a safeguard once it does: the parent takes
the time, and the judge reads the result as hostile bytes. What is used after loading is bound beforehand all the same,
so that a candidate that patches NumPy gets a clear answer rather than a confusing one.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import io
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from orbit.verification import _protocol, _seccomp, _values

TRACEBACK_LIMIT = 2**14
MESSAGE_LIMIT = 2000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_BUNDLE = str(Path(__file__).parents[2])

_asarray, _ascontiguous = np.asarray, np.ascontiguousarray
_ndarray, _generic = np.ndarray, np.generic


class BadResultError(Exception):
    """What `run_solution` returned cannot be handed over."""


class OutputLimitError(Exception):
    """What `run_solution` returned is larger than allowed."""


def main(orders: int, messages: int) -> None:
    """Serve one run over the two pipes; ends by being killed."""
    setup: dict[str, Any] = json.loads(_protocol.expect(orders, _protocol.SETUP))
    try:
        filtered = confine(setup)
        for name in setup["imports"]:
            importlib.import_module(name)
        config = _values.decode_config(Path(setup["config"]))
        adapter = _load(Path(setup["adapter"]), "orbit_provenance_adapter") if setup["adapter"] else None
        versions = installed_versions()
    except Exception as error:  # noqa: BLE001  process boundary: reported to the parent, with its traceback
        details = {"status": "harness_error", "message": _describe(error), "traceback": traceback.format_exc()}
        _protocol.send(messages, _protocol.FAILED, json.dumps(details).encode()[: _protocol.TEXT_LIMIT])
        return
    _hide_ourselves(setup["solution"])
    _protocol.send(messages, _protocol.READY, json.dumps({"versions": versions, "filtered": filtered}).encode())
    _protocol.expect(orders, _protocol.LOAD)
    failure = _serve(orders, messages, setup, config)
    if failure is not None:
        _protocol.send(messages, _protocol.FAILED, json.dumps(failure).encode())
    elif adapter is not None:
        _protocol.send(messages, _protocol.COUNTS, json.dumps(adapter.counts()).encode())
    while os.read(orders, 1):  # hold still until the parent has looked at the memory and kills us
        pass
    os._exit(0)


def _serve(orders: int, messages: int, setup: dict[str, Any], config: dict[str, Any]) -> dict[str, str] | None:
    """Load, call, hand over; what went wrong, if anything."""
    solution = Path(setup["solution"])
    status = "load_error"
    try:
        function = _load_solution(solution)
        _protocol.send(messages, _protocol.LOADED)
        _protocol.expect(orders, _protocol.CALL)
        status = "exception"
        arrays = plain_arrays(function(config), setup["output_bytes"])
        _protocol.send(messages, _protocol.RESULT, _values.pack(arrays))
    except BaseException as error:  # noqa: BLE001  process boundary: the candidate may raise anything
        return _failure(status, error, solution)
    return None


# --- before the candidate -------------------------------------------------------------------------------------


def confine(setup: dict[str, Any]) -> bool:
    """Take away what the candidate must not have: privileges, core dumps, processes without end, sockets.

    Returns:
        Whether the system call filter, and with it the lock on sockets, is in place.
    """
    os.umask(0o077)
    Path("/proc/self/oom_score_adj").write_text("1000")  # if memory runs out, the kernel ends us and nobody else
    for name, value in setup["rlimits"].items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))
    if setup["uid"] is not None:
        os.setgroups([])
        os.setresgid(setup["gid"], setup["gid"], setup["gid"])
        os.setresuid(setup["uid"], setup["uid"], setup["uid"])
    libc = ctypes.CDLL(None, use_errno=True)
    for option, argument in (
        (_PR_SET_NO_NEW_PRIVS, 1),
        (_PR_SET_DUMPABLE, 1),  # cleared by the change of user; without it /proc/self belongs to root
        (_PR_SET_PDEATHSIG, signal.SIGKILL),  # cleared by the change of user too, so only now
    ):
        if libc.prctl(option, int(argument), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl {option} failed")
    filtered = _seccomp.install(libc)
    if os.geteuid() == 0:
        raise PermissionError("the child still runs as root")
    return filtered


def installed_versions() -> dict[str, str]:
    """Version of Python and of every distribution in this environment."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(name.lower(), distribution.version)
    return found


def _hide_ourselves(solution: str) -> None:
    """Leave no `orbit` to import and no path to it; not a safeguard, it keeps a candidate's mistakes its own."""
    sys.argv = [solution]
    for stream in (sys.stdout, sys.stderr):  # we end by being killed, with no last flush
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    sys.path[:] = [entry for entry in sys.path if entry != _BUNDLE]
    for name in [name for name in sys.modules if name.partition(".")[0] == "orbit"]:
        del sys.modules[name]


# --- the candidate --------------------------------------------------------------------------------------------


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is not a Python source file (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _load_solution(path: Path) -> Callable[[dict[str, Any]], Any]:
    # Under its own stem, unless that would hide a module from it: a file may be called after its framework.
    module = _load(path, "solution" if path.stem in sys.modules else path.stem)
    function = getattr(module, "run_solution", None)
    if not callable(function):
        raise ImportError(f"{path.name} defines no function run_solution(config)")
    return function  # type: ignore[no-any-return]


def plain_arrays(result: Any, limit_bytes: int) -> dict[str, Any]:
    """The result as exact NumPy arrays: computed, contiguous, in native byte order, of no subclass.

    Raises:
        BadResultError: it is not a dict of names to numeric arrays or numbers.
        OutputLimitError: the arrays take more than `limit_bytes`.
    """
    if not isinstance(result, dict):
        raise BadResultError(f"run_solution returned a {type(result).__name__}, not a dict")
    if len(result) > _values.MAX_KEYS:
        raise BadResultError(f"run_solution returned {len(result)} keys, more than {_values.MAX_KEYS}")
    arrays: dict[str, Any] = {}
    total = 0
    for key, value in result.items():
        try:
            name = _values.check_key(key)
        except ValueError as error:
            raise BadResultError(str(error)) from None
        arrays[name] = _plain_array(name, value)
        total += arrays[name].nbytes
        if total > limit_bytes:
            raise OutputLimitError(f"the result takes more than {limit_bytes} bytes (at key {name!r})")
    return arrays


def _plain_array(key: str, value: Any) -> Any:
    numeric = isinstance(value, (_ndarray, _generic)) or type(value) in (bool, int, float, complex)
    if not numeric and not hasattr(value, "__array__"):
        raise BadResultError(f"key {key!r} is a {type(value).__name__}, not an array or a number")
    try:
        array = _asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        message = f"key {key!r}: a {type(value).__name__} that does not turn into an array ({_describe(error)})"
        raise BadResultError(message) from error
    if type(array) is not _ndarray:
        raise BadResultError(f"key {key!r}: a {type(value).__name__} that turns into a {type(array).__name__}")
    if array.dtype.char not in _values.PLAIN_DTYPES:
        raise BadResultError(f"key {key!r}: dtype {array.dtype} is not a plain number type")
    return _ascontiguous(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape)


# --- what went wrong ------------------------------------------------------------------------------------------


def _failure(status: str, error: BaseException, solution: Path) -> dict[str, str]:
    text = _describe(error)
    if isinstance(error, BadResultError):
        return {"status": "bad_result", "message": text.partition(": ")[2], "traceback": ""}
    if isinstance(error, OutputLimitError):
        return {"status": "output_limit", "message": text.partition(": ")[2], "traceback": ""}
    if isinstance(error, SystemExit):
        status, text = "died", f"called sys.exit({error.code!r:.80}) before it handed over a result"
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in text:
        status = "memory"
    return {"status": status, "message": text, "traceback": candidate_traceback(error, solution)}


def _describe(error: BaseException) -> str:
    lines = traceback.format_exception_only(type(error), error)
    return lines[-1].strip()[:MESSAGE_LIMIT]


def candidate_traceback(error: BaseException, solution: Path) -> str:
    """The traceback as the author of the artifact would see it: without our frames and directories."""
    exception = traceback.TracebackException.from_exception(error)
    _cut(exception)
    text = "".join(exception.format()).replace(f"{solution.parent}{os.sep}", "")
    return text if len(text) <= TRACEBACK_LIMIT else "[...]\n" + text[-TRACEBACK_LIMIT:]


def _cut(exception: traceback.TracebackException | None) -> None:
    while exception is not None:
        kept = [frame for frame in exception.stack if not frame.filename.startswith((_BUNDLE, "<frozen importlib"))]
        exception.stack = traceback.StackSummary.from_list(kept)
        _cut(exception.__cause__)
        exception = exception.__context__
