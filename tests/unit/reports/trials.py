"""A hand-made run directory with one trial, as a run leaves it."""

import json
from pathlib import Path
from typing import Any

from orbit.accounting import AgentUsage, ModelUsage, TokenUsage
from orbit.execution.outcomes import Disposition, Ending
from orbit.execution.trials import TrialRecord
from orbit.records import write_json
from orbit.verification.verdict import Validity
from tests.unit.reports.verdicts import make_verdict

NAME = "99-toy-chain--pennylane__abc"
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold]markup[/bold] [/] :smile:\u202e"
"""Clears the screen, sets the title, reverses the direction of writing, and speaks rich's markup."""


def make_step(number: int, source: str, **rest: Any) -> dict[str, Any]:
    moment = {"timestamp": f"2026-01-01T00:00:{number:02d}.000Z"}
    return {"step_id": number, "source": source, "message": "", **moment, **rest}


def make_call(name: str, arguments: dict[str, Any], output: str | None = "", call_id: str = "c1") -> dict[str, Any]:
    """What a step has of one use of a tool."""
    call = {"tool_call_id": call_id, "function_name": name, "arguments": arguments}
    seen = [] if output is None else [{"source_call_id": call_id, "content": output}]
    return {"tool_calls": [call], "observation": {"results": seen}}


def make_metrics(sent: int, received: int) -> dict[str, int]:
    return {"prompt_tokens": sent, "completion_tokens": received}


def make_trajectory(*steps: dict[str, Any], **rest: Any) -> dict[str, Any]:
    agent = {"name": "codex", "version": "0.171.0", "model_name": "gpt-5.5"}
    return {"schema_version": "ATIF-v1.7", "agent": agent, "steps": list(steps), **rest}


STEPS = (
    make_step(1, "user", message="Solve it.\nWell."),
    make_step(
        4,
        "agent",
        **make_call("exec_command", {"cmd": "cat > /app/solution.py"}, "wrote it"),
        metrics=make_metrics(1200, 50),
    ),
    make_step(9, "agent", message="Done.", metrics=make_metrics(1300, 20)),
)
USAGE = AgentUsage(
    source="codex.txt turn.completed",
    tokens=TokenUsage(uncached_input=1100, cached_input=1400, cache_write=0, output=70),
    models=[ModelUsage(model="openai/gpt-5.5", tokens=TokenUsage(), cost_usd=0.0083, price_source="a table")],
    cost_usd=0.0083,
    reported_cost_usd=0.0125,
    warnings=["the agent reports another cost"],
)


def write_run(run_dir: Path, *names: str, trajectory: dict[str, Any] | None = None, **changes: Any) -> Path:
    """Write a run directory with a trial of each name.

    Args:
        run_dir: where.
        names: of its trials; one if omitted.
        trajectory: what harbor kept of them.
        changes: fields of the records; a path that is None has no file either.
    """
    (run_dir / "trials").mkdir(parents=True)
    (run_dir / "run.json").write_text("{}")
    for name in names or (NAME,):
        harbor = f"harbor/{name}"
        record = {
            "run_id": "r",
            "name": name,
            "task": "toys/99-toy-chain",
            "suite": "toys",
            "framework": "pennylane",
            "agent": "codex",
            "agent_version": "0.171.0",
            "model": "openai/gpt-5.5",
            "contract": "orbit-2",
            "environment": "docker",
            "staged_digest": "d",
            "solving_sec": 12.5,
            "ending": Ending.COMPLETED,
            "disposition": Disposition.JUDGE,
            "validity": Validity.PROVISIONAL,
            "reward": 1,
            "summary": "nothing failed",
            "usage": USAGE,
            "artifact_path": f"{harbor}/artifacts/app/solution.py",
            "verdict_path": f"{harbor}/verification/verdict.json",
            "harbor_trial_dir": harbor,
            "harbor_result_path": f"{harbor}/result.json",
        } | changes
        trial = TrialRecord(**record)
        write_json(run_dir / "trials" / name / "trial.json", trial)
        (run_dir / harbor / "agent").mkdir(parents=True)
        if trajectory is not None:
            (run_dir / harbor / "agent" / "trajectory.json").write_text(json.dumps(trajectory))
        if record["artifact_path"] is not None and "artifact_path" not in changes:
            artifact = run_dir / record["artifact_path"]
            artifact.parent.mkdir(parents=True)
            artifact.write_text("import pennylane as qml\n\n\ndef run_solution(config):\n    return {}\n")
        if record["verdict_path"] is not None and "verdict_path" not in changes:
            write_json(run_dir / record["verdict_path"], make_verdict())
    return run_dir
