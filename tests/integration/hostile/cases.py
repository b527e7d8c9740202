"""Every hostile artifact with what must come of running it; the first line of each artifact says what it does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orbit.verification.execution import ExecutionStatus as Status

ARTIFACTS = Path(__file__).parent / "artifacts"


@dataclass(frozen=True)
class Case:
    """One artifact.

    Attributes:
        name: file name without suffix.
        statuses: how the run may end.
        message: regular expression that the message must match.
        traceback: text that the traceback must hold.
        value: what `result["value"]` must be when the run ends well: harmless then, and for the judge to reject.
        min_runtime_sec: a runtime below this would mean that the clock was fooled.
        limits: limits of the run where they differ from the test's.
        needs_sandbox: whether only bubblewrap stops it; the plain process says in a warning that it cannot.
    """

    name: str
    statuses: tuple[Status, ...]
    message: str = ""
    traceback: str = ""
    value: float | None = None
    min_runtime_sec: float = 0.0
    limits: dict[str, Any] = field(default_factory=dict)
    needs_sandbox: bool = False

    @property
    def path(self) -> Path:
        return ARTIFACTS / f"{self.name}.py"


LOAD, RAISED, BAD, DIED = (Status.LOAD_ERROR,), (Status.EXCEPTION,), (Status.BAD_RESULT,), (Status.DIED,)
OK, TIMEOUT, MEMORY, OUTPUT = (Status.OK,), (Status.TIMEOUT,), (Status.MEMORY,), (Status.OUTPUT_LIMIT,)
MB = 2**20

NOT_LOADED = [
    Case("no_run_solution", LOAD, "defines no function run_solution"),
    Case("missing_module", LOAD, "a_module_that_is_not_installed", "line 3, in <module>"),
    Case("unreadable_bytes", LOAD, "SyntaxError"),
    Case("syntax_error", LOAD, "never closed", "line 5"),
    Case("exception_at_import", LOAD, "raised at import", "line 3, in <module>"),
    Case("exit_at_import", DIED, r"sys.exit\(0\)"),
]

NO_RESULT = [
    Case("exception", RAISED, "ZeroDivisionError", "line 5, in inner"),
    Case("terminal_escapes_in_exception", RAISED, r"\?\[2J\?\[1;32mPASS"),
    Case("huge_exception", RAISED, "ValueError: x{1000}"),
    Case("exit_after_success", DIED, r"sys.exit\(0\)"),
    Case("os_exit", DIED, "exited with status 0"),
    Case("segfault", DIED, "signal 11"),
    Case("close_everything", DIED, "closed its connection"),
    Case("endless_loop", TIMEOUT, "after 2 s", limits={"timeout_sec": 2.0}),
]

NOT_A_RESULT = [
    Case("not_a_dict", BAD, "returned a list, not a dict"),
    Case("wrong_type", BAD, "'value' is a str"),
    Case("list_value", BAD, "'value' is a list"),
    Case("object_array", BAD, "dtype object"),
    Case("structured_array", BAD, "not a plain number type"),
    Case("number_as_key", BAD, "key 1 is a int"),
    Case("path_as_key", BAD, "not a plain name"),
    Case("too_many_keys", BAD, "1000000 keys, more than 64"),
]

GREEDY = [
    Case("print_flood", OUTPUT, "printed more than"),
    Case("huge_result", OUTPUT, "takes more than 67108864 bytes", limits={"output_bytes": 64 * MB}),
    Case("fork_bomb", (Status.TIMEOUT, Status.MEMORY), limits={"timeout_sec": 3.0}),
    Case("fork_bomb_sessions", (Status.TIMEOUT, Status.MEMORY, Status.DIED), limits={"timeout_sec": 3.0}),
    Case("allocate_100_gb", MEMORY, limits={"memory_bytes": 1024 * MB}),
    Case("allocate_in_steps", MEMORY, "bytes of memory, more than", limits={"memory_bytes": 512 * MB}),
    Case("allocate_in_children", MEMORY, "bytes of memory, more than", limits={"memory_bytes": 512 * MB}),
    Case("fill_disk", RAISED, "No space left", limits={"memory_bytes": 256 * MB}, needs_sandbox=True),
]

CLOCK = [
    Case("patched_clock", OK, value=1.0, min_runtime_sec=1.0),
    Case("work_at_import", OK, value=1.0, min_runtime_sec=1.0),
    Case("lazy_array", OK, value=1.0, min_runtime_sec=1.0),
    Case("lazy_dict", OK, value=1.0, min_runtime_sec=1.0),
    Case("thread_after_return", OK, value=0.0),
    Case("forged_result", OK, value=1.0, min_runtime_sec=1.0),
]

FORGERY = [
    Case("array_subclass", OK, value=7.0),
    Case("patched_numpy", OK, value=7.0),
    Case("forged_result_before_loading", BAD, "broke the runner's protocol"),
    Case("forged_loaded_early", BAD, "broke the runner's protocol"),
    Case("forged_garbage", BAD, "broke the runner's protocol"),
    Case("forged_length", BAD, "broke the runner's protocol"),
    Case("forged_harness_error", BAD, "broke the runner's protocol"),
    Case("forged_nested_report", BAD, "broke the runner's protocol"),
    Case("forged_zip_bomb", BAD, "unpacks to 268435584 bytes", limits={"output_bytes": 64 * MB}),
    Case("forged_pickle", BAD, "not an array|not a plain number type"),
]

ESCAPE = [
    Case("read_secrets", OK, value=0.0, needs_sandbox=True),
    Case("read_environment", OK, value=0.0),
    Case("import_orbit", RAISED, "No module named 'orbit"),
    Case("write_outside", OK, value=0.0, needs_sandbox=True),
    Case("open_socket", RAISED, "PermissionError|OSError|ConnectionRefusedError"),
    Case("daemon", OK, value=1.0),
    Case("kill_parents", (Status.OK, Status.DIED), value=1.0),
    Case("regain_root", RAISED, "Operation not permitted|Invalid argument"),
    Case("new_user_namespace", RAISED, "Operation not permitted"),
    Case("more_cores", RAISED, "Operation not permitted", limits={"n_cores": 1}),
]

CASES = [*NOT_LOADED, *NO_RESULT, *NOT_A_RESULT, *GREEDY, *CLOCK, *FORGERY, *ESCAPE]
