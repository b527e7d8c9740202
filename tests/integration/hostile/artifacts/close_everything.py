"""Closes every file descriptor and goes on."""

import os
import time


def run_solution(config):
    os.closerange(0, 4096)
    time.sleep(600)
