"""Returns a string where an array is due."""


def run_solution(config):
    return {"value": "0.5"}
