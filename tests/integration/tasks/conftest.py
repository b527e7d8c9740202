"""One warm interpreter of the reference framework for all task tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from orbit.environments import environment_python
from orbit.frameworks import REFERENCE_FRAMEWORK, find_framework
from orbit.tasks import Task
from orbit.verification.evaluator import Config, Outputs
from orbit.verification.mutants import REFERENCE, WarmWorker, source_of


@pytest.fixture(scope="session")
def worker() -> Iterator[WarmWorker]:
    with WarmWorker(environment_python(find_framework(REFERENCE_FRAMEWORK))) as running:
        yield running


@pytest.fixture
def run_file(worker: WarmWorker) -> Callable[[str, Config], Outputs]:
    """Outputs of a correct solution, given its text."""

    def run(source: str, config: Config) -> Outputs:
        outputs, error = worker.run(source, config)
        assert outputs is not None, error
        return outputs

    return run


@pytest.fixture
def run_reference(run_file: Callable[[str, Config], Outputs]) -> Callable[[Task, Config], Outputs]:
    """Outputs of a task's reference."""
    return lambda task, config: run_file(source_of(task, REFERENCE), config)
