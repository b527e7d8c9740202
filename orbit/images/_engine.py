"""Talking to the container engine through its command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from orbit.errors import SetupError

Progress = Callable[[str], None]

# A line that a build step printed: `#5 12.3 text`.
_COMMAND_OUTPUT = re.compile(r"#\d+ \d+(?:\.\d+)? (.*)")
_QUICK_SEC = 60.0
_TAIL_LINES = 30


def docker_program(name: str = "docker") -> str:
    """Path of the `docker` command, or of `podman`.

    Raises:
        SetupError: there is none.
    """
    program = shutil.which(name)
    if program is None:
        advice = {"docker": "install Docker with the buildx plugin", "podman": "apt-get install podman"}
        raise SetupError(f"{name}: no such command; {advice[name]}, or run with --environment local")
    return program


def host_variable(program: str) -> str:
    """The environment variable that says which engine a command talks to."""
    return "CONTAINER_HOST" if program == "podman" else "DOCKER_HOST"


def ask(*arguments: str, program: str = "docker", host: str | None = None) -> str:
    """Run a short docker or podman command and return what it printed.

    Args:
        *arguments: of the command.
        program: `docker` or `podman`.
        host: the engine's socket, instead of the one that the environment names.

    Raises:
        SetupError: there is no such command, no engine answers, or the command failed.
    """
    command = [docker_program(program), *arguments]
    environment = None if host is None else {**os.environ, host_variable(program): host}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_QUICK_SEC, check=False, env=environment)
    except subprocess.TimeoutExpired:
        raise SetupError(f"{program} {arguments[0]}: no answer within {_QUICK_SEC:.0f} s; {_engine_advice()}") from None
    if done.returncode != 0:
        raise failure(f"{program} {' '.join(arguments[:2])}", done.stderr)
    return done.stdout


def failure(what: str, output: str) -> SetupError:
    """The one-line error for a docker command that failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if any("connect to the Docker daemon" in line or "error during connect" in line for line in lines):
        return SetupError(f"{what}: no container engine answers; {_engine_advice()}")
    if any("unknown command" in line or "is not a docker command" in line for line in lines):
        return SetupError(
            f"{what}: docker has no buildx plugin; install the package docker-buildx (or docker-buildx-plugin)"
        )
    return SetupError(f"{what}: {lines[-1] if lines else 'it failed without a word'}")


def stream(command: Sequence[str], progress: Progress, *, directory: Path | None = None) -> None:
    """Run a long command, pass each line of its output on, and keep the last ones for the error.

    Raises:
        SetupError: the command failed; the text holds the lines that say why.
    """
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    with subprocess.Popen(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if text := line.strip():
                    tail.append(text)
                    progress(text)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise failure(f"{Path(command[0]).name} {command[1]}", _telling_lines(tail))


def _telling_lines(tail: deque[str]) -> str:
    """The tail of a build log with one line last that holds BuildKit's error and the failed command's own."""
    closing = [line for line in tail if line.startswith(("ERROR", "error:"))]
    printed = [match[1] for line in tail if (match := _COMMAND_OUTPUT.match(line))]
    own = [line for line in printed if "error" in line.lower() or line.startswith("E: ")] or printed
    return "\n".join([*tail, " <- ".join([*closing[-1:], *own[-1:]])])


def _engine_advice() -> str:
    host = os.environ.get("DOCKER_HOST")
    if host:
        return f"DOCKER_HOST={host}: start that engine or unset the variable"
    return "start Docker, or set DOCKER_HOST to the engine's socket"
