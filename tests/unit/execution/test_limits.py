import json
import tomllib

import pytest

from orbit.errors import UsageError
from orbit.execution._environments import LocalChoice
from orbit.execution._protocol import VerificationRequest
from orbit.execution.jobs import run_job
from orbit.execution.limits import Capacity, Overrides, effective_limits, with_limits
from orbit.execution.trials import RunRecord
from orbit.execution.worker import CoreLimit, judge_with_pipeline
from orbit.records import read_record
from orbit.tasks import TaskLimits, find_task
from orbit.verification.execution import ExecutionRequest, Limits
from tests.unit.execution.test_jobs import plan

TASK = TaskLimits(cpus=14, memory_mb=32768, storage_mb=16384, run_timeout_sec=900, verification_extra_sec=600)


def test_without_overrides_the_tasks_limits_hold():
    limits, notes = effective_limits(TASK, Overrides(), Capacity(), {})
    assert limits.model_dump() == {
        "cpus": 14,
        "memory_mb": 32768,
        "storage_mb": 16384,
        "run_timeout_sec": 900,
        "verification_timeout_sec": 5100,
    }
    assert notes == ()


def test_what_the_machine_lacks_is_clamped_and_said():
    limits, notes = effective_limits(TASK, Overrides(cpus=8), Capacity(4, 2048, 2**30), {})
    assert (limits.cpus, limits.memory_mb, limits.storage_mb) == (4, 2048, 16384)
    assert notes == (
        "4 cores instead of 8: the machine has no more",
        "2048 MiB of memory instead of 32768: the machine has no more",
    )


def test_the_time_of_a_verification_follows_from_its_runs():
    asked = Overrides(run_timeout_sec=10)
    assert effective_limits(TASK, asked, Capacity(), {})[0].verification_timeout_sec == 650
    more = {"n_pairs": 5, "n_probes": 4}
    assert effective_limits(TASK, asked, Capacity(), more)[0].verification_timeout_sec == 750
    asked = Overrides(run_timeout_sec=10, verification_timeout_sec=7)
    assert effective_limits(TASK, asked, Capacity(), more)[0].verification_timeout_sec == 7


def test_a_limit_is_above_nothing():
    with pytest.raises(UsageError, match="--run-timeout 0: must be above 0"):
        Overrides(run_timeout_sec=0).check()
    with pytest.raises(UsageError, match="--memory-mb -1"):
        Overrides(memory_mb=-1).check()


def test_a_run_is_staged_and_recorded_with_its_limits(data, tmp_path, monkeypatch):
    monkeypatch.setattr(LocalChoice, "capacity", lambda self: Capacity(2, 1000, 2**30))
    asked = Overrides(cpus=3, memory_mb=500, storage_mb=70, run_timeout_sec=12, verification_timeout_sec=90)
    lines = []
    outcome = run_job(plan(tmp_path / "run", limits=asked, max_retries=4), lines.append)
    (trial,) = outcome.trials
    note = "2 cores instead of 3: the machine has no more"
    assert note in trial.warnings
    assert lines.count(f"note: {note}") == 1
    run = read_record(tmp_path / "run" / "run.json", RunRecord)
    assert (run.limits, run.max_retries) == (asked.record(), 4)
    (cell,) = run.cells
    assert (cell.limits.cpus, cell.limits.memory_mb, cell.limits.run_timeout_sec) == (2, 500, 12)
    staged = tmp_path / "run" / cell.staged_dir
    toml = tomllib.loads((staged / "task.toml").read_text())
    for table in (toml["environment"], toml["verifier"]["environment"]):
        assert (table["cpus"], table["memory_mb"], table["storage_mb"]) == (2, 500, 70)
    assert toml["verifier"]["timeout_sec"] == 90
    assert "stopped after 12 s" in (staged / "instruction.md").read_text()

    assert run_job(plan(tmp_path / "run", limits=asked, max_retries=4)).trials == outcome.trials
    for changes in ({"limits": Overrides(cpus=3)}, {"max_retries": 3}, {}):
        with pytest.raises(UsageError, match="choose another"):
            run_job(plan(tmp_path / "run", **{"limits": asked, "max_retries": 4, **changes} if changes else {}))


def test_a_run_that_an_earlier_orbit_recorded_is_read(data, tmp_path):
    run_job(plan(tmp_path / "run"))
    path = tmp_path / "run" / "run.json"
    record = json.loads(path.read_text())
    for name in ("limits", "max_retries"):
        del record[name]
    del record["cells"][0]["limits"]
    path.write_text(json.dumps(record))
    assert read_record(path, RunRecord).cells[0].limits.cpus is None


def test_the_worker_judges_under_the_limits_of_the_trial(data, tmp_path, monkeypatch):
    seen = {}

    def verify(solution, task, framework, **rest):
        seen["limits"] = task.limits

    monkeypatch.setattr("orbit.verification.pipeline.verify", verify)
    request = VerificationRequest(
        solution=tmp_path / "solution.py",
        task="tiny/01-copy",
        framework="tensorcircuit",
        contract="orbit-2",
        options={},
        out_dir=tmp_path,
        judge="unused:here",
        memory_mb=77,
        run_timeout_sec=5,
    )
    judge_with_pipeline(request, None, print)
    assert (seen["limits"].memory_mb, seen["limits"].run_timeout_sec) == (77, 5)
    judge_with_pipeline(request.model_copy(update={"memory_mb": None, "run_timeout_sec": None}), None, print)
    assert seen["limits"] == find_task("tiny/01").limits
    assert with_limits(find_task("tiny/01"), {"agent_timeout_sec": 3, "n_cores": 1}).limits.agent_timeout_sec == 3


def test_fewer_cores_reach_every_run(tmp_path):
    class Inner:
        def run(self, request):
            return request.limits

    request = ExecutionRequest("r", "candidate", tmp_path, "tensorcircuit", {}, tmp_path, Limits(timeout_sec=3))
    assert CoreLimit(Inner(), 2).run(request) == Limits(timeout_sec=3, n_cores=2)
