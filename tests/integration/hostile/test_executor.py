"""The executor with well-meant artifacts, and when somebody interrupts it."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

from orbit.errors import HarnessError
from orbit.verification.execution import Execution, ExecutionRequest, ExecutionStatus, Limits, read_outputs
from orbit.verification.sandbox import Kind, LocalExecutor, collect, container_run

from .cases import ARTIFACTS

REPOSITORY = Path(__file__).parents[3]
Survivors = Callable[[Path], list[str]]


def make_request(tmp_path: Path, source: str, **changes: Any) -> ExecutionRequest:
    solution = tmp_path / "candidate.py"
    solution.write_text(textwrap.dedent(source))
    values: dict[str, Any] = {
        "name": "run",
        "role": "candidate",
        "solution": solution,
        "framework": "plain",
        "config": {},
        "output_dir": tmp_path / "out",
        "limits": Limits(timeout_sec=60.0, memory_bytes=2**31),
    }
    return ExecutionRequest(**{**values, **changes})


def executor(python: Path, imports: tuple[str, ...] = ("numpy",), **options: Any) -> LocalExecutor:
    return LocalExecutor(lambda _role, _framework: python, lambda _framework: list(imports), **options)


ECHO = """
    import numpy as np
    import __main__, os, sys

    def run_solution(config):
        print("said", "on stdout")
        print("x" * 3_000_000, file=sys.stderr)
        return {
            "state": config["state"] * 2j,
            "nested": np.asarray(config["nested"][1]),
            "module": int(__name__ == "candidate"),
            "root": int(os.getuid() == 0 or os.geteuid() == 0),
            "cores": len(os.sched_getaffinity(0)),
            "threads": int(os.environ["OMP_NUM_THREADS"]),
            "writable": int(os.access(os.environ["HOME"], os.W_OK) and os.access(os.environ["TMPDIR"], os.W_OK)),
        }
"""


@pytest.mark.parametrize("kind", ["bubblewrap", "process"])
def test_runs_an_artifact(kind: Kind, bubblewrap: None, open_python: Path, python: Path, tmp_path: Path) -> None:
    config = {"state": np.arange(4.0), "nested": (1, (2.0, 3.0))}
    request = make_request(tmp_path, ECHO, config=config, limits=Limits(timeout_sec=60.0, n_cores=1))
    execution = executor(python if kind == "bubblewrap" else open_python, kind=kind).run(request)
    assert execution.status is ExecutionStatus.OK, execution.message
    outputs = read_outputs(tmp_path / "out", 2**20)
    np.testing.assert_array_equal(outputs.pop("state"), np.arange(4.0) * 2j)
    np.testing.assert_array_equal(outputs.pop("nested"), [2.0, 3.0])
    numbers = {"module": 1, "root": 0, "cores": 1, "threads": 1, "writable": 1}
    assert {key: int(value) for key, value in outputs.items()} == numbers
    assert execution.result_keys[:2] == ["state", "nested"]
    assert "said on stdout\n" in (tmp_path / "out" / "stdout.txt").read_text()
    assert (execution.stdout_truncated, execution.stderr_truncated) == (False, True)
    assert (tmp_path / "out" / "stderr.txt").stat().st_size == Limits().log_bytes
    assert kind == "process" or execution.versions["numpy"] == np.__version__  # the plain copy has no metadata
    assert execution.versions["python"].startswith("3.")
    assert execution.peak_memory_bytes is not None
    assert 10 * 2**20 < execution.peak_memory_bytes < 2**30
    assert execution.sandbox is not None
    assert not execution.sandbox.network or platform.machine() not in ("x86_64", "aarch64")
    assert Execution.model_validate_json((tmp_path / "out" / "execution.json").read_text()) == execution


def test_import_counts_and_is_shown(bubblewrap: None, python: Path, tmp_path: Path) -> None:
    source = """
        import time
        time.sleep(0.5)

        def run_solution(config):
            time.sleep(0.3)
            return {"value": 1.0}
    """
    execution = executor(python).run(make_request(tmp_path, source))
    assert execution.runtime_sec is not None
    assert execution.import_sec is not None
    assert execution.framework_import_sec is not None
    assert execution.import_sec >= 0.5
    assert execution.runtime_sec >= execution.import_sec + 0.3
    assert execution.framework_import_sec > 0.0


def test_state_crosses_as_quimb_leaves_it(bubblewrap: None, python: Path, tmp_path: Path) -> None:
    qtn = pytest.importorskip("quimb.tensor")
    state = qtn.MPS_rand_state(5, bond_dim=3, dtype=complex, seed=1)
    source = """
        import numpy as np

        def run_solution(config):
            state = config["dmrg_state"]
            names = " ".join(",".join(tensor.inds) for tensor in state)
            return {"dense": state.to_dense(), "names": np.frombuffer(names.encode(), dtype=np.uint8)}
    """
    execution = executor(python).run(make_request(tmp_path, source, config={"dmrg_state": state}))
    assert execution.status is ExecutionStatus.OK, execution.message
    outputs = read_outputs(tmp_path / "out", 2**20)
    np.testing.assert_array_equal(outputs["dense"], state.to_dense())
    assert outputs["names"].tobytes().decode() == " ".join(",".join(tensor.inds) for tensor in state)


ADAPTER = """
    import math

    calls = 0
    original = math.cos

    def counted(x):
        global calls
        calls += 1
        return original(x)

    math.cos = counted

    def counts():
        return {"calls": calls}
"""


@pytest.mark.parametrize("wanted", [True, False])
def test_provenance_adapter_counts(wanted: bool, bubblewrap: None, python: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text(textwrap.dedent(ADAPTER))
    source = """
        import math

        def run_solution(config):
            return {"value": math.cos(0.0) + math.cos(0.0)}
    """
    request = make_request(tmp_path, source, provenance=wanted)
    execution = executor(python, adapter_for=lambda _framework: adapter).run(request)
    assert execution.status is ExecutionStatus.OK, execution.message
    path = tmp_path / "out" / "provenance.json"
    assert path.exists() is wanted
    if wanted:
        assert json.loads(path.read_text()) == {"calls": 2}


def test_a_broken_framework_is_the_harness_failing(bubblewrap: None, python: Path, tmp_path: Path) -> None:
    request = make_request(tmp_path, "def run_solution(config):\n    return {}\n")
    execution = executor(python, imports=("a_framework_that_is_not_there",)).run(request)
    assert execution.status is ExecutionStatus.HARNESS_ERROR
    assert "a_framework_that_is_not_there" in execution.message


def test_the_container_command_runs(open_python: Path, tmp_path: Path, open_base: Path) -> None:
    """Parent and child as in a container, where the parent is root: here without one, so only as root."""
    if os.geteuid() != 0:
        pytest.skip("needs root, as in a container")
    place = open_base / "container-run"
    request = make_request(tmp_path, ECHO, config={"state": np.ones(1), "nested": (1, 2.0)}, limits=Limits(n_cores=1))
    run = container_run(
        request, python=str(open_python), imports=["numpy"], directory=PurePosixPath(place), gid=os.getgid() + 54321
    )
    for name, content in run.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    subprocess.run(run.command, check=True, timeout=120, env={})
    execution = collect(request, place / "out")
    assert execution.status is ExecutionStatus.OK, execution.message
    assert execution.sandbox is not None
    assert execution.sandbox.kind == "container"
    assert int(read_outputs(tmp_path / "out", 2**20)["root"]) == 0
    assert not (place / "scratch").exists()


# --- interruption -----------------------------------------------------------------------------------------------

PROGRAM = """
    import sys
    from pathlib import Path
    from orbit.verification.execution import ExecutionRequest
    from orbit.verification.sandbox import LocalExecutor

    python, solution, out, kind = sys.argv[1:]
    executor = LocalExecutor(lambda role, name: Path(python), lambda name: ["numpy"], kind=kind)
    request = ExecutionRequest("run", "candidate", Path(solution), "plain", {}, Path(out))
    executor.run(request)
"""


def wait_until(condition: Callable[[], bool], timeout_sec: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_sec
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@pytest.mark.parametrize("kind", ["bubblewrap", "process"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_us(
    number: signal.Signals,
    kind: Kind,
    bubblewrap: None,
    open_python: Path,
    python: Path,
    survivors: Survivors,
    tmp_path: Path,
) -> None:
    """However the tool ends, the artifact ends, and so does its temporary directory."""
    interpreter = python if kind == "bubblewrap" else open_python
    marked = tmp_path / "marked"
    marked.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(marked)}
    for directory in (marked, *marked.parents):  # pytest's directories are closed to the run's own user
        if directory.owner() == Path.home().owner() and directory.is_relative_to("/tmp/") and directory != Path("/tmp"):
            directory.chmod(0o755)
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(interpreter), str(ARTIFACTS / "endless_loop.py")]
    started = subprocess.Popen([*command, str(tmp_path / "out"), kind], env=environment, stderr=subprocess.PIPE)
    mine = lambda: [line for line in survivors(interpreter) if "runner.pyz child" in line]  # noqa: E731
    wait_until(lambda: bool(mine()))
    time.sleep(1.0)
    started.send_signal(number)
    started.communicate(timeout=60)
    assert started.returncode in (-number, 130, 1)
    wait_until(lambda: not mine())
    wait_until(lambda: not list(marked.iterdir()))
    assert not (tmp_path / "out" / "execution.json").exists()


def test_the_sandbox_dies_with_the_runner(bubblewrap: None, python: Path, survivors: Survivors, tmp_path: Path) -> None:
    local = executor(python)

    def kill_the_parent() -> None:
        wait_until(lambda: any("runner.pyz child" in line for line in survivors(python)))
        for parent in list(local._parents):
            parent.kill()

    thread = threading.Thread(target=kill_the_parent)
    thread.start()
    with pytest.raises(HarnessError, match="ended with status -9"):
        local.run(make_request(tmp_path, (ARTIFACTS / "daemon.py").read_text().replace("return", "time.sleep(600) #")))
    thread.join()
    wait_until(lambda: not survivors(python), timeout_sec=10)


def test_stop_ends_runs_of_other_threads(bubblewrap: None, python: Path, survivors: Survivors, tmp_path: Path) -> None:
    local = executor(python)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            local.run(make_request(tmp_path, (ARTIFACTS / "endless_loop.py").read_text()))
        except HarnessError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: any("runner.pyz child" in line for line in survivors(python)))
    local.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert len(raised) == 1
    assert survivors(python) == []
