"""`orbit run`: what the command line becomes."""

from typing import Any

import pytest

from orbit.cli import main
from orbit.execution.jobs import JobPlan


@pytest.fixture
def plan_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """The plan that a command line makes, or the line that refuses it."""
    plans: list[JobPlan] = []
    monkeypatch.setattr("orbit.cli.run._carry_out", lambda plan, json: plans.append(plan))

    def parse(*arguments: str) -> JobPlan | int:
        common = ["run", "--task", "02", "--framework", "tensorcircuit", "--out", str(tmp_path / "run")]
        with pytest.raises(SystemExit) as end:
            main([*common, *arguments])
        return plans.pop() if plans else int(end.value.code or 0)

    return parse


def test_agent_and_limits_are_taken(plan_of: Any) -> None:
    arguments = "--agent codex --model openai/m --agent-version 0.171.0 --agent-option web_search=live"
    limits = "--cpus 3 --memory-mb 4096 --storage-mb 100 --run-timeout 60 --verification-timeout 600.5"
    plan = plan_of(*arguments.split(), "--agent-option", "config={a = 1}", *limits.split(), "--retries", "3")
    assert plan.agent.options == {"web_search": "live", "config": {"a": 1}}
    assert plan.agent.version == "0.171.0"
    assert plan.max_retries == 3
    limits = plan.limits
    assert (limits.cpus, limits.memory_mb, limits.storage_mb) == (3, 4096, 100)
    assert (limits.run_timeout_sec, limits.verification_timeout_sec) == (60, 600.5)


def test_nothing_given_keeps_the_tasks_limits(plan_of: Any) -> None:
    plan = plan_of()
    assert set(vars(plan.limits).values()) == {None}
    assert plan.max_retries == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--retries", "-1"), "--retries"),
        (("--cpus", "0"), "--cpus"),
        (("--agent-option", "api_key=canary"), "--key-variable"),
        (("--agent-option", "x"), "KEY=VALUE"),
    ],
)
def test_wrong_values_are_named(
    plan_of: Any, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str
) -> None:
    assert plan_of(*arguments) == 2
    captured = capsys.readouterr().err
    assert text in captured
    assert "canary" not in captured
