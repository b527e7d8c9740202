"""Interpreters that stand in for a framework's environment: NumPy is all that these tests need of one."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from orbit.verification.sandbox import probe_sandbox


@pytest.fixture(scope="session")
def open_base() -> Iterator[Path]:
    """A directory that every user may enter, unlike pytest's own and the home of root."""
    directory = Path(tempfile.mkdtemp(prefix="orbit-test-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def python(open_base: Path) -> Path:
    """The interpreter of the tests by a path that marks every command line of this test session."""
    environment = open_base / f"environment-{uuid.uuid4().hex}"
    environment.symlink_to(sys.prefix)
    return environment / "bin" / "python"


@pytest.fixture(scope="session")
def open_python(open_base: Path) -> Path:
    """An interpreter with NumPy and nothing else that every user may read, also where the tests' own is root's."""
    base, target = Path(sys.base_prefix), open_base / f"python-{uuid.uuid4().hex}"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    ignored = shutil.ignore_patterns("test", "site-packages", "__pycache__", "idlelib", "tkinter", "config-*")
    shutil.copytree(base / "lib" / version, target / "lib" / version, ignore=ignored, copy_function=_link)
    for library in (base / "lib").glob("libpython*.so*"):
        shutil.copy2(library, target / "lib" / library.name)
    (target / "bin").mkdir()
    shutil.copy2(Path(sys.executable).resolve(), target / "bin" / "python")
    packages = Path(np.__file__).parents[1]
    ignored = shutil.ignore_patterns("tests", "__pycache__")
    for source in (packages / "numpy", packages / "numpy.libs"):
        if source.is_dir():
            copy = target / "lib" / version / "site-packages" / source.name
            shutil.copytree(source, copy, ignore=ignored, copy_function=_link)
    return target / "bin" / "python"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Skips where bubblewrap does not work."""
    problem = probe_sandbox().detail
    if problem:
        pytest.skip(problem)


@pytest.fixture(scope="session")
def survivors() -> Callable[[Path], list[str]]:
    """Finds living processes that were started with an interpreter, by their command lines."""

    def find(python: Path) -> list[str]:
        found = set()
        for _ in range(5):  # one look can miss a chain of processes that fork and leave
            for process in Path("/proc").iterdir():
                if process.name.isdigit():
                    with contextlib.suppress(OSError):
                        command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                        found |= {command} if str(python) in command else set()
        return sorted(found)

    return find
