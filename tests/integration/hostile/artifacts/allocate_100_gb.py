"""Asks for 100 GB at once and touches them."""

import numpy as np


def run_solution(config):
    return {"value": np.ones(12_500_000_000).sum()}
