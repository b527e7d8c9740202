"""`orbit demo`: references of a few tasks, solved through harbor, judged, timed, and shown on one page."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

import orbit
from orbit._toml import read_toml, validate
from orbit.environments import environment_python
from orbit.errors import DataError, HarnessError
from orbit.execution.trials import TrialRecord
from orbit.frameworks import find_framework
from orbit.paths import data_root
from orbit.records import Record, read_record
from orbit.reports.demo_page import Curve, Page, Panel, write_page
from orbit.run_directory import new_run_directory
from orbit.tasks import DEFAULT_SUITE, Task, find_task
from orbit.verification.execution import Limits, read_outputs
from orbit.verification.verdict import Verdict

Progress = Callable[[str], None]
TIMED_RUN = "timed-1"
"""The run whose histories are drawn."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Plot(_Strict):
    """One task of the demo and the history drawn of it.

    Attributes:
        task: id within the suite.
        history: result key.
        label: of the vertical axis.
        exact: key of a stored exact value, drawn as a line.
        exact_per: key of the configuration that the exact value is divided by.
        threshold: key of the configuration, drawn as a line.
        log_steps: draw steps logarithmically, for long runs that converge early.
    """

    task: str
    history: str
    label: str
    exact: str | None = None
    exact_per: str | None = None
    threshold: str | None = None
    log_steps: bool = False


class Demo(_Strict):
    """`[demo]` of a `suite.toml`."""

    framework: str
    plots: tuple[Plot, ...] = Field(min_length=1)


class _SuiteFile(_Strict):
    """`tasks/<suite>/suite.toml`."""

    schema_version: Literal[1]
    title: str
    demo: Demo


class DemoResult(Record):
    """What the demo did. `phases` are (what, seconds) in order."""

    page: Path
    run_dir: Path
    total_sec: float
    phases: list[tuple[str, float]]
    trials: list[TrialRecord]


def load_demo(suite: str = DEFAULT_SUITE) -> Demo:
    """What the suite's demo consists of.

    Raises:
        DataError: `suite.toml` is missing or wrong.
    """
    path = data_root() / "tasks" / suite / "suite.toml"
    return validate(path, _SuiteFile, read_toml(path)).demo


def run_demo(out_dir: Path | None = None, progress: Progress | None = None) -> DemoResult:
    """Make the environment, run and judge the references, and write `index.html`.

    Args:
        out_dir: new or empty; a new directory under `runs/` if None.
        progress: gets a line whenever something long begins.

    Raises:
        UsageError: `out_dir` holds files.
        SetupError: the environment cannot be made.
        HarnessError: a trial ended without a verdict.
    """
    from orbit.execution.agents import REFERENCE, AgentSpec
    from orbit.execution.jobs import Cell, JobPlan, run_job

    report: Progress = progress or (lambda text: None)
    began = time.monotonic()
    demo = load_demo()
    directory = new_run_directory("demo", out_dir)
    environment_python(find_framework(demo.framework), progress=report)
    ready = time.monotonic()
    cells = tuple(Cell(plot.task, demo.framework) for plot in demo.plots)
    outcome = run_job(JobPlan(cells=cells, agent=AgentSpec(REFERENCE), out_dir=directory / "run"), report)
    report("drawing the page")
    # Drawn before the last clock is read, so that its time (mostly the plot library's import) is part of the total.
    panels = [_panel(plot, demo.framework, outcome.trials, outcome.out_dir) for plot in demo.plots]
    phases = _phases(outcome.trials, environment=ready - began, total=time.monotonic() - began)
    page = directory / "index.html"
    write_page(page, Page(panels, phases, host=panels[0].verdict.host, version=orbit.__version__))
    return DemoResult(
        page=page,
        run_dir=outcome.out_dir,
        total_sec=round(time.monotonic() - began, 3),
        phases=phases,
        trials=list(outcome.trials),
    )


def _phases(trials: tuple[TrialRecord, ...], *, environment: float, total: float) -> list[tuple[str, float]]:
    phases = [("framework environment", environment)]
    phases += [(f"judging {_task_id(trial)}", trial.verification_sec or 0.0) for trial in trials]
    rest = total - sum(duration for _, duration in phases)
    return [(what, round(duration, 3)) for what, duration in (*phases, ("harbor and all else", max(0.0, rest)))]


def _task_id(trial: TrialRecord) -> str:
    return trial.task.rpartition("/")[2]


def _panel(plot: Plot, framework: str, trials: tuple[TrialRecord, ...], run_dir: Path) -> Panel:
    task = find_task(plot.task)
    trial = next((trial for trial in trials if _task_id(trial) == task.id), None)
    if trial is None or trial.verdict_path is None:
        reason = "no trial" if trial is None else trial.exception_message or trial.summary
        raise HarnessError(f"{task.name} has no verdict ({reason}); see {run_dir}")
    path = run_dir / trial.verdict_path
    solution = task.reference_path(framework)
    return Panel(
        title=task.title,
        verdict=read_record(path, Verdict),
        curve=_curve(plot, task, path.parent / "runs" / TIMED_RUN),
        repeat=f"orbit verify {solution} --task {task.number} --framework {framework}",
    )


def _curve(plot: Plot, task: Task, output_dir: Path) -> Curve | None:
    """The history that came back; None if the timed run brought none."""
    try:
        values = read_outputs(output_dir, Limits().output_bytes).get(plot.history)
    except (OSError, ValueError):
        return None
    if values is None or values.ndim != 1:
        return None
    line, line_label = _line(plot, task)
    return Curve(plot.label, values, line=line, line_label=line_label, log_steps=plot.log_steps)


def _line(plot: Plot, task: Task) -> tuple[float | None, str]:
    if plot.exact is not None:
        value = (task.exact(task.config) or {}).get(plot.exact)
        if not isinstance(value, int | float):
            return None, ""
        return value / (_configured(task, plot.exact_per) if plot.exact_per is not None else 1), "exact"
    if plot.threshold is not None:
        return _configured(task, plot.threshold), "required"
    return None, ""


def _configured(task: Task, key: str) -> float:
    if key not in task.config:
        raise DataError(
            f"{task.directory / 'task.toml'}: config has no {key}, which suite.toml names; correct one of them"
        )
    return float(task.config[key])
