import json
import os
import socket

import pytest

from orbit.cli import main
from orbit.errors import SetupError
from orbit.execution import left_overs, orphans
from orbit.execution._environments import DockerChoice


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A cache of its own, and what the engine is asked to remove."""
    monkeypatch.setenv("ORBIT_CACHE_DIR", str(tmp_path / "cache"))
    removed = []

    def remove_run(run_id, report, engine):
        removed.append((run_id, engine))
        report(f"removed {run_id}")
        return 1

    monkeypatch.setattr(orphans, "remove_run", remove_run)
    return removed


def die(run_id):
    """The process that made the mark has ended."""
    path = left_overs.marks_dir() / f"{run_id}.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "owner": f"{socket.gethostname()}/{os.getpid()}/12.00"}))
    return path


def test_a_live_run_is_left_alone_and_a_dead_one_is_taken_down(engine, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///some/socket")
    left_overs.mark("dead", "docker")
    monkeypatch.delenv("DOCKER_HOST")
    left_overs.mark("alive", "podman")
    path = die("dead")
    lines = []
    left_overs.take_down(lines.append)
    assert engine == [("dead", orphans.Engine("docker", "unix:///some/socket"))]
    assert lines == ["removed dead"]
    assert not path.exists()
    left_overs.take_down(lines.append)
    left_overs.unmark("alive")
    assert (len(engine), list(left_overs.marks_dir().iterdir())) == (1, [])


def test_an_engine_that_does_not_answer_is_asked_again_next_time(engine, monkeypatch):
    def fail(*arguments):
        raise SetupError("no engine")

    left_overs.mark("dead", "docker")
    path = die("dead")
    monkeypatch.setattr(orphans, "remove_run", fail)
    lines = []
    left_overs.take_down(lines.append)
    assert path.exists()
    assert "no engine" in lines[0]
    assert str(path) in lines[0]


def test_a_damaged_mark_is_named(engine):
    left_overs.marks_dir().mkdir(parents=True)
    (left_overs.marks_dir() / "x.json").write_text("{")
    lines = []
    left_overs.take_down(lines.append)
    assert "x.json: not a mark" in lines[0]


def test_without_any_mark_nothing_is_looked_for(engine):
    left_overs.take_down(pytest.fail)
    assert engine == []


@pytest.mark.parametrize("arguments", [["schema", "verdict"], ["doctor", "--help"]])
def test_every_command_looks(engine, arguments, capsys):
    left_overs.mark("dead", "docker")
    die("dead")
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert not end.value.code
    assert [run_id for run_id, _ in engine] == ["dead"]
    assert "removed dead" in capsys.readouterr().err


def test_a_run_in_containers_is_marked_until_nothing_is_left(engine, monkeypatch):
    choice = DockerChoice()
    choice.prepare("r1", [], print)
    mark = left_overs.marks_dir() / "r1.json"
    assert orphans.is_alive(json.loads(mark.read_text())["owner"])
    working = orphans.remove_run

    def fail(*arguments):
        raise SetupError("no engine")

    monkeypatch.setattr(orphans, "remove_run", fail)
    lines = []
    choice.clean_up("r1", lines.append)
    assert mark.exists()
    assert "may be left" in lines[0]
    monkeypatch.setattr(orphans, "remove_run", working)
    choice.clean_up("r1", print)
    assert not mark.exists()
