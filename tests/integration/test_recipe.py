"""The recipe "Add a task" of CONTRIBUTING.md, followed to the letter in a data root of its own.

`recipe/` holds what the recipe asks a contributor to write. The commands are read from the document.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orbit.errors import DataError
from orbit.lint import REQUIRED_FILES, lint_task
from orbit.paths import data_root
from orbit.tasks import DEFAULT_SUITE, SHARED_STATEMENT, find_task
from orbit.verification import exact
from orbit.verification.verdict import Outcome

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("tensorcircuit_python")]

ROOT = Path(__file__).parents[2]
WRITTEN = Path(__file__).with_name("recipe")
NAME, NUMBER = "90-small-chain", "90"
MADE = "tests/exact.json"
"""Written by the recipe's first command."""


def recipe() -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return text.partition("## Add a task\n")[2].partition("\n## ")[0]


def listed_files() -> list[str]:
    """The files of the task's directory that the recipe lists, one or more to a line."""
    heads = [line.strip().partition(":")[0] for line in recipe().splitlines() if line.startswith("   - ")]
    return [name for head in heads for name in re.findall(r"`([^`]+)`", head)]


def commands() -> list[list[str]]:
    block = re.search(r"```sh\n(.*?)```", recipe(), re.DOTALL)
    assert block is not None
    lines = [shlex.split(line, comments=True) for line in block[1].strip().splitlines()]
    return [[word.replace("NN-some-name", NAME).replace("NN", NUMBER) for word in line] for line in lines]


def run(root: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    program = {"orbit": [sys.executable, "-m", "orbit.cli"], "python": [sys.executable]}[command[0]]
    environment = {**os.environ, "ORBIT_DATA": str(root), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*program, *command[1:]], cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def follow(root: Path) -> Path:
    """Write the files that the recipe lists, and the reference; returns the task's directory."""
    directory = root / "tasks" / DEFAULT_SUITE / NAME
    directory.mkdir(parents=True)
    shutil.copytree(data_root() / "frameworks", root / "frameworks")
    shutil.copy(data_root() / "tasks" / DEFAULT_SUITE / SHARED_STATEMENT, directory.parent)
    for name in listed_files():
        (directory / name).parent.mkdir(exist_ok=True)
        shutil.copy(WRITTEN / "task" / name, directory / name)
    reference = root / "references" / DEFAULT_SUITE / NAME / "tensorcircuit.py"
    assert f"references/{DEFAULT_SUITE}/NN-some-name/tensorcircuit.py" in recipe()
    reference.parent.mkdir(parents=True)
    shutil.copy(WRITTEN / "tensorcircuit.py", reference)
    return directory


def test_the_recipe_lists_every_file_that_lint_asks_for() -> None:
    written = {path.relative_to(WRITTEN / "task").as_posix() for path in (WRITTEN / "task").rglob("*.*")}
    listed = set(listed_files())
    assert listed | {MADE} == set(REQUIRED_FILES)
    assert listed <= written | {"environment/Dockerfile"}


@pytest.mark.timeout(1800)
def test_who_follows_the_recipe_has_a_task(tmp_path: Path) -> None:
    directory = follow(tmp_path)
    kinds = [" ".join(command[:3] if command[1] == "tasks" else command[:2]) for command in commands()]
    assert kinds == ["python -m", "orbit tasks lint", "orbit tasks lint", "orbit tasks show", "orbit verify"]
    outputs = []
    for command in commands():
        done = run(tmp_path, command)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
        outputs.append(done.stdout)
    assert (directory / MADE).is_file()
    assert outputs[2].count("caught by") == (directory / "tests/mutants.toml").read_text().count("[[mutant]]")
    assert "energy_lower_bound" in outputs[3]
    assert "provisional" in outputs[4].lower()


# --- every rule, broken -------------------------------------------------------------------------------------------


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = follow(tmp_path)
    monkeypatch.setenv("ORBIT_DATA", str(tmp_path))
    assert exact.main([NUMBER]) == 0
    return made


def failures(*, deep: bool = False) -> list[tuple[str, str]]:
    evidence = lint_task(find_task(NUMBER), deep=deep)
    return [(item.check, item.message) for item in evidence if item.outcome is Outcome.FAIL]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("name", [name for name in REQUIRED_FILES if name != "task.toml"])
def test_a_file_that_is_left_out_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    (message,) = [message for check, message in failures() if check == "files"]
    assert str(directory / name) in message


def undocumented_key(directory: Path) -> None:
    edit(directory / "instruction.md", "`field`", "field")


def named_framework(directory: Path) -> None:
    edit(directory / "instruction.md", "Train a circuit", "Train a PennyLane circuit")


def secret_beside_the_image(directory: Path) -> None:
    shutil.copy(directory / "tests/oracle.py", directory / "environment")


def secret_in_the_statement(directory: Path) -> None:
    path = directory / "instruction.md"
    path.write_text(path.read_text() + (directory / "tests/evaluator.py").read_text()[-400:])


def too_few_mutants(directory: Path) -> None:
    path = directory / "tests/mutants.toml"
    path.write_text("[[mutant]]".join(path.read_text().split("[[mutant]]")[:8]))


def stale_mutant(directory: Path) -> None:
    edit(directory / "tests/mutants.toml", "['b2=0.999'", "['b2=0.99999'")


def add_equivalent(directory: Path, name: str, old: str, new: str) -> None:
    path = directory / "tests/mutants.toml"
    entry = f"[[equivalent]]\nname = '{name}'\nwhy = 'as good'\nreplace = [['{old}', '{new}']]\n"
    path.write_text(f"{path.read_text()}\n{entry}")


def stale_equivalent(directory: Path) -> None:
    add_equivalent(directory, "stale", "stands nowhere", "")


def idle_equivalent(directory: Path) -> None:
    add_equivalent(directory, "idle", "- field * x", "- field * x")


@pytest.mark.parametrize(
    ("spoil", "check", "said"),
    [
        (undocumented_key, "statement", "configuration key `field` is not documented"),
        (named_framework, "statement", "names the framework PennyLane"),
        (secret_beside_the_image, "staging", "environment/oracle.py"),
        (secret_in_the_statement, "staging", "lines of tests/evaluator.py"),
        (too_few_mutants, "mutants_listed", "7 mutants"),
        (stale_mutant, "mutants_listed", "occurs 0 times"),
        (idle_equivalent, "mutants_listed", "idle: `replace` changes nothing"),
        (stale_equivalent, "mutants_listed", "stale: 'stands nowhere' occurs 0 times"),
    ],
)
def test_a_broken_rule_is_found(directory: Path, spoil: Callable[[Path], None], check: str, said: str) -> None:
    assert failures() == []
    spoil(directory)
    found = failures()
    assert {name for name, _ in found} == {check}
    assert any(said in message for _, message in found), found


def test_an_equivalent_cannot_take_the_name_of_the_reference(directory: Path) -> None:
    add_equivalent(directory, "reference", "- field * x", "- 1 * field * x")
    with pytest.raises(DataError, match="'reference' is used twice"):
        failures()


def test_what_takes_runs_to_see_is_found(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that is right, one caught by another check, an equivalent that is wrong, an exact value a little off."""
    mutants = directory / "tests/mutants.toml"
    parts = mutants.read_text().split("[[mutant]]")
    mutants.write_text("[[mutant]]".join([parts[0], parts[1], parts[-1]]))
    monkeypatch.setattr("orbit.lint.MIN_MUTANTS", 2)
    edit(mutants, "['- field * x', '+ field * x']", "['- field * x', '- 1.0 * field * x']")
    edit(mutants, 'check = "form"', 'check = "probe:final_parameters"')
    add_equivalent(directory, "as_written", "- field * x", "- 1 * field * x")
    add_equivalent(directory, "weaker_field", "- field * x", "- 0.9 * field * x")
    add_equivalent(directory, "raises", "- field * x", "- unknown * x")
    stored = re.search(r"-\d\.\d{5}", (directory / MADE).read_text())
    assert stored is not None
    edit(directory / MADE, stored[0], stored[0][:-1] + str((int(stored[0][-1]) + 1) % 10))
    assert failures() == []
    found = failures(deep=True)
    messages = {check: [message for name, message in found if name == check] for check, _ in found}
    assert list(messages) == ["exact", "correct", "mutant"]
    assert "does not regenerate" in messages["exact"][0]
    assert {message.partition(": ")[0] for message in messages["correct"]} == {
        "weaker_field, probe",
        "weaker_field, full-probe",
        "raises, probe",
        "raises, full-probe",
    }
    assert any("NameError" in message for message in messages["correct"])
    escaped, accident = messages["mutant"]
    assert "field_sign" in escaped
    assert "caught by nothing" in escaped
    assert "one_step_short" in accident
    assert "caught by form" in accident
