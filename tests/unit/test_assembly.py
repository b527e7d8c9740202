from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from orbit.assembly import EnvironmentSpec, StagedTask, directory_digest, stage
from orbit.errors import UsageError
from orbit.frameworks import find_framework
from orbit.tasks import Task, all_suites, all_tasks, find_task

LOCAL = EnvironmentSpec()
DOCKER = EnvironmentSpec(
    kind="docker",
    image="orbit-toy:abc",
    can_enforce_no_network=True,
    can_enforce_allowlist=True,
    allowed_hosts=("model.example", "auth.example"),
    cpus=1,
    agent_timeout_sec=5,
    agent_user="agent",
    collect_commands=('cp "a b" c',),
)


def stage_toy(target: Path, environment: EnvironmentSpec = LOCAL, **changes: Any) -> StagedTask:
    arguments: dict[str, Any] = {"contract": "orbit-2", "target": target, "environment": environment, **changes}
    return stage(find_task("toys/1"), find_framework("toy"), **arguments)


def tree(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(directory).as_posix(): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def config(staged: StagedTask) -> dict[str, Any]:
    return tomllib.loads((staged.directory / "task.toml").read_text())


def test_instruction_is_statement_then_framework_then_variant(toy_root: Path, tmp_path: Path) -> None:
    staged = stage_toy(tmp_path / "a", variant="short")
    assert (staged.directory / "instruction.md").read_text() == (
        "# Coin\n\nToss it.\n\nRules for orbit-2: 200 lines, 2 cores.\n\n"
        "Use Toy Framework 1.2.3.\nNatively.\n\nBe short.\n"
    )


def test_equal_inputs_give_equal_bytes_whatever_umask_and_times(toy_root: Path, tmp_path: Path) -> None:
    solution = toy_root / "references/toys/01-coin/toy.py"
    first = stage_toy(tmp_path / "a", DOCKER, solution=solution)
    for path in toy_root.rglob("*"):
        os.utime(path, (1, 1))
    previous = os.umask(0o077)
    try:
        second = stage_toy(tmp_path / "deep/b", DOCKER, solution=solution)
    finally:
        os.umask(previous)
    assert tree(first.directory) == tree(second.directory)
    assert first.digest == second.digest == directory_digest(second.directory)
    assert second.directory.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "changes",
    [
        {"variant": "short"},
        {"environment": DOCKER},
        {"solution": Path(__file__)},
    ],
)
def test_other_inputs_give_another_digest(toy_root: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    assert stage_toy(tmp_path / "a").digest != stage_toy(tmp_path / "b", **changes).digest


def test_sources_are_never_modified(toy_root: Path, tmp_path: Path) -> None:
    before = tree(toy_root)
    stage_toy(tmp_path / "a", solution=toy_root / "references/toys/01-coin/toy.py")
    assert tree(toy_root) == before


def test_nothing_secret_is_staged(toy_root: Path, tmp_path: Path) -> None:
    staged = stage_toy(tmp_path / "a")
    assert sorted(tree(staged.directory)) == ["environment/README", "instruction.md", "task.toml", "tests/test.sh"]
    everything = b"".join(data for data, _ in tree(staged.directory).values())
    for secret in (b"EVALUATOR", b"ORACLE", b"by hand", b"SECRET_MUTANT", b"run_solution", str(toy_root).encode()):
        assert secret not in everything


def test_the_test_stub_fails_and_says_why(toy_root: Path, tmp_path: Path) -> None:
    import subprocess

    staged = stage_toy(tmp_path / "a")
    done = subprocess.run([staged.directory / "tests/test.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "judged by orbit" in done.stderr


def test_limits_networks_and_identity_for_docker(toy_root: Path, tmp_path: Path) -> None:
    staged = stage_toy(tmp_path / "a", DOCKER, variant="short")
    toml = config(staged)
    assert toml["artifacts"] == ["/app/solution.py"]
    assert toml["agent"] == {"timeout_sec": 5, "user": "agent"}
    assert toml["verifier"]["timeout_sec"] == 5 * 900 + 600
    assert toml["verifier"]["environment_mode"] == "separate"
    assert toml["verifier"]["collect"] == [{"command": 'cp "a b" c'}]
    assert toml["environment"]["allowed_hosts"] == ["auth.example", "model.example"]
    assert toml["environment"]["network_mode"] == "allowlist"
    assert toml["verifier"]["environment"]["network_mode"] == "no-network"
    for table in (toml["environment"], toml["verifier"]["environment"]):
        assert (table["cpus"], table["memory_mb"], table["docker_image"]) == (1, 1024, "orbit-toy:abc")
    identity = toml["metadata"]["orbit"]
    assert (identity["task"], identity["framework"], identity["variant"]) == ("toys/01-coin", "toy", "short")
    assert staged.warnings == ()


@pytest.mark.parametrize(
    ("environment", "agent", "verifier", "n_warnings"),
    [
        (EnvironmentSpec(), "public", "public", 1),
        (EnvironmentSpec(can_enforce_no_network=True), "no-network", "no-network", 0),
        (EnvironmentSpec(can_enforce_no_network=True, allowed_hosts=("a.example",)), "public", "no-network", 1),
        (EnvironmentSpec(allowed_hosts=("a.example",)), "public", "public", 2),
    ],
)
def test_network_is_what_the_environment_can_enforce(
    toy_root: Path, tmp_path: Path, environment: EnvironmentSpec, agent: str, verifier: str, n_warnings: int
) -> None:
    staged = stage_toy(tmp_path / "a", environment)
    toml = config(staged)
    assert toml["environment"]["network_mode"] == agent
    assert toml["verifier"]["environment"]["network_mode"] == verifier
    assert len(staged.warnings) == n_warnings


def test_staging_again_is_fine_unless_something_differs(toy_root: Path, tmp_path: Path) -> None:
    first = stage_toy(tmp_path / "a")
    assert stage_toy(tmp_path / "a").digest == first.digest
    (first.directory / "instruction.md").write_text("changed")
    with pytest.raises(UsageError, match="differs from what would be staged"):
        stage_toy(tmp_path / "a")


def test_bad_arguments_leave_nothing_behind(toy_root: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.py: cannot be read"):
        stage_toy(tmp_path / "run/a", solution=tmp_path / "absent.py")
    with pytest.raises(UsageError, match="unknown contract"):
        stage_toy(tmp_path / "run/a", contract="orbit-3")
    with pytest.raises(UsageError, match="unknown variant"):
        stage_toy(tmp_path / "run/a", variant="long")
    assert not (tmp_path / "run").exists()


def assert_valid_for_harbor(directory: Path) -> Any:
    from harbor.models.task.task import Task as HarborTask

    assert HarborTask.is_valid_dir(directory)
    return HarborTask(directory)


@pytest.mark.parametrize("environment", [LOCAL, DOCKER], ids=["local", "docker"])
def test_staged_directory_is_valid_for_harbor(toy_root: Path, tmp_path: Path, environment: EnvironmentSpec) -> None:
    from harbor.models.task.verifier_mode import resolve_verifier_environment_definition

    solution = toy_root / "references/toys/01-coin/toy.py"
    task = assert_valid_for_harbor(stage_toy(tmp_path / "a", environment, solution=solution).directory)
    assert task.name == "toys/01-coin"
    assert task.config.environment.docker_image == environment.image
    definition = resolve_verifier_environment_definition(task.config, task.paths)
    assert definition is not None
    assert definition.config.docker_image == environment.image
    assert task.paths.discovered_solve_path_for(task.config.environment.os) is not None


@pytest.mark.parametrize(
    "task", [task for suite in all_suites() for task in all_tasks(suite)], ids=lambda task: task.name
)
def test_shipped_task_is_valid_for_harbor_and_stages(task: Task, tmp_path: Path) -> None:
    canonical = assert_valid_for_harbor(task.directory)
    assert canonical.name == task.name
    assert canonical.config.agent.timeout_sec == task.limits.agent_timeout_sec
    staged = stage(task, find_framework("tensorcircuit"), contract="orbit-2", target=tmp_path / "a", environment=LOCAL)
    assert assert_valid_for_harbor(staged.directory).name == task.name
