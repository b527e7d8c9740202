"""Never returns."""


def run_solution(config):
    while True:
        pass
