"""A skip stays a skip on a developer's machine and is a failure in CI."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SKIPPING = """
    import pytest

    def test_needs_something():
        pytest.skip("no engine here")

    @pytest.mark.skipif(True, reason="no sandbox here")
    def test_needs_more():
        pass

    def test_runs():
        assert True
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest((Path(__file__).parents[1] / "conftest.py").read_text())
    pytester.makepyfile(SKIPPING)
    return pytester


def test_skip_outside_ci(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    project.runpytest().assert_outcomes(passed=1, skipped=2)


def test_fail_in_ci(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    result = project.runpytest()
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*a prerequisite is missing, which fails in CI*no engine here*"])


def test_slow_tests_run_only_on_demand(pytester: pytest.Pytester) -> None:
    pytester.makeconftest((Path(__file__).parents[1] / "conftest.py").read_text())
    pytester.makeini("[pytest]\nmarkers = slow: long")
    pytester.makepyfile("import pytest\n@pytest.mark.slow\ndef test_long(): pass\ndef test_short(): pass\n")
    pytester.runpytest().assert_outcomes(passed=1, deselected=1)
    pytester.runpytest("-m", "slow").assert_outcomes(passed=1, deselected=1)


def test_interrupts_work_also_where_a_shell_has_them_ignored() -> None:
    child = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    for first, ignored in (("", "True"), ("import tests.conftest; ", "False")):
        command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", first + starts]
        root = Path(__file__).parents[2]
        assert subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout.strip() == ignored
