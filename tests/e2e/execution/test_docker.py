import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import psutil
import pytest

from orbit.execution import left_overs, orphans
from orbit.execution.agents import AgentSpec
from orbit.execution.jobs import Cell, JobPlan, run_job
from orbit.execution.limits import Overrides
from orbit.execution.outcomes import Disposition, Ending
from orbit.verification.execution import Execution, read_outputs
from orbit.verification.verdict import FailureMode, Validity
from tests.e2e.endpoint import Turn
from tests.e2e.execution.test_agents import DONE, WRITE, solve
from tests.unit.execution.test_jobs import JUDGES, SCRIPT, wait_for

pytestmark = pytest.mark.e2e
__all__ = ["solve"]

RELAY = """
import asyncio, sys

async def pipe(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()

async def serve(reader, writer):
    there, back = await asyncio.open_unix_connection(sys.argv[2])
    await asyncio.gather(pipe(reader, back), pipe(there, writer), return_exceptions=True)
    writer.close()

async def main():
    await (await asyncio.start_unix_server(serve, sys.argv[1])).serve_forever()

asyncio.run(main())
"""
HONEST = """\
import numpy as np

def run_solution(config):
    return {"doubled": np.array([2.0 * config["n"]])}
"""
NOSY = """\
import glob, os, socket
import numpy as np

def run_solution(config):
    found = {}
    try:
        socket.create_connection(("1.1.1.1", 53), timeout=2)
        found["connected"] = 1
    except OSError:
        found["connected"] = 0
    found["interfaces"] = len(set(os.listdir("/sys/class/net")) - {"lo"})
    found["root"] = int(os.getuid() == 0)
    readable = ["/opt/orbit/reference", "/opt/orbit-runs", "/home/agent", "/root"]
    found["listed"] = sum(os.access(path, os.R_OK) for path in readable)
    environments = [open(path, "rb").read() for path in glob.glob("/proc/[0-9]*/environ") if os.access(path, os.R_OK)]
    environments += [value.encode() for value in os.environ.values()]
    found["keys"] = sum(b"canary" in text for text in environments)
    own = os.environ["HOME"]
    found["writable"] = 0
    for directory, names, files in os.walk("/"):
        if directory in ("/proc", "/sys", own):
            names.clear()
            continue
        for path in [directory, *(os.path.join(directory, name) for name in files)]:
            if os.access(path, os.W_OK) and not os.path.islink(path) and not path.startswith("/dev/"):
                found["writable"] += 1
                print(path)
    return {name: np.array([value]) for name, value in found.items()}
"""
HUNGRY = """\
import numpy as np

def run_solution(config):
    blocks = [np.ones(2**27) for _ in range(8)]
    return {"sum": np.array([sum(block[0] for block in blocks)])}
"""


def run(tmp_path, source, judge="run_once", **changes):
    solution = tmp_path / "mine.py"
    solution.write_text(source)
    return run_job(docker_plan(tmp_path, solution, judge, **changes), print)


def docker_plan(tmp_path, solution, judge="run_once", **changes):
    return JobPlan(
        cells=(Cell("tiny/01", "tensorcircuit"),),
        agent=AgentSpec(f"file:{solution}"),
        out_dir=tmp_path / "run",
        environment="docker",
        judge=f"{JUDGES}:{judge}",
        **changes,
    )


def execution(outcome, role):
    (trial,) = outcome.trials
    directory = outcome.out_dir / trial.harbor_trial_dir / "verification" / "runs" / role
    return directory, Execution.model_validate_json((directory / "execution.json").read_text())


def left_in(engine, run_id):
    return engine("ps", "-aq", "--filter", f"label={orphans.RUN_LABEL}={run_id}").split()


def test_artifact_runs_in_a_container_of_its_own(data, tmp_path, engine):
    outcome = run(tmp_path, HONEST)
    (trial,) = outcome.trials
    assert trial.validity is Validity.PROVISIONAL, trial
    for role in ("candidate", "reference"):
        directory, made = execution(outcome, role)
        assert made.status == "ok", made
        assert made.sandbox.kind == "container"
        assert not made.sandbox.network
        np.testing.assert_array_equal(read_outputs(directory, 2**20)["doubled"], [6.0])
    assert trial.image.startswith("orbit-tensorcircuit:")
    assert trial.image_id.startswith("sha256:")
    assert left_in(engine, outcome.run.run_id) == []


def test_a_nosy_artifact_finds_nothing(data, tmp_path, engine, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    outcome = run(tmp_path, NOSY)
    directory, made = execution(outcome, "candidate")
    assert made.status == "ok", made
    found = {name: int(value[0]) for name, value in read_outputs(directory, 2**20).items()}
    assert found == dict.fromkeys(found, 0)
    assert len(found) == 6


def test_memory_beyond_the_limit_is_reported_and_nothing_else_dies(data, tmp_path, engine):
    """The limit is the one asked for, instead of the 32 GiB of the task."""
    outcome = run(tmp_path, HUNGRY, limits=Overrides(cpus=1, memory_mb=2048, run_timeout_sec=50))
    _, made = execution(outcome, "candidate")
    assert made.status == "memory", made
    _, reference = execution(outcome, "reference")
    assert reference.status == "memory"
    (cell,) = outcome.run.cells
    assert (cell.limits.cpus, cell.limits.memory_mb, cell.limits.run_timeout_sec) == (1, 2048, 50)


@pytest.fixture
def relay(tmp_path, monkeypatch):
    """A socket that leads to the engine until `cut` is called."""
    target = urlsplit(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
    if target.scheme != "unix":
        pytest.skip("the engine is not reached by a socket")
    own = Path(tempfile.mkdtemp()) / "engine.sock"
    process = subprocess.Popen([sys.executable, "-c", RELAY, str(own), target.path], start_new_session=True)
    wait_for(own.exists)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{own}")

    def cut():
        process.kill()
        process.wait()

    yield cut, f"unix://{target.path}"
    process.kill()
    process.wait()
    shutil.rmtree(own.parent)


def test_an_engine_that_goes_away_is_no_failure_of_the_agent(data, tmp_path, engine, relay, monkeypatch):
    solution = tmp_path / "mine.py"
    solution.write_text(HONEST)

    cut, engine_url = relay
    monkeypatch.setenv("ORBIT_CACHE_DIR", str(tmp_path / "cache"))
    outcome = run_job(docker_plan(tmp_path, solution, max_retries=0), lambda line: cut() if "solving" in line else None)
    (trial,) = outcome.trials
    assert [path.stem for path in left_overs.marks_dir().iterdir()] == [outcome.run.run_id]
    assert (trial.ending, trial.disposition) == (Ending.ENGINE_GONE, Disposition.HARNESS_ERROR), trial
    assert (trial.validity, trial.reward) == (Validity.ERROR, None)
    monkeypatch.setenv("DOCKER_HOST", engine_url)
    assert orphans.remove_orphans(print, outcome.run.run_id) == 1
    assert left_in(engine, outcome.run.run_id) == []


def test_a_trial_whose_engine_came_back_is_tried_again(data, tmp_path, engine, relay, monkeypatch):
    """The engine is away while the artifact is verified, where harbor and we wrap its error several times."""
    solution = tmp_path / "mine.py"
    solution.write_text(HONEST)
    monkeypatch.setenv("ORBIT_CACHE_DIR", str(tmp_path / "cache"))
    cut, engine_url = relay
    starts = []

    def report(line):
        starts.extend([line] if "starting the environment" in line else [])
        if "verifying" in line and len(starts) == 1:
            cut()
        if len(starts) == 2:
            monkeypatch.setenv("DOCKER_HOST", engine_url)

    outcome = run_job(docker_plan(tmp_path, solution, max_retries=1), report)
    (trial,) = outcome.trials
    assert len(starts) == 2
    assert (trial.ending, trial.disposition) == (Ending.COMPLETED, Disposition.JUDGE), trial
    assert trial.reward == 1
    assert left_in(engine, outcome.run.run_id) == []


@pytest.fixture
def hanging(data, tmp_path, engine, monkeypatch):
    """A run in another process whose verification hangs, with its run id and the process that must not survive."""
    monkeypatch.setenv("ORBIT_CACHE_DIR", str(tmp_path / "cache"))
    out_dir = tmp_path / "run"
    script = SCRIPT.replace("judge=sys.argv[2]", 'judge=sys.argv[2], environment="docker"')
    command = [sys.executable, "-c", script, str(out_dir), f"{JUDGES}:hang_with_child"]
    process = subprocess.Popen(command, start_new_session=True)
    pid_file = wait_for(lambda: list(out_dir.glob("harbor/*/verification/child.pid")), 300)[0]
    run_id = json.loads((out_dir / "run.json").read_text())["run_id"]
    assert left_in(engine, run_id)
    yield process, run_id, int(wait_for(pid_file.read_text))
    process.kill()
    process.wait()


def orbit(*arguments):
    """A command of its own process, and what it said beside its result."""
    command = [sys.executable, "-m", "orbit.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stderr


def test_a_killed_run_leaves_containers_only_until_the_next_command(hanging, engine):
    process, run_id, child = hanging
    assert orbit("schema", "verdict") == ""
    assert left_in(engine, run_id), "the run was alive"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    wait_for(lambda: not psutil.pid_exists(child))
    assert left_in(engine, run_id)

    assert f"left behind by run {run_id}" in orbit("schema", "verdict")
    assert left_in(engine, run_id) == []
    assert run_id not in {orphan.run_id for orphan in orphans.find_orphans()}
    assert list(left_overs.marks_dir().iterdir()) == []


def test_the_next_run_needs_no_mark_to_find_what_was_left(hanging, engine):
    process, run_id, _ = hanging
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    left_overs.unmark(run_id)
    assert orphans.remove_orphans(print) >= 1
    assert left_in(engine, run_id) == []


def test_an_interrupted_run_leaves_no_container(hanging, engine):
    process, run_id, child = hanging
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=90) == 130
    assert not psutil.pid_exists(child)
    assert left_in(engine, run_id) == []
    assert list(left_overs.marks_dir().iterdir()) == []


RAISE_ITS_SCORE = "for p in $(pgrep codex); do echo 1000 > /proc/$p/oom_score_adj; done; "
TAKE_ALL = "python3 -c 'import time; taken = [bytearray(2**28) for _ in range(32)]; time.sleep(300)'"


def test_an_agent_that_the_kernel_kills_for_memory_is_told_apart(data, solve):
    toml = data / "tasks" / "tiny" / "01-copy" / "task.toml"
    toml.write_text(toml.read_text() + "[environment]\nmemory_mb = 1024\n")
    trial = solve("codex", [Turn(command=RAISE_ITS_SCORE + TAKE_ALL), DONE])
    assert (trial.ending, trial.disposition) == (Ending.MEMORY, Disposition.FAILED_TRIAL), trial
    assert (trial.failure_mode, trial.reward) == (FailureMode.RESOURCE_TIMEOUT_OOM, 0)


def test_an_agent_that_is_killed_otherwise_crashed_and_its_artifact_is_judged(solve):
    trial = solve("codex", [WRITE, Turn(command="pkill -KILL codex"), DONE])
    assert (trial.ending, trial.disposition) == (Ending.AGENT_EXIT, Disposition.JUDGE), trial
    assert trial.reward == 1
