"""`orbit show`: what happened in a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from orbit.cli import _shell

EXAMPLES = (
    "orbit show runs/first --trial 02",
    "orbit show runs/first/trials/02-entanglement-profile--pennylane__aBcD123 --section transcript",
    "orbit show runs/verify-20260101T120000Z",
)


def command(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="TRIAL", help="Run directory, trial's directory, trial.json, or what `orbit verify` left."
        ),
    ],
    trial: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the trial, or its beginning, where there are several.")
    ] = None,
    section: Annotated[
        Literal["transcript", "artifact", "verdict"] | None, typer.Option(help="Show only this part.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", "--verbose", "-v", help="Cut nothing, and show every piece of evidence.")
    ] = False,
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """Show what happened in a trial.

    Who solved what and how it ended, tokens and cost, what the agent did in order, the artifact and the verdict.

    Exit code 0 whatever the verdict is; 2: there is no such trial.
    """
    from orbit.reports.trial import load_trial
    from orbit.reports.trial_text import render_trial

    view = load_trial(path, trial)
    if json:
        _shell.show_json(view if section is None else getattr(view, section))
    else:
        _shell.show(render_trial(view, section, full=full))
