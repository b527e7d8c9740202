"""The two wire formats, as lists of server-sent events."""

from __future__ import annotations

import json
from typing import Any

from .script import Turn, Usage

Event = tuple[str, dict[str, Any]]
_SHELL_TOOLS_RESPONSES = ("exec_command", "shell_command", "shell")


def encode(event: Event) -> bytes:
    """One event as it goes over the wire."""
    name, data = event
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def is_conversation(path: str, body: dict[str, Any]) -> bool:
    """Whether a request belongs to the agent's conversation, which offers a shell.

    Titles, summaries and connection checks that the programs send beside it do not, and must not use up a turn.
    """
    names = {tool.get("name") for tool in body.get("tools") or [] if isinstance(tool, dict)}
    wanted = {"Bash"} if path.endswith("/messages") else set(_SHELL_TOOLS_RESPONSES)
    return bool(names & wanted)


def responses_events(turn: Turn, number: int, body: dict[str, Any]) -> list[Event]:
    """A turn as OpenAI Responses events."""
    items: list[dict[str, Any]] = []
    if turn.text:
        content = (
            {"type": "refusal", "refusal": turn.text} if turn.refusal else {"type": "output_text", "text": turn.text}
        )
        items.append({"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [content]})
    if turn.command is not None:
        items.append(_responses_call(turn.command, number, body))
    head: dict[str, Any] = {"id": f"resp_{number}", "object": "response", "model": body.get("model"), "output": []}
    events: list[Event] = [
        ("response.created", {"type": "response.created", "response": head | {"status": "in_progress"}})
    ]
    for index, item in enumerate(items):
        events.append(
            ("response.output_item.added", {"type": "response.output_item.added", "output_index": index, "item": item})
        )
        events.append(
            ("response.output_item.done", {"type": "response.output_item.done", "output_index": index, "item": item})
        )
    done = head | {"status": "completed", "output": items, "usage": responses_usage(turn.usage)}
    events.append(("response.completed", {"type": "response.completed", "response": done}))
    return events


def _responses_call(command: str, number: int, body: dict[str, Any]) -> dict[str, Any]:
    names = {tool.get("name") for tool in body.get("tools") or [] if isinstance(tool, dict)}
    tool = next((name for name in _SHELL_TOOLS_RESPONSES if name in names), _SHELL_TOOLS_RESPONSES[0])
    forms: dict[str, dict[str, Any]] = {
        "exec_command": {"cmd": command, "yield_time_ms": 30000},
        "shell_command": {"command": command},
        "shell": {"command": ["bash", "-lc", command]},
    }
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": tool,
        "arguments": json.dumps(forms[tool]),
    }


def responses_usage(usage: Usage) -> dict[str, Any]:
    """OpenAI counts cached and cache-write tokens among the input tokens."""
    return {
        "input_tokens": usage.all_input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.all_input + usage.output,
    }


def messages_events(turn: Turn, number: int, body: dict[str, Any]) -> list[Event]:
    """A turn as Anthropic Messages events."""
    start = messages_body(turn, number, body) | {"content": [], "stop_reason": None}
    start["usage"] = start["usage"] | {"output_tokens": 1}
    events: list[Event] = [("message_start", {"type": "message_start", "message": start})]
    for index, block in enumerate(_messages_content(turn, number)):
        empty, delta = _messages_delta(block)
        events += [
            ("content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}),
            ("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}),
            ("content_block_stop", {"type": "content_block_stop", "index": index}),
        ]
    end = {"stop_reason": _stop_reason(turn), "stop_sequence": None}
    events.append(
        ("message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": turn.usage.output}})
    )
    events.append(("message_stop", {"type": "message_stop"}))
    return events


def messages_body(turn: Turn, number: int, body: dict[str, Any]) -> dict[str, Any]:
    """A turn as one Anthropic message, for requests that do not stream. Cached tokens stand beside the input tokens."""
    return {
        "id": f"msg_{number:06d}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": _messages_content(turn, number),
        "stop_reason": _stop_reason(turn),
        "stop_sequence": None,
        "usage": {
            "input_tokens": turn.usage.input,
            "cache_creation_input_tokens": turn.usage.cache_write,
            "cache_read_input_tokens": turn.usage.cached,
            "output_tokens": turn.usage.output,
        },
    }


def _stop_reason(turn: Turn) -> str:
    if turn.refusal:
        return "refusal"
    return "end_turn" if turn.command is None else "tool_use"


def _messages_content(turn: Turn, number: int) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    if turn.text:
        content.append({"type": "text", "text": turn.text})
    if turn.command is not None:
        tool_input = {"command": turn.command, "description": "scripted command"}
        content.append({"type": "tool_use", "id": f"toolu_{number:06d}", "name": "Bash", "input": tool_input})
    return content


def _messages_delta(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    if block["type"] == "text":
        return block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
    return block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
