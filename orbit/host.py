"""What the machine was when something was measured on it.

Times from different hosts are never put in one column, so every verdict carries this.
"""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path

import psutil

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "XLA_FLAGS",
)
"""Environment variables by which numerical libraries are told how many threads to start."""

CGROUP_ROOT = Path("/sys/fs/cgroup")
"""Where Linux mounts the control groups that limit this process, or its container."""


def capture_host(environment: dict[str, str] | None = None) -> dict[str, str | int | float | None]:
    """Describe this host: processor, cores allowed, memory, kernel, thread settings and the load at this moment.

    Args:
        environment: the environment variables whose thread settings matter; this process's own by default.
    """
    variables = dict(os.environ) if environment is None else environment
    facts: dict[str, str | int | float | None] = {
        "cpu_model": cpu_model(),
        "architecture": platform.machine(),
        "n_cores_present": psutil.cpu_count(logical=True),
        "n_cores_allowed": n_cores_allowed(),
        "memory_bytes": memory_allowed_bytes(),
        "kernel": f"{platform.system()} {platform.release()}",
        "load_before": round(os.getloadavg()[0], 2),
    }
    for name in THREAD_VARIABLES:
        facts[name] = variables.get(name)
    return facts


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """The processor's own name for itself, None where the system does not tell."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip().lower() in {"model name", "cpu model", "hardware"} and value.strip():
            return value.strip()
    return platform.processor() or None


def n_cores_allowed(cgroup: Path = CGROUP_ROOT) -> int:
    """Cores this process may really use: the smaller of its affinity mask and its control group's quota."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    quota = _cpu_quota(cgroup)
    return affinity if quota is None else max(1, min(affinity, math.ceil(quota)))


def memory_allowed_bytes(cgroup: Path = CGROUP_ROOT) -> int:
    """Memory this process may really use: the smaller of what is installed and its control group's limit."""
    installed = int(psutil.virtual_memory().total)
    for path in (cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes"):
        limit = _read_number(path)
        if limit is not None:
            return min(installed, int(limit))
    return installed


def _cpu_quota(cgroup: Path) -> float | None:
    """Cores by quota, from control groups version 2 (`cpu.max`) or 1 (`cpu.cfs_quota_us`); None if unlimited."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
        return None if quota == "max" else float(quota) / float(period)
    except (OSError, ValueError):
        pass
    quota_us = _read_number(cgroup / "cpu" / "cpu.cfs_quota_us")
    period_us = _read_number(cgroup / "cpu" / "cpu.cfs_period_us")
    return quota_us / period_us if quota_us and period_us and quota_us > 0 else None


def _read_number(path: Path) -> float | None:
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return None
