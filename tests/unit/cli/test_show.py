"""`orbit show`: finds a trial by any of its directories, and says in one line what is wrong with a path."""

import json
from pathlib import Path

import pytest

from orbit.cli import main
from orbit.execution.trials import TrialRecord
from orbit.records import write_json
from tests.unit.reports.trials import HOSTILE, NAME, STEPS, make_trajectory, write_run
from tests.unit.reports.verdicts import make_verdict


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as end:
        main(["show", *map(str, arguments)])
    code = end.value.code
    assert code is None or isinstance(code, int)
    return code or 0


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", trajectory=make_trajectory(*STEPS))


@pytest.mark.parametrize(
    "place",
    [
        "",
        f"trials/{NAME}",
        f"trials/{NAME}/trial.json",
        f"harbor/{NAME}",
        f"harbor/{NAME}/verification/verdict.json",
    ],
)
def test_a_trial_is_found_by_any_of_its_places(run_dir: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(run_dir / place) == 0
    text = capsys.readouterr().out
    assert f"PROVISIONAL   {NAME}" in text
    assert "$ cat > /app/solution.py" in text
    assert "1  import pennylane as qml" in text
    assert "Passed    static_policy 4" in text


def test_a_relative_path_will_do(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run_dir / "trials" / NAME)
    assert run(".") == 0
    assert NAME in capsys.readouterr().out


def test_the_output_of_verify_is_shown_without_a_transcript(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json(tmp_path / "verdict.json", make_verdict(artifact_name="mine.py"))
    (tmp_path / "artifact").mkdir()
    (tmp_path / "artifact" / "mine.py").write_text("x = 1\n")
    for place in (tmp_path, tmp_path / "verdict.json"):
        assert run(place) == 0
        text = capsys.readouterr().out
        assert "Transcript  none: a verification of a file has none" in text
        assert "1  x = 1" in text
        assert "Passed    static_policy 4" in text
    write_json(tmp_path / "verdict.json", make_verdict())
    assert run(tmp_path) == 0
    assert "Artifact  none: the file could not be read" in capsys.readouterr().out


def test_json_has_everything_uncut(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(run_dir, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert TrialRecord.model_validate(data["trial"]).name == NAME
    assert [action["text"] for step in data["transcript"]["steps"] for action in step["actions"]] == [
        "cat > /app/solution.py"
    ]
    assert data["artifact"]["source"].startswith("import pennylane")
    assert data["verdict"]["validity"] == "provisional"
    assert data["missing"] == {}


def test_json_of_a_section_is_that_section(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(run_dir, "--json", "--section", "transcript") == 0
    assert json.loads(capsys.readouterr().out)["agent"] == "codex"
    (run_dir / "harbor" / NAME / "agent" / "trajectory.json").unlink()
    assert run(run_dir, "--json", "--section", "transcript") == 0
    assert json.loads(capsys.readouterr().out) is None


def test_json_of_hostile_text_has_no_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = write_run(tmp_path / "run", summary=HOSTILE)
    assert run(run_dir, "--json") == 0
    text = capsys.readouterr().out
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["trial"]["summary"] == HOSTILE


def test_markup_in_the_output_stays_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = write_run(tmp_path / "run", summary=HOSTILE)
    assert run(run_dir) == 0
    text = capsys.readouterr().out
    assert "[bold]markup[/bold] [/] :smile:" in text
    assert "\x1b" not in text


def test_full_shows_the_evidence_too(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(run_dir, "--section", "verdict") == 0
    assert "threshold_1" not in capsys.readouterr().out
    for flag in ("--full", "--verbose"):
        assert run(run_dir, "--section", "verdict", flag) == 0
        assert "threshold_1" in capsys.readouterr().out


def test_one_of_several_trials_is_chosen_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = write_run(tmp_path / "run", "02-a__x", "02-a__xy", "12-b__z")
    for name, found in (("12", "12-b__z"), ("02-a__x", "02-a__x"), ("02-a__xy", "02-a__xy")):
        assert run(run_dir, "--trial", name) == 0
        assert f"PROVISIONAL   {found}\n" in capsys.readouterr().out


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    return captured.err


def test_several_trials_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = write_run(tmp_path / "run", "02-a__x", "12-b__z")
    assert run(run_dir) == 2
    assert "holds the trials 02-a__x, 12-b__z; choose one with --trial" in one_line(capsys)
    assert run(run_dir, "--trial", "03") == 2
    assert "--trial 03 fits 0 of them" in one_line(capsys)


def test_a_path_without_trial_is_named_with_what_would_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for place, text in (
        (tmp_path / "gone", "does not exist"),
        (tmp_path, "no trial"),
        (tmp_path / "notes.txt", "no trial"),
    ):
        assert run(place) == 2
        message = one_line(capsys)
        assert text in message
        assert "give a run directory" in message


def test_a_run_that_has_not_ended_a_trial_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert run(tmp_path) == 2
    assert "no trial of this run has ended yet" in one_line(capsys)


def test_a_damaged_record_is_one_line(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_dir / "trials" / NAME / "trial.json").write_text("{")
    assert run(run_dir) == 2
    assert "not JSON" in one_line(capsys)


@pytest.mark.parametrize("field", ["artifact_path", "verdict_path"])
@pytest.mark.parametrize("path", ["../secret", "/etc/hostname"])
def test_a_foreign_record_cannot_point_out_of_its_run(
    tmp_path: Path, field: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("secret")
    run_dir = write_run(tmp_path / "run", **{field: path})
    assert run(run_dir) == 2
    assert "leads out of" in one_line(capsys)


def test_a_link_cannot_lead_out_of_the_run_either(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trajectory = run_dir / "harbor" / NAME / "agent" / "trajectory.json"
    trajectory.unlink()
    (run_dir.parent / "elsewhere.json").write_text(json.dumps(make_trajectory(*STEPS)))
    trajectory.symlink_to(run_dir.parent / "elsewhere.json")
    assert run(run_dir) == 0
    text = capsys.readouterr().out
    assert "Transcript  none: " in text
    assert "leads out of" in text


def test_an_artifact_that_is_gone_is_said(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_dir / "harbor" / NAME / "artifacts" / "app" / "solution.py").unlink()
    assert run(run_dir, "--section", "artifact") == 0
    assert "cannot be read (No such file or directory)" in capsys.readouterr().out
