"""What the runner's parent and child say to each other, over two inherited pipes.

A frame is one byte of kind, eight bytes of length, and the payload. The child may be taken over by candidate code, so
the reader refuses unknown kinds and lengths over the limit of their kind, before it keeps a byte of the payload.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping

HEADER = struct.Struct("<BQ")

# From the child.
READY = 1  # the framework is imported, the configuration decoded; payload: versions as JSON
LOADED = 2  # the candidate is imported
RESULT = 3  # payload: the whole result as .npz; its last byte stops the clock
FAILED = 4  # payload: status, message and traceback as JSON
COUNTS = 5  # payload: what the provenance adapter counted, as JSON; after the clock

# From the parent.
SETUP = 16  # payload: what to confine, import and load, as JSON
LOAD = 17  # the clock runs: import the candidate
CALL = 18  # call run_solution

TEXT_LIMIT = 2**18
COUNTS_LIMIT = 2**20
CHUNK = 2**20


class ProtocolError(Exception):
    """The other side sent what no honest child or parent sends."""


class TooLongError(ProtocolError):
    """A frame announces a payload over the limit of its kind."""

    def __init__(self, kind: int, length: int) -> None:
        super().__init__(f"a message of kind {kind} announces {length} bytes")
        self.kind = kind
        self.length = length


def message_limits(output_bytes: int) -> dict[int, int]:
    """Largest payload of each kind that a child may send; a result may carry some overhead of its container."""
    return {READY: TEXT_LIMIT, LOADED: 0, RESULT: output_bytes + 2**16, FAILED: TEXT_LIMIT, COUNTS: COUNTS_LIMIT}


class FrameReader:
    """Cuts a byte stream into frames."""

    def __init__(self, limits: Mapping[int, int]) -> None:
        self._limits = limits
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add what was read from the pipe."""
        self._buffer += data

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Every complete frame, as `(kind, payload)`.

        Raises:
            ProtocolError: the next header is not one that an honest sender writes.
        """
        while len(self._buffer) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._buffer)
            if kind not in self._limits:
                raise ProtocolError(f"a message of unknown kind {kind}")
            if length > self._limits[kind]:
                raise TooLongError(kind, length)
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(memoryview(self._buffer)[HEADER.size : end])
            del self._buffer[:end]
            yield kind, payload


def send(descriptor: int, kind: int, payload: bytes = b"") -> None:
    """Write one frame to a blocking pipe."""
    for part in (HEADER.pack(kind, len(payload)), payload):
        view = memoryview(part)
        while view:
            view = view[os.write(descriptor, view[:CHUNK]) :]


def expect(descriptor: int, kind: int) -> bytes:
    """Block until the frame of this kind has come and return its payload; for the child, which trusts its parent.

    Raises:
        ProtocolError: another frame came, or the parent is gone.
    """
    received, length = HEADER.unpack(_read(descriptor, HEADER.size))
    if received != kind:
        raise ProtocolError(f"expected a message of kind {kind}, got {received}")
    return _read(descriptor, length)


def _read(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(descriptor, min(size - len(data), CHUNK))
        if not chunk:
            raise ProtocolError("the other side closed the connection")
        data += chunk
    return bytes(data)
