"""Imports a module that is not installed."""

import a_module_that_is_not_installed


def run_solution(config):
    return {"value": a_module_that_is_not_installed.answer}
