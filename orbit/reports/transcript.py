"""What an agent did, in order, from the trajectory that harbor keeps (`agent/trajectory.json`, ATIF).

The file comes from an agent's own logs and from many versions of harbor, so it is read as plain JSON: what is missing
or of another type is left out, and nothing in it is believed to be short or printable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field

from orbit.errors import DataError
from orbit.records import Record, Text

MAX_TRAJECTORY_BYTES = 256 * 2**20
_COMMAND_KEYS = ("command", "cmd", "script")
_PATH_KEYS = ("file_path", "path", "notebook_path")
_NEW_TEXT_KEYS = ("content", "new_string", "file_text", "new_str", "new_source")
_READERS = ("read", "view", "grep", "glob", "ls", "list", "search", "fetch")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
"""The lines of the patch format that Codex uses, also within a shell command."""


class ActionKind(StrEnum):
    """What an action is, as far as its arguments tell."""

    COMMAND = "command"
    WRITE = "write"
    READ = "read"
    TOOL = "tool"


class Action(Record):
    """One use of a tool.

    Attributes:
        tool: the agent's own name of it.
        text: the command; what was written; or the arguments as JSON.
        files: what it names as written or changed (or read). What a shell command writes by itself is not known.
        output: what the agent saw of it; None if nothing is recorded, as for the last one of a stopped agent.
    """

    kind: ActionKind
    tool: Text
    text: Text
    files: list[Text] = Field(default_factory=list)
    output: Text | None = None


class TranscriptStep(Record):
    """One entry of the trajectory.

    Attributes:
        source: `system`, `user` or `agent`.
        since_start_sec: after the first entry that has a time.
        input_tokens: sent so far, cached ones included; None while nothing was counted.
        output_tokens: received so far.
    """

    number: int
    source: Text
    since_start_sec: float | None = None
    message: Text = ""
    reasoning: Text = ""
    actions: list[Action] = Field(default_factory=list)
    input_tokens: int | None = None
    output_tokens: int | None = None


class Transcript(Record):
    """Everything that is known of what an agent did. `n_subagents` counts trajectories that are not among the steps."""

    agent: Text = ""
    version: Text = ""
    steps: list[TranscriptStep]
    n_subagents: int = 0


def read_transcript(path: Path) -> Transcript:
    """Read a trajectory.

    Raises:
        DataError: it cannot be read, is too large, or has no steps.
    """
    try:
        if path.stat().st_size > MAX_TRAJECTORY_BYTES:
            raise DataError(f"{path}: larger than {MAX_TRAJECTORY_BYTES} bytes and not read")
        data = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error})") from error
    if not isinstance(data, dict) or not _dicts(data.get("steps")):
        raise DataError(f"{path}: has no steps")
    agent = _dict(data.get("agent"))
    return Transcript(
        agent=_string(agent.get("name")),
        version=_string(agent.get("version")),
        steps=list(_steps(_dicts(data["steps"]))),
        n_subagents=len(_dicts(data.get("subagent_trajectories"))),
    )


def _steps(found: list[dict[str, Any]]) -> Iterator[TranscriptStep]:
    start: datetime | None = None
    sent: int | None = None
    received: int | None = None
    for number, step in enumerate(found, 1):
        moment = _moment(step.get("timestamp"))
        start = start or moment
        metrics = _dict(step.get("metrics"))
        sent, received = _add(sent, metrics.get("prompt_tokens")), _add(received, metrics.get("completion_tokens"))
        yield TranscriptStep(
            number=number,
            source=_string(step.get("source")) or "unknown",
            since_start_sec=(moment - start).total_seconds() if moment and start else None,
            message=_content(step.get("message")),
            reasoning=_content(step.get("reasoning_content")),
            actions=_actions(step),
            input_tokens=sent,
            output_tokens=received,
        )


def _actions(step: dict[str, Any]) -> list[Action]:
    outputs: dict[str, str] = {}
    loose: list[str] = []
    for result in _dicts(_dict(step.get("observation")).get("results")):
        call, text = result.get("source_call_id"), _content(result.get("content"))
        if isinstance(call, str):
            outputs[call] = text
        else:
            loose.append(text)
    actions = [_action(call, outputs.get(_string(call.get("tool_call_id")))) for call in _dicts(step.get("tool_calls"))]
    return actions + [Action(kind=ActionKind.TOOL, tool="", text="", output=text) for text in loose]


def _action(call: dict[str, Any], output: str | None) -> Action:
    tool, arguments = _string(call.get("function_name")), _dict(call.get("arguments"))
    command = _first(arguments, _COMMAND_KEYS)
    if command is not None:
        return Action(kind=ActionKind.COMMAND, tool=tool, text=command, files=_PATCHED.findall(command), output=output)
    patch = arguments.get("input")
    if isinstance(patch, str):
        files = _PATCHED.findall(patch)
        kind = ActionKind.WRITE if files else ActionKind.TOOL
        return Action(kind=kind, tool=tool, text=patch, files=files, output=output)
    path = _first(arguments, _PATH_KEYS)
    written = _written(arguments)
    if path is not None and written is not None:
        return Action(kind=ActionKind.WRITE, tool=tool, text=written, files=[path], output=output)
    kind = ActionKind.READ if tool.lower().startswith(_READERS) else ActionKind.TOOL
    rest = {key: value for key, value in arguments.items() if value != path}
    text = json.dumps(rest, ensure_ascii=False) if rest else ""
    return Action(kind=kind, tool=tool, text=text, files=[path] if path is not None else [], output=output)


def _written(arguments: dict[str, Any]) -> str | None:
    """The new text of a file tool's call; of one with several edits, all of them."""
    edits = [text for edit in _dicts(arguments.get("edits")) if (text := _first(edit, _NEW_TEXT_KEYS)) is not None]
    return _first(arguments, _NEW_TEXT_KEYS) if not edits else "\n".join(edits)


def _first(arguments: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    """The first of these arguments that is text, or a list of words such as `["bash", "-lc", "ls"]`."""
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            is_shell = len(value) == 3 and value[1] in ("-c", "-lc")
            return str(value[2]) if is_shell else " ".join(value)
    return None


def _content(value: Any) -> str:
    """A message: text, or parts of which the others than text are only named."""
    if isinstance(value, str):
        return value
    parts = _dicts(value)
    return "\n".join(
        part["text"] if isinstance(part.get("text"), str) else f"[{_string(part.get('type')) or 'part'}]"
        for part in parts
    )


def _moment(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _add(total: int | None, value: Any) -> int | None:
    counts = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return (total or 0) + value if counts else total


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
