"""A verdict for a person at a terminal: the outcome in one line, then what failed, then the time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from orbit.reports._text import count, memory, number, printable, seconds
from orbit.verification.verdict import STAGES, Evidence, Outcome, Stage, StageStatus, Timing, Validity, Verdict

if TYPE_CHECKING:
    from rich.text import Text

VALIDITY_STYLES = {
    Validity.VALID: "bold black on green",
    Validity.PROVISIONAL: "bold black on yellow",
    Validity.INVALID: "bold white on red",
    Validity.ERROR: "bold white on magenta",
}
OUTCOME_STYLES = {Outcome.FAIL: "red", Outcome.FLAG: "yellow", Outcome.PASS: "green", Outcome.NOT_APPLICABLE: "dim"}
MAX_SHOWN = 4
"""Failures or flags shown without `verbose`; the rest is counted."""
_LABEL_WIDTH = 10


def render_verdict(verdict: Verdict, path: Path | None = None, *, verbose: bool = False) -> Text:
    """Everything a reader needs, most important first.

    Args:
        verdict: what to show.
        path: where `verdict.json` lies; named in the last line.
        verbose: every piece of evidence instead of counts.
    """
    from rich.text import Text

    lines = [_headline(verdict), Text(f"  {printable(verdict.summary)}")]
    lines += _evidence_lines(verdict, Outcome.FAIL, "Failed", verbose)
    flags = find_evidence(verdict, Outcome.FLAG)
    if flags and not verbose and find_evidence(verdict, Outcome.FAIL):
        # What failed explains them, as a rule.
        lines.append(_labelled("Flagged", f"{count(len(flags), 'check')} (--verbose shows them)"))
    else:
        lines += _evidence_lines(verdict, Outcome.FLAG, "Flagged", verbose)
    if verbose:
        lines += _evidence_lines(verdict, Outcome.PASS, "Passed", verbose)
        lines += _evidence_lines(verdict, Outcome.NOT_APPLICABLE, "Not applicable", verbose)
    else:
        lines += _passes(verdict)
    lines += _reasons(verdict)
    lines += _timing(verdict.timing)
    lines += _surroundings(verdict)
    if path is not None:
        lines.append(_labelled("Verdict", str(path)))
    return Text("\n").join(lines)


def _headline(verdict: Verdict) -> Text:
    from rich.text import Text

    reason = f" ({verdict.failure_mode.value})" if verdict.failure_mode is not None else ""
    line = Text.assemble((f" {verdict.validity.value.upper()} ", VALIDITY_STYLES[verdict.validity]))
    line.append(reason, "bold red")
    return line.append(f"  {verdict.task} · {verdict.framework} · {verdict.contract.value}", "bold")


def ordered_stages(verdict: Verdict) -> Iterator[tuple[str, Stage]]:
    """Stages in the order they are looked at, unknown ones last."""
    known = [name for name in STAGES if name in verdict.stages]
    for name in known + [name for name in verdict.stages if name not in STAGES]:
        yield name, verdict.stages[name]


def find_evidence(verdict: Verdict, outcome: Outcome) -> list[tuple[str, Evidence]]:
    """All evidence with that outcome, as (stage, evidence)."""
    return [
        (name, item) for name, stage in ordered_stages(verdict) for item in stage.evidence if item.outcome is outcome
    ]


def _evidence_lines(verdict: Verdict, outcome: Outcome, title: str, verbose: bool) -> list[Text]:
    from rich.text import Text

    found = find_evidence(verdict, outcome)
    if not found:
        return []
    shown = found if verbose else found[:MAX_SHOWN]
    lines = [Text(title, "bold")]
    for stage, item in shown:
        line = Text("  ").append(f"{stage}: ", "dim").append(printable(item.check), OUTCOME_STYLES[outcome])
        line.append(f" [{printable(item.run)}]" if item.run else "", "dim").append(measured(item))
        lines.append(line)
        lines += [Text(f"      {text}", "dim") for text in printable(item.message).splitlines() if text.strip()]
    if len(found) > len(shown):
        lines.append(Text(f"  and {len(found) - len(shown)} more (--verbose shows them)", "dim"))
    return lines


def measured(item: Evidence) -> str:
    """The number and its limit, as far as they exist: ` 0.31, limit at most 0.2`."""
    value, limit = number(item.value), number(item.limit)
    return (f" {value}" if value else "") + (f", limit {_side(item)}{limit}" if limit else "")


def _side(item: Evidence) -> str:
    """On which side of its limit a value must be, which value and outcome tell together."""
    value, limit = item.value, item.limit
    if (
        item.outcome is Outcome.NOT_APPLICABLE
        or not isinstance(value, float | int)
        or not isinstance(limit, float | int)
    ):
        return ""
    if value == limit:
        return ""
    return "at most " if (value < limit) == (item.outcome is Outcome.PASS) else "at least "


def _passes(verdict: Verdict) -> list[Text]:
    counts = []
    for name, stage in ordered_stages(verdict):
        n_passed = sum(item.outcome is Outcome.PASS for item in stage.evidence)
        if n_passed:
            counts.append(f"{name} {n_passed}")
    n_inapplicable = len(find_evidence(verdict, Outcome.NOT_APPLICABLE))
    extra = f"  ({n_inapplicable} not applicable)" if n_inapplicable else ""
    return [_labelled("Passed", " · ".join(counts) + extra)] if counts else []


def _reasons(verdict: Verdict) -> list[Text]:
    """Stages that did not run, by their reason, and what the others have to add."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, stage in ordered_stages(verdict):
        if stage.status in (StageStatus.SKIPPED, StageStatus.ERROR):
            key = (stage.status.value.capitalize(), printable(stage.reason) or "no reason given")
            groups.setdefault(key, []).append(name)
        elif stage.reason:
            groups.setdefault(("Note", printable(stage.reason)), []).append(name)
    return [_labelled(label, f"{', '.join(names)}: {reason}") for (label, reason), names in groups.items()]


def timing_sentence(timing: Timing) -> str:
    """`12.3 s, reference 11.9 s: slowdown 1.03 (0.98 to 1.07, 5 pairs)`; empty if nothing was timed."""
    if timing.runtime_sec is None:
        return ""
    text = seconds(timing.runtime_sec)
    if timing.reference_sec is not None:
        text += f", reference {seconds(timing.reference_sec)}"
    if timing.slowdown is not None:
        interval = timing.slowdown_interval
        spread = f"{interval[0]:.3g} to {interval[1]:.3g}, " if interval is not None else ""
        text += f": slowdown {timing.slowdown:.3g} ({spread}{count(len(timing.pairs), 'pair')})"
    return text


def _timing(timing: Timing) -> list[Text]:
    sentence = timing_sentence(timing)
    lines = [_labelled("Time", sentence or "not measured")]
    details = []
    if timing.import_sec is not None:
        details.append(f"import {seconds(timing.import_sec)} of it")
    if timing.peak_memory_bytes is not None:
        details.append(f"peak memory {memory(timing.peak_memory_bytes)}")
    if timing.n_cores is not None:
        details.append(count(timing.n_cores, "core"))
    if details and sentence:
        lines.append(_labelled("", " · ".join(details)))
    return lines + [_labelled("Warning", printable(text), "yellow") for text in timing.warnings]


def _surroundings(verdict: Verdict) -> list[Text]:
    lines = []
    if verdict.sandbox is not None:
        network = "with network" if verdict.sandbox.network else "no network"
        user = "unprivileged user" if verdict.sandbox.unprivileged else "own user"
        lines.append(_labelled("Sandbox", f"{verdict.sandbox.kind}, {network}, {user}"))
    warnings = list(dict.fromkeys([*(verdict.sandbox.warnings if verdict.sandbox else []), *verdict.warnings]))
    return lines + [_labelled("Warning", printable(text), "yellow") for text in warnings]


def _labelled(label: str, text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text.assemble((f"{label:<{_LABEL_WIDTH}}", "bold"), (text, style))


def exit_code(verdict: Verdict) -> int:
    """0 if the artifact is valid or provisional, 1 if it is invalid, 2 if it could not be judged."""
    return {Validity.VALID: 0, Validity.PROVISIONAL: 0, Validity.INVALID: 1, Validity.ERROR: 2}[verdict.validity]
