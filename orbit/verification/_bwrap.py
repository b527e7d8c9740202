"""The bubblewrap command: what a candidate sees of the machine, and a probe whether bubblewrap works here."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orbit.errors import SetupError

INSIDE = Path("/orbit")
"""Where the files of a run lie in the sandbox."""

HOME = "/tmp/home"
SYSTEM_DIRS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/alternatives")
CPU_TOPOLOGY = "/sys/devices/system/cpu"
NOBODY = 65534
_PROBE_SEC = 30


@dataclass(frozen=True)
class Interpreter:
    """What must be visible for a Python interpreter to start: directories, and links on the way to them."""

    path: Path
    roots: tuple[Path, ...]
    links: tuple[tuple[Path, str], ...]


@functools.lru_cache(maxsize=64)
def interpreter(path: Path) -> Interpreter:
    """Find out where an interpreter, perhaps of a virtual environment, and its standard library live.

    Raises:
        SetupError: it does not start.
    """
    command = [str(path), "-I", "-c", "import sys, json; print(json.dumps([sys.prefix, sys.base_prefix]))"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PROBE_SEC)
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(f"{path}: this Python does not start ({error}); make the environment anew") from error
    prefixes = [Path(prefix) for prefix in json.loads(answer.stdout)]
    roots = {
        root for prefix in prefixes for root in (prefix, prefix.resolve()) if root not in (Path("/"), Path("/usr"))
    }
    links: list[tuple[Path, str]] = []
    hop = path
    while hop.is_symlink():
        if not _within(hop, roots):
            links.append((hop, str(hop.readlink())))
        hop = hop.parent / hop.readlink()
    return Interpreter(path, tuple(sorted(roots)), tuple(links))


def _within(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in (*roots, Path("/usr")))


def command(
    python: Interpreter,
    directory: Path | None,
    *,
    scratch_bytes: int,
    hidden: Sequence[Path] = (),
    as_root: bool,
) -> list[str]:
    """The arguments up to, and without, the program to run.

    Args:
        python: the interpreter to make visible.
        directory: the files of the run, which become `INSIDE`, read-only.
        scratch_bytes: size of the private `/tmp`.
        hidden: host directories to cover where they lie inside a visible one (this program's own data).
        as_root: whether bubblewrap runs as root; then the child drops to a user of its own, so that the limit on
            processes counts this run alone, and keeps the two capabilities this takes until it has done so.
    """
    arguments = ["bwrap", "--die-with-parent", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--hostname", "orbit", "--cap-drop", "ALL"]
    if as_root:
        arguments += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        arguments += ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
    made = {Path("/tmp")}
    arguments += ["--ro-bind", "/usr", "/usr", *_system_arguments(made), "--proc", "/proc", "--dev", "/dev"]
    for place in ("/dev/shm", "/tmp"):
        arguments += ["--size", str(scratch_bytes), "--perms", "1777", "--tmpfs", place]
    visible = [Path("/usr")]
    for root in python.roots:
        if not _within(root, visible):
            arguments += [*_ancestors(root, made), "--ro-bind", str(root), str(root)]
            visible.append(root)
    for link, target in python.links:
        arguments += [*_ancestors(link, made), "--symlink", target, str(link)]
    for secret in hidden:
        if _within(secret, visible) and secret.is_dir():
            arguments += ["--perms", "0755", "--tmpfs", str(secret), "--remount-ro", str(secret)]
    if directory is not None:
        arguments += ["--ro-bind", str(directory), str(INSIDE)]
    arguments += ["--perms", "0777", "--dir", HOME, "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*arguments, "--chdir", "/tmp", "--"]


def _system_arguments(made: set[Path]) -> list[str]:
    arguments: list[str] = []
    for name in SYSTEM_DIRS:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += ["--ro-bind", name, name]
    for name in (*SYSTEM_FILES, CPU_TOPOLOGY):
        arguments += [*_ancestors(Path(name), made), "--ro-bind-try", name, name]
    return arguments


def _ancestors(path: Path, made: set[Path]) -> list[str]:
    """Directories on the way to a mount, readable; bubblewrap alone would copy a closed mode (of root's home)."""
    arguments: list[str] = []
    for directory in reversed(path.parents):
        if directory not in made and directory != Path("/"):
            made.add(directory)
            arguments += ["--perms", "0755", "--dir", str(directory)]
    return arguments


@functools.cache
def probe() -> str | None:
    """Start a program behind the very command that runs use; what went wrong, on one line, or None if it works."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (apt install bubblewrap)"
    nothing = Interpreter(Path("/usr/bin/true"), (), ())
    arguments = command(nothing, None, scratch_bytes=2**20, as_root=os.geteuid() == 0)
    try:
        done = subprocess.run(
            [*arguments, "/bin/sh", "-c", "exit 0"], capture_output=True, text=True, timeout=_PROBE_SEC
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap does not start ({error})"
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return f"bubblewrap 0.7 or later is there but does not work here ({reason})"
    return None
