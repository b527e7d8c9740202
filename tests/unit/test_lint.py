"""Every quick lint check fails on a task directory that was spoilt for it; the toy task itself is clean."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orbit.lint import lint_task
from orbit.tasks import Task, find_task
from orbit.verification.verdict import Outcome

TOY_ROOT = Path(__file__).parents[1] / "toy_root"
TASK_DIR = Path("tasks/toy/01-cosines")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "root"
    shutil.copytree(TOY_ROOT, copy)
    monkeypatch.setenv("ORBIT_DATA", str(copy))
    return copy


def failures(task: Task) -> list[tuple[str, str]]:
    return [(item.check, item.message) for item in lint_task(task) if item.outcome is Outcome.FAIL]


def test_the_toy_task_is_clean(root):
    assert failures(find_task("toy/01-cosines")) == []


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("path", "old", "new", "check", "said"),
    [
        (TASK_DIR / "instruction.md", "`coupling`", "coupling", "statement", "configuration key `coupling`"),
        (TASK_DIR / "instruction.md", "`loss_history`", "history", "statement", "result key `loss_history`"),
        (TASK_DIR / "instruction.md", "Minimize", "With NumPy, minimize", "statement", "names the framework"),
        (TASK_DIR / "instruction.md", "Minimize", "The minimum is -1.8123456789. Minimize", "staging", "exact value"),
        (TASK_DIR / "tests/evaluator.py", ", published=True", "", "contracts", "published"),
        (TASK_DIR / "tests/evaluator.py", '{"loss_improves"}', "set()", "contracts", "no published criteria"),
        (TASK_DIR / "task.toml", '"orbit-2", ', "", "contracts", "contracts lack orbit-2"),
        (TASK_DIR / "tests/mutants.toml", "0.9 * m", "0.95 * m", "mutants_listed", "occurs 0 times"),
    ],
)
def test_each_gap_is_found(root, path, old, new, check, said):
    edit(root / path, old, new)
    found = failures(find_task("toy/01-cosines"))
    assert any(name == check and said in message for name, message in found), found


@pytest.mark.parametrize("name", ["instruction.md", "tests/oracle.py", "tests/exact.json", "tests/mutants.toml"])
def test_missing_files_are_named(root, name):
    (root / TASK_DIR / name).unlink()
    found = failures(find_task("toy/01-cosines"))
    assert [check for check, _ in found] == ["files"]
    assert name in found[0][1]


def test_a_missing_reference_is_named(root):
    (root / "references/toy/01-cosines/tensorcircuit.py").unlink()
    assert failures(find_task("toy/01-cosines"))[0][0] == "files"


def test_too_few_mutants(root):
    path = root / TASK_DIR / "tests/mutants.toml"
    path.write_text("[[mutant]]" + path.read_text().split("[[mutant]]")[1])
    assert any("1 mutants" in message for _, message in failures(find_task("toy/01-cosines")))
