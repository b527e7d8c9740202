"""Environments are really made here, from a tiny wheel in a find-links directory and without any registry."""

from __future__ import annotations

import hashlib
import multiprocessing
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from orbit import environments
from orbit.environments import environment_dir, environment_python, environment_ready, find_interpreter
from orbit.errors import SetupError
from orbit.frameworks import Framework, find_framework

THIS_PYTHON = "{}.{}".format(*sys.version_info[:2])


def write_wheel(directory: Path, source: str) -> str:
    """Write a wheel of `toy-framework` 1.2.3; returns its SHA-256."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "toy_framework-1.2.3-py3-none-any.whl"
    info = "toy_framework-1.2.3.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("toyframework.py", source)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: toy-framework\nVersion: 1.2.3\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: toy\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", f"toyframework.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def toy(toy_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Framework:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    return lock_toy(toy_root, write_wheel(tmp_path / "wheels", "ANSWER = 42\n"))


def lock_toy(toy_root: Path, sha256: str) -> Framework:
    lock = toy_root / "frameworks/toy/requirements.txt"
    lock.write_text(f"toy-framework==1.2.3 \\\n    --hash=sha256:{sha256}\n")
    toml = toy_root / "frameworks/toy/framework.toml"
    toml.write_text(toml.read_text().replace('python = "3.12"', f'python = "{THIS_PYTHON}"'))
    return find_framework("toy")


def answer(python: Path) -> str:
    code = "import toyframework; print(toyframework.ANSWER)"
    return subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_made_on_first_use_and_kept(toy: Framework) -> None:
    lines: list[str] = []
    assert not environment_ready(toy)
    python = environment_python(toy, progress=lines.append)
    assert answer(python) == "42"
    assert environment_ready(toy)
    assert python.is_relative_to(environment_dir(toy))
    assert any("making the toy environment" in line for line in lines)
    assert "ready" in lines[-1]
    again: list[str] = []
    assert environment_python(toy, progress=again.append) == python
    assert again == []


def test_pip_takes_over_where_uv_fails(toy: Framework, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "uv-broken"
    broken.write_text("#!/bin/sh\necho no luck >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(environments, "_find_uv", lambda: broken)
    lines: list[str] = []
    assert answer(environment_python(toy, progress=lines.append)) == "42"
    assert "no luck" in lines


def test_foreign_packages_are_not_seen(toy: Framework, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "toyframework.py").write_text("ANSWER = 'foreign'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "foreign"))
    assert answer(environment_python(toy)) == "42"


def test_not_made_unless_asked(toy: Framework) -> None:
    with pytest.raises(SetupError, match="orbit frameworks sync toy"):
        environment_python(toy, create=False)
    assert not environment_dir(toy).exists()


def test_a_wrong_hash_leaves_nothing(toy: Framework, toy_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_pip_plan", lambda *_: [["false"]])  # pip's own refusal takes half a minute
    framework = lock_toy(toy_root, "0" * 64)
    with pytest.raises(SetupError, match=r"requirements\.txt: the toy environment could not be made") as caught:
        environment_python(framework)
    assert "\n" not in str(caught.value)
    assert not environment_dir(framework).exists()
    assert Path(f"{environment_dir(framework)}.log").is_file()


def test_a_framework_that_cannot_be_imported_is_not_ready(toy_root: Path, toy: Framework, tmp_path: Path) -> None:
    framework = lock_toy(toy_root, write_wheel(tmp_path / "wheels", "raise RuntimeError('broken build')\n"))
    with pytest.raises(SetupError, match="broken build"):
        environment_python(framework)
    assert not environment_ready(framework)


def test_a_half_made_one_is_never_used(toy: Framework) -> None:
    leftover = environment_dir(toy) / "bin" / "python"
    leftover.parent.mkdir(parents=True)
    leftover.write_text("#!/bin/sh\necho half-made\n")
    leftover.chmod(0o755)
    assert not environment_ready(toy)
    assert answer(environment_python(toy)) == "42"


def test_one_whose_interpreter_went_away_is_made_again(toy: Framework) -> None:
    python = environment_python(toy)
    python.unlink()
    assert not environment_ready(toy)
    assert answer(environment_python(toy)) == "42"


def make_and_count(framework: Framework, results: multiprocessing.Queue[int]) -> None:
    lines: list[str] = []
    environment_python(framework, progress=lines.append)
    results.put(sum("making the toy" in line for line in lines))


def test_several_processes_make_one(toy: Framework) -> None:
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[int] = context.Queue()
    processes = [context.Process(target=make_and_count, args=(toy, results)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert sum(results.get(timeout=10) for _ in processes) == 1


def test_a_missing_interpreter_names_version_and_fix() -> None:
    with pytest.raises(SetupError, match=r"no Python 3\.2 on this machine; install it with `uv python install 3\.2`"):
        find_interpreter("3.2")


def test_shims_that_fail_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    shim = shims / "python3.2"
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.2: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    real = tmp_path / "pyenv/versions/3.2.6/bin/python3.2"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\necho 3.2\necho /real/python3.2\n")
    real.chmod(0o755)
    monkeypatch.setenv("PATH", str(shims))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert find_interpreter("3.2") == Path("/real/python3.2")


def test_the_running_interpreter_is_found() -> None:
    assert find_interpreter(THIS_PYTHON).exists()


def test_settings_for_pip_reach_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "one two")
    monkeypatch.setenv("PIP_INDEX_URL", "mirror")
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "chosen")
    environment = environments._clean_environment()
    assert environment["UV_FIND_LINKS"] == "one,two"
    assert environment["UV_DEFAULT_INDEX"] == "chosen"
