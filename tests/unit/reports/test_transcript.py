"""Reading a trajectory: what was done, in which order, at which time and with how many tokens."""

import json
from pathlib import Path
from typing import Any

import pytest

from orbit.errors import DataError
from orbit.reports import transcript
from orbit.reports.transcript import Action, ActionKind, Transcript, read_transcript
from tests.unit.reports.trials import STEPS, make_call, make_metrics, make_step, make_trajectory


def read(tmp_path: Path, *steps: dict[str, Any], **rest: Any) -> Transcript:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(make_trajectory(*steps, **rest)))
    return read_transcript(path)


def action(tmp_path: Path, name: str, arguments: dict[str, Any]) -> Action:
    (step,) = read(tmp_path, make_step(1, "agent", **make_call(name, arguments, "seen"))).steps
    (found,) = step.actions
    assert (found.tool, found.output) == (name, "seen")
    return found


def test_steps_have_time_since_the_first_and_tokens_so_far(tmp_path: Path) -> None:
    found = read(tmp_path, *STEPS)
    assert (found.agent, found.version) == ("codex", "0.171.0")
    assert [step.since_start_sec for step in found.steps] == [0.0, 3.0, 8.0]
    assert [(step.input_tokens, step.output_tokens) for step in found.steps] == [(None, None), (1200, 50), (2500, 70)]
    assert [step.message for step in found.steps] == ["Solve it.\nWell.", "", "Done."]


PATCH = "*** Begin Patch\n*** Add File: /app/solution.py\n+import x\n*** Update File: a b.py\n@@\n*** End Patch\n"


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "text", "files"),
    [
        ("exec_command", {"cmd": "ls", "yield_time_ms": 1}, ActionKind.COMMAND, "ls", []),
        ("shell", {"command": ["bash", "-lc", "ls -l"]}, ActionKind.COMMAND, "ls -l", []),
        ("shell", {"command": ["ls", "-l"]}, ActionKind.COMMAND, "ls -l", []),
        ("Bash", {"command": "ls", "description": "list"}, ActionKind.COMMAND, "ls", []),
        ("Bash", {"command": PATCH}, ActionKind.COMMAND, PATCH, ["/app/solution.py", "a b.py"]),
        ("apply_patch", {"input": PATCH}, ActionKind.WRITE, PATCH, ["/app/solution.py", "a b.py"]),
        ("Write", {"file_path": "/app/s.py", "content": "x = 1"}, ActionKind.WRITE, "x = 1", ["/app/s.py"]),
        ("Edit", {"file_path": "s", "old_string": "a", "new_string": "b"}, ActionKind.WRITE, "b", ["s"]),
        ("MultiEdit", {"file_path": "s", "edits": [{"new_string": "b"}, {}]}, ActionKind.WRITE, "b", ["s"]),
        ("Read", {"file_path": "s", "limit": 3}, ActionKind.READ, '{"limit": 3}', ["s"]),
        ("update_plan", {"plan": []}, ActionKind.TOOL, '{"plan": []}', []),
        ("strange", {"input": "free text"}, ActionKind.TOOL, "free text", []),
        ("strange", {"command": [1, 2]}, ActionKind.TOOL, '{"command": [1, 2]}', []),
    ],
)
def test_tools_are_told_apart(
    tmp_path: Path, name: str, arguments: dict[str, Any], kind: ActionKind, text: str, files: list[str]
) -> None:
    found = action(tmp_path, name, arguments)
    assert (found.kind, found.text, found.files) == (kind, text, files)


def test_an_action_without_result_has_no_output_and_a_result_without_action_is_kept(tmp_path: Path) -> None:
    (cut,) = read(tmp_path, make_step(1, "agent", **make_call("Bash", {"command": "sleep 9"}, None))).steps
    assert cut.actions[0].output is None
    (loose,) = read(tmp_path, make_step(1, "agent", observation={"results": [{"content": "alone"}]})).steps
    assert [item.output for item in loose.actions] == ["alone"]


def test_parts_that_are_no_text_are_named_and_subagents_counted(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image", "source": {}}]
    found = read(tmp_path, make_step(1, "user", message=parts), subagent_trajectories=[make_trajectory(), {}])
    assert found.steps[0].message == "see\n[image]"
    assert found.n_subagents == 2


def test_values_of_other_types_are_left_out(tmp_path: Path) -> None:
    strange = {
        "timestamp": 7,
        "source": None,
        "message": {"a": 1},
        "tool_calls": ["x", {"arguments": "y"}],
        "observation": [],
        "metrics": {"prompt_tokens": True, "completion_tokens": -1},
    }
    naive = make_step(2, "agent") | {"timestamp": "2026-01-01T00:00:00"}
    late = make_step(3, "agent") | {"timestamp": "2026-01-01T00:00:02Z"}
    first, second, third = read(tmp_path, strange, naive, late).steps
    assert (first.source, first.message, first.since_start_sec, first.input_tokens) == ("unknown", "", None, None)
    assert len(first.actions) == 1
    assert (second.since_start_sec, third.since_start_sec) == (0.0, 2.0)


def test_half_a_surrogate_pair_can_be_written_again(tmp_path: Path) -> None:
    found = read(tmp_path, make_step(1, "agent", message="a\ud800", metrics=make_metrics(1, 1)))
    assert b"ud800" in found.model_dump_json().encode()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"steps": []}', '{"steps": {}}', "[" * 100_000])
def test_what_is_no_trajectory_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"not JSON|no steps"):
        read_transcript(path)


def test_a_file_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "MAX_TRAJECTORY_BYTES", 10)
    with pytest.raises(DataError, match="larger than 10 bytes"):
        read(tmp_path, *STEPS)
    with pytest.raises(DataError, match="cannot be read"):
        read_transcript(tmp_path / "none.json")
