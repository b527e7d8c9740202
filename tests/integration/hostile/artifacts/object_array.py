"""Returns an array of Python objects."""

import numpy as np


def run_solution(config):
    return {"value": np.array([1.0, None, "x"], dtype=object)}
