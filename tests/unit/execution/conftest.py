import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
TASK_TOML = """\
schema_version = "1.4"
[task]
name = "tiny/NAME"
description = "NAME: a task of one number"
keywords = ["copying"]
[metadata.orbit]
schema_version = 1
title = "Copy"
[metadata.orbit.config]
n = 1
[agent]
timeout_sec = 60
"""


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data root with the suite `tiny` of two trivial tasks and the real frameworks; also for worker processes."""
    root = tmp_path / "data"
    for name in ("01-copy", "02-copy-again"):
        task = root / "tasks" / "tiny" / name
        (task / "tests").mkdir(parents=True)
        (task / "task.toml").write_text(TASK_TOML.replace("NAME", name))
        (task / "instruction.md").write_text("Return one number.\n")
        (task / "tests" / "evaluator.py").write_text("EVALUATOR = None\n")
        reference = root / "references" / "tiny" / name / "tensorcircuit.py"
        reference.parent.mkdir(parents=True)
        reference.write_text("# good\n")
    (root / "tasks" / "tiny" / "shared.md.j2").write_text("Rules.\n")
    shutil.copytree(REPOSITORY / "frameworks", root / "frameworks")
    monkeypatch.setenv("ORBIT_DATA", str(root))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    return root
