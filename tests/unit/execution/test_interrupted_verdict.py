"""A verdict that an interrupted verification left half done is none; one of a trial that ended is a defect."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbit.errors import DataError
from orbit.execution._records import _verdict


@pytest.mark.parametrize("left", ["", "{", "{}", '{"schema_version": 99}'])
def test_a_half_done_verdict(tmp_path: Path, left: str) -> None:
    path = tmp_path / "verdict.json"
    assert _verdict(path, interrupted=False) is None
    path.write_text(left)
    assert _verdict(path, interrupted=True) is None
    with pytest.raises(DataError):
        _verdict(path, interrupted=False)
