import json
import os
import socket
import subprocess
import sys

import pytest

from orbit.errors import SetupError
from orbit.execution import orphans


def test_this_process_is_alive():
    assert orphans.is_alive(orphans.owner())


def test_a_process_that_ended_is_not():
    code = "from orbit.execution.orphans import owner; print(owner())"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not orphans.is_alive(ended.stdout.strip())


def test_another_process_with_the_same_number_is_not_the_owner():
    assert not orphans.is_alive(f"{socket.gethostname()}/{os.getpid()}/12.00")


@pytest.mark.parametrize("label", ["elsewhere/1/2.0", "", f"{socket.gethostname()}/x/y", "nonsense"])
def test_what_cannot_be_known_counts_as_alive(label):
    assert orphans.is_alive(label)


@pytest.fixture(params=["Labels", "labels"], ids=["docker", "podman"])
def engine(request, monkeypatch):
    """A stand-in for the engine's command line with one live, one dead and one foreign project."""
    dead, host = f"{socket.gethostname()}/{os.getpid()}/12.00", socket.gethostname()
    labels = {
        "alive": {"orbit.run": "a", "orbit.owner": orphans.owner()},
        "dead": {"orbit.run": "d", "orbit.owner": dead},
        "far": {"orbit.run": "f", "orbit.owner": f"not-{host}/1/1.0"},
    }
    items = [{**found, "com.docker.compose.project": f"project-{name}"} for name, found in labels.items()]
    calls, spelling = [], request.param

    def ask(*arguments, program, host):
        assert (program, host) == ("docker", None)
        calls.append(arguments)
        if arguments[1] == "inspect":
            return json.dumps([{spelling: item, "Config": {"Labels": item}} for item in items])
        return "id1\nid2\n" if "ls" in arguments else ""

    monkeypatch.setattr(orphans._engine, "ask", ask)
    return calls


def test_only_projects_without_owner_are_removed(engine):
    assert [orphan.project for orphan in orphans.find_orphans()] == ["project-dead"]
    lines = []
    assert orphans.remove_orphans(lines.append) == 1
    assert ("container", "rm", "--force", "--volumes", "id1", "id2") in engine
    assert ("network", "rm", "id1", "id2") in engine
    assert "project-dead" in lines[0]


def test_of_a_given_run_everything_is_found(engine):
    assert [orphan.project for orphan in orphans.find_orphans("a")] == ["project-alive"]


def test_without_an_engine_nothing_fails(monkeypatch):
    def ask(*arguments, **engine):
        raise SetupError("no engine")

    monkeypatch.setattr(orphans._engine, "ask", ask)
    lines = []
    assert orphans.remove_orphans(lines.append) == 0
    assert "no engine" in lines[0]
