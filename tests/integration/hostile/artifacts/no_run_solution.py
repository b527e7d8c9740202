"""Defines everything but run_solution."""


def run_solutions(config):
    return {}
