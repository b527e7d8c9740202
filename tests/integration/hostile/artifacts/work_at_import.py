"""Takes its second at import."""

import time

time.sleep(1.0)


def run_solution(config):
    return {"value": 1.0}
