"""What the host capture says, also inside control groups."""

import json
from pathlib import Path

import pytest

from orbit import host


def test_capture_is_plain_json_and_names_the_essentials() -> None:
    facts = host.capture_host({"OMP_NUM_THREADS": "3"})
    assert json.loads(json.dumps(facts)) == facts
    assert isinstance(facts["n_cores_allowed"], int)
    assert facts["n_cores_allowed"] >= 1
    assert isinstance(facts["memory_bytes"], int)
    assert facts["memory_bytes"] > 0
    assert facts["OMP_NUM_THREADS"] == "3"
    assert facts["MKL_NUM_THREADS"] is None
    assert str(facts["kernel"]).strip()
    assert isinstance(facts["load_before"], float)


def test_processor_name_is_read(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Abacus 9000\nflags\t: x\n")
    assert host.cpu_model(cpuinfo) == "Abacus 9000"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
    ],
)
def test_quota_limits_the_cores(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert host.n_cores_allowed(tmp_path) == expected


@pytest.mark.parametrize(
    "files", [{}, {"cpu.max": "max 100000"}, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}]
)
def test_no_quota_leaves_the_affinity(tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(host.os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    assert host.n_cores_allowed(tmp_path) == 3


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_memory_limit_is_seen(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("1048576\n")
    assert host.memory_allowed_bytes(tmp_path) == 1048576


def test_unlimited_memory_is_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    assert host.memory_allowed_bytes(tmp_path) > 2**20
