"""Prints 10 GB."""

import os


def run_solution(config):
    block = b"PASS\n" * 200_000
    for _ in range(10_000):
        os.write(1, block)
    return {"value": 1.0}
