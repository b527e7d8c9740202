import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from filelock import FileLock
from harbor.models.job.result import JobResult
from harbor.models.trial.result import TrialResult

from orbit.errors import UsageError
from orbit.execution._roots import BOUND_ROOTS
from orbit.execution.agents import AgentSpec
from orbit.execution.jobs import Cell, JobPlan, run_job
from orbit.execution.outcomes import Disposition, Ending
from orbit.execution.trials import RunRecord, TrialRecord
from orbit.records import read_record
from orbit.verification.verdict import Contract, FailureMode, Validity, Verdict

CELLS = (Cell("tiny/01", "tensorcircuit"), Cell("tiny/02", "tensorcircuit"))
JUDGES = "tests.unit.execution.fake_judges"


def plan(out_dir, judge="by_content", cells=CELLS[:1], agent="reference", **changes):
    return JobPlan(cells=cells, agent=AgentSpec(agent), out_dir=out_dir, judge=f"{JUDGES}:{judge}", **changes)


def host_roots():
    names = [name for name in BOUND_ROOTS if name != "tmp"]
    return {path for name in names for path in Path("/", name).rglob("*")}


def test_reference_gets_harbors_reward_and_our_verdict(data, tmp_path):
    before = host_roots()
    lines = []
    outcome = run_job(plan(tmp_path / "run", cells=CELLS), lines.append)

    assert outcome.succeeded
    assert [trial.task for trial in outcome.trials] == ["tiny/01-copy", "tiny/02-copy-again"]
    for trial in outcome.trials:
        result = TrialResult.model_validate_json((outcome.out_dir / trial.harbor_result_path).read_text())
        rewards = result.verifier_result.rewards
        assert (rewards["reward"], rewards["audited"], rewards["provisional"]) == (1, 0, 1)
        assert rewards["slowdown"] == 1.25
        assert result.reward_valid
        reward_file = outcome.out_dir / trial.harbor_trial_dir / "verifier" / "reward.json"
        assert json.loads(reward_file.read_text()) == rewards
        assert all(isinstance(value, int | float) for value in rewards.values())
        verdict = read_record(outcome.out_dir / trial.verdict_path, Verdict)
        assert verdict.validity is trial.validity is Validity.PROVISIONAL
        assert trial.reward == 1
        assert (outcome.out_dir / trial.artifact_path).read_text() == "# good\n"
        assert trial.ending is Ending.COMPLETED
        assert trial.solving_sec > 0
        assert trial.usage is None
        assert not list((outcome.out_dir / trial.harbor_trial_dir / "local").rglob("*.py"))
    job = JobResult.model_validate_json((tmp_path / "run" / "harbor" / "result.json").read_text())
    assert job.stats.n_completed_trials == 2
    assert any("verifying" in line for line in lines)
    assert host_roots() == before


def test_nothing_is_printed(data, tmp_path, capfd):
    run_job(plan(tmp_path / "run"))
    assert capfd.readouterr() == ("", "")


def test_wrong_artifact_is_invalid_with_reward_0(data, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("# wrong\n")
    outcome = run_job(plan(tmp_path / "run", agent=f"file:{bad}"))
    (trial,) = outcome.trials
    assert (trial.validity, trial.reward, trial.failure_mode) == (Validity.INVALID, 0, FailureMode.PROBLEM_MISMATCH)
    assert not outcome.succeeded


def test_an_agent_that_leaves_nothing_failed(data, tmp_path):
    outcome = run_job(plan(tmp_path / "run", agent="nop"))
    (trial,) = outcome.trials
    assert (trial.disposition, trial.validity) == (Disposition.FAILED_TRIAL, Validity.INVALID)
    assert (trial.failure_mode, trial.reward) == (FailureMode.AGENT_NO_ARTIFACT, 0)
    assert trial.artifact_path is None
    verdict = read_record(outcome.out_dir / trial.verdict_path, Verdict)
    assert verdict.stages["solving"].status == "fail"
    result = TrialResult.model_validate_json((outcome.out_dir / trial.harbor_result_path).read_text())
    assert result.verifier_result.rewards["reward"] == 0


@pytest.mark.parametrize("judge", ["harness_error", "crash", "die"])
def test_an_error_of_the_harness_is_no_reward(data, tmp_path, judge):
    outcome = run_job(plan(tmp_path / "run", judge))
    (trial,) = outcome.trials
    assert (trial.disposition, trial.validity, trial.reward) == (Disposition.HARNESS_ERROR, Validity.ERROR, None)
    assert trial.exception_type == "HarnessError"
    result = TrialResult.model_validate_json((outcome.out_dir / trial.harbor_result_path).read_text())
    assert result.verifier_result is None
    assert not result.reward_valid
    if judge == "crash":
        traceback = outcome.out_dir / trial.harbor_trial_dir / "verification" / "traceback.txt"
        assert "ZeroDivisionError: a defect of the judge" in traceback.read_text()


def test_a_harness_error_is_repeated_and_a_result_is_not(data, tmp_path):
    first = run_job(plan(tmp_path / "run", "harness_error"))
    second = run_job(plan(tmp_path / "run"))
    third = run_job(plan(tmp_path / "run", n_concurrent=2))
    assert first.run == second.run == third.run
    assert [trial.validity for trial in second.trials] == [Validity.PROVISIONAL]
    assert second.trials[0].name != first.trials[0].name
    assert third.trials == second.trials


def test_three_trials_at_once_do_not_collide(data, tmp_path):
    before = host_roots()
    started = time.monotonic()
    outcome = run_job(plan(tmp_path / "run", "slow", attempts=3, n_concurrent=3))
    assert time.monotonic() - started < 30
    assert len({trial.name for trial in outcome.trials}) == 3
    assert all(trial.reward == 1 for trial in outcome.trials)
    spans = sorted((trial.started_at, trial.finished_at) for trial in outcome.trials)
    assert spans[2][0] < spans[0][1], "they did not overlap, so the test shows nothing"
    assert host_roots() == before


SCRIPT = """
import sys
from pathlib import Path
from orbit.execution.agents import AgentSpec
from orbit.execution.jobs import Cell, JobPlan, run_job
cells = (Cell("tiny/01", "tensorcircuit"), Cell("tiny/02", "tensorcircuit"))
try:
    run_job(JobPlan(cells, AgentSpec("reference"), Path(sys.argv[1]), judge=sys.argv[2]))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_leaves_no_process_and_can_be_repeated(data, tmp_path, number):
    out_dir = tmp_path / "run"
    judge = f"{JUDGES}:hang_once"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(out_dir), judge], start_new_session=True)
    pid_file = wait_for(lambda: list(out_dir.glob("harbor/*/verification/child.pid")))[0]
    wait_for(lambda: pid_file.read_text())
    process.send_signal(number)
    status = process.wait(timeout=120)

    assert status == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    child = int(pid_file.read_text())
    wait_for(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE)
    records = [read_record(path, TrialRecord) for path in out_dir.glob("trials/*/trial.json")]
    finished = [record for record in records if record.validity is Validity.PROVISIONAL]
    assert len(finished) == 1
    assert read_record(out_dir / "run.json", RunRecord).n_attempts == 1

    (tmp_path / "let_go").touch()
    outcome = run_job(plan(out_dir, "hang_once", cells=CELLS))
    assert outcome.succeeded
    assert len(outcome.trials) == 2
    assert finished[0] in outcome.trials


def wait_for(condition, timeout=120):
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def test_files_that_a_kill_cut_short_do_not_stop_a_run(data, tmp_path):
    out_dir = tmp_path / "run"
    first = run_job(plan(out_dir, cells=CELLS))
    for path in ("harbor/config.json", "harbor/lock.json", "harbor/result.json"):
        (out_dir / path).write_text('{"half')
    (out_dir / first.trials[0].harbor_result_path).write_text('{"half')
    second = run_job(plan(out_dir, cells=CELLS))
    assert second.succeeded
    assert len(second.trials) == 2
    assert first.trials[1] in second.trials


def test_a_result_without_our_record_gets_one(data, tmp_path):
    first = run_job(plan(tmp_path / "run"))
    (tmp_path / "run" / "trials" / first.trials[0].name / "trial.json").unlink()
    second = run_job(plan(tmp_path / "run"))
    assert [trial.name for trial in second.trials] == [first.trials[0].name]


def test_another_run_is_not_overwritten(data, tmp_path):
    run_job(plan(tmp_path / "run"))
    with pytest.raises(UsageError, match="cells"):
        run_job(plan(tmp_path / "run", cells=CELLS))
    other = tmp_path / "other.py"
    other.write_text("# good\n")
    with pytest.raises(UsageError):
        run_job(plan(tmp_path / "run", agent=f"file:{other}"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": ()}, "nothing to run"),
        ({"attempts": 0}, "attempts = 0"),
        ({"environment": "cloud9"}, "cloud9"),
        ({"agent": "codex"}, "--allow-unsandboxed"),
        ({"agent": "file:/no/such/file.py"}, "not a file"),
        ({"cells": (Cell("tiny/07", "tensorcircuit"),)}, "07"),
        ({"cells": (Cell("tiny/01", "tensorcircut"),)}, "tensorcircuit"),
        ({"cells": (Cell("tiny/01", "pennylane"),)}, "no reference"),
        ({"cells": CELLS[:1] * 2}, "twice"),
        ({"verify_options": {"n_prbes": 1}}, "n_prbes"),
        ({"judge": "nothing_there"}, "nothing_there"),
    ],
)
def test_what_a_user_can_fix_is_one_line(data, tmp_path, changes, message):
    with pytest.raises(UsageError, match=message) as caught:
        run_job(plan(tmp_path / "run", **changes))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_directory_with_other_files_is_refused(data, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("precious")
    with pytest.raises(UsageError, match="not a run directory"):
        run_job(plan(tmp_path / "run"))


def test_a_run_directory_has_one_process_at_a_time(data, tmp_path):
    (tmp_path / "run").mkdir()
    with FileLock(tmp_path / "run" / ".lock"), pytest.raises(UsageError, match="another orbit"):
        run_job(plan(tmp_path / "run"))
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be made"):
        run_job(plan(tmp_path / "file"))


def test_contracts_are_separate_cells(data, tmp_path):
    toml = data / "tasks" / "tiny" / "01-copy" / "task.toml"
    toml.write_text(toml.read_text().replace('title = "Copy"', 'title = "Copy"\ncontracts = ["orbit-2", "orbit-q-1"]'))
    cells = tuple(Cell("tiny/01", "tensorcircuit", contract=contract) for contract in Contract)
    outcome = run_job(plan(tmp_path / "run", cells=cells))
    assert {trial.contract for trial in outcome.trials} == set(Contract)


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, orbit.execution; print(sorted({'harbor', 'litellm', 'numpy'} & set(sys.modules)))"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3])}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ended.stdout == "[]\n"


def test_telemetry_and_price_download_are_off_unless_asked_for():
    code = (
        "import os, orbit.execution; print(os.environ['HARBOR_TELEMETRY'], os.environ['LITELLM_LOCAL_MODEL_COST_MAP'])"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3])}
    for asked, expected in (({}, "0 True\n"), ({"HARBOR_TELEMETRY": "1"}, "1 True\n")):
        ended = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**environment, **asked}
        )
        assert ended.stdout == expected


def test_an_unknown_option_of_an_agent_is_refused_before_anything_is_written(data, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    agent = AgentSpec("codex", model="openai/m", options={"bogus": 1})
    with pytest.raises(UsageError, match="bogus"):
        run_job(JobPlan(CELLS[:1], agent, tmp_path / "run", environment="docker"))
    assert not (tmp_path / "run").exists()
