"""Reading a TOML file into a pydantic model, with errors that name file, key, value and fix."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from orbit.errors import DataError
from orbit.records import describe_validation_error


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file.

    Raises:
        DataError: the file is missing or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); restore the file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not valid TOML ({error}); correct that line") from error


def validate[Model: BaseModel](path: Path, model: type[Model], data: object) -> Model:
    """Validate parsed data.

    Raises:
        DataError: naming the file, the first wrong key, its value and what to do.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        fix = {"missing": "add the key", "extra_forbidden": "remove the key, or correct its spelling"}
        advice = fix.get(first["type"], "correct the value")
        raise DataError(f"{path}: {describe_validation_error(error)}; {advice}") from error
