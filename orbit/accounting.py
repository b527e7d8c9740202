"""What an agent used and what it cost, per model.

Tokens come from the most exact source that a trial left: the agent's own closing event, then harbor's trajectory (which
exists also when the agent was stopped), then the totals that harbor keeps. The cost is ours, from a versioned price
table; what the agent says it cost stands beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pydantic import Field

from orbit._prices import Request, bare_model_name, cost_of, may_cost_more
from orbit._usage_logs import (
    CLAUDE_LOG,
    CODEX_LOG,
    TRAJECTORY,
    Counts,
    LoggedUsage,
    inclusive,
    read_claude_log,
    read_codex_log,
    read_trajectory,
    sum_counts,
)
from orbit.records import Record

COST_TOLERANCE = 0.05
"""The agent's cost and ours may differ by this fraction before a warning."""


class TokenUsage(Record):
    """Tokens of four kinds that add up to everything that was sent and received; unknown is None and never 0."""

    uncached_input: int | None = None
    cached_input: int | None = None
    cache_write: int | None = None
    output: int | None = None


class ModelUsage(Record):
    """What one model was used for and what it cost, in USD; the cost is None when it is unknown."""

    model: str
    tokens: TokenUsage
    cost_usd: float | None = None
    price_source: str | None = None


class AgentUsage(Record):
    """What a trial's agent used.

    Attributes:
        source: where the token counts come from.
        tokens: totals over all models.
        cost_usd: total by our price table; None when one model's cost is unknown.
        reported_cost_usd: what the agent itself says it cost.
        warnings: what a reader of the numbers must know.
    """

    source: str
    tokens: TokenUsage
    models: list[ModelUsage]
    cost_usd: float | None = None
    reported_cost_usd: float | None = None
    warnings: list[str] = Field(default_factory=list)


class HarborTotals(Protocol):
    """The part of harbor's `AgentContext` that is read; its input tokens include cached ones."""

    @property
    def n_input_tokens(self) -> int | None: ...  # noqa: D102
    @property
    def n_cache_tokens(self) -> int | None: ...  # noqa: D102
    @property
    def n_output_tokens(self) -> int | None: ...  # noqa: D102
    @property
    def cost_usd(self) -> float | None: ...  # noqa: D102


def account(
    agent_dir: Path | None, *, model: str | None = None, totals: HarborTotals | None = None
) -> AgentUsage | None:
    """Account for one trial's agent.

    Args:
        agent_dir: the trial's `agent/` directory with logs and trajectory, if there is one.
        model: the model that was asked for; stands in where a log names none.
        totals: harbor's `AgentContext`.

    Returns:
        None when nothing tells of any usage.
    """
    closing = _closing_event(agent_dir) if agent_dir else None
    trajectory = read_trajectory(agent_dir / TRAJECTORY) if agent_dir else None
    chosen = closing or trajectory or _from_totals(totals)
    if chosen is None:
        return None
    warnings: list[str] = []
    requests = trajectory.requests if trajectory else {}
    fallback = model or (next(iter(requests)) if len(requests) == 1 else "") or "unknown"
    named = {name or fallback: counts for name, counts in chosen.models.items()}
    detail = {name or fallback: items for name, items in requests.items()}
    models = [_price(name, counts, detail, warnings) for name, counts in named.items()]
    costs = [item.cost_usd for item in models]
    usage = AgentUsage(
        source=chosen.source,
        tokens=_usage(sum_counts(named.values())),
        models=models,
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        reported_cost_usd=_reported_cost(chosen, trajectory, totals),
        warnings=warnings,
    )
    if (warning := cost_warning(usage.cost_usd, usage.reported_cost_usd)) is not None:
        warnings.append(warning)
    return usage.model_copy(update={"warnings": warnings})


def cost_warning(cost_usd: float | None, reported_usd: float | None) -> str | None:
    """What to say when the agent's cost and ours differ by more than `COST_TOLERANCE` of the larger one."""
    if cost_usd is None or reported_usd is None:
        return None
    if abs(cost_usd - reported_usd) <= COST_TOLERANCE * max(cost_usd, reported_usd):
        return None
    return (
        f"the agent reports a cost of {reported_usd:.4f} USD, the price table gives {cost_usd:.4f} USD; "
        "check the model's prices in orbit/_prices.toml"
    )


def _closing_event(agent_dir: Path) -> LoggedUsage | None:
    return read_claude_log(agent_dir / CLAUDE_LOG) or read_codex_log(agent_dir / CODEX_LOG)


def _from_totals(totals: HarborTotals | None) -> LoggedUsage | None:
    if totals is None or (totals.n_input_tokens is None and totals.n_output_tokens is None):
        return None
    counts = inclusive(totals.n_input_tokens, totals.n_cache_tokens, None, totals.n_output_tokens)
    return LoggedUsage("harbor totals", {"": counts})


def _reported_cost(chosen: LoggedUsage, trajectory: LoggedUsage | None, totals: HarborTotals | None) -> float | None:
    """The agent's own word; what harbor's totals hold for Codex and Claude Code otherwise is litellm's estimate."""
    if chosen.reported_cost_usd is not None or totals is None:
        return chosen.reported_cost_usd
    names = {chosen.agent, trajectory.agent if trajectory else ""}
    return None if names & {"codex", "claude-code"} else totals.cost_usd


def _price(model: str, counts: Counts, detail: dict[str, list[Counts]], warnings: list[str]) -> ModelUsage:
    """Price one model: request by request where these add up to the total, else the total as one ordinary request."""
    usage = ModelUsage(model=model, tokens=_usage(counts))
    if counts.uncached_input is None or counts.output is None:
        warnings.append(f"{model}: the token counts are incomplete, so the cost is unknown")
        return usage
    if counts.cache_write is None:
        warnings.append(f"{model}: cache writes are not reported apart and are counted as uncached input")
    items = detail.get(model) or detail.get(bare_model_name(model)) or []
    complete = [item for item in items if item.uncached_input is not None and item.output is not None]
    by_request = bool(items) and len(complete) == len(items) and _same(sum_counts(items), counts)
    requests = [_request(item) for item in (items if by_request else [counts])]
    if not by_request and may_cost_more(model, _request(counts)):
        warnings.append(f"{model}: single requests are not known, so none is priced as one of long context")
    cost = cost_of(model, requests, as_total=not by_request)
    if cost is None:
        warnings.append(f"{model}: no price is known; add it to orbit/_prices.toml")
        return usage
    return usage.model_copy(update={"cost_usd": cost.usd, "price_source": cost.source})


def _same(one: Counts, other: Counts) -> bool:
    return (one.uncached_input, one.cached_input or 0, one.cache_write or 0, one.output) == (
        other.uncached_input,
        other.cached_input or 0,
        other.cache_write or 0,
        other.output,
    )


def _request(counts: Counts) -> Request:
    return Request(counts.uncached_input or 0, counts.cached_input or 0, counts.cache_write or 0, counts.output or 0)


def _usage(counts: Counts) -> TokenUsage:
    return TokenUsage(
        uncached_input=counts.uncached_input,
        cached_input=counts.cached_input,
        cache_write=counts.cache_write,
        output=counts.output,
    )
