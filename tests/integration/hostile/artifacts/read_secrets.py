"""Counts what it can read of the paths it is given: tests, references, other runs, the home of root."""

import os


def run_solution(config):
    found = 0
    for path in config["paths"]:
        try:
            entries = os.listdir(path) if os.path.isdir(path) else [open(path).read()]
            found += len(entries)
        except OSError:
            pass
    return {"value": float(found)}
