"""Hostile artifacts against the real runner, in the sandbox and without it: each ends as the table says, and ends.

A plain interpreter with NumPy stands in for a framework's environment, since nothing here depends on the framework.
"""

from __future__ import annotations

import ast
import re
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orbit.verification.execution import Execution, ExecutionRequest, ExecutionStatus, Limits, read_outputs
from orbit.verification.sandbox import Kind, LocalExecutor

from .cases import ARTIFACTS, CASES, CLOCK, ESCAPE, GREEDY, NO_RESULT, Case

REPOSITORY = Path(__file__).parents[3]
LIMITS = {"timeout_sec": 20.0, "memory_bytes": 2 * 2**30, "output_bytes": 64 * 2**20, "n_processes": 512}
WITHOUT_SANDBOX = [case for case in (*NO_RESULT, *GREEDY, *CLOCK, *ESCAPE) if not case.needs_sandbox]
"""Those that confinement has to do with; what the child makes of a result is the same everywhere."""


@pytest.fixture
def listener() -> Iterator[int]:
    """Port of a server on this machine that must never see a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.0)
        yield server.getsockname()[1]
        with pytest.raises(BlockingIOError):
            server.accept()


def execute(case: Case, kind: Kind, python: Path, output_dir: Path, port: int = 1) -> Execution:
    other_run = output_dir.parent / "other-run"
    other_run.mkdir(exist_ok=True)
    (other_run / "result.npz").write_text("secret")
    prefixes = (Path(sys.prefix), Path(sys.base_prefix))
    at_home = [path for path in Path.home().iterdir() if not any(prefix.is_relative_to(path) for prefix in prefixes)]
    secrets = (REPOSITORY / "orbit", REPOSITORY / "tests", REPOSITORY / "references", other_run, *at_home)
    config = {"paths": tuple(map(str, secrets)), "port": port}
    request = ExecutionRequest(
        name="run",
        role="candidate",
        solution=case.path,
        framework="plain",
        config=config,
        output_dir=output_dir,
        limits=Limits(**{**LIMITS, **case.limits}),
    )
    return LocalExecutor(lambda _role, _framework: python, lambda _framework: ["numpy"], kind=kind).run(request)


def check(case: Case, execution: Execution, output_dir: Path) -> None:
    assert execution.status in case.statuses, f"{execution.status}: {execution.message}\n{execution.traceback}"
    assert re.search(case.message, execution.message), execution.message
    assert case.traceback in execution.traceback
    assert "runner.pyz" not in execution.traceback
    assert len(execution.message) < 3000
    assert (output_dir / "execution.json").is_file()
    assert all(path.stat().st_size <= Limits().log_bytes for path in output_dir.glob("std*.txt"))
    assert (output_dir / "result.npz").exists() == (execution.status is ExecutionStatus.OK)
    if execution.status is ExecutionStatus.OK:
        assert read_outputs(output_dir, 2**20)["value"] == case.value
        assert execution.runtime_sec is not None
        assert execution.runtime_sec >= case.min_runtime_sec


@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_in_the_sandbox(
    case: Case,
    bubblewrap: None,
    python: Path,
    survivors: Callable[[Path], list[str]],
    tmp_path: Path,
    listener: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ORBIT_TEST_CREDENTIAL", "secret")
    execution = execute(case, "bubblewrap", python, tmp_path / "out", listener)
    check(case, execution, tmp_path / "out")
    assert survivors(python) == []
    assert execution.sandbox is not None
    assert (execution.sandbox.kind, execution.sandbox.network, execution.sandbox.warnings) == ("bubblewrap", False, [])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", WITHOUT_SANDBOX, ids=lambda case: case.name)
def test_as_a_plain_process(
    case: Case,
    open_python: Path,
    survivors: Callable[[Path], list[str]],
    tmp_path: Path,
    listener: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ORBIT_TEST_CREDENTIAL", "secret")
    execution = execute(case, "process", open_python, tmp_path / "out", listener)
    check(case, execution, tmp_path / "out")
    assert survivors(open_python) == []
    assert execution.sandbox is not None
    assert execution.sandbox.kind == "process"
    assert execution.sandbox.warnings[0].startswith("no sandbox: ")


def test_the_pickle_was_not_run(bubblewrap: None, python: Path, tmp_path: Path) -> None:
    mark = Path("/tmp/orbit-pickle-was-run")
    mark.unlink(missing_ok=True)
    execute(next(case for case in CASES if case.name == "forged_pickle"), "bubblewrap", python, tmp_path / "out")
    assert not mark.exists()


def test_every_artifact_is_in_the_table() -> None:
    assert {path.stem for path in ARTIFACTS.glob("*.py")} == {case.name for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_artifact_says_what_it_does(case: Case) -> None:
    first = case.path.read_bytes().splitlines()[0].decode()
    assert ast.literal_eval(first.strip()).endswith(".")
