from __future__ import annotations

import re
from pathlib import Path

import pytest

from orbit.errors import DataError, UsageError
from orbit.frameworks import Framework, all_frameworks, find_framework
from orbit.statements import render_prompt
from orbit.tasks import all_tasks, find_task


def test_fields(toy_root: Path) -> None:
    framework = find_framework("Toy")
    assert framework.title == "Toy Framework"
    assert framework.version == "1.2.3"
    assert framework.required_imports == ("toyframework",)
    assert framework.forbidden_imports == {"otherframework", "dotted.quantum", "rival"}
    assert framework.tensor_network_libraries == {"networks"}
    assert framework.requirements.is_file()
    assert framework.prompt_path.is_file()
    assert [each.name for each in all_frameworks()] == ["toy"]


def test_digest_follows_lock_and_interpreter(toy_root: Path) -> None:
    before = find_framework("toy").requirements_digest
    toml = toy_root / "frameworks/toy/framework.toml"
    toml.write_text(toml.read_text().replace("Toy Framework", "Other title"))
    assert find_framework("toy").requirements_digest == before
    toml.write_text(toml.read_text().replace('"3.12"', '"3.11"'))
    other_python = find_framework("toy").requirements_digest
    lock = toy_root / "frameworks/toy/requirements.txt"
    lock.write_text(lock.read_text().replace("1.2.3", "1.2.4"))
    assert len({before, other_python, find_framework("toy").requirements_digest}) == 3


def test_unknown_names_give_near_matches(toy_root: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown framework 'toi'; did you mean toy\?"):
        find_framework("toi")
    with pytest.raises(UsageError, match=r"unknown variant of toy 'shrt'; did you mean short\?"):
        find_framework("toy").variant_path("shrt")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('package = "toy-framework"', "", r"package: .*add the key"),
        ('python = "3.12"', 'python = "three"', r"python = 'three'.*correct the value"),
        ('required = ["toyframework"]', "required = []", r"policy\.required"),
        ('short = "short.md"', 'short = "absent.md"', r"variants\.short = 'absent\.md': no such file"),
        ("[variants]", "[variant]", r"variant.*remove the key, or correct its spelling"),
    ],
)
def test_a_wrong_file_names_file_key_and_fix(toy_root: Path, old: str, new: str, complaint: str) -> None:
    path = toy_root / "frameworks/toy/framework.toml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=complaint) as caught:
        find_framework("toy")
    assert str(path) in str(caught.value)


def test_a_missing_lock_or_pin_is_named(toy_root: Path) -> None:
    lock = toy_root / "frameworks/toy/requirements.txt"
    lock.write_text("something-else==1\n")
    with pytest.raises(DataError, match="toy-framework is not pinned"):
        _ = find_framework("toy").version
    lock.unlink()
    with pytest.raises(DataError, match="restore the file"):
        _ = find_framework("toy").requirements_digest


def test_prompt_joins_block_and_variant(toy_root: Path) -> None:
    task = find_task("toys/1")
    assert render_prompt(find_framework("toy"), task) == "Use Toy Framework 1.2.3.\nNatively.\n"
    assert render_prompt(find_framework("toy"), task, "short").endswith("Natively.\n\nBe short.\n")


def test_the_four_frameworks_are_there() -> None:
    names = [framework.name for framework in all_frameworks()]
    assert names == ["mindquantum", "pennylane", "tensorcircuit", "torchquantum"]


@pytest.fixture(params=all_frameworks(), ids=lambda framework: framework.name)
def shipped(request: pytest.FixtureRequest) -> Framework:
    framework: Framework = request.param
    return framework


def test_shipped_lock_is_pinned_hashed_and_free_of_addresses(shipped: Framework) -> None:
    text = shipped.requirements.read_text()
    assert shipped.version
    assert "://" not in text
    assert not re.search(r"(^|\s)/\w", text)
    entries = re.split(r"\n(?=\S)", text.strip())
    assert len(entries) > 5
    for entry in entries:
        assert re.match(r"[a-z0-9][a-z0-9._-]*==\S+ \\\n\s+--hash=sha256:[0-9a-f]{64}", entry), entry[:80]
    assert not [name for name in shipped.pinned_versions if name.startswith(("nvidia", "cuda"))]


def test_shipped_policy_forbids_the_others_and_not_itself(shipped: Framework) -> None:
    for other in all_frameworks():
        assert (other.import_name in shipped.forbidden_imports) is (other.name != shipped.name)
    assert {"qiskit", "cirq", "braket", "qulacs", "netket"} <= shipped.forbidden_imports
    assert "quimb" in shipped.tensor_network_libraries
    assert not shipped.forbidden_imports & shipped.tensor_network_libraries
    assert shipped.import_name in shipped.bare_imports


def test_shipped_prompt_states_the_rules(shipped: Framework) -> None:
    task = all_tasks()[0]
    text = " ".join(render_prompt(shipped, task).split())
    for rule in (
        f"{shipped.title}** {shipped.version}",
        "does the quantum computation",
        "no other quantum package",
        "simulator of your own",
        "Do not embed known answers",
        "one value per update",
        "Do not smooth",
        "exact gradients",
        "no network",
        "no sub-agents",
        f"at most {task.max_lines} effective lines",
        f"stopped after {task.limits.run_timeout_sec:.0f} s",
        f"You have {task.limits.agent_timeout_sec / 60:.0f} minutes",
        "Look at the installed package first",
        "state the obstruction",
        "/app/solution.py",
    ):
        assert rule in text, rule
    for other in all_frameworks():
        assert other.name == shipped.name or other.title not in text


def test_perf_checklist_is_a_variant_of_tensorcircuit() -> None:
    task, framework = all_tasks()[0], find_framework("tensorcircuit")
    assert "Performance checklist" in render_prompt(framework, task, "perf-checklist")
    assert "Performance checklist" not in render_prompt(framework, task)
