"""Records on disk: whole or not at all, and read back only by who knows their version."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from orbit.errors import DataError
from orbit.records import Record, read_record, write_bytes, write_json


class Item(Record):
    name: str
    count: int = Field(default=0, ge=0)


class Box(Record):
    schema_version: Literal[1, 2] = 1
    title: str
    items: list[Item] = Field(default_factory=list)


def test_round_trip_makes_directories_and_keeps_text(tmp_path: Path) -> None:
    box = Box(title="Schrödinger ⟨ψ|ψ⟩", items=[Item(name="a", count=3)])
    path = tmp_path / "deep" / "er" / "box.json"
    write_json(path, box)
    assert read_record(path, Box) == box
    assert path.read_bytes().endswith(b"}\n")


def test_plain_data_is_sorted(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": 2})
    assert list(json.loads((tmp_path / "a.json").read_text())) == ["a", "b"]


def test_written_file_is_readable_by_others_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_failed_write_keeps_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"old": 1})

    def fail(descriptor: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)):
        write_json(path, {"new": 1})
    assert json.loads(path.read_text()) == {"old": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"box\.json: cannot be read \(No such file"):
        read_record(tmp_path / "box.json", Box)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"not json", b'{"schema_version": 1'])
def test_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "box.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"box\.json: not JSON .* repeat the run that wrote it"):
        read_record(path, Box)


@pytest.mark.parametrize(
    "content",
    [
        {"schema_version": 3, "title": 5, "unknown": 1},
        {"schema_version": "1", "title": "x"},
        {"schema_version": None, "title": "x"},
        {"title": "x"},
        {"schema_version": [1], "title": "x"},
        [],
        "text",
        None,
    ],
)
def test_unknown_version_is_refused_before_anything_else(tmp_path: Path, content: object) -> None:
    path = tmp_path / "box.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"schema_version .* is not one of 1; read it with the orbit that wrote it"):
        read_record(path, Box)


def test_versions_that_the_caller_knows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "box.json"
    write_json(path, {"schema_version": 2, "title": "x"})
    assert read_record(path, Box, versions=(1, 2)).schema_version == 2
    with pytest.raises(DataError, match="is not one of 1, 3;"):
        read_record(path, Box, versions=(1, 3))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"title": 5}, r"title = 5: Input should be a valid string"),
        ({"surprise": "y"}, r"surprise = 'y': Extra inputs are not permitted"),
        ({"items": [{"count": 1}]}, r"items\.0\.name: Field required"),
        ({"items": [{"name": "a", "count": -1}]}, r"items\.0\.count = -1: Input should be greater"),
        ({"items": {"a": 1}}, r"items: Input should be a valid list"),
        ({"title": 5, "surprise": "y"}, r"\(and 1 more\)"),
    ],
)
def test_complaint_names_file_key_and_value_on_one_line(
    tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    path = tmp_path / "box.json"
    write_json(path, {"schema_version": 1, "title": "x"} | change)
    with pytest.raises(DataError, match=complaint) as caught:
        read_record(path, Box)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_hostile_text_can_be_written(tmp_path):
    from orbit.verification.verdict import Evidence, Outcome

    evidence = Evidence(check="x", outcome=Outcome.FAIL, message="half \ud800 a pair", value="\udfff")
    write_json(tmp_path / "evidence.json", evidence)
    assert "half \\\\ud800 a pair" in (tmp_path / "evidence.json").read_text()
