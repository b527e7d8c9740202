import pytest

from orbit.verification.execution import Execution, ExecutionStatus
from orbit.verification.timing import order, slowdown_interval, summarize


def runs(role, seconds):
    return [
        Execution(name=f"{role}-{k}", role=role, status=ExecutionStatus.OK, runtime_sec=value, peak_memory_bytes=10 + k)
        for k, value in enumerate(seconds)
    ]


def summary(mine, theirs, *, is_reference=False, load_before=0.1):
    return summarize(
        runs("candidate", mine),
        runs("reference", theirs),
        seed=1,
        n_cores=2,
        load_before=load_before,
        reference_sha256="0" * 64,
        is_reference=is_reference,
    )


def test_pairs_alternate_so_that_a_drift_cancels():
    turns = [turn for pair in range(4) for turn in order(pair)]
    assert turns == ["reference", "candidate", "candidate", "reference"] * 2


def test_the_slowdown_is_the_median_of_pair_ratios():
    timing = summary([2.0, 9.0, 4.0], [1.0, 3.0, 2.0])
    assert timing.slowdown == pytest.approx(2.0)
    assert timing.pairs == [(2.0, 1.0), (9.0, 3.0), (4.0, 2.0)]
    assert timing.peak_memory_bytes == 12
    low, high = timing.slowdown_interval
    assert 2.0 <= low <= high <= 3.0


def test_one_pair_has_no_interval_and_none_no_slowdown():
    assert slowdown_interval([1.5], 0) is None
    assert summary([3.0], [2.0]).slowdown_interval is None
    alone = summary([3.0], [])
    assert alone.slowdown is None
    assert alone.runtime_sec == 3.0


def test_an_unstable_measurement_says_so_with_a_next_step():
    assert any("--pairs" in line for line in summary([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]).warnings)
    assert summary([1.0, 1.01, 1.02], [1.0, 1.0, 1.0]).warnings == []


def test_a_reference_against_itself_says_how_near_to_one():
    assert any("3.0% away from 1" in line for line in summary([1.03], [1.0], is_reference=True).warnings)


def test_a_busy_machine_is_mentioned():
    assert summary([1.0], [1.0], load_before=1.0).warnings == []
    assert "load 6.5 on 2 cores" in summary([1.0], [1.0], load_before=6.5).warnings[0]
