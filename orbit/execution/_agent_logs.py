"""What an agent program said last, from the logs it leaves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orbit._usage_logs import CLAUDE_LOG, CODEX_LOG

_MAX_LOG_BYTES = 64 * 2**20

_UNABLE = r"I (?:can['’]?t|cannot|won['’]?t|am unable to|am not able to)"
_REFUSAL = re.compile(
    "|".join(
        (
            rf"\b(?:sorry|afraid|apologi[sz]e)\b[^.\n]{{0,40}}\b{_UNABLE} (?:help|assist|comply|provide)",
            rf"\b{_UNABLE} (?:help|assist)(?: you)? with (?:that|this|the) (?:request|task)",
            r"\bI (?:must|have to|need to) (?:refuse|decline)\b",
            r"\b(?:violates?|against|not allowed by)\b[^.\n]{0,40}\b(?:usage|safety|content) polic(?:y|ies)\b",
        )
    ),
    re.IGNORECASE,
)
"""The rule by which a refusal is recognised; it is looked for in the agent's last message only."""


def events(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects among the lines of a log; other lines are what the program printed beside them."""
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


def final_message(agent_dir: Path) -> str | None:
    """The last message of Codex or Claude Code in a trial's `agent/` directory; None where there is none."""
    message = None
    for event in events(_read(agent_dir / CODEX_LOG)):
        item = event.get("item")
        if event.get("type") == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
            message = str(item.get("text", ""))
    for event in events(_read(agent_dir / CLAUDE_LOG)):
        if event.get("type") == "result" and "result" in event:
            message = str(event["result"])
    return message


def is_refusal(message: str) -> bool:
    """Whether a last message declines the task on grounds of safety or policy."""
    return _REFUSAL.search(message) is not None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_MAX_LOG_BYTES).decode(errors="replace")
    except OSError:
        return ""
