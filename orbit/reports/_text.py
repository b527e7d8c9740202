"""Numbers and foreign text, made safe and short for a terminal."""

from __future__ import annotations

import math
import unicodedata

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def printable(text: str) -> str:
    """Text without control characters, so that what an artifact prints or raises cannot drive the reader's terminal."""
    return "".join(
        character
        if character == "\n" or not unicodedata.category(character).startswith("C")
        else "\N{REPLACEMENT CHARACTER}"
        for character in text.replace("\t", "    ")
    )


def number(value: float | int | str | None) -> str:
    """A measured value or limit in at most five significant digits; strings stay, None is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, int):
        return str(value)
    return f"{value:.5g}" if math.isfinite(value) else str(value)


def seconds(value: float | None) -> str:
    """A duration: `0.42 s`, `12.3 s`, `6 min 05 s`."""
    if value is None:
        return "-"
    if value < 120:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s"


def memory(n_bytes: int | float | None) -> str:
    """A size in binary units."""
    if n_bytes is None:
        return "-"
    size, unit = float(n_bytes), _UNITS[0]
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if size >= 100 or unit == "B" else f"{size:.1f} {unit}"


def count(n: int, singular: str, plural: str | None = None) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{n} {singular if n == 1 else plural or singular + 's'}"
