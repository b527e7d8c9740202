import asyncio
import json

import pytest
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
    UnsupportedModelParametersError,
)
from harbor.environments.base import ExecResult

from orbit.execution._agent_logs import final_message, is_refusal
from orbit.execution.installed import AgentOutOfMemoryError, claude_failure, codex_failure, told_of_memory


def lines(*items):
    return "\n".join(item if isinstance(item, str) else json.dumps(item) for item in items)


def turn_failed(message):
    return {"type": "turn.failed", "error": {"message": message}}


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        ("We're currently experiencing high demand, which may cause temporary errors.", ApiOverloadedError),
        ("unexpected status 503 Service Unavailable: try later", ApiOverloadedError),
        ("unexpected status 401 Unauthorized: Incorrect API key provided", AgentAuthenticationError),
        ("unexpected status 404 Not Found: no such model", ModelNotFoundError),
        ("exceeded retry limit, last status: 429 Too Many Requests", ApiRateLimitError),
        ("You've hit your usage limit.", ApiUsageLimitError),
        ("Codex ran out of room in the model's context window.", ContextWindowExceededError),
        ("This request was blocked by our safety systems.", AgentSafetyRefusalError),
        ("unexpected status 400 Bad Request: no such parameter", UnsupportedModelParametersError),
        ("stream disconnected before completion: error sending request", UnknownApiError),
    ],
)
def test_codex_says_why_its_turn_failed(message, failure):
    output = lines("Reading additional input", {"type": "turn.started"}, turn_failed(message))
    assert codex_failure(output) == (failure, message)


def test_words_of_the_model_are_not_believed():
    said = {"type": "item.completed", "item": {"type": "agent_message", "text": "rate limit, Connection refused"}}
    crash = lines(said, "thread 'main' panicked: Connection refused, rate limit, API Error: Overloaded")
    last_line = crash.rpartition("\n")[2]
    assert codex_failure(crash) == claude_failure(crash) == (NonZeroAgentExitCodeError, last_line)
    finished = lines(turn_failed("overloaded"), {"type": "turn.completed"}, "killed")
    assert codex_failure(finished) == (NonZeroAgentExitCodeError, "killed")


@pytest.mark.parametrize(
    ("result", "failure"),
    [
        ({"is_error": True, "api_error_status": 500, "result": "API Error: 500 it fails"}, ApiOverloadedError),
        ({"is_error": True, "api_error_status": 529, "result": "API Error: Overloaded"}, ApiOverloadedError),
        ({"is_error": True, "api_error_status": 401, "result": "Please run /login"}, AgentAuthenticationError),
        ({"is_error": True, "api_error_status": 429, "result": "API Error: 429"}, ApiRateLimitError),
        ({"is_error": True, "stop_reason": "refusal", "result": "API Error: ..."}, AgentSafetyRefusalError),
        ({"is_error": True, "result": "API Error: Connection error."}, UnknownApiError),
        ({"is_error": True, "result": "Not logged in · Please run /login"}, AgentAuthenticationError),
        ({"is_error": True, "result": "Reached maximum number of turns"}, NonZeroAgentExitCodeError),
        ({"is_error": False, "result": "API Error: said the model"}, NonZeroAgentExitCodeError),
    ],
)
def test_claude_says_why_it_failed(result, failure):
    assert claude_failure(lines({"type": "system"}, {"type": "result", **result}))[0] is failure


@pytest.mark.parametrize(
    "message",
    [
        "I'm sorry, but I can't help with that request.",
        "I’m sorry, I cannot assist with this.",
        "I can't help you with this task.",
        "I must decline to write this.",
        "API Error: unable to respond to this request, which appears to violate our Usage Policy",
    ],
)
def test_refusals_are_recognised(message):
    assert is_refusal(message)


@pytest.mark.parametrize(
    "message",
    [
        "I could not do it.",
        "I'm sorry, the run timed out before I could finish.",
        "I cannot use the package's noise model here because it lacks the channel.",
        "Done; the file is at /app/solution.py.",
        "The policy of this file is to decline values above 1.",
    ],
)
def test_other_endings_are_not_refusals(message):
    assert not is_refusal(message)


def test_last_message_of_either_program(tmp_path):
    assert final_message(tmp_path) is None
    texts = [{"type": "item.completed", "item": {"type": "agent_message", "text": text}} for text in ("one", "two")]
    command = {"type": "item.completed", "item": {"type": "command_execution", "text": "three"}}
    (tmp_path / "codex.txt").write_text(lines("noise", '{"half', *texts, command))
    assert final_message(tmp_path) == "two"
    (tmp_path / "claude-code.txt").write_text(lines({"type": "assistant"}, {"type": "result", "result": "end"}))
    assert final_message(tmp_path) == "end"


@pytest.mark.parametrize(
    ("status", "counters", "kind"),
    [
        (137, "low 0\noom_kill 2\n", AgentOutOfMemoryError),
        (137, "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", AgentOutOfMemoryError),
        (137, "oom_kill 0\n", NonZeroAgentExitCodeError),
        (137, None, NonZeroAgentExitCodeError),
        (1, "oom_kill 2\n", NonZeroAgentExitCodeError),
    ],
)
def test_only_a_killed_program_of_a_container_without_memory_was_killed_for_it(status, counters, kind):
    class Container:
        async def exec(self, command, **rest):
            return ExecResult(stdout=counters, stderr=None, return_code=0)

    error = NonZeroAgentExitCodeError(f"codex ended with status {status}: Killed")
    assert type(asyncio.run(told_of_memory(error, Container()))) is kind
