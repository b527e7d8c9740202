"""The commands themselves, in processes of their own, on real references."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

from orbit.reports.demo import load_demo
from orbit.schemas import json_schema
from orbit.tasks import Task, all_tasks, find_task

pytestmark = pytest.mark.integration

FRAMEWORK = load_demo().framework
ORBIT = [sys.executable, "-m", "orbit.cli"]


def references() -> list[Any]:
    """Tasks with a reference; only the first of the demo every time, all others on demand, since each takes minutes."""
    always = find_task(load_demo().plots[0].task).id
    return [
        pytest.param(task, id=task.id, marks=() if task.id == always else pytest.mark.slow)
        for task in all_tasks()
        if task.reference_path(FRAMEWORK) is not None
    ]


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("tensorcircuit_python")
@pytest.mark.parametrize("task", references())
def test_verify_finds_nothing_wrong_with_a_reference(task: Task, tmp_path: Path) -> None:
    solution = str(task.reference_path(FRAMEWORK))
    command = [*ORBIT, "verify", solution, "--task", task.name, "--framework", FRAMEWORK, "--json"]
    done = subprocess.run([*command, "--out", str(tmp_path / "out")], capture_output=True, text=True, check=False)
    verdict = json.loads(done.stdout)
    jsonschema.validate(verdict, json_schema("verdict"))
    failed = [item for stage in verdict["stages"].values() for item in stage["evidence"] if item["outcome"] == "fail"]
    assert failed == []
    assert (done.returncode, verdict["validity"]) == (0, "provisional")
    assert verdict["stages"]["semantic_audit"]["status"] == "skipped"
    timing = verdict["timing"]  # of one pair; how long each takes is up to what else the machine does
    assert timing["slowdown"] == pytest.approx(timing["runtime_sec"] / timing["reference_sec"], rel=1e-6)
    assert json.loads((tmp_path / "out" / "verdict.json").read_text()) == verdict


@pytest.fixture
def running(tmp_path: Path, tensorcircuit_python: str) -> subprocess.Popen[str]:
    """A verification whose first run of the artifact, which never ends, has begun."""
    endless = tmp_path / "endless.py"
    endless.write_text(
        "import tensorcircuit as tc\n\n\ndef run_solution(config):\n    while True:\n        tc.Circuit(1).h(0)\n"
    )
    process = subprocess.Popen(
        [*ORBIT, "verify", str(endless), "--task", "02", "--framework", FRAMEWORK, "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "running" in line:
            break
    deadline = time.monotonic() + 120
    while not any("runner" in " ".join(_command_line(child)) for child in _children(process)):
        assert time.monotonic() < deadline, "the runner did not start"
        time.sleep(0.1)
    return process


def _children(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_interrupted_verification_leaves_nothing_running(
    sent: signal.Signals, code: int, running: subprocess.Popen[str], tmp_path: Path
) -> None:
    started = _children(running)
    assert started
    running.send_signal(sent)
    assert running.wait(timeout=120) == code
    _, alive = psutil.wait_procs(started, timeout=60)
    assert alive == []
    assert not (tmp_path / "out" / "verdict.json").exists()
