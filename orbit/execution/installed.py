"""harbor's adapters of Codex and Claude Code, with the reason of a failure read from the program's own last event.

harbor looks for phrases like "rate limit" anywhere in what a failed program printed, the model's own words and the
output of its commands included, so that a model could talk its failure into an error of the endpoint. Both programs
end with an event that says what happened; only that is believed here.
"""

from __future__ import annotations

import re
from typing import Any, override

from harbor.agents.installed.base import (
    AgentAuthenticationError,
    AgentSafetyRefusalError,
    ApiOverloadedError,
    ApiRateLimitError,
    ApiUsageLimitError,
    BaseInstalledAgent,
    ContextWindowExceededError,
    ModelNotFoundError,
    NonZeroAgentExitCodeError,
    UnknownApiError,
    UnsupportedModelParametersError,
)
from harbor.agents.installed.claude_code import ClaudeCode
from harbor.agents.installed.codex import Codex
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from orbit.execution._agent_logs import events

Failure = type[NonZeroAgentExitCodeError]

_MAX_TEXT_CHARS = 500
_KILLED = 137
_OOM_COUNTERS = "/sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control"
"""Of the container, in control groups version 2 and 1."""

_BY_STATUS: dict[int, Failure] = {
    400: UnsupportedModelParametersError,
    401: AgentAuthenticationError,
    403: AgentAuthenticationError,
    404: ModelNotFoundError,
    422: UnsupportedModelParametersError,
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


def codex_failure(output: str) -> tuple[Failure, str]:
    """From what `codex exec --json` printed: its last event is `turn.failed`, or it crashed; with its own words."""
    last = _last(output, "turn.failed", "turn.completed")
    if last is None or last["type"] != "turn.failed":
        return NonZeroAgentExitCodeError, _last_line(output)
    error = last.get("error")
    text = str(error.get("message", "")) if isinstance(error, dict) else ""
    return failure_of_endpoint(text), text


def claude_failure(output: str) -> tuple[Failure, str]:
    """From what `claude --output-format=stream-json` printed: a `result` event that is an error, or it crashed."""
    last = _last(output, "result")
    if last is None or not last.get("is_error"):
        return NonZeroAgentExitCodeError, _last_line(output)
    text, status = str(last.get("result", "")), last.get("api_error_status")
    if last.get("stop_reason") == "refusal":
        return AgentSafetyRefusalError, text
    failure = failure_of_endpoint(text, status if isinstance(status, int) else None)
    if failure is UnknownApiError and status is None and "API Error" not in text:
        return NonZeroAgentExitCodeError, text
    return failure, text


def _last(output: str, *types: str) -> dict[str, Any] | None:
    return next((event for event in reversed(list(events(output))) if event.get("type") in types), None)


def _last_line(output: str) -> str:
    return output.strip().rpartition("\n")[2]


class AgentOutOfMemoryError(NonZeroAgentExitCodeError):
    """The kernel killed the agent's program, because its container had no memory left."""


async def told_of_memory(error: NonZeroAgentExitCodeError, environment: BaseEnvironment) -> NonZeroAgentExitCodeError:
    """The error, or what it really was: a program that was killed, where the kernel has killed for memory."""
    if f"status {_KILLED}: " not in str(error):
        return error
    counters = await environment.exec(f"cat {_OOM_COUNTERS} 2>/dev/null; true", cwd="/", user="root", timeout_sec=30)
    if re.search(r"^oom_kill [1-9]", counters.stdout or "", re.MULTILINE):
        return AgentOutOfMemoryError(f"{error} (killed by the kernel: the container had no memory left)")
    return error


class _TellsOfMemory(BaseInstalledAgent):
    """Says when it was the kernel that ended the program."""

    @override
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        try:
            await super().run(instruction, environment, context)  # type: ignore[safe-super]  # the adapter beside it
        except NonZeroAgentExitCodeError as error:
            raise await told_of_memory(error, environment) from error


class OrbitCodex(_TellsOfMemory, Codex):
    """Codex."""

    @override
    def _classify_exec_error(self, command: str, result: Any) -> NonZeroAgentExitCodeError:
        return _error("codex", result.return_code, *codex_failure(result.stdout or ""))


class OrbitClaudeCode(_TellsOfMemory, ClaudeCode):
    """Claude Code."""

    @override
    def _classify_exec_error(self, command: str, result: Any) -> NonZeroAgentExitCodeError:
        return _error("claude", result.return_code, *claude_failure(result.stdout or ""))


def _error(program: str, status: int, failure: Failure, text: str) -> NonZeroAgentExitCodeError:
    """One line; harbor's has the whole command, and with it the whole statement."""
    return failure(f"{program} ended with status {status}: {text[:_MAX_TEXT_CHARS]}")
