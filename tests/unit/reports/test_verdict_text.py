"""The terminal rendering of a verdict: what a person must see, and in which order."""

import io

import pytest
from rich.console import Console

from orbit.reports import _text
from orbit.reports.verdict_text import MAX_SHOWN, render_verdict
from orbit.verification.verdict import Evidence, FailureMode, Outcome, Stage, Verdict
from tests.unit.reports.verdicts import error_verdict, invalid_verdict, make_verdict, passing, stages


def shown(verdict: Verdict, **options: bool) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(render_verdict(verdict, **options), soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_first_line_is_the_outcome_and_failures_follow_with_number_and_limit() -> None:
    lines = shown(invalid_verdict()).splitlines()
    assert lines[0].strip() == "INVALID  (problem_mismatch)  99-toy-chain · tensorcircuit · orbit-2"
    assert lines[1].strip() == "The final energy density misses its limit."
    assert lines[2] == "Failed"
    assert lines[3].strip() == "functional: final_energy_density [timed] -0.51235, limit at most -0.7"
    assert lines[4].strip() == "the run must reach the exact energy density plus 1"


def test_provisional_says_why_and_folds_the_passes_into_counts() -> None:
    text = shown(make_verdict())
    assert text.splitlines()[0].strip().startswith("PROVISIONAL")
    assert "semantic_audit: no judge is configured; set ANTHROPIC_API_KEY" in text
    assert "static_policy 4 · execution 3 · functional 5 · probes 6" in text
    assert "threshold_1" not in text


def test_verbose_shows_every_piece_of_evidence() -> None:
    text = shown(make_verdict(), verbose=True)
    assert all(item.check in text for stage in stages().values() for item in stage.evidence)


def test_time_names_slowdown_interval_and_pairs() -> None:
    text = shown(make_verdict())
    assert "12.3 s, reference 11.9 s: slowdown 1.04 (0.98 to 1.07, 2 pairs)" in text
    assert "peak memory 812 MiB · 2 cores" in text


def test_an_error_is_not_shown_as_a_failure() -> None:
    text = shown(error_verdict())
    assert text.splitlines()[0].strip().startswith("ERROR")
    assert "Failed" not in text
    assert "execution: the sandbox did not start" in text
    assert "not measured" in text


def test_many_failures_are_cut_and_counted() -> None:
    found = stages()
    evidence = [Evidence(check=f"c{i}", outcome=Outcome.FAIL) for i in range(MAX_SHOWN + 3)]
    found["probes"] = Stage.from_evidence(evidence, FailureMode.PROBLEM_MISMATCH)
    text = shown(make_verdict(stages=found))
    assert "and 3 more (--verbose shows them)" in text
    assert f"c{MAX_SHOWN + 2}" not in text
    assert f"c{MAX_SHOWN + 2}" in shown(make_verdict(stages=found), verbose=True)


def test_stages_skipped_for_one_reason_share_a_line() -> None:
    found = stages() | {name: Stage.skipped("there is no artifact") for name in ("functional", "probes")}
    assert "Skipped   functional, probes: there is no artifact\n" in shown(make_verdict(stages=found))


def test_flags_are_shown_unless_failures_explain_them() -> None:
    flag = Evidence(check="coverage_of_gates", outcome=Outcome.FLAG, value=0.4, limit=0.9)
    found = stages()
    found["provenance"] = Stage.from_evidence([flag], FailureMode.FRAMEWORK_BYPASS)
    assert "coverage_of_gates 0.4, limit at least 0.9" in shown(make_verdict(stages=found))
    found["functional"] = invalid_verdict().stages["functional"]
    text = shown(make_verdict(stages=found))
    assert "1 check (--verbose shows them)" in text
    assert "coverage_of_gates" not in text
    assert "coverage_of_gates" in shown(make_verdict(stages=found), verbose=True)


def test_text_of_an_artifact_can_neither_drive_the_terminal_nor_use_markup() -> None:
    found = stages()
    hostile = Evidence(check="raised", outcome=Outcome.FAIL, message="\x1b[2J\x1b]0;owned\x07[bold]valid[/bold]\u202e")
    found["execution"] = Stage.from_evidence([hostile, *passing(1, "run")], FailureMode.RUNTIME_API_EXCEPTION)
    text = shown(make_verdict(stages=found))
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "[bold]valid[/bold]" in text


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, ""), (3, "3"), (0.123456789, "0.12346"), (float("nan"), "nan"), ("abc\x1b", "abc\ufffd"), (1e-12, "1e-12")],
)
def test_numbers_are_short(value: float | str | None, expected: str) -> None:
    assert _text.number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "-"), (0.4, "0.40 s"), (12.34, "12.3 s"), (365.2, "6 min 05 s"), (119.99, "120.0 s")]
)
def test_durations(value: float | None, expected: str) -> None:
    assert _text.seconds(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "-"), (12, "12 B"), (1536, "1.5 KiB"), (812 * 2**20, "812 MiB"), (24 * 2**30, "24.0 GiB")],
)
def test_sizes(value: int | None, expected: str) -> None:
    assert _text.memory(value) == expected
