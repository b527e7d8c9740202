"""Store the exact references of a task, or check that they regenerate: `python -m orbit.verification.exact TASK...`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from orbit.errors import OrbitError
from orbit.records import read_record, write_json
from orbit.tasks import ExactReferences, Task, find_task

METHOD_LIMIT = 200


def regenerate(task: Task) -> ExactReferences:
    """Compute the exact references of the default configuration anew."""
    evaluator = task.load_evaluator()
    keys = evaluator.exact_keys()
    method = (type(evaluator).compute_exact.__doc__ or "").strip().splitlines()[0][:METHOD_LIMIT]
    entry: dict[str, Any] = {
        "config": {key: task.config[key] for key in keys},
        "values": evaluator.compute_exact(dict(task.config)),
        "method": method,
        "command": f"python -m orbit.verification.exact {task.name}",
    }
    return ExactReferences.model_validate({"schema_version": 1, "entries": [entry]})


def distance(task: Task) -> float:
    """Largest difference between stored and regenerated values; infinite where they name different things."""
    stored = read_record(task.exact_path, ExactReferences).entries[0]
    fresh = regenerate(task).entries[0]
    if stored.config != fresh.config or stored.values.keys() != fresh.values.keys():
        return float("inf")
    differences = [np.max(np.abs(np.subtract(stored.values[key], fresh.values[key]))) for key in fresh.values]
    return float(max(differences, default=0.0))


def main(arguments: list[str]) -> int:
    """Write `tests/exact.json` of every named task."""
    try:
        for name in arguments:
            task = find_task(name)
            write_json(task.exact_path, regenerate(task))
            print(task.exact_path)
    except OrbitError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
