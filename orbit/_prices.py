"""What tokens cost: the versioned table in `_prices.toml`, and litellm's bundled one for models it does not list."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from orbit._toml import read_toml, validate

_PATH = Path(__file__).with_name("_prices.toml")
_PER_MILLION = 1e-6
_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")

_Price = Annotated[float, Field(ge=0)]


class Rates(BaseModel):
    """Prices in USD per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Price
    cached_input: _Price
    cache_write: _Price
    output: _Price


class LongContextRates(Rates):
    """Prices of a request whose whole input is longer than `above_tokens`."""

    above_tokens: int = Field(gt=0)


class ModelRates(Rates):
    """Prices of one model."""

    long_context: LongContextRates | None = None


class PriceTable(BaseModel):
    """`_prices.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1]
    date: str
    source: str
    unit: Literal["USD per million tokens"]
    models: dict[str, ModelRates]

    def rates(self, model: str) -> ModelRates | None:
        """Prices of a model; a dated snapshot of a listed model costs what the model costs."""
        return self.models.get(model) or self.models.get(_DATED.sub("", model))


@dataclass(frozen=True)
class Request:
    """Token counts of one request, or of several taken as one."""

    uncached_input: int
    cached_input: int
    cache_write: int
    output: int

    @property
    def all_input(self) -> int:
        """Every input token."""
        return self.uncached_input + self.cached_input + self.cache_write


@dataclass(frozen=True)
class Cost:
    """A cost in USD and the table it comes from."""

    usd: float
    source: str


@cache
def load_price_table() -> PriceTable:
    """The versioned table of this package.

    Raises:
        DataError: the file is damaged.
    """
    return validate(_PATH, PriceTable, read_toml(_PATH))


def bare_model_name(model: str) -> str:
    """The model's name without the provider before it: `openai/gpt-5.5` is `gpt-5.5`."""
    return model.rpartition("/")[2]


def cost_of(model: str, requests: list[Request], *, as_total: bool = False) -> Cost | None:
    """Cost of requests to one model; None when no table knows the model.

    Args:
        model: name, with or without its provider before it.
        requests: what was sent and received.
        as_total: the counts are sums over requests of unknown length, so none is taken for one of long context.
    """
    table = load_price_table()
    rates = table.rates(bare_model_name(model))
    source = f"orbit prices {table.date} ({table.source})"
    if rates is None:
        rates, source = _litellm_rates(model)
    if rates is None:
        return None
    if as_total:
        rates = rates.model_copy(update={"long_context": None})
    return Cost(sum(_cost(rates, request) for request in requests), source)


def may_cost_more(model: str, total: Request) -> bool:
    """Whether one request of that size would be charged as long, so that a total alone does not determine the cost."""
    rates = load_price_table().rates(bare_model_name(model))
    return rates is not None and rates.long_context is not None and total.all_input > rates.long_context.above_tokens


def _cost(rates: ModelRates, request: Request) -> float:
    chosen: Rates = rates
    if rates.long_context is not None and request.all_input > rates.long_context.above_tokens:
        chosen = rates.long_context
    return _PER_MILLION * (
        request.uncached_input * chosen.input
        + request.cached_input * chosen.cached_input
        + request.cache_write * chosen.cache_write
        + request.output * chosen.output
    )


def _litellm_rates(model: str) -> tuple[ModelRates | None, str]:
    """Prices of short requests from litellm's table, and its name and version."""
    # Without this litellm tries to download a newer table when it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from importlib.metadata import version

    import litellm

    source = f"litellm {version('litellm')} (bundled table, requests of ordinary length)"
    name = next((name for name in (model, bare_model_name(model)) if name in litellm.model_cost), None)
    entry = litellm.model_cost[name] if name is not None else {}
    per_input, per_output = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if not per_input or per_output is None:
        return None, source
    rates = ModelRates(
        input=per_input / _PER_MILLION,
        cached_input=entry.get("cache_read_input_token_cost", per_input) / _PER_MILLION,
        cache_write=entry.get("cache_creation_input_token_cost", per_input) / _PER_MILLION,
        output=per_output / _PER_MILLION,
    )
    return rates, source
