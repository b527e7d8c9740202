"""Reads address zero."""

import ctypes


def run_solution(config):
    return {"value": ctypes.string_at(0)}
