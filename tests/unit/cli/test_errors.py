"""Exit codes and the one line that a user gets."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import typer

from orbit.cli import _shell, frameworks, main, tasks, verify
from orbit.cli._app import app
from orbit.errors import DataError, HarnessError, UsageError
from orbit.run_directory import new_run_directory
from orbit.verification.verdict import Contract


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    code = end.value.code
    assert code is None or isinstance(code, int)
    return code or 0


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [UsageError("a.toml: wrong\nvalue"), DataError("b"), HarnessError("c")])
def test_a_known_error_is_one_line_and_exit_code_2(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orbit.tasks.all_tasks", raising(error))
    assert run("tasks") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("arguments", [("--debug", "tasks"), ("tasks", "--debug")])
def test_debug_shows_the_traceback(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orbit.tasks.all_tasks", raising(UsageError("wrong")))
    assert run(*arguments) == 2
    assert "Traceback" in capsys.readouterr().err
    assert run("tasks") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_defect_keeps_its_traceback_and_is_no_measured_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orbit.tasks.all_tasks", raising(ZeroDivisionError("defect")))
    assert run("tasks") == 2
    assert "ZeroDivisionError: defect" in capsys.readouterr().err


def test_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orbit.tasks.all_tasks", raising(KeyboardInterrupt()))
    assert run("tasks") == 130


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("tasks", "show", "entanglement-profle"), "did you mean 02-entanglement-profile"),
        (("tasks", "--suite", "orbit-z"), "unknown suite"),
        (("frameworks", "show", "tensorcircut"), "did you mean tensorcircuit"),
        (("frameworks", "sync", "penylane"), "did you mean pennylane"),
        (("verify", "x.py", "--task", "99", "--framework", "tensorcircuit"), "unknown task"),
        (("verify", "x.py", "--task", "02", "--framework", "qiskit2"), "unknown framework"),
        (("schema", "verdct"), "verdct"),
        (("verify", "x.py", "--task", "02", "--framework", "tensorcircuit", "--pairs", "-1"), "--pairs"),
        (("verifi",), "verifi"),
    ],
)
def test_wrong_usage_is_named(arguments: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert text in captured.err
    assert "Traceback" not in captured.err


def test_a_wrong_name_makes_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("verify", "x.py", "--task", "99", "--framework", "tensorcircuit") == 2
    assert list(tmp_path.iterdir()) == []


def test_results_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text("{}")
    with pytest.raises(UsageError, match="nothing is overwritten"):
        new_run_directory("verify", tmp_path)
    with pytest.raises(UsageError, match="cannot be made"):
        new_run_directory("verify", tmp_path / "verdict.json")


def test_default_directories_do_not_collide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = {new_run_directory("verify") for _ in range(3)}
    assert len(made) == 3
    assert all(path.is_dir() and path.parent == tmp_path / "runs" for path in made)


def test_contract_choices_are_those_of_the_verdict() -> None:
    hints = get_type_hints(verify.command)
    assert set(get_args(hints["contract"])) == set(Contract)


def test_json_never_holds_what_json_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    _shell.show_json({"a": (1, 2), "b": {"c": None}})
    assert json.loads(capsys.readouterr().out) == {"a": [1, 2], "b": {"c": None}}


def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with _shell.progress() as report:
        report("running [timed]")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "running [timed]" in captured.err


def test_live_progress_on_a_terminal_keeps_what_took_long_and_shows_markup_as_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    console = Console(file=sys.stdout, force_terminal=True, width=100)
    with _shell._live_progress(console) as report:
        monkeypatch.setattr(_shell, "WORTH_KEEPING_SEC", 0.0)
        report("first [bold]line[/bold]")
        report("second")
        monkeypatch.setattr(_shell, "WORTH_KEEPING_SEC", 1e9)
        report("third")
    out = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().out)
    assert "s  first [bold]line[/bold]" in out
    assert "s  second" not in out


def _every_command() -> list[tuple[str, Callable[..., object]]]:
    groups = [app, tasks.app, frameworks.app]
    return [
        (str(command.name), command.callback)
        for group in groups
        for command in group.registered_commands
        if command.callback is not None
    ]


@pytest.mark.parametrize(("name", "callback"), _every_command())
def test_every_command_has_debug_and_json(name: str, callback: Callable[..., object]) -> None:
    assert isinstance(app, typer.Typer)
    parameters = set(get_type_hints(callback))
    assert "debug" in parameters
    assert "json" in parameters or name == "schema"
