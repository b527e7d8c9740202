"""Uses a path out of the result directory as a key."""


def run_solution(config):
    return {"../../verdict": 0.5}
