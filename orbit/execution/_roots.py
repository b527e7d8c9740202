"""The fixed directories that harbor and agents use as root, kept apart per environment on one host.

With bubblewrap the environment's own directories are mounted over these names, and the rest of the system is read-only.
Without it the names are rewritten inside commands and scripts, and a command that names any other place is refused.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

from orbit.errors import SetupError

BOUND_ROOTS = ("app", "installed-agent", "logs", "solution", "tests", "tmp")
"""Top-level directories that every environment has for itself."""

SYSTEM_ROOTS = ("bin", "etc", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "usr")
"""Top-level directories that a confined command may read."""

_NEVER_SHARED = ("dev", "proc", "sys", *BOUND_ROOTS)
_READABLE_WITHOUT_SANDBOX = ("/dev/null", "/bin/", "/usr/bin/")
_ABSOLUTE_PATH = re.compile(r"(?<![\w.+@%}/-])/[\w.+@%/-]*")
_SAFE_DIRECTORY = re.compile(r"^[\w.+@%/-]+$")


class UnboundPathError(ValueError):
    """A path that does not belong to the environment."""


@functools.cache
def bubblewrap() -> str | None:
    """The `bwrap` program if it is there and may make namespaces on this host, else None."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    probe = [program, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", *_UNSHARE, "--unshare-net", "true"]
    try:
        ended = subprocess.run(probe, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return program if ended.returncode == 0 else None


_UNSHARE = ("--unshare-user-try", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")


class Roots:
    """The directories of one environment under one host directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    def create(self) -> None:
        """Make the empty directories."""
        for name in BOUND_ROOTS:
            (self.directory / name).mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Delete everything in them."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def host_path(self, path: str | PurePosixPath) -> Path:
        """Where a path of the environment lies on the host; links that lead out of the environment are not followed.

        Raises:
            UnboundPathError: it is not absolute, or outside the environment's own directories.
        """
        parts = PurePosixPath(path).parts
        if len(parts) < 2 or parts[0] != "/" or parts[1] not in BOUND_ROOTS or ".." in parts:
            own = ", ".join(f"/{name}" for name in BOUND_ROOTS)
            raise UnboundPathError(f"{path}: not in the environment; it has {own}")
        host = self.directory.joinpath(*parts[1:])
        if not host.resolve().is_relative_to(self.directory.resolve()):
            raise UnboundPathError(f"{path}: a link that leads out of the environment")
        return host

    def sandboxed(self, program: str, command: list[str], *, cwd: str, network: bool, whole_system: bool) -> list[str]:
        """The bubblewrap call that runs a command in these directories.

        Args:
            program: path of `bwrap`.
            command: program and arguments.
            cwd: directory inside the environment.
            network: leave the host's network.
            whole_system: show every directory of the host, read-only, and not only the system's.
        """
        arguments = [program, "--die-with-parent", "--new-session", *_UNSHARE]
        if not network:
            arguments.append("--unshare-net")
        for entry in _shared_entries(whole_system):
            if entry.is_symlink():
                arguments += ["--symlink", str(entry.readlink()), str(entry)]
            else:
                arguments += ["--ro-bind", str(entry), str(entry)]
        arguments += ["--proc", "/proc", "--dev", "/dev"]
        for name in BOUND_ROOTS:
            arguments += ["--bind", str(self.directory / name), f"/{name}"]
        return [*arguments, "--remount-ro", "/", "--chdir", cwd, "--", *command]

    def rewritten(self, text: str) -> str:
        """A command or script with the environment's names replaced by host paths, for hosts without bubblewrap.

        Raises:
            UnboundPathError: it names another place than the environment's directories and a few system programs.
            SetupError: the host directory has characters that could not stand in a command.
        """
        if not _SAFE_DIRECTORY.match(str(self.directory)):
            raise SetupError(
                f"{self.directory}: spaces or quotes in the run directory need bubblewrap; "
                "install the package `bubblewrap` or choose another --out"
            )
        if "~" in text:
            raise UnboundPathError("a command uses ~, which is outside the environment; install bubblewrap to allow it")
        return _ABSOLUTE_PATH.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        path = match[0]
        parts = PurePosixPath(path).parts
        if ".." not in parts:
            if len(parts) > 1 and parts[1] in BOUND_ROOTS:
                return f"{self.directory}{path}"
            if path.startswith(_READABLE_WITHOUT_SANDBOX):
                return path
        raise UnboundPathError(f"{path}: outside the environment; install bubblewrap to run commands that use it")


def _shared_entries(whole_system: bool) -> list[Path]:
    """Top-level directories of the host that a command may read."""
    entries = (entry for entry in sorted(Path("/").iterdir()) if entry.is_dir() and entry.name not in _NEVER_SHARED)
    return [entry for entry in entries if whole_system or entry.name in SYSTEM_ROOTS]
