"""The report of `orbit doctor` for a person: one line per thing, the fix under what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbit.doctor import Level, Report
from orbit.reports._text import printable

if TYPE_CHECKING:
    from rich.text import Text

_MARKS = {Level.OK: ("ok", "green"), Level.OPTIONAL: ("--", "yellow"), Level.BROKEN: ("NO", "bold red")}


def render_report(report: Report) -> Text:
    """What was found, then whether the embedded default works."""
    from rich.text import Text

    width = max(len(finding.name) for finding in report.findings)
    lines = []
    for finding in report.findings:
        mark, style = _MARKS[finding.level]
        lines.append(
            Text.assemble((f"{mark}  ", style), (f"{finding.name:<{width}}  ", "bold"), printable(finding.message))
        )
        if finding.fix:
            lines.append(Text(" " * (width + 6)).append(f"fix: {finding.fix}", "cyan"))
    if report.works:
        conclusion = Text("The embedded default works: `orbit demo` needs nothing more.", "bold green")
    else:
        n_broken = sum(finding.level is Level.BROKEN for finding in report.findings)
        conclusion = Text(f"The embedded default does not work: fix the {n_broken} marked NO.", "bold red")
    return Text("\n").join([*lines, Text(), conclusion])
