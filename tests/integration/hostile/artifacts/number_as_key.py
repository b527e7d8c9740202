"""Uses a number as a key."""


def run_solution(config):
    return {1: 0.5}
