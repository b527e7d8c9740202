"""What a script says: turns, the usage they report, and the ways an endpoint can fail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Usage:
    """Tokens that a turn reports. `input` is what was neither read from the cache nor written to it."""

    input: int = 100
    cached: int = 0
    cache_write: int = 0
    output: int = 10
    reasoning: int = 0
    """Part of `output`."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )

    @property
    def all_input(self) -> int:
        """Every input token, as OpenAI counts them."""
        return self.input + self.cached + self.cache_write


ZERO = Usage(input=0, output=0)


@dataclass(frozen=True)
class Failure:
    """An answer that is no answer: an HTTP error, or a connection cut while the stream runs."""

    status: int = 500
    message: str = "the scripted endpoint fails here"
    retry_after_sec: int | None = None
    cut_stream: bool = False


@dataclass(frozen=True)
class Turn:
    """One answer of the model.

    Attributes:
        text: what the model says.
        command: a shell command that the model runs through the agent's own tool.
        usage: what the answer reports.
        refusal: `text` is a safety refusal, marked as the protocol marks it.
        failure: fail instead of answering; the agent's next try gets the next turn.
        delay_sec: wait before the answer begins (cut short when the endpoint closes).
    """

    text: str = ""
    command: str | None = None
    usage: Usage = field(default_factory=Usage)
    refusal: bool = False
    failure: Failure | None = None
    delay_sec: float = 0.0


def total_usage(turns: Iterable[Turn]) -> Usage:
    """What an agent that ran the whole script must report: failed turns count nothing."""
    return sum((turn.usage for turn in turns if turn.failure is None), ZERO)
