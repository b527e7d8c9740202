"""The trials of a run for a person: one row each, then where the verdicts lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orbit.execution.trials import TrialRecord
from orbit.records import read_record
from orbit.reports._text import count, printable, seconds
from orbit.reports.verdict_text import VALIDITY_STYLES
from orbit.verification.verdict import Timing, Validity, Verdict

if TYPE_CHECKING:
    from rich.console import Group


def render_trials(trials: Sequence[TrialRecord], run_dir: Path) -> Group:
    """A table, what was wrong with each trial that failed, and the paths."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("task", "framework", "outcome"):
        table.add_column(name, no_wrap=True)
    for name in ("reward", "runtime", "slowdown", "took"):
        table.add_column(name, justify="right", no_wrap=True)
    lines: list[Text] = []
    for trial in trials:
        timing = timing_of(trial, run_dir)
        table.add_row(
            trial.task.rpartition("/")[2],
            trial.framework,
            Text(trial.validity.value, VALIDITY_STYLES[trial.validity]),
            "-" if trial.reward is None else str(trial.reward),
            seconds(timing.runtime_sec),
            "-" if timing.slowdown is None else f"{timing.slowdown:.3g}",
            seconds(trial.verification_sec),
        )
        style = "red" if trial.validity in (Validity.INVALID, Validity.ERROR) else "dim"
        lines.append(
            Text.assemble((f"{trial.name}: ", "bold"), (printable(trial.summary) or trial.ending.value, style))
        )
        if trial.verdict_path is not None:
            lines.append(Text(f"  {run_dir / trial.verdict_path}"))
    n_fine = sum(trial.validity in (Validity.VALID, Validity.PROVISIONAL) for trial in trials)
    summary = Text(f"{n_fine} of {count(len(trials), 'trial')} valid or provisional", "bold")
    return Group(table, *lines, Text(), summary, Text(f"Run       {run_dir}"))


def timing_of(trial: TrialRecord, run_dir: Path) -> Timing:
    """The times in a trial's verdict; empty ones if it has none."""
    return read_record(run_dir / trial.verdict_path, Verdict).timing if trial.verdict_path is not None else Timing()


def exit_code(trials: Sequence[TrialRecord]) -> int:
    """0 if every trial is valid or provisional, 1 if one is invalid, 2 if none is but one could not be judged."""
    found = {trial.validity for trial in trials}
    if Validity.INVALID in found:
        return 1
    return 2 if Validity.ERROR in found or not found else 0
