"""The toy task of `tests/toy_root`: three parameters, small enough to check the generic machinery by hand."""

from __future__ import annotations

from pathlib import Path

from orbit.tasks import load_task

TOY_ROOT = Path(__file__).parents[2] / "toy_root"
TASK = load_task(TOY_ROOT / "tasks" / "toy" / "01-cosines")
DEFAULTS = dict(TASK.config)
ToyEvaluator = type(TASK.load_evaluator())
ToyOracle = type(TASK.load_oracle())
