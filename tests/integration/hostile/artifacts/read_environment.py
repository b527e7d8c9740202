"""Looks for a credential in the environment of every process it can see."""

import os


def run_solution(config):
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as stream:
                    found += b"ORBIT_TEST_CREDENTIAL" in stream.read()
            except OSError:
                pass
    return {"value": float(found + ("ORBIT_TEST_CREDENTIAL" in os.environ))}
