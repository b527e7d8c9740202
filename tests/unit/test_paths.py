from __future__ import annotations

from pathlib import Path

import pytest

from orbit.errors import SetupError
from orbit.paths import cache_dir, data_root


def test_data_root_is_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORBIT_DATA", raising=False)
    root = data_root()
    assert (root / "tasks").is_dir()
    assert (root / "frameworks").is_dir()


def test_data_root_override(toy_root: Path) -> None:
    assert data_root() == toy_root.resolve()


def test_data_root_without_data_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORBIT_DATA", str(tmp_path))
    with pytest.raises(SetupError, match=f"ORBIT_DATA={tmp_path}.*set ORBIT_DATA"):
        data_root()


def test_cache_dir_override_and_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORBIT_CACHE_DIR", str(tmp_path))
    assert cache_dir() == tmp_path.resolve()
    monkeypatch.delenv("ORBIT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir().name == "orbit"
