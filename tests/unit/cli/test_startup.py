"""Start-up budget, held by counting imported modules: help never imports anything heavy."""

import json
import subprocess
import sys

import pytest

from orbit.cli._app import app

HEAVY = {
    "docker",
    "duckdb",
    "harbor",
    "httpx",
    "jax",
    "jinja2",
    "litellm",
    "matplotlib",
    "numba",
    "numpy",
    "plotly",
    "quimb",
    "scipy",
    "torch",
}

PROGRAM = """
import json, sys
from orbit.cli import main
try:
    main(json.loads(sys.argv[1]))
except SystemExit as end:
    assert end.code in (0, None, 2), end.code
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


def command_lines() -> list[list[str]]:
    lines: list[list[str]] = [[], ["--version"], ["--help"]]
    lines += [[str(command.name), "--help"] for command in app.registered_commands]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        name = str(group.typer_instance.info.name)
        lines.append([name, "--help"])
        lines += [[name, str(command.name), "--help"] for command in group.typer_instance.registered_commands]
    return lines


@pytest.mark.parametrize("arguments", command_lines(), ids=" ".join)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(arguments)], capture_output=True, text=True, timeout=60, check=True
    )
    imported = set(json.loads(done.stderr.splitlines()[-1]))
    assert "typer" in imported
    assert not imported & HEAVY


def test_the_counting_would_notice() -> None:
    program = PROGRAM.replace("import json, sys", "import json, sys, numpy")
    done = subprocess.run([sys.executable, "-c", program, "[]"], capture_output=True, text=True, timeout=60, check=True)
    assert set(json.loads(done.stderr.splitlines()[-1])) & HEAVY == {"numpy"}


@pytest.mark.parametrize("arguments", [line for line in command_lines() if line[-1:] == ["--help"]], ids=" ".join)
def test_every_help_has_examples(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from orbit.cli import main

    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "Examples:\n" in text
    assert f"orbit {' '.join(arguments[:-1])}".strip() in text.partition("Examples:\n")[2]


def test_commands_are_those_of_the_design() -> None:
    names = {str(command.name) for command in app.registered_commands}
    assert {"doctor", "verify", "run", "demo", "schema"} <= names
