"""`orbit doctor`: what is missing is named with its fix, keys never show, and the exit code speaks of the default."""

import json
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from orbit import doctor
from orbit.cli import main
from orbit.doctor import Finding, Level, Report
from orbit.errors import SetupError
from orbit.reports.doctor_text import render_report
from orbit.schemas import json_schema
from orbit.verification.sandbox import SandboxProbe

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with nothing but what the embedded default needs; the tests take things away."""
    monkeypatch.setenv("ORBIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(2**40, 0, 2**39))
    monkeypatch.setattr("orbit.environments.find_interpreter", lambda version: Path("/usr/bin/python"))
    monkeypatch.setattr("orbit.verification.sandbox.probe_sandbox", lambda: SandboxProbe("bubblewrap", ""))
    monkeypatch.setattr("orbit.host.memory_allowed_bytes", lambda: 8 * 2**30)
    monkeypatch.setattr("orbit.host.n_cores_allowed", lambda: 2)
    for name in doctor.API_KEYS:
        monkeypatch.delenv(name, raising=False)


def found(name: str) -> Finding:
    return next(finding for finding in doctor.examine().findings if finding.name == name)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["doctor", *arguments])
    assert isinstance(end.value.code, int)
    return end.value.code


def failing(error: Exception) -> Callable[..., None]:
    def fail(*_arguments: object) -> None:
        raise error

    return fail


def test_nothing_optional_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    text = capsys.readouterr().out
    assert "The embedded default works" in text
    assert "orbit frameworks sync tensorcircuit" in text


def test_everything_missing_has_a_fix() -> None:
    report = doctor.examine()
    missing = [finding for finding in report.findings if finding.level is not Level.OK]
    assert missing
    assert all(finding.fix for finding in missing)
    assert all(len(f"{finding.message}{finding.fix}".splitlines()) == 1 for finding in missing)


def test_keys_are_shown_by_name_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1234")
    assert run() == 0
    assert run("--json") == 0
    assert "canary" not in "".join(capsys.readouterr())
    assert found("OPENAI_API_KEY") == Finding(name="OPENAI_API_KEY", level=Level.OK, message="set")
    assert found("ANTHROPIC_API_KEY").level is Level.OPTIONAL


def test_no_interpreter_for_the_references_breaks_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orbit.environments.find_interpreter", failing(SetupError("no Python 3.12; install it")))
    assert found("framework tensorcircuit").level is Level.BROKEN
    assert found("framework pennylane").level is Level.OPTIONAL
    assert run() == 1
    assert "does not work" in capsys.readouterr().out


def test_no_sandbox_is_said_and_the_default_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orbit.verification.sandbox.probe_sandbox", lambda: SandboxProbe("process", "not installed"))
    sandbox = found("sandbox")
    assert sandbox.level is Level.OPTIONAL
    assert sandbox.fix == "apt-get install bubblewrap"
    assert doctor.examine().works


def test_an_engine_that_does_not_answer_is_optional() -> None:
    engine = found("container engine")
    assert engine.level is Level.OPTIONAL
    assert engine.fix


def test_images_are_looked_at_where_an_engine_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SimpleNamespace(version=lambda: {"Version": "99.1"}, close=lambda: None)
    monkeypatch.setattr("docker.from_env", lambda timeout: engine)
    monkeypatch.setattr("orbit.images.check_image", failing(SetupError("orbit-x:1: no such image; build it")))
    assert found("container engine").message == "docker API, engine 99.1"
    image = found("image tensorcircuit")
    assert (image.level, image.message) == (Level.OPTIONAL, "orbit-x:1: no such image")
    assert image.fix == "orbit images build tensorcircuit"
    monkeypatch.setattr("orbit.images.check_image", lambda framework: SimpleNamespace(name="orbit-x:1"))
    assert found("image tensorcircuit").level is Level.OK


@pytest.mark.parametrize(
    ("name", "target", "value", "works"),
    [
        ("disk, cache", "shutil.disk_usage", lambda path: Usage(10, 9, 1), False),
        ("memory", "orbit.host.memory_allowed_bytes", lambda: 2**30, False),
        ("cores", "orbit.host.n_cores_allowed", lambda: 1, True),
    ],
)
def test_a_small_machine_is_told(
    name: str, target: str, value: object, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, value)
    assert found(name).level is (Level.OPTIONAL if works else Level.BROKEN)
    assert found(name).fix
    assert doctor.examine().works is works


def test_json_follows_the_published_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json") == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), json_schema("doctor"))


def test_rendering_counts_what_is_broken() -> None:
    findings = [Finding(name="a", level=Level.BROKEN, message="gone", fix="bring it back")]
    text = render_report(Report(findings=findings, works=False)).plain
    assert "fix: bring it back" in text
    assert "fix the 1 marked NO" in text
