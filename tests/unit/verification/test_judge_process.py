"""The judge's process: it ends with the verification, and reads what the reference returned with suspicion."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import psutil
import pytest

from orbit.errors import HarnessError
from orbit.verification import judging
from orbit.verification._values import pack
from orbit.verification.evaluator import ArraySpec
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


@pytest.mark.parametrize(("entry", "usable"), [(1.5, True), (float("nan"), False)])
def test_a_broken_run_of_the_reference_is_not_held_against_the_candidate(tmp_path, entry, usable) -> None:
    (tmp_path / "perturbed-1").mkdir()
    (tmp_path / "perturbed-1" / "result.npz").write_bytes(pack({"energy_history": np.array([entry, 1.0])}))
    form = {"energy_history": ArraySpec((2,), published=True)}
    if usable:
        outputs = judging._trusted(tmp_path / "perturbed-1", form, Contract.ORBIT_2)
        assert outputs["energy_history"].tolist() == [1.5, 1.0]
    else:
        with pytest.raises(HarnessError, match=r"perturbed-1 is unusable.*energy_history"):
            judging._trusted(tmp_path / "perturbed-1", form, Contract.ORBIT_2)
