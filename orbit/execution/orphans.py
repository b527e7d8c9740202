"""Containers and networks of runs whose process is gone.

harbor takes its containers down when a run ends or is interrupted, but not when it is killed. Ours carry the process
that owns them as a label, so the next command can tell what nobody will take down any more.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil

from orbit.errors import SetupError
from orbit.images import _engine

RUN_LABEL = "orbit.run"
"""On every container and network: the run it belongs to."""

OWNER_LABEL = "orbit.owner"
"""On every container and network: the process that takes it down, as `owner` writes it."""

_PROJECT_LABEL = "com.docker.compose.project"
_START_TOLERANCE_SEC = 1.0


@dataclass(frozen=True)
class Orphan:
    """A compose project that nobody will take down."""

    project: str
    run_id: str


@dataclass(frozen=True)
class Engine:
    """The command that talks to a container engine, and the engine's socket where it is not the usual one."""

    program: str = "docker"
    host: str | None = None

    def ask(self, *arguments: str) -> str:
        """What a command prints.

        Raises:
            SetupError: no engine answers, or the command failed.
        """
        return _engine.ask(*arguments, program=self.program, host=self.host)


DOCKER = Engine()


def owner() -> str:
    """This process, told apart from a later one with the same number: host, number and start time."""
    process = psutil.Process()
    return f"{socket.gethostname()}/{process.pid}/{process.create_time():.2f}"


def is_alive(owner_label: str) -> bool:
    """Whether the process of a label still runs; one of another host, or a label of another form, counts as alive."""
    host, _, rest = owner_label.partition("/")
    number, _, started = rest.partition("/")
    if host != socket.gethostname():
        return True
    try:
        process = psutil.Process(int(number))
        same = abs(process.create_time() - float(started)) < _START_TOLERANCE_SEC
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except (ValueError, psutil.AccessDenied):
        return True


def find_orphans(run_id: str | None = None, engine: Engine = DOCKER) -> list[Orphan]:
    """Projects whose owner is gone; with a run given, every project of that run.

    Raises:
        SetupError: no engine answers.
    """
    found = []
    for kind in (("container", "ls", "--all"), ("network", "ls")):
        listed = engine.ask(*kind, "--filter", f"label={RUN_LABEL}", "--quiet", "--no-trunc").split()
        if not listed:
            continue
        for item in json.loads(engine.ask(kind[0], "inspect", *listed)):
            labels = _labels(item["Config"] if kind[0] == "container" else item)
            mine = labels.get(RUN_LABEL) == run_id if run_id else not is_alive(labels.get(OWNER_LABEL, ""))
            if mine and _PROJECT_LABEL in labels:
                found.append(Orphan(labels[_PROJECT_LABEL], labels[RUN_LABEL]))
    return list(dict.fromkeys(found))


def _labels(item: dict[str, Any]) -> dict[str, str]:
    """Docker and Podman differ in how they spell the key."""
    labels: dict[str, str] = item.get("Labels") or item.get("labels") or {}
    return labels


def remove(orphan: Orphan, engine: Engine = DOCKER) -> None:
    """Remove everything of a project, sidecars too.

    Raises:
        SetupError: the engine refused.
    """
    of_project = ("--filter", f"label={_PROJECT_LABEL}={orphan.project}", "--quiet")
    if containers := engine.ask("container", "ls", "--all", *of_project).split():
        engine.ask("container", "rm", "--force", "--volumes", *containers)
    if networks := engine.ask("network", "ls", *of_project).split():
        engine.ask("network", "rm", *networks)


def remove_run(run_id: str | None, report: Callable[[str], None], engine: Engine = DOCKER) -> int:
    """Remove what is there of a run, or, with none given, of every run whose owner is gone.

    Returns:
        How many projects were removed.

    Raises:
        SetupError: no engine answers, or it refused.
    """
    orphans = find_orphans(run_id, engine)
    for orphan in orphans:
        remove(orphan, engine)
        report(f"removed container {orphan.project}, left behind by run {orphan.run_id}")
    return len(orphans)


def remove_orphans(report: Callable[[str], None], run_id: str | None = None, engine: Engine = DOCKER) -> int:
    """As `remove_run`; an engine that does not answer has no orphans of ours that could be removed now."""
    try:
        return remove_run(run_id, report, engine)
    except SetupError as error:
        report(f"left-over containers were not looked for: {error}")
        return 0
