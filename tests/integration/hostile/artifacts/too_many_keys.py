"""Returns a million keys."""


def run_solution(config):
    return {f"k{index}": 0.5 for index in range(1_000_000)}
