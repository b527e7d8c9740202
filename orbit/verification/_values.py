"""Configurations on their way into the sandbox and results on their way out; standard library and NumPy only.

A configuration is written by us and read by trusted code before the candidate is loaded: `config.json` for structure
and scalars, `arrays.npz` for arrays. A result was written by the candidate, so `read_result` believes nothing of it: it
looks at every declared size before it reads, unpickles nothing, and follows no path.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

MAX_KEYS = 64
MAX_KEY_LENGTH = 128
PLAIN_DTYPES = frozenset("?bBhHiIlLqQefdFD")
"""Type characters of the numbers a result may hold: booleans, integers, float16 to float64, both complex types."""

_KEY = re.compile(rf"[^\x00-\x1f\x7f/\\.][^\x00-\x1f\x7f/\\]{{0,{MAX_KEY_LENGTH - 1}}}")
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_START = struct.Struct("<8sH")
_NPY_HEADER = re.compile(
    r"\{'descr': '(?P<order>[<>|])(?P<kind>\w)(?P<size>\d{1,4})', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>(\d{1,18}, ?)*(\d{1,18})?)\), \} *\n"
)
_ENTRY_OVERHEAD = 1024
_MALFORMED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,  # an encrypted entry
    EOFError,
    OverflowError,
    TypeError,  # a dtype of a size that does not exist
    OSError,
)

_write_array = np.lib.format.write_array  # bound before a candidate can patch NumPy

# --- configurations -------------------------------------------------------------------------------------------


def encode_config(config: Mapping[str, Any], directory: Path) -> None:
    """Write the files of `config_files` into a directory that exists."""
    for name, content in config_files(config).items():
        (directory / name).write_bytes(content)


def config_files(config: Mapping[str, Any]) -> dict[str, bytes]:
    """A configuration as the contents of `config.json` and `arrays.npz`.

    Args:
        config: scalars, strings, None, tuples, lists, dicts, NumPy arrays and scalars, quimb matrix product states.

    Raises:
        TypeError: a value of another type; the text names its key.
    """
    arrays: dict[str, Any] = {}
    items = [[key, _encode(value, arrays, key)] for key, value in config.items()]
    structure = json.dumps({"schema_version": 1, "items": items}).encode()
    return {"config.json": structure, "arrays.npz": pack(arrays)}


def decode_config(directory: Path) -> dict[str, Any]:
    """Read what `encode_config` wrote; quimb is imported only if the configuration holds a matrix product state."""
    data = json.loads((directory / "config.json").read_text())
    if data["schema_version"] != 1:
        raise ValueError(f"config.json: schema_version {data['schema_version']!r} is not 1")
    with np.load(directory / "arrays.npz", allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return {key: _decode(value, arrays) for key, value in data["items"]}


def _encode(value: Any, arrays: dict[str, Any], where: str) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is complex:
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_encode(item, arrays, f"{where}[{index}]") for index, item in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": [[str(key), _encode(item, arrays, f"{where}.{key}")] for key, item in value.items()]}
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.char not in PLAIN_DTYPES:
            raise TypeError(f"config key {where}: arrays of dtype {value.dtype} cannot be handed over")
        return {"scalar" if isinstance(value, np.generic) else "array": _store(value, arrays)}
    if type(value).__name__ == "MatrixProductState" and type(value).__module__.startswith("quimb."):
        return {"mps": _encode_mps(value, arrays)}
    raise TypeError(f"config key {where}: a {type(value).__name__} cannot be handed over")


def _store(value: Any, arrays: dict[str, Any]) -> str:
    name = f"a{len(arrays)}"
    arrays[name] = np.asarray(value)
    return name


def _encode_mps(state: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """Tensors in quimb's own order with index names, tags and axis order; nothing is normalized or transposed."""
    tensors = [
        {"array": _store(tensor.data, arrays), "inds": list(tensor.inds), "tags": list(tensor.tags)}
        for tensor in state.tensors
    ]
    names = {"site_ind_id": state.site_ind_id, "site_tag_id": state.site_tag_id}
    exponent = float(getattr(state, "exponent", 0.0))
    return {"tensors": tensors, "L": int(state.L), "cyclic": bool(state.cyclic), "exponent": exponent, **names}


def _decode(value: Any, arrays: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    decoders: dict[str, Callable[[], Any]] = {
        "complex": lambda: complex(*content),
        "tuple": lambda: tuple(_decode(item, arrays) for item in content),
        "list": lambda: [_decode(item, arrays) for item in content],
        "dict": lambda: {key: _decode(item, arrays) for key, item in content},
        "array": lambda: arrays[content],
        "scalar": lambda: arrays[content][()],
        "mps": lambda: _decode_mps(content, arrays),
    }
    return decoders[kind]()


def _decode_mps(content: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    import quimb.tensor as qtn

    tensors = [qtn.Tensor(arrays[part["array"]], part["inds"], part["tags"]) for part in content["tensors"]]
    names = {key: content[key] for key in ("L", "cyclic", "site_ind_id", "site_tag_id")}
    state = qtn.TensorNetwork(tensors).view_as_(qtn.MatrixProductState, **names)
    state.exponent = content["exponent"]
    return state


# --- results --------------------------------------------------------------------------------------------------


def check_key(key: object) -> str:
    """The key itself, if a result may have it.

    Raises:
        ValueError: it is not a string, is empty or long, or could be taken for a path.
    """
    if type(key) is not str:
        raise ValueError(f"key {key!r:.80} is a {type(key).__name__}, not a string")
    if not _KEY.fullmatch(key):
        raise ValueError(f"key {key!r:.160} is not a plain name of 1 to {MAX_KEY_LENGTH} characters")
    return key


def pack(arrays: Mapping[str, Any]) -> bytes:
    """Arrays as the bytes of an uncompressed `.npz` file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for key, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=False) as entry:
                _write_array(entry, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def read_result(path: Path, limit_bytes: int) -> dict[str, Any]:
    """Read a result file that may be hostile as plain arrays.

    Args:
        path: an `.npz` file.
        limit_bytes: largest size of all arrays together, unpacked.

    Raises:
        ValueError: it is not a regular file, not an archive of plain numeric arrays, or too large; the text says which.
    """
    try:
        descriptor = open_regular(path)
    except OSError as error:
        raise ValueError(f"the result file cannot be opened ({error.strerror})") from error
    with os.fdopen(descriptor, "rb") as stream:
        size = os.fstat(descriptor).st_size
        if size > limit_bytes + MAX_KEYS * _ENTRY_OVERHEAD:
            raise ValueError(f"the result file has {size} bytes, more than {limit_bytes}")
        try:
            _check_directory_size(stream, size)
            with zipfile.ZipFile(stream) as archive:
                return _read_entries(archive, limit_bytes)
        except _MALFORMED as error:
            raise ValueError(
                f"the result is not an archive of plain arrays ({type(error).__name__}: {error})"
            ) from error


def open_regular(path: Path) -> int:
    """Open a file that may be a trap: follows no link, waits for no pipe.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("not a regular file")
    return descriptor


def _check_directory_size(stream: BinaryIO, size: int) -> None:
    """Refuse a central directory that would cost much just to parse: `ZipFile` reads all of it when it opens."""
    tail = struct.Struct("<4s4H2LH")
    if size < tail.size:
        raise ValueError("the result is too short for an archive")
    stream.seek(max(0, size - tail.size - 20))
    end = stream.read()
    signature, _, _, _, n_entries, directory_size, _, comment = tail.unpack(end[-tail.size :])
    if signature != b"PK\x05\x06" or comment or end.startswith(b"PK\x06\x07"):
        raise ValueError("the result does not end like a plain archive")
    if n_entries > MAX_KEYS or directory_size > MAX_KEYS * _ENTRY_OVERHEAD:
        raise ValueError(f"the result has {n_entries} keys, more than {MAX_KEYS}")
    stream.seek(0)


def _read_entries(archive: zipfile.ZipFile, limit_bytes: int) -> dict[str, Any]:
    entries = archive.infolist()
    if len(entries) > MAX_KEYS:
        raise ValueError(f"the result has {len(entries)} keys, more than {MAX_KEYS}")
    total = sum(entry.file_size for entry in entries)
    if total > limit_bytes + len(entries) * _ENTRY_OVERHEAD:
        raise ValueError(f"the result unpacks to {total} bytes, more than {limit_bytes}")
    arrays: dict[str, Any] = {}
    for entry in entries:
        if not entry.filename.endswith(".npy"):
            raise ValueError(f"the archive holds {entry.filename!r:.160}, which is not an array")
        key = check_key(entry.filename.removesuffix(".npy"))
        if key in arrays:
            raise ValueError(f"key {key!r} occurs twice")
        with archive.open(entry) as stream:
            arrays[key] = _read_array(cast("BinaryIO", stream), entry.file_size, key)
    return arrays


def _read_array(stream: BinaryIO, file_size: int, key: str) -> Any:
    """One `.npy` entry whose header must account for every byte of it.

    The header is matched against the one form that NumPy writes, rather than handed to NumPy's parser, which feeds
    hostile text to Python's own.
    """
    start = stream.read(_NPY_START.size)
    if len(start) != _NPY_START.size or not start.startswith(_NPY_MAGIC):
        raise ValueError(f"key {key!r}: not an array")
    header = _NPY_HEADER.fullmatch(stream.read(_NPY_START.unpack(start)[1]).decode("latin-1"))
    if header is None or header["kind"] not in "biufc":
        raise ValueError(f"key {key!r}: not an array of a plain number type")
    dtype = np.dtype(header["order"] + header["kind"] + header["size"])
    fortran = header["fortran"] == "True"
    shape = tuple(int(length) for length in header["shape"].split(",") if length.strip())
    if dtype.char not in PLAIN_DTYPES:
        raise ValueError(f"key {key!r}: dtype {dtype} is not a plain number type")
    n_bytes = file_size - stream.tell()
    if len(shape) > 32 or math.prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError(f"key {key!r}: shape {shape!s:.80} does not match the {n_bytes} bytes stored")
    data = stream.read(n_bytes)
    if len(data) != n_bytes or stream.read(1):
        raise ValueError(f"key {key!r}: the entry is cut short or too long")
    flat = np.frombuffer(bytearray(data), dtype=dtype).astype(dtype.newbyteorder("="), copy=False)
    return flat.reshape(shape, order="F" if fortran else "C")
