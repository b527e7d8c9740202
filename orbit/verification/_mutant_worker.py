"""Runs trusted solution files one after another in one warm interpreter; for a task's own mutants only.

Started by `mutants.py` with a framework environment's Python; standard library and NumPy only. Reads one JSON job per
line from standard input (`solution`, `config`, `result`) and answers each with one JSON line on a duplicate of standard
output, so that whatever a solution prints goes to standard error.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from orbit.verification import _values


def run(job: dict[str, str], number: int) -> dict[str, Any]:
    """Run one solution; an exception inside it is an answer."""
    try:
        spec = importlib.util.spec_from_file_location(f"mutant_{number}", job["solution"])
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        outputs = module.run_solution(_values.decode_config(Path(job["config"])))
        arrays = {str(key): np.array(value) for key, value in outputs.items()}
        Path(job["result"]).write_bytes(_values.pack(arrays))
    except Exception:  # noqa: BLE001  process boundary: the traceback is the answer
        return {"error": traceback.format_exc(limit=-6)}
    return {"error": None}


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for number, line in enumerate(sys.stdin):
        answers.write(json.dumps(run(json.loads(line), number)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
