"""The whole local path: harbor, the local environment, the worker, the sandbox and the real judge."""

import signal
import subprocess
import sys
import time

import psutil
import pytest
from harbor.models.trial.result import TrialResult

from orbit.execution.agents import AgentSpec
from orbit.execution.jobs import Cell, JobPlan, run_job
from orbit.execution.outcomes import Ending
from orbit.execution.trials import TrialRecord
from orbit.records import read_record
from orbit.verification.verdict import StageStatus, Validity, Verdict

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("tensorcircuit_python")]

CELL = Cell("02", "tensorcircuit")
QUICK = {"n_pairs": 0, "n_probes": 1}


def test_the_reference_passes_through_harbor(tmp_path):
    outcome = run_job(JobPlan((CELL,), AgentSpec("reference"), tmp_path / "run", verify_options=QUICK), print)
    (trial,) = outcome.trials
    assert trial.validity is Validity.PROVISIONAL, trial
    verdict = read_record(outcome.out_dir / trial.verdict_path, Verdict)
    assert verdict.stages["execution"].status is StageStatus.PASS
    assert verdict.sandbox is not None
    assert (outcome.out_dir / trial.harbor_trial_dir / "verification" / "runs" / "timed-1" / "result.npz").is_file()
    result = TrialResult.model_validate_json((outcome.out_dir / trial.harbor_result_path).read_text())
    assert result.verifier_result.rewards["reward"] == 1
    assert result.verifier_result.rewards["runtime_sec"] == verdict.timing.runtime_sec


SCRIPT = """
import sys
from pathlib import Path
from orbit.execution.agents import AgentSpec
from orbit.execution.jobs import Cell, JobPlan, run_job
plan = JobPlan((Cell("02", "tensorcircuit"),), AgentSpec("reference"), Path(sys.argv[1]),
               verify_options={"n_pairs": 0, "n_probes": 1})
try:
    run_job(plan, lambda line: print(line, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""


def below(pid):
    return psutil.Process(pid).children(recursive=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_leaves_no_sandbox_behind(tmp_path, number):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    for line in process.stdout:
        if "running probe-1" in line:
            break
    deadline = time.monotonic() + 60
    while not any("runner.pyz" in " ".join(member.cmdline()) for member in below(process.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    family = below(process.pid)
    process.send_signal(number)
    assert process.wait(timeout=60) == (130 if number == signal.SIGINT else -signal.SIGKILL)
    _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    if number == signal.SIGINT:
        (path,) = (tmp_path / "run").glob("trials/*/trial.json")
        record = read_record(path, TrialRecord)
        assert (record.ending, record.validity) == (Ending.INTERRUPTED, Validity.ERROR)
