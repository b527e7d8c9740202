"""`orbit doctor`: what this machine can run."""

from __future__ import annotations

import typer

from orbit.cli import _shell

EXAMPLES = ("orbit doctor", "orbit doctor --json")


def command(json: _shell.JsonOption = False, debug: _shell.DebugOption = False) -> None:
    """Show what this machine can run and lacks.

    Each missing thing comes with the command that fixes it.

    Exit code 0: the embedded default works (references run and are verified without Docker and without a key); 1: it
    does not. Optional things that are missing do not change the exit code.
    """
    from orbit.doctor import examine
    from orbit.reports.doctor_text import render_report

    report = examine()
    if json:
        _shell.show_json(report)
    else:
        _shell.show(render_report(report))
    raise typer.Exit(_shell.OK if report.works else _shell.MEASURED_FAILURE)
