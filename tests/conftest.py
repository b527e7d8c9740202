"""A missing prerequisite skips a test on a developer's machine and fails it in CI.

Tests state what they need by marker: `integration` a framework environment, `e2e` a container engine. Fixtures that
need something else call `pytest.skip` as usual. With `CI=true` no skip stays a skip, so that a green run in CI means
that everything ran.
"""

from __future__ import annotations

import os

# On a busy machine, small matrices take forty times as long by two threads of BLAS as by one. NumPy reads this when it
# is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import signal
from collections.abc import Generator
from typing import Any

import pytest

# A shell starts jobs in the background with Ctrl-C ignored, and so would start every process of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DESELECTED_BY_DEFAULT = ("slow",)


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long statistical confirmations run only where they are asked for with `-m slow`, also in CI."""
    if config.option.markexpr:
        return
    chosen = [item for item in items if not any(item.get_closest_marker(name) for name in DESELECTED_BY_DEFAULT)]
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and in_ci() and not hasattr(report, "wasxfail"):
        reason: Any = report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a prerequisite is missing, which fails in CI: {reason[2] if reason else ''}"
    return report


@pytest.fixture(scope="session")
def tensorcircuit_python() -> str:
    """Interpreter of the TensorCircuit environment; made on first use.

    Skips where it cannot be made, which fails in CI.
    """
    from orbit.environments import environment_python
    from orbit.errors import SetupError
    from orbit.frameworks import find_framework

    try:
        return str(environment_python(find_framework("tensorcircuit"), progress=print))
    except SetupError as error:
        pytest.skip(str(error))
