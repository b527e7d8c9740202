"""One trial with everything that is kept of it: record, transcript, artifact and verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orbit._usage_logs import TRAJECTORY
from orbit.assembly import ARTIFACT_PATH
from orbit.errors import DataError, UsageError
from orbit.execution.trials import RUN_FILE, TRIAL_FILE, TrialRecord
from orbit.records import Record, Text, read_record
from orbit.reports.transcript import Transcript, read_transcript
from orbit.verification.verdict import Verdict

VERDICT_FILE = "verdict.json"
_TRIALS_DIR = "trials"
_ACCEPTED = f"a run directory, a trial's directory, a {TRIAL_FILE}, or what `orbit verify` left"


class Artifact(Record):
    """The program that was judged."""

    path: Path
    sha256: str | None = None
    source: Text


class TrialView(Record):
    """What there is to show. What is None is explained in `missing`, by the name of its field."""

    trial: TrialRecord | None = None
    transcript: Transcript | None = None
    artifact: Artifact | None = None
    verdict: Verdict | None = None
    verdict_path: Path | None = None
    missing: dict[str, Text]


@dataclass(frozen=True)
class _Place:
    """Where a trial lies: its record and the run directory that the record's paths start from."""

    record: Path
    run_dir: Path


def load_trial(path: Path, name: str | None = None) -> TrialView:
    """Find a trial and read what is kept of it.

    Args:
        path: a run directory, a trial's directory (ours or harbor's), a `trial.json`, or the directory or the
            `verdict.json` of `orbit verify`.
        name: of the trial, where the run has several; its beginning is enough.

    Raises:
        UsageError: there is no trial, or there are several and `name` does not choose one.
        DataError: the record or the verdict is damaged.
    """
    path = path.expanduser().absolute()
    if not path.exists():
        raise UsageError(f"{path}: does not exist; give {_ACCEPTED}")
    place = _find(path, name)
    if place is not None:
        return _view_of_trial(place)
    verdict_path = path if path.name == VERDICT_FILE else path / VERDICT_FILE
    if name is None and verdict_path.is_file():
        return _view_of_verification(verdict_path)
    raise UsageError(f"{path}: no trial here; give {_ACCEPTED}")


def _find(path: Path, name: str | None) -> _Place | None:
    if path.is_file():
        if path.name == TRIAL_FILE:
            return _Place(path, path.parent.parent.parent)
        # The directory of harbor's trial has the verdict one level down.
        return _beside_harbors(path.parent.parent) if path.name == VERDICT_FILE else None
    if (path / TRIAL_FILE).is_file():
        return _Place(path / TRIAL_FILE, path.parent.parent)
    if (path / RUN_FILE).is_file():
        return _Place(_choose(path, name), path)
    return _beside_harbors(path)


def _beside_harbors(path: Path) -> _Place | None:
    """Our record of the trial whose directory of harbor's this is."""
    run_dir = path.parent.parent
    record = run_dir / _TRIALS_DIR / path.name / TRIAL_FILE
    return _Place(record, run_dir) if record.is_file() else None


def _choose(run_dir: Path, name: str | None) -> Path:
    found = {path.parent.name: path for path in sorted((run_dir / _TRIALS_DIR).glob(f"*/{TRIAL_FILE}"))}
    if not found:
        raise UsageError(f"{run_dir}: no trial of this run has ended yet; repeat its command to resume it")
    fitting = [known for known in found if name is None or known.startswith(name)]
    if name in found:
        fitting = [name]
    if len(fitting) != 1:
        wanted = f"--trial {name} fits {len(fitting)} of them" if name is not None else "choose one with --trial"
        raise UsageError(f"{run_dir}: holds the trials {', '.join(found)}; {wanted}")
    return found[fitting[0]]


def _view_of_trial(place: _Place) -> TrialView:
    trial = read_record(place.record, TrialRecord)
    missing: dict[str, str] = {}
    transcript = artifact = verdict = None
    trajectory = f"{trial.harbor_trial_dir}/agent/{TRAJECTORY}"
    if not (place.run_dir / trajectory).is_file():
        missing["transcript"] = f"{trial.agent} left no trajectory"
    else:
        try:
            transcript = read_transcript(_inside(place.run_dir, trajectory))
        except DataError as error:
            missing["transcript"] = str(error)
    if trial.artifact_path is None:
        missing["artifact"] = f"the agent left no {ARTIFACT_PATH}"
    else:
        artifact = _artifact(_inside(place.run_dir, trial.artifact_path), trial.artifact_sha256, missing)
    verdict_path = None
    if trial.verdict_path is None:
        missing["verdict"] = f"it was not judged: {trial.summary or trial.ending.value}"
    else:
        verdict_path = _inside(place.run_dir, trial.verdict_path)
        verdict = read_record(verdict_path, Verdict)
    return TrialView(
        trial=trial,
        transcript=transcript,
        artifact=artifact,
        verdict=verdict,
        verdict_path=verdict_path,
        missing=missing,
    )


def _view_of_verification(path: Path) -> TrialView:
    verdict = read_record(path, Verdict)
    missing = {"trial": "a verification of a file", "transcript": "a verification of a file has none"}
    artifact = None
    if not verdict.artifact_name:
        missing["artifact"] = "the file could not be read"
    else:
        source = _inside(path.parent, f"artifact/{verdict.artifact_name}")
        artifact = _artifact(source, verdict.artifact_sha256, missing)
    return TrialView(artifact=artifact, verdict=verdict, verdict_path=path, missing=missing)


def _artifact(path: Path, sha256: str | None, missing: dict[str, str]) -> Artifact | None:
    try:
        source = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        missing["artifact"] = f"{path}: cannot be read ({error.strerror})"
        return None
    return Artifact(path=path, sha256=sha256, source=source)


def _inside(directory: Path, name: str) -> Path:
    """The file of that name, which a record or a link must not lead out of the directory that it belongs to.

    Raises:
        DataError: it does.
    """
    path = directory / name
    if not path.resolve().is_relative_to(directory.resolve()):
        raise DataError(f"{path}: leads out of {directory}; the record is not one that orbit wrote")
    return path
