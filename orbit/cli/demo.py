"""`orbit demo`: the whole path on this machine, with a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orbit.cli import _shell

EXAMPLES = ("orbit demo", "orbit demo --out my-demo", "orbit demo --json")


def command(
    out: Annotated[
        Path | None, typer.Option(help="Directory of page and run; must be new or empty [default: runs/demo-TIME].")
    ] = None,
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """Judge two references; write a page.

    Needs no Docker and no key. The first run makes the framework's environment, which takes some minutes.

    Exit code 0: no reference failed; 1: one did; 2: set-up, or the harness failed.
    """
    from orbit.reports.demo import run_demo
    from orbit.reports.trials_text import exit_code, render_trials

    with _shell.progress() as report:
        result = run_demo(out, report)
    if json:
        _shell.show_json(result)
    else:
        _shell.show(render_trials(result.trials, result.run_dir))
        _shell.show(f"Page      {result.page}")
    raise typer.Exit(exit_code(result.trials))
