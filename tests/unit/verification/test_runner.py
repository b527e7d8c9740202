"""The runner's parts that need no process of their own: conversion, protocol, bundle, small decisions."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbit.verification import _child, _protocol, _seccomp, _supervisor, runner

LIMIT = 2**20


class TestPlainArrays:
    def test_converts_to_exact_native_arrays(self) -> None:
        class Tensor:
            def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
                return np.arange(3.0)

        value = {
            "tensor": Tensor(),
            "number": 2,
            "scalar": np.float32(1),
            "swapped": np.arange(3, dtype=">f8"),
            "c": 1j,
        }
        arrays = _child.plain_arrays(value, LIMIT)
        assert all(type(array) is np.ndarray for array in arrays.values())
        assert [array.shape for array in arrays.values()] == [(3,), (), (), (3,), ()]
        assert arrays["swapped"].dtype.isnative
        assert arrays["c"].dtype == np.complex128

    @pytest.mark.parametrize(
        "value", [None, "x", [1.0], (1.0,), {"a": 1}, np.array(["x"]), np.array([1, None]), 10**30]
    )
    def test_refuses_what_is_not_a_number(self, value: Any) -> None:
        with pytest.raises(_child.BadResultError, match="key 'a'"):
            _child.plain_arrays({"a": value}, LIMIT)

    def test_counts_all_arrays_against_the_limit(self) -> None:
        with pytest.raises(_child.OutputLimitError, match="at key 'b'"):
            _child.plain_arrays({"a": np.zeros(100), "b": np.zeros(100)}, 1000)


class TestProtocol:
    LIMITS = _protocol.message_limits(1000)

    def frames(self, *chunks: bytes) -> list[tuple[int, bytes]]:
        reader = _protocol.FrameReader(self.LIMITS)
        found = []
        for chunk in chunks:
            reader.feed(chunk)
            found += list(reader.frames())
        return found

    def test_reassembles_frames_from_any_pieces(self) -> None:
        data = _protocol.HEADER.pack(_protocol.LOADED, 0) + _protocol.HEADER.pack(_protocol.RESULT, 4) + b"data"
        expected = [(_protocol.LOADED, b""), (_protocol.RESULT, b"data")]
        assert self.frames(data) == expected
        assert self.frames(*(data[index : index + 1] for index in range(len(data)))) == expected

    def test_refuses_an_unknown_kind(self) -> None:
        with pytest.raises(_protocol.ProtocolError, match="unknown kind 99"):
            self.frames(_protocol.HEADER.pack(99, 0))

    @pytest.mark.parametrize("kind", [_protocol.SETUP, _protocol.LOAD, _protocol.CALL])
    def test_refuses_the_parents_own_orders(self, kind: int) -> None:
        with pytest.raises(_protocol.ProtocolError):
            self.frames(_protocol.HEADER.pack(kind, 0))

    def test_refuses_a_length_before_the_payload_comes(self) -> None:
        with pytest.raises(_protocol.TooLongError):
            self.frames(_protocol.HEADER.pack(_protocol.RESULT, 2**40))

    def test_crosses_a_pipe(self) -> None:
        reading, writing = os.pipe()
        _protocol.send(writing, _protocol.CALL, b"x")
        assert _protocol.expect(reading, _protocol.CALL) == b"x"
        os.close(writing)
        with pytest.raises(_protocol.ProtocolError, match="closed"):
            _protocol.expect(reading, _protocol.CALL)
        os.close(reading)


class TestDecisions:
    @pytest.mark.parametrize(
        ("returncode", "wrapped", "expected"),
        [
            (0, False, (0, None)),
            (3, True, (3, None)),
            (-9, False, (None, 9)),
            (137, True, (None, 9)),
            (137, False, (137, None)),
            (-9, True, (None, 9)),
            (255, True, (255, None)),
        ],
    )
    def test_exit_reason(self, returncode: int, wrapped: bool, expected: tuple[int | None, int | None]) -> None:
        assert _supervisor.exit_reason(returncode, wrapped=wrapped) == expected

    def test_user_of_a_run_is_its_own_and_never_root(self) -> None:
        full, small = "         0          0 4294967295\n", "0 100000 65536\n"
        assert _supervisor.run_uid(17, full) != _supervisor.run_uid(18, full)
        assert all(_supervisor.run_uid(pid, full) > 1_000_000_000 for pid in (1, 4_194_304))
        assert all(1000 < _supervisor.run_uid(pid, small) < 65536 for pid in (1, 4_194_304))

    def test_printable_text_moves_no_cursor(self) -> None:
        assert _supervisor.printable("a\x1b[2J\x07\ud800\u202eb\n\tα") == "a?[2J???b\n\tα"

    def test_traceback_is_the_candidates_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "solution.py"
        path.write_text("def f():\n    raise KeyError('x')\n")
        namespace: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        try:
            namespace["f"]()
        except KeyError as error:
            text = _child.candidate_traceback(error, path)
        assert text.splitlines()[:2] == ["Traceback (most recent call last):", '  File "solution.py", line 2, in f']


class TestSeccomp:
    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_every_jump_lands_on_an_instruction(self, machine: str) -> None:
        code = _seccomp.build(machine)
        assert code is not None
        program = [struct.unpack_from("<HBBI", code, offset) for offset in range(0, len(code), 8)]
        for index, (operation, if_true, if_false, _) in enumerate(program):
            if operation & 0x07 == 0x05:
                assert index + 1 + max(if_true, if_false) < len(program)
        assert [operation for operation, *_ in program[-3:]] == [0x06] * 3

    def test_unknown_machines_have_no_filter(self) -> None:
        assert _seccomp.build("riscv64") is None


class TestBundle:
    def test_equal_sources_give_equal_bytes(self) -> None:
        assert runner.bundle() == runner.bundle()

    def test_needs_nothing_of_orbit_but_itself(self, tmp_path: Path) -> None:
        """The bundle runs where orbit and its dependencies are not: it imports the standard library and NumPy."""
        (tmp_path / "runner.pyz").write_bytes(runner.bundle())
        program = (
            f"import sys; sys.path.insert(0, {str(tmp_path / 'runner.pyz')!r})\n"
            "from orbit.verification import _child, _supervisor, runner\n"
            "allowed = set(sys.stdlib_module_names) | {'orbit', 'numpy', '__main__'}\n"
            "print(sorted({name.partition('.')[0] for name in sys.modules} - allowed))"
        )
        done = subprocess.run([sys.executable, "-I", "-S", "-c", _with_numpy(program)], capture_output=True, text=True)
        assert json.loads(done.stdout.replace("'", '"')) == [], done.stderr


def _with_numpy(program: str) -> str:
    return f"import sys; sys.path.append({str(Path(np.__file__).parents[1])!r})\n{program}"
