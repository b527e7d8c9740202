"""`.ci/run` fails when any of its steps fails, shown with stand-ins for the tools."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("python", "pip", "ruff", "mypy", "orbit", "pytest")

README = """
<!-- command: demo -->
```sh
.venv/bin/orbit demo
```
<!-- command: tests -->
```sh
.venv/bin/pytest && echo "CI=$CI"
```
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    (tmp_path / "README.md").write_text(README)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    # The system's packages are the machine's matter, and installing them none of a unit test's.
    shutil.copy("/bin/true", tmp_path / "python3.12")
    (tmp_path / "dpkg-query").write_text("#!/bin/sh\necho installed\n")
    (tmp_path / "dpkg-query").chmod(0o755)
    for name in TOOLS:
        write_tool(tmp_path, name, "exit 0")
    return tmp_path


def write_tool(project: Path, name: str, body: str) -> None:
    path = project / ".venv" / "bin" / name
    path.write_text(f'#!/bin/sh\necho "{name} $*" >> "{project}/called"\n{body}\n')
    path.chmod(0o755)


def run(project: Path) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": f"{project}:/usr/bin:/bin", "HOME": str(project)}
    return subprocess.run(
        [project / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_runs_every_step(project: Path) -> None:
    done = run(project)
    assert done.returncode == 0, done.stderr
    called = (project / "called").read_text()
    for step in ("pip install", "ruff check", "ruff format --check", "mypy --strict orbit", "orbit demo", "pytest"):
        assert step in called
    assert "--require-hashes -r .ci/requirements.txt" in called
    assert "CI=true" in done.stdout
    assert "everything passed" in done.stderr


@pytest.mark.parametrize("tool", ["pip", "ruff", "mypy", "orbit", "pytest"])
def test_fails_when_a_step_fails(project: Path, tool: str) -> None:
    write_tool(project, tool, "exit 3")
    done = run(project)
    assert done.returncode != 0
    assert "everything passed" not in done.stderr


@pytest.mark.parametrize(("script", "text"), [("images", "exit 3"), ("engine", "exit 3"), ("images", "exit 0")])
def test_end_to_end_tests_get_an_engine_with_images(project: Path, script: str, text: str) -> None:
    (project / "tests" / "e2e").mkdir(parents=True)
    (project / "tests" / "e2e" / "test_x.py").touch()
    for name, body in {"images": "exit 0", "engine": "echo export DOCKER_HOST=unix:///x", script: text}.items():
        (project / ".ci" / name).write_text(f"#!/bin/sh\n{body}\n")
    write_tool(project, "pytest", '[ "$DOCKER_HOST" = unix:///x ]')
    assert (run(project).returncode == 0) is (text == "exit 0")


def test_fails_when_the_format_is_wrong(project: Path) -> None:
    write_tool(project, "ruff", '[ "$1" != format ]')
    assert run(project).returncode != 0


def test_fails_when_the_readme_has_no_such_command(project: Path) -> None:
    (project / "README.md").write_text(README.replace("command: tests", "command: test"))
    assert run(project).returncode != 0
