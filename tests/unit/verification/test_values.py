"""Configurations into the sandbox, results out of it: exact for honest files, `ValueError` for all others."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbit.verification import _values, runner

LIMIT = 2**20
_UNKNOWN_METHOD = (b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x63\x00")
"""The start of a directory entry, with method 0 and with a method that nobody knows."""


def npy(array: Any, **keywords: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), **keywords)
    return stream.getvalue()


def archive(entries: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as target:
        for name, content in entries:
            target.writestr(name, content)
    return stream.getvalue()


class TestConfig:
    def test_comes_back_as_it_went(self, tmp_path: Path) -> None:
        config = {
            "n_qubits": 12,
            "field": 0.1 + 0.2,
            "huge": 1e300,
            "name": "α",
            "nothing": None,
            "flag": True,
            "phase": 1.5 - 2j,
            "nested": (1, (2.0, "x"), [3, (4,)], {"a": (5,)}),
            "empty": (),
            "array": np.arange(6.0).reshape(2, 3).T,
            "complex": np.array([1j], dtype=np.complex64),
            "scalar": np.float32(0.1),
        }
        runner.encode_config(config, tmp_path)
        back = runner.decode_config(tmp_path)
        assert list(back) == list(config)
        assert [type(value) for value in back.values()] == [type(value) for value in config.values()]
        for key in ("array", "complex"):
            np.testing.assert_array_equal(back.pop(key), config.pop(key), strict=True)
        assert back == config

    @pytest.mark.parametrize("value", [object(), {1, 2}, np.array([None]), b"bytes", (1, object())])
    def test_refuses_what_it_cannot_hand_over(self, value: Any, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="config key strange"):
            runner.encode_config({"strange": value}, tmp_path)

    def test_refuses_another_version(self, tmp_path: Path) -> None:
        runner.encode_config({}, tmp_path)
        (tmp_path / "config.json").write_text('{"schema_version": 2, "items": []}')
        with pytest.raises(ValueError, match="schema_version 2"):
            runner.decode_config(tmp_path)

    def test_matrix_product_state_keeps_names_axes_and_bonds(self, tmp_path: Path) -> None:
        qtn = pytest.importorskip("quimb.tensor")
        bonds, rng = [1, 2, 4, 3, 1], np.random.default_rng(1)
        shapes = [(*(bond for bond in pair if bond > 1), 2) for pair in pairwise(bonds)]
        arrays = [rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in shapes]
        state = qtn.MatrixProductState(arrays, shape="lrp", site_ind_id="q{}", site_tag_id="S{}")
        state[1].transpose(*reversed(state[1].inds), inplace=True)
        runner.encode_config({"dmrg_state": state}, tmp_path)
        back = runner.decode_config(tmp_path)["dmrg_state"]
        assert type(back) is type(state)
        assert [tensor.inds for tensor in back] == [tensor.inds for tensor in state]
        assert [tensor.tags for tensor in back] == [tensor.tags for tensor in state]
        assert (back.site_ind_id, back.site_tag_id, back.L, back.cyclic) == ("q{}", "S{}", 4, False)
        assert [back.bond_size(site, site + 1) for site in range(3)] == [2, 4, 3]
        for ours, theirs in zip(back, state, strict=True):
            np.testing.assert_array_equal(ours.data, theirs.data, strict=True)
        np.testing.assert_array_equal(back.to_dense(), state.to_dense())


class TestReadResult:
    def read(self, tmp_path: Path, content: bytes) -> dict[str, Any]:
        (tmp_path / "result.npz").write_bytes(content)
        return runner.read_result(tmp_path / "result.npz", LIMIT)

    @pytest.mark.parametrize(
        "array",
        [
            np.arange(6.0).reshape(2, 3),
            np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            np.float64(1.5),
            np.array([], dtype=np.int8),
            np.array([True, False]),
            np.arange(3, dtype=">i4"),
            np.array([1 + 2j], dtype=np.complex64),
            np.array([np.nan, np.inf]),
        ],
    )
    def test_reads_plain_arrays(self, array: Any, tmp_path: Path) -> None:
        back = self.read(tmp_path, _values.pack({"value": array}))["value"]
        assert type(back) is np.ndarray
        assert back.dtype == np.asarray(array).dtype.newbyteorder("=")
        np.testing.assert_array_equal(back, array)

    def test_reads_what_numpy_writes_compressed(self, tmp_path: Path) -> None:
        stream = io.BytesIO()
        np.savez_compressed(stream, value=np.ones(1000))
        np.testing.assert_array_equal(self.read(tmp_path, stream.getvalue())["value"], np.ones(1000))

    HOSTILE: tuple[tuple[str, Callable[[], bytes], str], ...] = (
        ("empty", lambda: b"", "too short"),
        ("text", lambda: b"PASS" * 100, "does not end like a plain archive"),
        ("no directory", lambda: b"PK\x05\x06" + bytes(6) + struct.pack("<HLLH", 1, 46, 0, 0), "not an archive"),
        (
            "objects",
            lambda: archive([("a.npy", npy(np.array([None, {}]), allow_pickle=True))]),
            "not an array of a plain",
        ),
        ("strings", lambda: archive([("a.npy", npy(np.array(["x"])))]), "not an array of a plain"),
        ("records", lambda: archive([("a.npy", npy(np.zeros(2, dtype=[("x", "f8")])))]), "not an array of a plain"),
        ("pickle", lambda: archive([("a.pkl", b"cos\nsystem\n(S'true'\ntR.")]), "not an array"),
        ("long double", lambda: archive([("a.npy", npy(np.zeros(2, dtype=np.longdouble)))]), "dtype"),
        ("no such size", lambda: archive([("a.npy", npy(np.ones(2)).replace(b"f8", b"f3"))]), "not an archive"),
        ("not npy", lambda: archive([("a.npy", b"PASS")]), "not an array"),
        ("version", lambda: archive([("a.npy", npy(np.ones(1), version=(3, 0)))]), "not an array"),
        ("path", lambda: archive([("../a.npy", npy(1.0))]), "not a plain name"),
        ("absolute", lambda: archive([("/etc/passwd.npy", npy(1.0))]), "not a plain name"),
        ("control", lambda: archive([("a\x1b[2J.npy", npy(1.0))]), "not a plain name"),
        ("nameless", lambda: archive([(".npy", npy(1.0))]), "not a plain name"),
        ("many", lambda: archive([(f"k{index}.npy", npy(1.0)) for index in range(65)]), "65 keys"),
        ("bomb", lambda: archive([("a.npy", npy(np.zeros(2**20)))], zipfile.ZIP_DEFLATED), "unpacks to"),
        ("large", lambda: _values.pack({"a": np.zeros(2**18)}), "has 20"),
        ("short", lambda: archive([("a.npy", npy(np.ones(8))[:-8])]), "does not match"),
        ("long", lambda: archive([("a.npy", npy(np.ones(8)) + bytes(8))]), "does not match"),
        ("comment", lambda: archive([("a.npy", npy(1.0))])[:-2] + b"\x01\x00x", "does not end like"),
        ("method", lambda: archive([("a.npy", npy(1.0))]).replace(*_UNKNOWN_METHOD), "not an archive"),
    )

    @pytest.mark.parametrize(("name", "make", "message"), HOSTILE, ids=[case[0] for case in HOSTILE])
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_refuses(self, name: str, make: Callable[[], bytes], message: str, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=message):
            self.read(tmp_path, make())

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_refuses_a_key_twice(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="occurs twice"):
            self.read(tmp_path, archive([("a.npy", npy(1.0)), ("a.npy", npy(2.0))]))

    @pytest.mark.parametrize(
        "shape",
        [
            "(-1,)",
            "(10**9, 10**9)",
            "(2, 3",
            "(2,) + (3,)",
            "(0x3,)",
            "(" + "9" * 5000 + ",)",
            "(" * 500 + ")" * 500,
            "(True,)",
            "('x',)",
        ],
    )
    def test_refuses_a_strange_header(self, shape: str, tmp_path: Path) -> None:
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(16)
        with pytest.raises(ValueError, match=r"result|key"):
            self.read(tmp_path, archive([("a.npy", content)]))

    def test_refuses_a_lie_about_the_size(self, tmp_path: Path) -> None:
        """The directory declares 136 bytes, the stream unpacks to a megabyte: only what is declared is ever read."""
        honest, content = npy(np.ones(1)), npy(np.ones(2**17))
        data = archive([("a.npy", content)], zipfile.ZIP_DEFLATED)
        data = data.replace(struct.pack("<L", len(content)), struct.pack("<L", len(honest)))
        with pytest.raises(ValueError, match=r"does not match|not an archive"):
            self.read(tmp_path, data)

    def test_refuses_damaged_data(self, tmp_path: Path) -> None:
        data = bytearray(archive([("a.npy", npy(np.ones(100)))], zipfile.ZIP_DEFLATED))
        data[60] ^= 0xFF
        with pytest.raises(ValueError, match=r"result|key"):
            self.read(tmp_path, bytes(data))

    def test_follows_no_link(self, tmp_path: Path) -> None:
        (tmp_path / "real.npz").write_bytes(_values.pack({"a": np.ones(1)}))
        (tmp_path / "result.npz").symlink_to(tmp_path / "real.npz")
        with pytest.raises(ValueError, match="cannot be opened"):
            runner.read_result(tmp_path / "result.npz", LIMIT)

    def test_waits_for_no_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "result.npz")
        with pytest.raises(ValueError, match="not a regular file"):
            runner.read_result(tmp_path / "result.npz", LIMIT)

    def test_says_that_there_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="No such file"):
            runner.read_result(tmp_path / "result.npz", LIMIT)

    def test_refuses_an_enormous_directory_before_parsing_it(self, tmp_path: Path) -> None:
        data = archive([(f"{index}.npy", b"") for index in range(2000)])
        with pytest.raises(ValueError, match="2000 keys, more than 64"):
            self.read(tmp_path, data)

    def test_survives_noise(self, tmp_path: Path) -> None:
        """Any damage of a valid file is refused with `ValueError` or harmless, whatever byte it hits."""
        valid = _values.pack({"value": np.arange(4.0), "n": np.int64(3)})
        rng = np.random.default_rng(7)
        n_refused = 0
        for _ in range(400):
            data = bytearray(valid)
            for position in rng.integers(len(data), size=3):
                data[position] = rng.integers(256)
            try:
                result = self.read(tmp_path, bytes(data))
            except ValueError:
                n_refused += 1
            else:
                assert all(type(array) is np.ndarray for array in result.values())
        assert n_refused > 200


def test_compressed_bomb_is_small() -> None:
    """The bomb of the table is one: it fits a result many times over while packed."""
    assert len(zlib.compress(bytes(2**23))) * 100 < LIMIT
