"""harbor's adapters of Codex and Claude Code, with the reason of a failure read from the program's own last event.

harbor looks for phrases like "rate limit" anywhere in what a failed program printed, the model's own words and the
output of its commands included, so that a model could talk its failure into an error of the endpoint. Both programs
end with an event that says what happened; only that is believed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, override

from harbor.agents.installed.base import (
    AgentAuthenticationError,
    AgentSafetyRefusalError,
    ApiOverloadedError,
    ApiRateLimitError,
    ApiUsageLimitError,
    ContextWindowExceededError,
    ModelNotFoundError,
    NonZeroAgentExitCodeError,
    UnknownApiError,
)
from harbor.agents.installed.claude_code import ClaudeCode
from harbor.agents.installed.codex import Codex

from orbit.execution._agent_logs import events

Failure = type[NonZeroAgentExitCodeError]

_BY_STATUS: dict[int, Failure] = {
    401: AgentAuthenticationError,
    403: AgentAuthenticationError,
    404: ModelNotFoundError,
    429: ApiRateLimitError,
    529: ApiOverloadedError,
}
_BY_TEXT: tuple[tuple[str, Failure], ...] = (
    (r"usage limit|quota|credit balance|billing", ApiUsageLimitError),
    (r"rate.?limit|too many requests", ApiRateLimitError),
    (r"context window|prompt is too long|ran out of room", ContextWindowExceededError),
    (r"usage policy|safety|content.?filter|flagged", AgentSafetyRefusalError),
    (r"api key|unauthorized|not logged in", AgentAuthenticationError),
    (r"high demand|overloaded|at capacity", ApiOverloadedError),
)
_STATUS = re.compile(r"\b(?:status|error:?)\s+(\d{3})\b", re.IGNORECASE)


def failure_of_endpoint(text: str, status: int | None = None) -> Failure:
    """What an error event of an agent program means; it ends with one only if the endpoint did not serve it."""
    for pattern, failure in _BY_TEXT:
        if re.search(pattern, text, re.IGNORECASE):
            return failure
    if status is None and (match := _STATUS.search(text)):
        status = int(match[1])
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return ApiOverloadedError if status is not None and status >= 500 else UnknownApiError


def codex_failure(output: str) -> Failure:
    """From what `codex exec --json` printed: its last event is `turn.failed`, or it crashed."""
    last = _last(events(output), "turn.failed", "turn.completed")
    if last is None or last["type"] != "turn.failed":
        return NonZeroAgentExitCodeError
    error = last.get("error")
    return failure_of_endpoint(str(error.get("message", "")) if isinstance(error, dict) else "")


def claude_failure(output: str) -> Failure:
    """From what `claude --output-format=stream-json` printed: a `result` event that is an error, or it crashed."""
    last = _last(events(output), "result")
    if last is None or not last.get("is_error"):
        return NonZeroAgentExitCodeError
    if last.get("stop_reason") == "refusal":
        return AgentSafetyRefusalError
    text, status = str(last.get("result", "")), last.get("api_error_status")
    if status is None and "API Error" not in text:
        return NonZeroAgentExitCodeError
    return failure_of_endpoint(text, status if isinstance(status, int) else None)


def _last(found: Iterator[dict[str, Any]], *types: str) -> dict[str, Any] | None:
    return next((event for event in reversed(list(found)) if event.get("type") in types), None)


class OrbitCodex(Codex):
    """Codex."""

    @override
    def _classify_exec_error(self, command: str, result: Any) -> NonZeroAgentExitCodeError:
        return codex_failure(result.stdout or "")(_detail(self, result))


class OrbitClaudeCode(ClaudeCode):
    """Claude Code."""

    @override
    def _classify_exec_error(self, command: str, result: Any) -> NonZeroAgentExitCodeError:
        return claude_failure(result.stdout or "")(_detail(self, result))


def _detail(agent: Codex | ClaudeCode, result: Any) -> str:
    """One line on how the program ended, and the end of what it printed; its command line has the whole statement."""
    last_line = (result.stdout or "").strip().rpartition("\n")[2]
    return f"{agent.name()} ended with status {result.return_code}: {last_line[:500]}"
