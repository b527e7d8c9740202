"""What the commands share: exit codes, common options, consoles and the display of progress."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

OK = 0
MEASURED_FAILURE = 1
USAGE = 2
INTERRUPTED = 130

WORTH_KEEPING_SEC = 0.5
"""Steps that took less, such as the lines of an installer, do not stay on a terminal."""

PIPE_COLUMNS = 160
"""Width of tables that do not go to a terminal."""

_debug = False


def set_debug(enabled: bool) -> bool:
    """Remember whether errors show their traceback; as an option's callback it never takes a set flag back."""
    global _debug
    _debug = enabled
    return enabled


def debug_enabled() -> bool:
    """Whether errors show their traceback."""
    return _debug


def _remember_debug(enabled: bool) -> bool:
    return set_debug(enabled or _debug)


JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of an error.", callback=_remember_debug, is_eager=True)
]


def examples(*lines: str) -> str:
    """The last paragraph of a command's help: examples that keep their line breaks."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def stdout() -> Console:
    """The console of results."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, soft_wrap=True, width=PIPE_COLUMNS)


def stderr() -> Console:
    """The console of progress and warnings."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def show(renderable: RenderableType) -> None:
    """Print a result for a person."""
    stdout().print(renderable)


def show_json(value: Any) -> None:
    """Print a result for a program: a pydantic model, or plain JSON data; NaN and infinity become null."""
    data = _plain(value)
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump_json"):
        return json.loads(value.model_dump_json())
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Show on standard error what is running and for how long.

    On a terminal the current line is alive and earlier ones, if they took long, stay above it with their duration;
    elsewhere each line is printed when it begins, with the seconds since the start.
    """
    console = stderr()
    if console.is_terminal:
        with _live_progress(console) as report:
            yield report
        return
    start = time.monotonic()
    yield lambda text: console.print(f"[{time.monotonic() - start:7.1f} s] {text}", markup=False, soft_wrap=True)


@contextmanager
def _live_progress(console: Console) -> Iterator[Callable[[str], None]]:
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    current: list[tuple[str, float]] = []

    def finish(display: Progress) -> None:
        if current:
            text, since = current.pop()
            took = time.monotonic() - since
            if took >= WORTH_KEEPING_SEC:
                display.console.print(f"  [dim]{took:7.1f} s[/]  {escape(text)}")

    with Progress(*columns, console=console, transient=True) as display:
        line = display.add_task("starting", total=None)

        def report(text: str) -> None:
            finish(display)
            current.append((text, time.monotonic()))
            display.reset(line, description=escape(text))

        yield report
        finish(display)
