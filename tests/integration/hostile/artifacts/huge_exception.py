"""Raises with a message of 100 MB."""


def run_solution(config):
    raise ValueError("x" * 100_000_000)
