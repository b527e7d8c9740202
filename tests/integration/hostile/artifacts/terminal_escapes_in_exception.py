"""Raises with terminal escape sequences and a broken surrogate in the message."""


def run_solution(config):
    raise ValueError("\x1b[2J\x1b[1;32mPASS\x1b[0m \ud800")
