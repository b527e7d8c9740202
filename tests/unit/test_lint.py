"""Every quick lint check fails on a task directory that was spoilt for it; the toy task itself is clean."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orbit.lint import _statement_gaps, lint_task
from orbit.tasks import Task, all_tasks, find_task
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


def test_lines_of_the_judge_in_a_template_are_found(root):
    """A template can include any file of its suite, whatever its name."""
    shared = root / "tasks/toy/shared.md.j2"
    shared.write_text('{% include "01-cosines/tests/oracle.py" %}')
    messages = [message for check, message in failures(find_task("toy/01-cosines")) if check == "staging"]
    assert messages == ["instruction.md: would show an agent lines of tests/oracle.py"]


def test_a_secret_in_the_build_context_is_found(root):
    shutil.copy(root / TASK_DIR / "tests/exact.json", root / TASK_DIR / "environment")
    shutil.copy(root / TASK_DIR / "tests/evaluator.py", root / TASK_DIR / "environment/helper.py")
    messages = [message for check, message in failures(find_task("toy/01-cosines")) if check == "staging"]
    assert messages[0] == "environment/exact.json: would be staged where an agent can read it"
    assert messages[-1] == "environment/helper.py: would show an agent lines of tests/evaluator.py"


# --- numbers of small probes -------------------------------------------------------------------------------------


def statement_failures() -> list[str]:
    return [message for check, message in failures(find_task("toy/01-cosines")) if check == "statement"]


def test_a_wrong_number_of_small_probes_is_found(root):
    shared = root / "tasks/toy/shared.md.j2"
    shared.write_text("*Small probes*, two by default.")
    assert statement_failures() == []
    shared.write_text("*Small probes*, three by default.")
    assert statement_failures() == [f"{shared}: says that three small probes are made by default; it is two"]


JOINT = """
    def draw_joint_probe(self, defaults, oracle, rng):
        return [self.draw_probe(defaults, rng, 3) for _ in range(3)]

EVALUATOR ="""


def test_a_wrong_number_of_joint_runs_is_found(root):
    instruction = root / TASK_DIR / "instruction.md"
    edit(instruction, "Minimize", "One small probe is made of two runs. Minimize")
    assert statement_failures() == [f"{instruction}: describes a small probe made of two runs; they are single runs"]


def test_an_undisclosed_joint_probe_is_found(root):
    instruction = root / TASK_DIR / "instruction.md"
    edit(root / TASK_DIR / "tests/evaluator.py", "\nEVALUATOR =", JOINT)
    said = f"{instruction}: the small probe is not said to be made of three runs"
    assert statement_failures() == [said]
    edit(instruction, "Minimize", "One small probe is made of two runs. Minimize")
    assert statement_failures() == [said]
    edit(instruction, "two runs", "three runs")
    assert statement_failures() == []


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.id)
def test_statements_disclose_their_probes(task: Task) -> None:
    assert "*Small probes*, two by default" in task.instruction()
    assert list(_statement_gaps(task, task.load_evaluator())) == []


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
