"""One Python virtual environment per framework, made on first use in the user's cache.

An environment is named after the digest of the requirement lock, so a changed lock makes a new one. It is built in
place, because scripts in a virtual environment hold its path, and counts as existing only once its `.complete` marker
is there; that is written last, after the framework was imported. A half-made one is removed by the next attempt.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from orbit.errors import SetupError
from orbit.frameworks import Framework
from orbit.paths import cache_dir
from orbit.records import write_json

Progress = Callable[[str], None]
_MARKER = ".complete"
_NOISE = (" + ", "Activate with")
_PROBE = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)"
# What users set for pip, uv knows under another name; without this, a company's mirror would work for one of them only.
_UV_NAMES = {
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_NO_INDEX": "UV_NO_INDEX",
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_CERT": "SSL_CERT_FILE",
}
# Variables that would make a fresh interpreter look at somebody else's packages.
_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__")


def environment_dir(framework: Framework) -> Path:
    """Where the framework's environment lies, or will lie."""
    return cache_dir() / "environments" / f"{framework.name}-{framework.requirements_digest[:12]}"


def environment_ready(framework: Framework) -> bool:
    """Whether the environment is complete and its interpreter still exists."""
    directory = environment_dir(framework)
    return (directory / _MARKER).is_file() and _python_in(directory).exists()


def environment_python(framework: Framework, *, create: bool = True, progress: Progress | None = None) -> Path:
    """The interpreter of the framework's environment.

    Args:
        framework: whose environment.
        create: make it if it does not exist; several processes may ask at once, one of them makes it.
        progress: gets one line per step, and what the installer prints.

    Raises:
        SetupError: it does not exist and may not be made; no interpreter of the version is found; or installing failed.
    """
    directory = environment_dir(framework)
    if environment_ready(framework):
        return _python_in(directory)
    command = f"orbit frameworks sync {framework.name}"
    if not create:
        raise SetupError(f"framework {framework.name}: its environment does not exist yet; make it with `{command}`")
    report: Progress = progress or (lambda line: None)
    from filelock import FileLock, Timeout

    directory.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{directory}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        report(f"waiting for another process that makes the {framework.name} environment")
        lock.acquire()
    try:
        if not environment_ready(framework):
            _make(framework, directory, report)
    finally:
        lock.release()
    return _python_in(directory)


def find_interpreter(version: str) -> Path:
    """A working interpreter of version `3.X`: this one, one on PATH, one of pyenv's, or one that uv manages.

    Candidates are run, since a name on PATH may be a shim that fails.

    Raises:
        SetupError: none is found; the text names the command that installs one.
    """
    tried: set[Path] = set()
    for candidate in _candidates(version):
        if candidate not in tried:
            tried.add(candidate)
            found = _probe(candidate, version)
            if found is not None:
                return found
    raise SetupError(
        f"no Python {version} on this machine; install it with `uv python install {version}` "
        f"(or pyenv, or the system's packages) and repeat"
    )


def _python_in(directory: Path) -> Path:
    return directory / "bin" / "python"


def _candidates(version: str) -> Iterator[Path]:
    if version == "{}.{}".format(*sys.version_info[:2]):
        yield Path(sys.executable)
    for name in (f"python{version}", "python3"):
        for entry in os.get_exec_path():
            path = Path(entry) / name
            if path.is_file() and os.access(path, os.X_OK):
                yield path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted((pyenv / "versions").glob(f"{version}*/bin/python{version}"), reverse=True)
    uv = _find_uv()
    if uv is not None:
        found = _output([str(uv), "python", "find", "--managed-python", "--no-python-downloads", version])
        if found:
            yield Path(found[0])


def _probe(candidate: Path, version: str) -> Path | None:
    """The real path of a candidate that runs and has the version."""
    lines = _output([str(candidate), "-I", "-c", _PROBE])
    return Path(lines[1]) if len(lines) == 2 and lines[0] == version else None


def _output(command: list[str]) -> list[str]:
    """Lines that a short command prints; none if it fails, for whatever reason."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=_clean_environment()
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def _find_uv() -> Path | None:
    """The uv that is installed beside this program, else the one on PATH."""
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
        return Path(found) if found else None


def _clean_environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    for pip_name, uv_name in _UV_NAMES.items():
        value = environment.get(pip_name)
        if value is not None:
            # pip separates these by spaces, uv by commas
            environment.setdefault(uv_name, ",".join(value.split()) if uv_name == "UV_FIND_LINKS" else value)
    return environment


def _make(framework: Framework, directory: Path, report: Progress) -> None:
    began = time.monotonic()
    interpreter = find_interpreter(framework.python)
    report(
        f"making the {framework.name} environment ({framework.package} {framework.version}, Python {framework.python})"
    )
    log = Path(f"{directory}.log")
    uv = _find_uv()
    plans = [_pip_plan(framework, interpreter, directory)]
    if uv is not None:
        plans.insert(0, _uv_plan(framework, interpreter, directory, uv))
    try:
        for plan in plans:
            shutil.rmtree(directory, ignore_errors=True)
            failed = next((command for command in plan if not _run(command, log, report)), None)
            if failed is None:
                break
            report(f"failed: {Path(failed[0]).name} {' '.join(failed[1:3])} (see {log})")
        else:
            raise SetupError(_failure(framework, log))
        report(f"importing {framework.import_name}")
        if not _run([str(_python_in(directory)), "-I", "-c", f"import {framework.import_name}"], log, report):
            raise SetupError(_failure(framework, log))
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    marker = {"requirements_digest": framework.requirements_digest, "interpreter": str(interpreter)}
    write_json(directory / _MARKER, marker)
    log.unlink(missing_ok=True)
    report(f"the {framework.name} environment is ready ({time.monotonic() - began:.0f} s)")


def _uv_plan(framework: Framework, interpreter: Path, directory: Path, uv: Path) -> list[list[str]]:
    # Copies, because hard links would let a candidate that runs without a sandbox change uv's own cache; byte code,
    # because the environment is read-only when candidates run and would be compiled anew in every timed import.
    install = [str(uv), "pip", "install", "--no-config", "--python", str(_python_in(directory)), "--link-mode", "copy"]
    install += ["--compile-bytecode", *_requirement_arguments(framework)]
    return [[str(uv), "venv", "--no-config", "--no-project", "--python", str(interpreter), str(directory)], install]


def _pip_plan(framework: Framework, interpreter: Path, directory: Path) -> list[list[str]]:
    install = [str(_python_in(directory)), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    return [
        [str(interpreter), "-m", "venv", str(directory)],
        [*install, *_requirement_arguments(framework)],
    ]


def _requirement_arguments(framework: Framework) -> list[str]:
    # The lock is complete, so nothing beside it may be installed.
    return ["--require-hashes", "--no-deps", "-r", str(framework.requirements)]


def _run(command: list[str], log: Path, report: Progress) -> bool:
    """Run one step, passing on its lines and keeping them in the log; whether it succeeded."""
    with (
        log.open("a", encoding="utf-8") as stream,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=_clean_environment(),
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                stream.write(line)
                if line.strip() and not line.startswith(_NOISE):
                    report(line.strip())
        except BaseException:
            process.kill()
            raise
    return process.returncode == 0


def _failure(framework: Framework, log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    last = lines[-1][:200] if lines else "no output"
    hint = framework.install_hint or "check that the package registry is reachable"
    return (
        f"{framework.requirements}: the {framework.name} environment could not be made ({last}); see {log}; "
        f"{hint}, and repeat `orbit frameworks sync {framework.name}`"
    )
