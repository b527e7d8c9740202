"""Writes wherever it can outside its temporary directory, and counts where it could."""

import os


def run_solution(config):
    written = 0
    for directory in (*config["paths"], "/", "/usr", "/etc", "/root", "/dev", "/orbit", os.path.dirname(__file__)):
        try:
            with open(os.path.join(directory, "orbit-was-here"), "w") as stream:
                written += stream.write("x")
        except OSError:
            pass
    try:
        with open(__file__, "a") as stream:
            written += stream.write("x")
    except OSError:
        pass
    return {"value": float(written)}
