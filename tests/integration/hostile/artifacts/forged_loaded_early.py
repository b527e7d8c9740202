"""Says that it is loaded, and works on at import."""

import os
import struct
import time


def send(kind, payload):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, struct.pack("<BQ", kind, len(payload)) + payload)
        except OSError:
            pass


send(2, b"")
time.sleep(1.0)


def run_solution(config):
    return {"value": 1.0}
