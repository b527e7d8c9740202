"""Raises inside run_solution, two calls deep."""


def inner(value):
    return 1.0 / value


def run_solution(config):
    return {"value": inner(0)}
