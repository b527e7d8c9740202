"""A run directory on a disk that really is full: a small one, mounted for a process of its own."""

import os
import subprocess
import sys

import pytest

from orbit.execution.outcomes import Disposition, Ending
from orbit.execution.trials import TrialRecord
from orbit.records import read_record
from orbit.verification.verdict import Validity
from tests.unit.execution.test_jobs import JUDGES, SCRIPT

DISK_MB = 24


@pytest.fixture
def run_on_small_disk(data, tmp_path):
    """Runs two cells with a judge in a process that sees a disk of a few MiB, and keeps the records that lie there."""
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    private = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    mount = 'mount -t tmpfs -o size="$1"m tmpfs "$2" && shift && cd "$1"'
    keep = 'status=$?; cp -r "$1/run/trials" "$2" 2>/dev/null; exit $status'

    def run(judge):
        inside = f'{mount} && "$3" -c "$4" "$1/run" "$5"; {keep}'
        arguments = [str(DISK_MB), str(disk), str(kept), sys.executable, SCRIPT, f"{JUDGES}:{judge}"]
        command = [*private, "sh", "-c", inside, "sh", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    return run, kept


def test_a_trial_that_met_a_full_disk_is_an_error_of_ours(run_on_small_disk):
    run, kept = run_on_small_disk
    ended = run("fill_the_disk_and_free_it")
    assert ended.returncode == 0, ended.stderr
    records = [read_record(path, TrialRecord) for path in kept.glob("*/trial.json")]
    assert len(records) == 2
    for record in records:
        assert (record.ending, record.disposition) == (Ending.DISK_FULL, Disposition.HARNESS_ERROR), record
        assert (record.validity, record.reward) == (Validity.ERROR, None)
        assert "No space left on device" in record.exception_message


def test_a_disk_that_stays_full_ends_the_run_with_one_line(run_on_small_disk):
    run, kept = run_on_small_disk
    ended = run("fill_the_disk")
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert "SetupError" in last
    assert "no space left on its disk; free some and repeat the command" in last
    assert not list(kept.glob("*/trial.json"))
