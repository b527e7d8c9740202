"""Options of an agent's adapter from `KEY=VALUE` on the command line; secrets are kept out of them.

Options are written to the records of a run, so what could be a key is refused: keys come from environment variables,
of which only the name is ever written down.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orbit.errors import UsageError

_OWN_FLAGS = {
    "base_url": "--base-url",
    "model_api_key_name": "--key-variable",
    "model_name": "--model",
    "reasoning_effort": "--effort",
    "version": "--agent-version",
}
"""Options of harbor's that have a flag of their own."""

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS = re.compile(r"(?:api)?keys?|(?:auth)?tokens?|secrets?|passw(?:or)?ds?|credentials?|auth|authorization")


def parse_agent_options(lines: Iterable[str]) -> dict[str, Any]:
    """Typed options: a value is read as JSON, else as TOML, else it is the text as it stands.

    Raises:
        UsageError: a line is not KEY=VALUE, a key appears twice, has a flag of its own, or may hold a secret.
    """
    options: dict[str, Any] = {}
    for line in lines:
        key, equals, text = line.partition("=")
        key = key.strip()
        if not equals or not _NAME.fullmatch(key):
            shown = key if _NAME.fullmatch(key) else "..."
            raise UsageError(f"--agent-option {shown}: not of the form KEY=VALUE, such as max_turns=30")
        if key in options:
            raise UsageError(f"--agent-option {key}: given twice; give it once")
        if key in _OWN_FLAGS:
            raise UsageError(f"--agent-option {key}: use {_OWN_FLAGS[key]}")
        options[key] = _value(text)
    refuse_secrets(options)
    return options


def refuse_secrets(options: Mapping[str, Any], key_variables: Iterable[str] = ()) -> None:
    """Hold options to what may stand in a record.

    Args:
        options: may be nested.
        key_variables: environment variables whose value must not appear in any option.

    Raises:
        UsageError: an option is named like a secret, or holds a key of the environment. Its value is not repeated.
    """
    keys = [value for name in key_variables if (value := os.environ.get(name))]
    for name, value in _leaves(options):
        by_name = any(_SECRET_WORDS.fullmatch(word.lower()) for word in _WORD.findall(name.rpartition(".")[2]))
        if (by_name and isinstance(value, str)) or any(key in str(value) for key in keys):
            raise UsageError(
                f"--agent-option {name}: looks like a secret, and options are written to the records; "
                "set an environment variable to it and give the variable's name as --key-variable"
            )


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, name)
    else:
        yield name, value


def _value(text: str) -> Any:
    for parse in (json.loads, lambda text: tomllib.loads(f"value = {text}")["value"]):
        try:
            value = parse(text)
        except ValueError:
            continue
        if _is_plain(value):
            return value
    return text


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold it; dates and infinities of TOML are left as text."""
    if isinstance(value, dict):
        return all(_is_plain(item) for item in value.values())
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)
