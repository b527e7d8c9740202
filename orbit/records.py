"""The on-disk contract: atomic, versioned JSON records."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from orbit.errors import DataError


def _encodable(value: Any) -> Any:
    """Half a surrogate pair, which hostile text may hold, has no encoding; it is written as an escape."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_encodable)]
"""Text that somebody else wrote."""


class Record(BaseModel):
    """Base of everything written to disk: unknown fields are refused, so a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", use_enum_values=False)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the whole of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: BaseModel | dict[str, Any]) -> None:
    """Write a record, or plain JSON data, atomically."""
    text = (
        value.model_dump_json(indent=2) if isinstance(value, BaseModel) else json.dumps(value, indent=2, sort_keys=True)
    )
    write_bytes(path, (text + "\n").encode())


def read_record[RecordType: BaseModel](
    path: Path, model: type[RecordType], *, versions: tuple[int, ...] = (1,)
) -> RecordType:
    """Read a record and refuse a version this program does not know, before looking at anything else.

    Raises:
        DataError: the file is missing, is not JSON, has an unknown `schema_version` or does not validate.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); the file is damaged, repeat the run that wrote it") from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version not in versions:
        known = ", ".join(map(str, versions))
        raise DataError(
            f"{path}: schema_version {version!r} is not one of {known}; read it with the orbit that wrote it"
        )
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise DataError(f"{path}: {describe_validation_error(error)}") from error


def describe_validation_error(error: ValidationError) -> str:
    """The first complaint of a validation error as `key: value: what is wrong`, on one line."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"]) or "(top level)"
    value = first.get("input")
    shown = "" if isinstance(value, (dict, list)) or first["type"] == "missing" else f" = {value!r}"
    rest = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{key}{shown}: {first['msg']}{rest}"
