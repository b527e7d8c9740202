"""Patches every clock of the time module, then takes a second."""

import time

sleep = time.sleep
for name in ("time", "perf_counter", "monotonic", "process_time", "time_ns", "perf_counter_ns", "monotonic_ns"):
    setattr(time, name, lambda: 0)


def run_solution(config):
    sleep(1.0)
    return {"value": 1.0}
