"""Forks without end, each process in a session of its own, the parents leaving at once."""

import os


def run_solution(config):
    while True:
        try:
            if os.fork():
                os._exit(0)
            os.setsid()
        except OSError:
            pass
