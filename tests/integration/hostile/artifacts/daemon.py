"""Leaves a daemon behind: forked twice, in a session of its own, all signals ignored."""

import os
import signal
import time


def run_solution(config):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.closerange(0, 4096)
            time.sleep(600)
        os._exit(0)
    return {"value": 1.0}
