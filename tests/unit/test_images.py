"""Framework images, against a `docker` command that records what it is asked and answers from a file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from orbit import images
from orbit.cli import main
from orbit.errors import DataError, SetupError, UsageError
from orbit.frameworks import find_framework
from orbit.images import BuildOptions, _base, _engine, _recipe
from orbit.reports.images import render_images

FAKE_DOCKER = """#!{python}
import json, os, pathlib, sys
state = pathlib.Path({state!r})
answers = json.loads((state / "answers.json").read_text())
words = sys.argv[1:]
with (state / "calls.jsonl").open("a") as log:
    print(json.dumps(words), file=log)
if words[:2] == ["buildx", "build"]:
    context = pathlib.Path(words[-1])
    (state / "context.json").write_text(json.dumps(sorted(str(p.relative_to(context)) for p in context.rglob("*"))))
for key, (code, out, err) in answers.items():
    if " ".join(words).startswith(key):
        sys.stdout.write(out)
        sys.stderr.write(err)
        sys.exit(code)
"""


class Docker:
    """The fake engine: set `answers`, read `calls`."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.answers: dict[str, tuple[int, str, str]] = {}

    def answer(self, words: str, out: str = "", *, code: int = 0, err: str = "") -> None:
        self.answers[words] = (code, out, err)
        (self.state / "answers.json").write_text(json.dumps(self.answers))

    def holds(self, *found: dict) -> None:
        self.answer("image ls", "".join(f"{item['Id']}\n" for item in found))
        self.answer("image inspect", json.dumps(found))

    @property
    def calls(self) -> list[list[str]]:
        path = self.state / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def build(self) -> list[str]:
        return next(call for call in self.calls if call[:2] == ["buildx", "build"])


@pytest.fixture
def docker(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(FAKE_DOCKER.format(python=sys.executable, state=str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    fake = Docker(tmp_path)
    fake.answer("buildx version", "v0.13")
    return fake


def inspected(name="pennylane", **labels):
    framework = find_framework(name)
    values = {
        _recipe.FRAMEWORK_LABEL: framework.name,
        _recipe.VERSION_LABEL: framework.version,
        _recipe.PYTHON_LABEL: framework.python,
        _recipe.REQUIREMENTS_LABEL: framework.requirements_digest,
        _recipe.REFERENCE_LABEL: find_framework("tensorcircuit").requirements_digest,
        _recipe.BASE_LABEL: "python:3.12-slim",
        "orbit.agent.codex": "1.2.3",
    } | labels
    return {
        "Id": "sha256:1234",
        "RepoTags": [images.image_name(framework)],
        "Config": {"Labels": values},
        "Size": 1_500_000_000,
        "Created": "2026-11-29T21:00:00.123456789Z",
    }


def test_a_current_image_is_accepted(docker):
    docker.holds(inspected())
    info = images.check_image("pennylane")
    assert info.current
    assert info.agents == {"codex": "1.2.3"}
    assert info.name == f"orbit-pennylane:{find_framework('pennylane').version}"


@pytest.mark.parametrize(
    ("label", "told"),
    [
        (_recipe.REQUIREMENTS_LABEL, "pennylane/requirements.txt"),
        (_recipe.REFERENCE_LABEL, "tensorcircuit/requirements"),
    ],
)
def test_an_image_of_other_requirements_is_refused_with_the_command_that_rebuilds_it(docker, label, told):
    docker.holds(inspected(**{label: "0" * 64}))
    with pytest.raises(SetupError) as error:
        images.check_image("pennylane")
    assert "000000000000" in str(error.value)
    assert told in str(error.value)
    assert "run `orbit images build pennylane`" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_image_names_the_command(docker):
    docker.answer("image ls", "")
    with pytest.raises(SetupError, match="no such image; run `orbit images build mindquantum`"):
        images.check_image("mindquantum")


def test_no_engine_and_no_docker_say_what_to_do(docker, monkeypatch):
    docker.answer(
        "image ls", code=1, err="Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?"
    )
    monkeypatch.setenv("DOCKER_HOST", "unix:///x")
    with pytest.raises(SetupError, match="no container engine answers; DOCKER_HOST=unix:///x: start that engine"):
        images.list_images()
    monkeypatch.setenv("PATH", str(docker.state / "empty"))
    with pytest.raises(SetupError, match="docker: no such command; install Docker"):
        images.list_images()


def test_the_list_tells_current_from_outdated_images(docker):
    outdated = inspected("tensorcircuit", **{_recipe.REQUIREMENTS_LABEL: "1" * 64}) | {"Id": "sha256:99"}
    docker.holds(inspected(), outdated)
    found = images.list_images()
    assert [(info.framework, info.current) for info in found] == [("pennylane", True), ("tensorcircuit", False)]
    docker.holds()
    assert images.list_images() == []
    assert render_images([]) == "No framework image is built; run `orbit images build NAME`."
    assert render_images(found).row_count == 2


def test_a_build_gets_pins_labels_and_a_small_context(docker, tmp_path):
    bundle, wheels = tmp_path / "proxy.pem", tmp_path / "wheels"
    bundle.write_text("certificate")
    wheels.mkdir()
    (wheels / "torch-1-py3-none-any.whl").write_text("")
    (wheels / "notes.txt").write_text("")
    docker.holds(inspected())
    framework, lines = find_framework("pennylane"), []
    options = BuildOptions(ca_bundle=bundle, network="host", find_links=wheels)
    images.build_image(framework, options, progress=lines.append)
    command = docker.build
    pins = images.agent_versions()
    assert f"BASE_IMAGE=python:{framework.python}-slim" in command
    assert f"CODEX_VERSION={pins['codex']}" in command
    assert f"CLAUDE_CODE_VERSION={pins['claude-code']}" in command
    assert f"{_recipe.REQUIREMENTS_LABEL}={framework.requirements_digest}" in command
    assert f"id=ca_bundle,src={bundle}" in command
    assert command[command.index("--network") + 1] == "host"
    assert "no-cache" not in " ".join(command)
    context = json.loads((tmp_path / "context.json").read_text())
    assert context == [
        "Dockerfile",
        "reference-requirements.txt",
        "requirements.txt",
        "wheels",
        "wheels/torch-1-py3-none-any.whl",
        "with-ca-bundle",
    ]
    assert lines[0].startswith("building orbit-pennylane:")


def test_the_reference_has_its_own_python(docker):
    docker.holds(inspected("mindquantum"))
    images.build_image("mindquantum")
    assert "BASE_IMAGE=python:3.11-slim" in docker.build
    assert "REFERENCE_BASE_IMAGE=python:3.12-slim" in docker.build


def test_a_given_base_serves_the_reference_where_versions_agree(docker):
    docker.holds(inspected("tensorcircuit"))
    images.build_image("tensorcircuit", BuildOptions(base_image="mirror/python:3.12"))
    assert "REFERENCE_BASE_IMAGE=mirror/python:3.12" in docker.build


def test_a_failed_build_tells_the_line_that_says_why(docker):
    log = (
        "#5 [stage-2 2/9] RUN apt-get\n#5 0.4 E: Unable to locate package ripgrep\n#5 0.5 bye\nERROR: exit code: 100\n"
    )
    docker.answer("buildx build", log, code=1)
    with pytest.raises(SetupError) as error:
        images.build_image("pennylane")
    assert str(error.value) == "docker buildx: ERROR: exit code: 100 <- E: Unable to locate package ripgrep"


def test_progress_is_one_line_per_step(docker):
    step = "#1 [internal] load build context\n#7 [stage-2 2/9] RUN --mount=type=secret,id=x sh run"
    docker.answer("buildx build", f"{step}\n#7 1.2 noise\n{step}\n#8 exporting to image\n")
    docker.holds(inspected())
    lines: list[str] = []
    images.build_image("pennylane", progress=lines.append)
    assert lines[1:] == ["[stage-2 2/9] RUN sh run", "exporting to image"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (BuildOptions(base_image="x", offline_base=True), "contradicts --offline-base"),
        (BuildOptions(ca_bundle=Path("absent.pem")), "--ca-bundle absent.pem: no such file"),
        (BuildOptions(find_links=Path("absent")), "--find-links absent: no such directory"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(docker, options, told):
    with pytest.raises(UsageError, match=told):
        images.build_image("pennylane", options)
    assert docker.calls == []


def test_an_existing_offline_base_is_kept(docker):
    docker.answer("image ls", "sha256:1\n")
    assert images.build_offline_base("3.12") == "orbit-offline-base:bookworm-py3.12"
    assert len(docker.calls) == 1


def test_an_offline_base_needs_root_and_debootstrap(docker, monkeypatch):
    docker.answer("image ls", "")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SetupError, match="debootstrap needs root"):
        images.build_offline_base("3.12")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        _base.shutil, "which", lambda name: None if name == "debootstrap" else str(docker.state / "bin" / name)
    )
    with pytest.raises(SetupError, match="apt-get install debootstrap"):
        images.build_offline_base("3.12")


def test_a_copied_interpreter_brings_no_packages_and_no_byte_code(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    for relative in (
        "bin/python3.12",
        "lib/libpython3.12.so.1.0",
        "include/python3.12/Python.h",
        "lib/python3.12/os.py",
    ):
        (source / relative).parent.mkdir(parents=True, exist_ok=True)
        (source / relative).write_text(relative)
    (source / "lib/libpython3.12.so").symlink_to("libpython3.12.so.1.0")
    for relative in ("site-packages/mine/__init__.py", "__pycache__/os.cpython-312.pyc", "test/test_os.py"):
        path = source / "lib/python3.12" / relative
        path.parent.mkdir(parents=True)
        path.write_text("")
    _base.copy_interpreter(source, "3.12", target)
    copied = sorted(str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir())
    assert copied == [
        "bin/python",
        "bin/python3",
        "bin/python3.12",
        "include/python3.12/Python.h",
        "lib/libpython3.12.so",
        "lib/libpython3.12.so.1.0",
        "lib/python3.12/os.py",
    ]
    assert (target / "lib/libpython3.12.so").readlink() == Path("libpython3.12.so.1.0")


def test_a_wrong_pin_names_file_and_key(tmp_path, monkeypatch):
    (tmp_path / "images").mkdir()
    path = tmp_path / "images" / "agents.toml"
    path.write_text(
        'schema_version = 1\n[codex]\npackage = "x"\nversion = "latest"\n[claude-code]\npackage = "y"\nversion = "1"\n'
    )
    monkeypatch.setattr(_recipe, "data_root", lambda: tmp_path)
    with pytest.raises(DataError, match=r"agents\.toml: codex\.version = 'latest'"):
        images.agent_versions()


def test_the_dockerfile_puts_what_images_share_before_the_framework():
    text = (_recipe.data_root() / "images" / "Dockerfile").read_text()
    order = ["COPY --from=agents", "COPY --from=reference", "chmod 750 /opt/orbit/reference", "source=requirements.txt"]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)
    assert "--require-hashes" in text[positions[-1] :]


def test_a_stopped_build_leaves_no_process(docker, tmp_path):
    program = tmp_path / "slow"
    program.write_text("#!/bin/sh\necho begun\nexec sleep 600\n")
    program.chmod(0o755)

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _engine.stream([str(program), "x"], interrupt)


def run_cli(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


def test_the_command_lists_as_json_and_as_a_table_that_fits(docker, capsys, monkeypatch):
    docker.holds(inspected())
    assert run_cli("images", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["framework"] == "pennylane"
    monkeypatch.setenv("COLUMNS", "80")
    assert run_cli("images", "list") == 0
    table = capsys.readouterr().out
    assert "1.50 GB" in table
    assert "yes" in table
    assert "agents: codex 1.2.3" in table


def test_the_command_passes_its_options_on_and_leaves_with_two_on_a_missing_image(docker, capsys):
    docker.holds(inspected())
    assert run_cli("images", "build", "pennylane", "--network", "host", "--no-cache") == 0
    assert {"--network", "host", "--no-cache"} <= set(docker.build)
    docker.answer("image ls", "")
    assert run_cli("images", "check", "pennylane") == 2
    assert "run `orbit images build pennylane`" in capsys.readouterr().err
