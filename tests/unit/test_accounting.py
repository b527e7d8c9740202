"""Tokens to the token, cost to the cent, and unknown where something is unknown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from orbit import _prices, accounting
from orbit.accounting import TokenUsage, account, cost_warning


@dataclass
class Totals:
    n_input_tokens: int | None = None
    n_cache_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | None = None


def write_codex_log(directory: Path, *usages: dict[str, int]) -> None:
    lines = ["WARNING: not JSON", '{"broken', json.dumps({"type": "turn.started"})]
    lines += [json.dumps({"type": "turn.completed", "usage": usage}) for usage in usages]
    (directory / "codex.txt").write_text("\n".join(lines) + "\n")


def codex_usage(all_input: int, cached: int, write: int, output: int) -> dict[str, int]:
    return {
        "input_tokens": all_input,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": write,
        "output_tokens": output,
        "reasoning_output_tokens": 5,
    }


def claude_models(**models: tuple[int, int, int, int]) -> dict[str, dict[str, int]]:
    keys = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
    return {name.replace("_", "-"): dict(zip(keys, counts, strict=True)) for name, counts in models.items()}


def write_claude_log(directory: Path, models: dict[str, dict[str, int]], cost: float | None) -> None:
    events = [
        {"type": "result", "modelUsage": claude_models(old=(1, 1, 1, 1)), "total_cost_usd": 9.0},
        {"type": "result", "modelUsage": models, "total_cost_usd": cost},
    ]
    (directory / "claude-code.txt").write_text("".join(json.dumps(event) + "\n" for event in events))


def write_trajectory(directory: Path, agent: str, steps: list[tuple[str | None, int, int, int, int]], **extra) -> None:
    write_key = "cache_write_input_tokens" if agent == "codex" else "cache_creation_input_tokens"
    data = {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": agent, "version": "1", "model_name": "gpt-5.5"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "do it"},
            *(
                {
                    "source": "agent",
                    **({"model_name": model} if model else {}),
                    "metrics": {
                        "prompt_tokens": all_input,
                        "cached_tokens": cached,
                        "completion_tokens": output,
                        "extra": {write_key: write},
                    },
                }
                for model, all_input, cached, write, output in steps
            ),
        ],
        **extra,
    }
    (directory / "trajectory.json").write_text(json.dumps(data))


def test_codex_totals_are_the_last_closing_event_to_the_token(tmp_path):
    write_codex_log(tmp_path, codex_usage(1, 0, 0, 1), codex_usage(4310, 1220, 80, 110))
    usage = account(tmp_path, model="gpt-5.5", totals=Totals(9999, 0, 9999, cost_usd=7.0))
    assert usage.tokens == TokenUsage(uncached_input=3010, cached_input=1220, cache_write=80, output=110)
    assert usage.source == "codex.txt turn.completed"
    assert [item.model for item in usage.models] == ["gpt-5.5"]
    assert usage.cost_usd == pytest.approx((3010 * 5 + 1220 * 0.5 + 80 * 5 + 110 * 30) / 1e6, rel=1e-12)
    assert usage.reported_cost_usd is None, "what harbor adds for Codex is litellm's estimate, not Codex's word"


def test_claude_totals_per_model_and_its_own_cost(tmp_path):
    models = claude_models(claude_sonnet_4_5=(3010, 1220, 80, 110), claude_haiku_4_5=(7, 0, 0, 3))
    write_claude_log(tmp_path, models, cost=0.011368)
    usage = account(tmp_path, model="claude-sonnet-4-5")
    assert usage.tokens == TokenUsage(uncached_input=3017, cached_input=1220, cache_write=80, output=113)
    by_model = {item.model: item for item in usage.models}
    assert by_model["claude-sonnet-4-5"].tokens.uncached_input == 3010
    assert by_model["claude-sonnet-4-5"].cost_usd == pytest.approx(0.011346, rel=1e-12)
    assert usage.cost_usd == pytest.approx(0.011346 + (7 * 1 + 3 * 5) / 1e6, rel=1e-12)
    assert usage.reported_cost_usd == 0.011368
    assert usage.warnings == []


def test_a_stopped_agent_is_accounted_for_by_its_trajectory(tmp_path):
    (tmp_path / "codex.txt").write_text('{"type":"turn.started"}\n')
    write_trajectory(tmp_path, "codex", [(None, 1250, 200, 50, 30), (None, 3000, 1000, 0, 40)])
    usage = account(tmp_path, model="gpt-5.5")
    assert usage.source == "trajectory.json"
    assert usage.tokens == TokenUsage(uncached_input=3000, cached_input=1200, cache_write=50, output=70)


def test_a_trajectory_counts_subagents_and_models_apart(tmp_path):
    sub = {"agent": {"name": "sub", "model_name": "claude-haiku-4-5"}, "steps": []}
    sub["steps"] = [{"source": "agent", "metrics": {"prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 2}}]
    write_trajectory(tmp_path, "claude-code", [("claude-sonnet-4-5", 100, 20, 30, 5)], subagent_trajectories=[sub])
    usage = account(tmp_path)
    tokens = {item.model: item.tokens for item in usage.models}
    assert tokens["claude-sonnet-4-5"] == TokenUsage(uncached_input=50, cached_input=20, cache_write=30, output=5)
    assert tokens["claude-haiku-4-5"] == TokenUsage(uncached_input=6, cached_input=4, cache_write=None, output=2)
    assert usage.tokens.cache_write is None, "a sum with an unknown part is unknown"


def test_harbor_totals_are_the_last_resort_and_their_input_includes_cached_tokens(tmp_path):
    usage = account(tmp_path, model="gpt-5.5", totals=Totals(727796, 642816, 15843, cost_usd=0.5))
    assert usage.tokens == TokenUsage(uncached_input=84980, cached_input=642816, cache_write=None, output=15843)
    assert usage.source == "harbor totals"
    assert usage.reported_cost_usd == 0.5
    assert usage.cost_usd == pytest.approx((84980 * 5 + 642816 * 0.5 + 15843 * 30) / 1e6, rel=1e-12)
    text = " ".join(usage.warnings)
    assert "cache writes are not reported apart" in text
    assert "none is priced as one of long context" in text


def test_no_trace_of_usage_is_none(tmp_path):
    assert account(tmp_path, model="gpt-5.5", totals=Totals()) is None
    assert account(None) is None


def test_long_requests_are_priced_one_by_one(tmp_path):
    write_trajectory(tmp_path, "codex", [(None, 272_001, 0, 0, 10), (None, 272_000, 0, 0, 10)])
    usage = account(tmp_path, model="gpt-5.5")
    expected = (272_001 * 10 + 10 * 45 + 272_000 * 5 + 10 * 30) / 1e6
    assert usage.cost_usd == pytest.approx(expected, rel=1e-12)


def test_the_closing_event_wins_over_a_trajectory_that_misses_requests(tmp_path):
    write_codex_log(tmp_path, codex_usage(500_000, 0, 0, 100))
    write_trajectory(tmp_path, "codex", [(None, 300_000, 0, 0, 100)])
    usage = account(tmp_path, model="gpt-5.5")
    assert usage.tokens.uncached_input == 500_000
    assert usage.cost_usd == pytest.approx((500_000 * 5 + 100 * 30) / 1e6, rel=1e-12)
    assert any("none is priced as one of long context" in warning for warning in usage.warnings)


def test_a_model_without_price_has_an_unknown_cost_never_zero(tmp_path, monkeypatch):
    monkeypatch.setattr(_prices, "_litellm_rates", lambda model: (None, ""))
    models = claude_models(claude_sonnet_4_5=(10, 0, 0, 1), house_model=(10, 0, 0, 1))
    write_claude_log(tmp_path, models, cost=None)
    usage = account(tmp_path)
    assert usage.cost_usd is None
    assert {item.model: item.cost_usd is None for item in usage.models} == {
        "claude-sonnet-4-5": False,
        "house-model": True,
    }
    assert "house-model: no price is known; add it to orbit/_prices.toml" in usage.warnings


def test_incomplete_counts_have_an_unknown_cost(tmp_path):
    usage = account(tmp_path, model="gpt-5.5", totals=Totals(n_input_tokens=5))
    assert usage.cost_usd is None
    assert usage.tokens.output is None


@pytest.mark.parametrize(
    ("ours", "reported", "warned"),
    [
        (1.0, 1.05, False),
        (1.0, 1.06, True),
        (1.0, 0.94, True),
        (None, 1.0, False),
        (1.0, None, False),
        (0.0, 0.0, False),
    ],
)
def test_a_difference_of_more_than_five_percent_warns(ours, reported, warned):
    warning = cost_warning(ours, reported)
    assert (warning is not None) is warned
    if warning:
        assert f"{reported:.4f} USD" in warning


def test_the_warning_reaches_the_record(tmp_path):
    write_claude_log(tmp_path, claude_models(claude_sonnet_4_5=(1000, 0, 0, 100)), cost=0.009)
    assert account(tmp_path).warnings == [cost_warning(0.0045, 0.009)]


@pytest.mark.parametrize("name", ["openai/gpt-5.5", "gpt-5.5-2026-04-23", "claude-haiku-4-5-20251001"])
def test_provider_and_date_do_not_hide_a_price(name):
    cost = _prices.cost_of(name, [_prices.Request(1_000_000, 0, 0, 0)], as_total=True)
    assert cost.usd == {"g": 5.0, "o": 5.0, "c": 1.0}[name[0]]
    assert "orbit prices 20" in cost.source


def test_a_longer_model_name_is_another_model(monkeypatch):
    monkeypatch.setattr(_prices, "_litellm_rates", lambda model: (None, ""))
    assert _prices.cost_of("gpt-5.5-pro", [_prices.Request(1, 0, 0, 0)]) is None


def test_litellm_is_the_fallback_and_is_named(monkeypatch):
    table = {
        "other": {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6, "cache_read_input_token_cost": 5e-7}
    }
    monkeypatch.setitem(__import__("sys").modules, "litellm", SimpleNamespace(model_cost=table))
    cost = _prices.cost_of("provider/other", [_prices.Request(100, 10, 1, 7)])
    assert cost.usd == pytest.approx(100 * 2e-6 + 10 * 5e-7 + 1 * 2e-6 + 7 * 8e-6, rel=1e-12)
    assert cost.source.startswith("litellm 1.")
    assert _prices.cost_of("provider/unheard-of", [_prices.Request(1, 1, 1, 1)]) is None


def test_the_records_read_back(tmp_path):
    write_claude_log(tmp_path, claude_models(claude_sonnet_4_5=(1, 2, 3, 4)), cost=None)
    usage = account(tmp_path)
    assert accounting.AgentUsage.model_validate_json(usage.model_dump_json()) == usage
