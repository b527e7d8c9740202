"""Reading what agents say of their token usage, from the files they and harbor leave in a trial's `agent/` directory.

Every source counts differently. OpenAI and harbor count cached and cache-write tokens among the input tokens, Anthropic
counts them beside. Here each kind is a number of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CODEX_LOG = "codex.txt"
CLAUDE_LOG = "claude-code.txt"
TRAJECTORY = "trajectory.json"


@dataclass(frozen=True)
class Counts:
    """Token counts; None where the source does not say."""

    uncached_input: int | None
    cached_input: int | None
    cache_write: int | None
    output: int | None

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            _plus(self.uncached_input, other.uncached_input),
            _plus(self.cached_input, other.cached_input),
            _plus(self.cache_write, other.cache_write),
            _plus(self.output, other.output),
        )


@dataclass(frozen=True)
class LoggedUsage:
    """Usage per model as one source tells it.

    Attributes:
        source: which file or record it is.
        models: model name (empty when the source names none) to its totals.
        requests: model name to the counts of each request, where the source has them.
        reported_cost_usd: what the agent itself says it cost.
        agent: the agent's name, if the source says it.
    """

    source: str
    models: dict[str, Counts]
    requests: dict[str, list[Counts]] = field(default_factory=dict)
    reported_cost_usd: float | None = None
    agent: str = ""


def inclusive(all_input: int | None, cached: int | None, cache_write: int | None, output: int | None) -> Counts:
    """Counts from a source whose input tokens include cached and cache-write ones."""
    uncached = None if all_input is None else max(all_input - (cached or 0) - (cache_write or 0), 0)
    return Counts(uncached, cached, cache_write, output)


def read_codex_log(path: Path) -> LoggedUsage | None:
    """The totals of the last `turn.completed` event; None when Codex was stopped before one."""
    usage: dict[str, Any] | None = None
    for event in json_lines(path):
        if event.get("type") == "turn.completed" and isinstance(event.get("usage"), dict):
            usage = event["usage"]
    if usage is None:
        return None
    counts = inclusive(
        _count(usage, "input_tokens"),
        _count(usage, "cached_input_tokens"),
        _count(usage, "cache_write_input_tokens"),
        _count(usage, "output_tokens"),
    )
    return LoggedUsage(f"{path.name} turn.completed", {"": counts}, agent="codex")


def read_claude_log(path: Path) -> LoggedUsage | None:
    """The per-model totals of the last `result` event; None when Claude Code was stopped before one."""
    result: dict[str, Any] | None = None
    for event in json_lines(path):
        if event.get("type") == "result" and isinstance(event.get("modelUsage"), dict):
            result = event
    if result is None:
        return None
    models = {
        name: Counts(
            _count(usage, "inputTokens"),
            _count(usage, "cacheReadInputTokens"),
            _count(usage, "cacheCreationInputTokens"),
            _count(usage, "outputTokens"),
        )
        for name, usage in result["modelUsage"].items()
        if isinstance(usage, dict)
    }
    cost = result.get("total_cost_usd")
    reported = float(cost) if isinstance(cost, (int, float)) else None
    return (
        LoggedUsage(f"{path.name} result", models, reported_cost_usd=reported, agent="claude-code") if models else None
    )


def read_trajectory(path: Path) -> LoggedUsage | None:
    """Usage per request of an ATIF trajectory, subagents included; None when it has none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(data, dict):
        return None
    requests: dict[str, list[Counts]] = {}
    for model, metrics in _steps(data):
        extra = metrics.get("extra") or {}
        write = _count(extra, "cache_write_input_tokens")
        counts = inclusive(
            _count(metrics, "prompt_tokens"),
            _count(metrics, "cached_tokens"),
            write if write is not None else _count(extra, "cache_creation_input_tokens"),
            _count(metrics, "completion_tokens"),
        )
        requests.setdefault(model, []).append(counts)
    if not requests:
        return None
    models = {model: sum_counts(counts) for model, counts in requests.items()}
    name = (data.get("agent") or {}).get("name") or ""
    return LoggedUsage(path.name, models, requests, agent=str(name))


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Sum of at least one item; a kind that one of them does not know is unknown."""
    first, *rest = counts
    return sum(rest, first)


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a log whose other lines are warnings in plain text; nothing if the file is not there."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if not line.startswith("{"):
                    continue
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if isinstance(event, dict):
                    yield event
    except OSError:
        return


def _steps(trajectory: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    default = (trajectory.get("agent") or {}).get("model_name") or ""
    for step in trajectory.get("steps") or []:
        metrics = step.get("metrics")
        if isinstance(metrics, dict) and (metrics.get("prompt_tokens") or metrics.get("completion_tokens")):
            yield str(step.get("model_name") or default), metrics
    for subagent in trajectory.get("subagent_trajectories") or []:
        yield from _steps(subagent)


def _count(usage: dict[str, Any], key: str) -> int | None:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
