"""Where results go when nobody says: a new directory under `runs/`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from orbit.errors import UsageError


def run_directory(kind: str, wanted: Path | None = None) -> Path:
    """The directory of a run, absolute: the wanted one, or an unused name such as `runs/verify-20260101T120000Z`.

    Args:
        kind: the command, first word of the default name.
        wanted: what the user asked for, if anything.
    """
    return (wanted if wanted is not None else _unused(Path("runs"), kind)).expanduser().absolute()


def new_run_directory(kind: str, wanted: Path | None = None) -> Path:
    """Make the directory of a run, where it must not exist yet or be empty.

    Raises:
        UsageError: it holds files, is a file, or cannot be made.
    """
    directory = run_directory(kind, wanted)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UsageError(f"{directory}: holds files already and nothing is overwritten; give a new --out directory")
    except OSError as error:
        raise UsageError(f"{directory}: cannot be made ({error.strerror}); give another --out directory") from error
    return directory


def _unused(root: Path, kind: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    names = (f"{kind}-{stamp}" + (f"-{n}" if n else "") for n in range(1000))
    return next(path for path in (root / name for name in names) if not path.exists())
