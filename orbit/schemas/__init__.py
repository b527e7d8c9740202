"""Published JSON schemas, generated from the models so that the two cannot drift apart."""

from __future__ import annotations

from typing import Any

from orbit.errors import UsageError
from orbit.records import Record


def json_schema(name: str) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of `verdict.json`, of `execution.json`, or of `orbit doctor --json`.

    Raises:
        UsageError: nothing of that name is published.
    """
    from orbit.doctor import Report
    from orbit.verification.execution import Execution
    from orbit.verification.verdict import Verdict

    models: dict[str, type[Record]] = {"verdict": Verdict, "execution": Execution, "doctor": Report}
    if name not in models:
        raise UsageError(f"unknown schema {name!r}; known: {', '.join(models)}")
    schema = models[name].model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
