"""Plays the runner itself at import, after a second of work: says that it is loaded and hands over a result."""

import io
import os
import struct
import time

import numpy as np


def send(kind, payload):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, struct.pack("<BQ", kind, len(payload)) + payload)
        except OSError:
            pass


time.sleep(1.0)
stream = io.BytesIO()
np.savez(stream, value=np.ones(1))
send(2, b"")
send(3, stream.getvalue())
time.sleep(600)
