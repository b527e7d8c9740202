"""Runs one candidate once: the parent owns clock and limits, the child is hostile. Standard library and NumPy only.

The parent is a program of its own (`python runner.pyz parent JOB.json`), started by `sandbox.LocalExecutor` on this
machine or by a command in a container; `bundle()` makes the `.pyz`. It starts the child behind the wrapper command
that the job gives (bubblewrap, or nothing in a container) and talks with it over two pipes; see `_protocol`.

The clock cannot be forged. It starts when the child, in which nothing but trusted code has run, has reported READY
and before it may load the candidate; it stops when the parent holds the last byte of the result, and everything below
the parent is killed at once. So import, call, conversion to arrays and hand-over all count, whatever the candidate
sends when: an early LOADED merely moves time from the import to the call.

A job is a JSON object:

    schema_version  1
    name, role      copied into the answer
    output_dir      receives execution.json, stdout.txt, stderr.txt, result.npz, provenance.json
    command         how to start the child; `{orders}` and `{messages}` stand for the numbers of its pipes
    wrapped         whether the command is a wrapper that reports a signal N as exit status 128 + N
    env             the child's whole environment
    cpus            cores to use, or null
    scratch         directory to make for the child before the run and remove after it, or null
    work_dir        directory to remove if whoever started the parent has died, or null
    lifeline        whether standard input is a pipe whose end means that
    drop_uid, gid   whether to run the child as a user of this run alone (needs root), and with which group (or null)
    limits          timeout_sec, start_sec, memory_bytes, output_bytes, log_bytes
    setup           for the child: imports, config, solution, adapter (or null), rlimits; paths as the child sees them
    sandbox         copied into the answer; `network` becomes false when the child could close its sockets
"""

from __future__ import annotations

import json
import os
import signal
import sys
import types
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

BUNDLED = ("_child", "_process", "_protocol", "_seccomp", "_supervisor", "_values", "runner")
_MAIN = b'if __name__ == "__main__":\n    from orbit.verification import runner\n\n    runner.main()\n'


def bundle() -> bytes:
    """This program as one executable `.pyz` file; equal sources give equal bytes."""
    here = Path(__file__).parent
    files = {"__main__.py": _MAIN, "orbit/__init__.py": b"", "orbit/verification/__init__.py": b""}
    files |= {f"orbit/verification/{name}.py": (here / f"{name}.py").read_bytes() for name in BUNDLED}
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def run_parent(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job and return the content of `execution.json`; to be called in a process that does nothing else.

    It adopts and kills every process below it, so that nothing of the candidate survives.
    """
    from orbit.verification import _supervisor

    return _supervisor.Supervisor(job).run()


def encode_config(config: Mapping[str, Any], directory: Path) -> None:
    """See `_values.encode_config`."""
    from orbit.verification import _values

    _values.encode_config(config, directory)


def decode_config(directory: Path) -> dict[str, Any]:
    """See `_values.decode_config`."""
    from orbit.verification import _values

    return _values.decode_config(directory)


def read_result(path: Path, limit_bytes: int) -> dict[str, Any]:
    """See `_values.read_result`."""
    from orbit.verification import _values

    return _values.read_result(path, limit_bytes)


def main() -> None:
    """`parent JOB.json`, or `child ORDERS MESSAGES` as the parent starts it."""
    mode, *arguments = sys.argv[1:]
    if mode == "child":
        from orbit.verification import _child

        _child.main(int(arguments[0]), int(arguments[1]))
        return
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    job = json.loads(Path(arguments[0]).read_text())
    answer = run_parent(job)
    target = Path(job["output_dir"]) / "execution.json"
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps(answer, indent=2) + "\n")
    os.replace(partial, target)  # noqa: PTH105  a reader sees the whole answer or none


def _stop(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
