"""One warm interpreter of the reference framework for all task tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from orbit.environments import environment_python
from orbit.frameworks import REFERENCE_FRAMEWORK, find_framework
from orbit.tasks import Task
from orbit.verification.evaluator import Config, Outputs
from orbit.verification.mutants import WarmWorker


@pytest.fixture(scope="session")
def worker() -> Iterator[WarmWorker]:
    with WarmWorker(environment_python(find_framework(REFERENCE_FRAMEWORK))) as running:
        yield running


@pytest.fixture
def run_reference(worker: WarmWorker) -> Callable[[Task, Config], Outputs]:
    """Outputs of a task's reference."""

    def run(task: Task, config: Config) -> Outputs:
        path = task.reference_path(REFERENCE_FRAMEWORK)
        assert path is not None
        outputs, error = worker.run(path.read_text(), config)
        assert outputs is not None, error
        return outputs

    return run
