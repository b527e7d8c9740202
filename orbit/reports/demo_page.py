"""The page of `orbit demo`: verdicts, times and one plot, in a single file that loads nothing from elsewhere."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orbit.records import write_bytes
from orbit.reports._text import count, memory, number, printable, seconds
from orbit.reports.verdict_text import measured, ordered_stages, timing_sentence
from orbit.verification.verdict import Outcome, StageStatus, Verdict

_INK = "#010203"
"""A colour that occurs nowhere else; replaced by the page's text colour, so that one drawing suits both themes."""
_CURVE, _LINE = "#3b82f6", "#f97316"


@dataclass(frozen=True)
class Curve:
    """A history to draw.

    Attributes:
        label: what the vertical axis shows.
        values: one entry per optimizer step.
        line: a value to compare with, drawn as a horizontal line.
        line_label: what that value is.
        log_steps: whether the horizontal axis is logarithmic.
    """

    label: str
    values: NDArray[np.float64]
    line: float | None = None
    line_label: str = ""
    log_steps: bool = False


@dataclass(frozen=True)
class Panel:
    """One task on the page."""

    title: str
    verdict: Verdict
    curve: Curve | None
    repeat: str


@dataclass(frozen=True)
class Page:
    """Everything the page shows. `phases` are (what, seconds) in order."""

    panels: Sequence[Panel]
    phases: Sequence[tuple[str, float]]
    host: dict[str, str | int | float | None] = field(default_factory=dict)
    version: str = ""


def write_page(path: Path, page: Page) -> None:
    """Render the page and write it atomically."""
    write_bytes(path, render_page(page).encode())


def render_page(page: Page) -> str:
    """The page as HTML; all text of artifacts and verdicts is escaped, and scripts are forbidden by the page itself."""
    import jinja2

    loader = jinja2.PackageLoader("orbit.reports", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"seconds": seconds, "memory": memory, "number": number, "printable": printable}
    template = environment.get_template("demo.html.j2")
    panels = [_panel_context(panel, index) for index, panel in enumerate(page.panels)]
    return template.render(
        conclusion=_conclusion(page.panels),
        panels=panels,
        phases=page.phases,
        total=sum(duration for _, duration in page.phases),
        host=page.host,
        version=page.version,
    )


def draw_curve(curve: Curve, salt: str) -> str:
    """An SVG element of a history against the step, in the colours of whatever page surrounds it.

    Args:
        curve: what to draw.
        salt: makes the identifiers inside differ between the drawings of one page.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "font.family": "sans-serif",
        "font.size": 11,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(5.2, 3.2), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.plot(np.arange(1, len(curve.values) + 1), curve.values, color=_CURVE, linewidth=1.8, label=curve.label)
        if curve.log_steps:
            axes.set_xscale("log")
        if curve.line is not None:
            axes.axhline(curve.line, color=_LINE, linestyle="--", linewidth=1.4, label=curve.line_label)
        axes.set_xlabel("optimizer step, counted from 1")
        axes.set_ylabel(curve.label)
        axes.margins(x=0.01)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=_INK, alpha=0.12)
        if curve.line is not None:
            axes.legend(frameon=False, loc="best")
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    svg = text[text.index("<svg") :].replace(_INK, "currentColor")
    return svg.replace(
        "<svg ", '<svg role="img" aria-label="' + _attribute(curve.label) + ' against optimizer step" ', 1
    )


def _attribute(text: str) -> str:
    import markupsafe

    return str(markupsafe.escape(text))


def _conclusion(panels: Sequence[Panel]) -> str:
    counts: dict[str, int] = {}
    for panel in panels:
        counts[panel.verdict.validity.value] = counts.get(panel.verdict.validity.value, 0) + 1
    parts = ", ".join(f"{n} {validity}" for validity, n in counts.items())
    return f"{count(len(panels), 'reference')} judged: {parts}"


def _panel_context(panel: Panel, index: int) -> dict[str, Any]:
    import markupsafe

    verdict = panel.verdict
    return {
        "title": panel.title,
        "verdict": verdict,
        "badge": verdict.validity.value,
        "time": timing_sentence(verdict.timing),
        # The drawing is made here from numbers and labels of the suite; nothing of an artifact's text is in it.
        "drawing": markupsafe.Markup(draw_curve(panel.curve, f"panel-{index}")) if panel.curve else "",
        "stages": [_stage_context(name, stage) for name, stage in ordered_stages(verdict)],
        "evidence": [
            (name, item, measured(item)) for name, stage in ordered_stages(verdict) for item in stage.evidence
        ],
        "repeat": panel.repeat,
    }


def _stage_context(name: str, stage: Any) -> dict[str, Any]:
    outcomes = [item.outcome for item in stage.evidence]
    words = {Outcome.FAIL: "failed", Outcome.FLAG: "flagged", Outcome.PASS: "passed"}
    counts = [f"{outcomes.count(outcome)} {word}" for outcome, word in words.items() if outcome in outcomes]
    return {
        "name": name.replace("_", " "),
        "status": stage.status.value,
        "text": ", ".join(counts) if stage.status is not StageStatus.SKIPPED else stage.reason,
    }
