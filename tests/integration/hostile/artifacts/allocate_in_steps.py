"""Takes memory 50 MB at a time, and touches it."""

import numpy as np


def run_solution(config):
    blocks = []
    while True:
        blocks.append(np.ones(6_250_000))
