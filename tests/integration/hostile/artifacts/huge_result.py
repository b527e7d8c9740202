"""Returns more than a result may hold."""

import numpy as np


def run_solution(config):
    return {"value": np.zeros(2**24)}
