"""The README's commands are those that CI runs, and every `orbit` command in the documents exists with its options."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from orbit.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "CONTRIBUTING.md")


def readme_command(name: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [ROOT / ".ci" / "readme-command", name], capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(("name", "needed"), [("demo", "orbit demo"), ("tests", "pytest")])
def test_ci_runs_the_command_of_the_readme(name: str, needed: str) -> None:
    done = readme_command(name)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert needed in done.stdout
    assert done.stdout in (ROOT / "README.md").read_text()
    assert f"$(.ci/readme-command {name})" in (ROOT / ".ci" / "run").read_text()


def test_an_unknown_name_fails() -> None:
    done = readme_command("nothing")
    assert done.returncode == 2
    assert done.stdout == ""


def test_there_are_two_commands_for_a_fresh_machine() -> None:
    marks = re.findall(r"<!-- command: (\w+) -->", (ROOT / "README.md").read_text())
    assert marks == ["demo", "tests"]


def commands() -> list[str]:
    found = []
    for name in DOCUMENTS:
        text = (ROOT / name).read_text()
        found += re.findall(r"^(?:\S*/)?orbit [^\n#]+", text, flags=re.MULTILINE)
        found += re.findall(r"`(orbit [^`\n]+)`", text)
    return sorted(set(found))


@pytest.mark.parametrize("line", commands())
def test_command_exists_with_its_options(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line)[1:]
    command = words[:2] if words[0] in {"tasks", "frameworks", "images"} and len(words) > 1 else words[:1]
    with pytest.raises(SystemExit) as end:
        main([*command, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    for option in (word for word in words if word.startswith("--")):
        assert re.search(rf"{re.escape(option)}\b", text), f"{line}: no {option}"


@pytest.mark.parametrize("name", [*DOCUMENTS, "CHANGELOG.md"])
def test_links_to_files_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text())
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_host_environment_is_pinned_and_names_no_host() -> None:
    lines = (ROOT / ".ci" / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith((" ", "#", "-"))]
    assert pins
    assert all("==" in pin for pin in pins)
    assert sum("--hash=sha256:" in line for line in lines) >= len(pins)
    assert not any("://" in line or line.startswith("-") for line in lines)
