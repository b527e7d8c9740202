"""What a reader of a trial sees."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from orbit.execution.outcomes import Disposition, Ending
from orbit.reports.transcript import ActionKind
from orbit.reports.trial import load_trial
from orbit.reports.trial_text import DISPOSITIONS, MAX_LINE_CHARS, MAX_LINES, Section, render_trial
from tests.unit.reports.trials import HOSTILE, NAME, STEPS, make_call, make_step, make_trajectory, write_run


def shown(run_dir: Path, section: Section | None = None, *, full: bool = False, terminal: bool = False) -> str:
    console = Console(
        file=io.StringIO(), width=300, force_terminal=terminal, color_system="standard" if terminal else None
    )
    console.print(render_trial(load_trial(run_dir), section, full=full), soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_first_who_solved_what_then_what_was_done_then_the_program_and_the_verdict(tmp_path: Path) -> None:
    text = shown(write_run(tmp_path / "run", trajectory=make_trajectory(*STEPS)))
    order = [
        f"PROVISIONAL   {NAME}",
        "Agent     codex 0.171.0 · openai/gpt-5.5",
        "Task      toys/99-toy-chain · pennylane · orbit-2",
        "Ended     completed; judged, reward 1",
        "Took      solving 12.5 s",
        "Tokens    1,100 uncached input · 1,400 cached input · 0 cache write · 70 output  (codex.txt turn.completed)",
        "Cost      0.0083 USD by a table; the agent reports 0.0125 USD",
        "Warning   the agent reports another cost",
        "Transcript  3 steps of codex 0.171.0",
        "   1  user  +0.00 s",
        "   2  agent  +3.00 s · 1,200 tokens sent, 50 received so far",
        "    $ cat > /app/solution.py",
        "      | wrote it",
        "   3  agent  +8.00 s · 2,500 tokens sent, 70 received so far",
        "      Done.",
        "Artifact  ",
        "1  import pennylane as qml",
        "4  def run_solution(config):",
        "Passed    static_policy 4",
        "verification/verdict.json",
    ]
    places = [text.find(line) for line in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("section", "has"), [("transcript", "Done."), ("artifact", "run_solution"), ("verdict", "Passed")]
)
def test_one_section_alone(tmp_path: Path, section: Section, has: str) -> None:
    text = shown(write_run(tmp_path / "run", trajectory=make_trajectory(*STEPS)), section)
    assert has in text
    assert "Agent     " not in text
    assert [word in text for word in ("Done.", "run_solution", "Passed")].count(True) == 1


def test_what_is_missing_is_said_in_one_line(tmp_path: Path) -> None:
    run_dir = write_run(
        tmp_path / "run",
        artifact_path=None,
        verdict_path=None,
        usage=None,
        reward=None,
        ending=Ending.ENDPOINT_DOWN,
        disposition=Disposition.HARNESS_ERROR,
        summary="codex ended with status 1: 503",
    )
    text = shown(run_dir)
    assert "Transcript  none: codex left no trajectory\n" in text
    assert "Artifact  none: the agent left no /app/solution.py\n" in text
    assert "Verdict  none: it was not judged: codex ended with status 1: 503\n" in text
    assert "no reward" in text
    assert "no usage is recorded" in text


def test_a_damaged_trajectory_does_not_hide_the_rest(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run", trajectory={"steps": []})
    text = shown(run_dir)
    assert "trajectory.json: has no steps" in text
    assert "run_solution" in text


def test_every_disposition_has_words() -> None:
    assert set(DISPOSITIONS) == set(Disposition)


def test_long_texts_are_cut_in_the_middle_with_a_note(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(100)]
    long = make_step(1, "agent", **make_call("Bash", {"command": "x"}, "\n".join([*lines, "y" * 1000])))
    run_dir = write_run(tmp_path / "run", trajectory=make_trajectory(long))
    text = shown(run_dir, "transcript")
    assert "line 0\n" in text
    assert "line 50\n" not in text
    assert f"... {101 - MAX_LINES['output']} lines cut (--full shows them)" in text
    assert f"{'y' * MAX_LINE_CHARS}... {1000 - MAX_LINE_CHARS} characters cut" in text
    full = shown(run_dir, "transcript", full=True)
    assert all(f"| {line}\n" in full for line in lines)
    assert "y" * 1000 in full
    assert "cut (--full" not in full


def test_a_long_artifact_is_cut_and_keeps_its_line_numbers(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run")
    (path,) = run_dir.glob("harbor/*/artifacts/app/solution.py")
    n = MAX_LINES["artifact"] + 50
    path.write_text("\n\n" + "".join(f"x = {number}\n" for number in range(3, n + 1)))
    text = shown(run_dir, "artifact")
    assert "\n  3  x = 3\n" in text
    assert "50 lines cut" in text
    assert f"x = {n}" not in text
    assert f"\n{n}  x = {n}\n" in shown(run_dir, "artifact", full=True)


def test_the_program_is_coloured_on_a_terminal_only(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run")
    assert "\x1b[" not in shown(run_dir, "artifact")
    assert "\x1b[" in shown(run_dir, "artifact", terminal=True)


@pytest.mark.parametrize("full", [False, True])
def test_nothing_that_an_agent_wrote_drives_the_terminal_or_uses_markup(tmp_path: Path, full: bool) -> None:
    calls = [
        make_call("exec_command", {"cmd": HOSTILE}, HOSTILE),
        make_call("Write", {"file_path": HOSTILE, "content": HOSTILE}, HOSTILE),
        make_call(HOSTILE, {HOSTILE: HOSTILE}, None),
        make_call("Bash", {"command": f"*** Add File: {HOSTILE}"}),
    ]
    steps = [make_step(k, "agent", message=HOSTILE, reasoning_content=HOSTILE, **call) for k, call in enumerate(calls)]
    steps.append(make_step(5, HOSTILE, message=HOSTILE))
    trajectory = make_trajectory(*steps) | {"agent": {"name": HOSTILE, "version": HOSTILE}}
    changes = {"summary": HOSTILE, "agent_version": HOSTILE, "model": HOSTILE, "warnings": [HOSTILE]}
    run_dir = write_run(tmp_path / "run", trajectory=trajectory, **changes)
    (path,) = run_dir.glob("harbor/*/artifacts/app/solution.py")
    path.write_text(f"# {HOSTILE}\nx = '{HOSTILE}'\n")
    text = shown(run_dir, full=full)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert text.count("[bold]markup[/bold] [/] :smile:") >= 20
    # On a terminal the only escapes are rich's own colours.
    coloured = shown(run_dir, full=full, terminal=True)
    assert "\x1b[2J" not in coloured
    assert "\x1b]" not in coloured
    assert not {"\x07", "\u202e"} & set(coloured)


def test_the_style_of_a_label_ends_with_it(tmp_path: Path) -> None:
    text = shown(write_run(tmp_path / "run", trajectory=make_trajectory(*STEPS)), terminal=True)
    assert "\x1b[1mAgent     \x1b[0mcodex" in text
    assert "\x1b[1mTime      \x1b[0m12.3 s" in text
    assert f"\x1b[1;30;43m PROVISIONAL \x1b[0m\x1b[1m  {NAME}\x1b[0m" in text


def test_hostile_reasons_stay_on_their_line(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run", verdict_path=None, summary=f"a\nb {HOSTILE}")
    text = shown(run_dir, "verdict")
    assert text.count("\n") == 1
    assert "\x1b" not in text


def test_an_agent_that_wrote_a_file_is_told_from_one_that_read_it(tmp_path: Path) -> None:
    steps = [
        make_step(1, "agent", **make_call("Write", {"file_path": "/app/s.py", "content": "x = 1"})),
        make_step(2, "agent", **make_call("Read", {"file_path": "/app/s.py"}, "x = 1")),
        make_step(3, "agent", **make_call("Bash", {"command": "apply_patch <<E\n*** Update File: t.py\nE"})),
    ]
    text = shown(write_run(tmp_path / "run", trajectory=make_trajectory(*steps, subagent_trajectories=[{}])))
    assert "    writes /app/s.py  (Write)\n      x = 1\n" in text
    assert "    reads /app/s.py  (Read)\n      | x = 1\n" in text
    assert "      changes t.py\n" in text
    assert "1 trajectory of subagents not shown" in text
    assert set(ActionKind) == {"command", "write", "read", "tool"}
