"""The judge's process ends with the verification, whatever a library of the evaluator left running."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import psutil
import pytest

from orbit.verification.judging import Judge
from orbit.verification.verdict import Contract

_KEPT: list[ProcessPoolExecutor] = []


def start_a_pool(task: Any) -> list[int]:
    """What cotengra does when it searches for a contraction order."""
    pool = ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn"))
    _KEPT.append(pool)
    return [os.getpid(), pool.submit(os.getpid).result()]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("fails", [False, True])
def test_the_worker_and_what_it_started_are_gone(fails: bool) -> None:
    unused: Any = None
    judge = Judge(unused, Contract.ORBIT_2, 0)
    pids = judge._call(start_a_pool)
    assert len(set(pids)) == 2
    assert all(psutil.pid_exists(pid) for pid in pids)
    error = RuntimeError("the verification failed") if fails else None
    judge.__exit__(type(error) if fails else None, error, None)
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=30)
    assert alive == []
