"""A scripted model endpoint on loopback: the language model that end-to-end tests give to the real agent programs.

It speaks OpenAI Responses (`POST /v1/responses`) and Anthropic Messages (`POST /v1/messages`), streaming, and answers
the n-th request of an agent's conversation with the n-th turn of a script:

    with ScriptedEndpoint([Turn(command="echo hello > /app/hello"), Turn(text="Done.")]) as endpoint:
        ...  # give the agent endpoint.openai_url or endpoint.anthropic_url
    assert endpoint.n_turns_left == 0

What Codex 0.171 and Claude Code 2.1 do with it, seen by trying:

* A failed, rate-limited or cut answer is asked for again and takes the next turn. Codex gives up after 5 tries
  (30 requests for a 5xx, 26 s, exit code 1, event `turn.failed`); Claude Code after 10 with growing pauses, several
  minutes, unless `CLAUDE_CODE_MAX_RETRIES` says otherwise.
* A refusal in the protocol's own form ends Claude Code with exit code 1 and `"stop_reason": "refusal"` in its `result`
  event. Codex ends with exit code 0 and shows no message at all; a refusal that it does show is one in plain text.
"""

from __future__ import annotations

from .script import Failure, Turn, Usage, total_usage
from .server import ReceivedRequest, ScriptedEndpoint

__all__ = ["Failure", "ReceivedRequest", "ScriptedEndpoint", "Turn", "Usage", "total_usage"]
