"""Builders of evidence: a measured value against its limit.

`noted_relations` listens to them, so that a list of all checks can say how a value must compare with its limit without
anybody writing that down a second time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from orbit.verification.verdict import Evidence, Outcome


class Relation(NamedTuple):
    """How a value must compare with its limit (`<=`, `>=`, `<`), and whether a failure only flags."""

    symbol: str
    flag: bool


_noted: ContextVar[dict[str, Relation] | None] = ContextVar("noted", default=None)


@contextmanager
def noted_relations() -> Iterator[dict[str, Relation]]:
    """The relation of every check, by name, for all evidence that is built inside."""
    relations: dict[str, Relation] = {}
    token = _noted.set(relations)
    try:
        yield relations
    finally:
        _noted.reset(token)


def at_most(check: str, value: float, limit: float, message: str = "", *, flag: bool = False) -> Evidence:
    """Evidence that passes when `value <= limit`; NaN does not."""
    return _compared(check, "<=", value <= limit, value, limit, message, flag)


def at_least(check: str, value: float, limit: float, message: str = "", *, flag: bool = False) -> Evidence:
    """Evidence that passes when `value >= limit`; NaN does not."""
    return _compared(check, ">=", value >= limit, value, limit, message, flag)


def below(check: str, value: float, limit: float, message: str = "", *, flag: bool = False) -> Evidence:
    """Evidence that passes when `value < limit`; NaN does not."""
    return _compared(check, "<", value < limit, value, limit, message, flag)


def _compared(check: str, symbol: str, holds: Any, value: float, limit: float, message: str, flag: bool) -> Evidence:
    relations = _noted.get()
    if relations is not None:
        relations[check] = Relation(symbol, flag)
    outcome = Outcome.PASS if bool(holds) else Outcome.FLAG if flag else Outcome.FAIL
    return Evidence(check=check, outcome=outcome, value=float(value), limit=float(limit), message=message)


def not_applicable(check: str, message: str) -> Evidence:
    """Evidence that a check has nothing to look at, and why."""
    return Evidence(check=check, outcome=Outcome.NOT_APPLICABLE, message=message)
