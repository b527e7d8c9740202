"""A base image without an image registry: Debian from debootstrap, with an interpreter of this machine copied in."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from orbit.environments import find_interpreter
from orbit.errors import SetupError
from orbit.images import _engine

_SUITE = "bookworm"
# What a CPython built on Debian 12 links against; patchelf makes the copied binary find its own library.
_PACKAGES = (
    "ca-certificates",
    "libbz2-1.0",
    "libffi8",
    "liblzma5",
    "libncursesw6",
    "libreadline8",
    "libsqlite3-0",
    "libssl3",
    "libuuid1",
    "patchelf",
    "zlib1g",
)
_LEFT_OUT = ("__pycache__", "site-packages", "test", "idlelib", "tkinter", "turtledemo")


def offline_base_name(python: str) -> str:
    """Name of the base image with that Python."""
    return f"orbit-offline-base:{_SUITE}-py{python}"


def build_offline_base(python: str, *, progress: _engine.Progress | None = None) -> str:
    """Make the base image for a Python version unless the engine has it, and return its name.

    Args:
        python: version such as `3.12`.
        progress: gets one line of text at a time.

    Raises:
        SetupError: not root, debootstrap or the interpreter is missing, or a step failed.
    """
    report = progress or (lambda line: None)
    name = offline_base_name(python)
    if _engine.ask("image", "ls", "--quiet", name).strip():
        return name
    if os.geteuid() != 0:
        raise SetupError("--offline-base: debootstrap needs root; run the command with sudo")
    debootstrap = shutil.which("debootstrap")
    if debootstrap is None:
        raise SetupError("--offline-base: debootstrap is not installed; run `apt-get install debootstrap`")
    interpreter = interpreter_root(python)
    with tempfile.TemporaryDirectory(prefix="orbit-base-") as directory:
        root = Path(directory) / "root"
        report(f"debootstrap {_SUITE} into a temporary directory")
        _engine.stream(
            [debootstrap, "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE, str(root)], report
        )
        report(f"copying Python {python} into it")
        copy_interpreter(interpreter, python, root / "usr" / "local")
        _finish(root, python, report)
        report(f"importing {name}")
        _import(root, name)
    return name


def interpreter_root(python: str) -> Path:
    """Installation prefix of an interpreter of that version on this machine.

    Raises:
        SetupError: there is none, or it is no installation of its own that could be copied.
    """
    interpreter = find_interpreter(python)
    root = interpreter.resolve().parent.parent
    if not (root / "bin" / f"python{python}").is_file() or not (root / "lib" / f"python{python}" / "os.py").is_file():
        raise SetupError(f"{interpreter}: not in an installation of its own; install Python {python} with pyenv or uv")
    return root


def copy_interpreter(source: Path, python: str, target: Path) -> None:
    """Copy interpreter, shared library, headers and standard library, without installed packages, to a new prefix."""
    library = f"python{python}"
    for part in ("bin", "lib", "include"):
        (target / part).mkdir(parents=True, exist_ok=True)
    shutil.copy2(source / "bin" / library, target / "bin" / library)
    for alias in ("python", "python3"):
        (target / "bin" / alias).unlink(missing_ok=True)
        (target / "bin" / alias).symlink_to(library)
    for shared in sorted((source / "lib").glob("libpython3*.so*")):
        shutil.copy2(shared, target / "lib" / shared.name, follow_symlinks=False)
    shutil.copytree(
        source / "lib" / library,
        target / "lib" / library,
        symlinks=True,
        ignore=shutil.ignore_patterns(*_LEFT_OUT, "*.a"),
    )
    shutil.copytree(source / "include" / library, target / "include" / library, dirs_exist_ok=True)


def _finish(root: Path, python: str, report: _engine.Progress) -> None:
    """Make the copied interpreter independent of where it lay, give it pip, and drop what the image does not need."""
    chroot = shutil.which("chroot") or "/usr/sbin/chroot"
    binary = f"/usr/local/bin/python{python}"
    # The directory that the interpreter was built for does not exist in the image.
    _engine.stream([chroot, str(root), "patchelf", "--set-rpath", "$ORIGIN/../lib", binary], report)
    _engine.stream([chroot, str(root), "ldconfig"], report)
    (root / "usr/local/lib" / f"python{python}" / "site-packages").mkdir(exist_ok=True)
    _engine.stream([chroot, str(root), binary, "-m", "ensurepip", "--upgrade"], report)
    _engine.stream([chroot, str(root), "apt-get", "clean"], report)
    for leftover in (root / "var/lib/apt/lists", root / "var/cache/debconf"):
        shutil.rmtree(leftover, ignore_errors=True)
    (root / "var/lib/apt/lists/partial").mkdir(parents=True)


def _import(root: Path, name: str) -> None:
    """Pipe the tree into `docker import`."""
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    command = [_engine.docker_program(), "import", "--change", f"ENV {path}", "--change", 'CMD ["bash"]', "-", name]
    tar = ["tar", "--numeric-owner", "--one-file-system", "-C", str(root), "-c", "."]
    with subprocess.Popen(tar, stdout=subprocess.PIPE) as packer:
        done = subprocess.run(command, stdin=packer.stdout, capture_output=True, text=True, check=False)
        assert packer.stdout is not None
        packer.stdout.close()
    if packer.returncode != 0 or done.returncode != 0:
        raise _engine.failure("docker import", done.stderr or f"tar ended with {packer.returncode}")
