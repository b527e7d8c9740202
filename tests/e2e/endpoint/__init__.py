"""A scripted model endpoint on loopback: the language model that end-to-end tests give to the real agent programs.

It speaks OpenAI Responses (`POST /v1/responses`) and Anthropic Messages (`POST /v1/messages`), streaming, and answers
the n-th request of an agent's conversation with the n-th turn of a script:

    with ScriptedEndpoint([Turn(command="echo hello > /app/hello"), Turn(text="Done.")]) as endpoint:
        ...  # give the agent endpoint.openai_url or endpoint.anthropic_url
    assert endpoint.n_turns_left == 0
"""

from __future__ import annotations

from .script import Failure, Turn, Usage, total_usage
from .server import ReceivedRequest, ScriptedEndpoint

__all__ = ["Failure", "ReceivedRequest", "ScriptedEndpoint", "Turn", "Usage", "total_usage"]
