from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from orbit.errors import DataError, UsageError
from orbit.paths import data_root
from orbit.tasks import Task, all_suites, all_tasks, find_task, load_task


def task_toml(root: Path) -> Path:
    return root / "tasks/toys/01-coin/task.toml"


@pytest.mark.parametrize("name", ["toys/01-coin", "toys/01", "toys/1", " toys/01-coin/ "])
def test_find_by_number_id_and_full_name(toy_root: Path, name: str) -> None:
    task = find_task(name)
    assert (task.suite, task.id, task.number, task.name) == ("toys", "01-coin", "01", "toys/01-coin")


def test_fields(toy_root: Path) -> None:
    task = find_task("toys/01")
    assert task.title == "Coin"
    assert task.summary == "Toss a coin."
    assert task.config == {"n_tosses": 3, "bias": 0.5, "words": ("heads", "tails"), "nested": ((1, 2), (3, 4))}
    assert task.limits.agent_timeout_sec == 60
    assert (task.limits.cpus, task.limits.memory_mb, task.limits.storage_mb) == (2, 1024, 16384)
    assert (task.limits.run_timeout_sec, task.limits.verification_extra_sec) == (900, 600)
    assert task.max_lines == 200


def test_unknown_names_give_near_matches(toy_root: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 01-coin"):
        find_task("toys/coyn")
    with pytest.raises(UsageError, match="known: 01-coin"):
        find_task("toys/77")
    with pytest.raises(UsageError, match="unknown suite 'orbit-q'; known: toys"):
        find_task("01")
    with pytest.raises(UsageError, match="did you mean toys"):
        all_tasks("toy")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('title = "Coin"', 'titel = "Coin"', r"metadata\.orbit\.title: .*add the key"),
        ('title = "Coin"', 'title = "Coin"\nextra = 1', r"metadata\.orbit\.extra = 1: .*remove the key"),
        ("timeout_sec = 60", "timeout_sec = -1", r"agent\.timeout_sec = -1.*correct the value"),
        ("schema_version = 1\n", "schema_version = 9\n", r"metadata\.orbit\.schema_version = 9"),
        ("bias = 0.5", "bias = 2026-01-01", r"metadata\.orbit\.config: .*bias holds a date"),
        ("bias = 0.5", '"not-a-name" = 1', r"'not-a-name' is not a Python identifier"),
        ("bias = 0.5", "bias =", "not valid TOML"),
        ('description = "Toss a coin."', "", r"task\.description"),
    ],
)
def test_a_wrong_file_names_file_key_value_and_fix(toy_root: Path, old: str, new: str, complaint: str) -> None:
    path = task_toml(toy_root)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=complaint) as caught:
        find_task("toys/01")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_badly_named_directory_is_refused(toy_root: Path) -> None:
    directory = toy_root / "tasks/toys/01-coin"
    renamed = directory.rename(directory.parent / "Coin")
    with pytest.raises(DataError, match="rename it"):
        load_task(renamed)


def test_evaluator_and_oracle_are_loaded_once(toy_root: Path) -> None:
    task = find_task("toys/01")
    assert task.load_evaluator() is find_task("toys/1").load_evaluator()
    assert task.load_evaluator().exact_keys() == ("bias", "nested")
    assert type(task.load_oracle()) is object


def test_missing_or_empty_evaluator(toy_root: Path) -> None:
    task = find_task("toys/01")
    task.oracle_path.unlink()
    with pytest.raises(DataError, match=r"oracle\.py: no such file"):
        task.load_oracle()
    task.evaluator_path.write_text("")
    with pytest.raises(DataError, match="defines no EVALUATOR"):
        task.load_evaluator()


def test_exact_matches_on_the_keys_it_depends_on(toy_root: Path) -> None:
    task = find_task("toys/01")
    assert task.exact(task.config) == {"mean": 1.5}
    assert task.exact({**task.config, "n_tosses": 99, "nested": np.array([[1, 2], [3, 4]])}) == {"mean": 1.5}
    assert task.exact({**task.config, "bias": 0.25}) is None
    task.exact_path.unlink()
    assert task.exact(task.config) is None


def test_exact_of_an_unknown_version_is_refused(toy_root: Path) -> None:
    task = find_task("toys/01")
    task.exact_path.write_text(task.exact_path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(DataError, match="schema_version 2"):
        task.exact(task.config)


def test_instruction_joins_physics_and_rules(toy_root: Path) -> None:
    task = find_task("toys/01")
    assert task.instruction() == "# Coin\n\nToss it.\n\nRules for orbit-2: 200 lines, 2 cores.\n"
    with pytest.raises(UsageError, match="orbit-q-1"):
        task.instruction("orbit-q-1")
    (toy_root / "tasks/toys/shared.md.j2").write_text("{{ nobody_knows }}")
    with pytest.raises(DataError, match="nobody_knows"):
        task.instruction()
    task.instruction_path.unlink()
    with pytest.raises(DataError, match="write the statement"):
        task.instruction()


def test_reference_path(toy_root: Path) -> None:
    task = find_task("toys/01")
    assert task.reference_path("toy") == toy_root / "references/toys/01-coin/toy.py"
    assert task.reference_path("other") is None


@pytest.mark.parametrize("name", ["tests/evaluator.py", "tests/oracle.py", "tests/exact.json", "task.toml"])
def test_evaluator_digest_follows_what_decides(toy_root: Path, name: str) -> None:
    task = find_task("toys/01")
    before = task.evaluator_digest()
    assert len(before) == 64
    path = task.directory / name
    path.write_text(path.read_text() + "\n")
    assert task.evaluator_digest() != before


def test_evaluator_digest_ignores_the_rest(toy_root: Path) -> None:
    task = find_task("toys/01")
    before = task.evaluator_digest()
    (task.directory / "tests/mutants/wrong.py").write_text("")
    assert task.evaluator_digest() == before


def real_tasks() -> list[Task]:
    return [task for suite in all_suites() for task in all_tasks(suite)]


@pytest.mark.parametrize("task", real_tasks(), ids=lambda task: task.name)
def test_shipped_task_is_well_formed(task: Task) -> None:
    package = tomllib.loads((task.directory / "task.toml").read_text())["task"]
    assert package["name"] == task.name
    assert task.contracts[0] == "orbit-2"
    assert task.limits.agent_timeout_sec == 1800


def test_no_two_shipped_tasks_share_a_number() -> None:
    for suite in all_suites():
        numbers = [task.number for task in all_tasks(suite)]
        assert len(set(numbers)) == len(numbers) > 0


@pytest.mark.parametrize("contract", ["orbit-2", "orbit-q-1"])
def test_shared_rules_state_limits_and_name_no_framework(contract: str) -> None:
    from orbit.frameworks import all_frameworks
    from orbit.statements import render_template

    for suite in all_suites():
        task = all_tasks(suite)[0]
        text = render_template(data_root() / "tasks" / suite, "shared.md.j2", task=task, contract=contract)
        assert f"{task.max_lines} effective lines" in text
        assert f"after {task.limits.run_timeout_sec:.0f} s" in text
        for framework in all_frameworks():
            assert framework.title.lower() not in text.lower()
            assert framework.import_name not in text.lower()
