"""Does not parse."""


def run_solution(config):
    return {"value": 1.0
