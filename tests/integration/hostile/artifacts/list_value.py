"""Returns a list where an array is due."""


def run_solution(config):
    return {"value": [0.5, 0.25]}
