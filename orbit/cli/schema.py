"""`orbit schema`: the published shape of what orbit writes."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from orbit.cli import _shell

EXAMPLES = ("orbit schema verdict", "orbit schema execution", "orbit schema verdict > verdict.schema.json")


def command(
    name: Annotated[
        Literal["verdict", "execution", "doctor"], typer.Argument(metavar="NAME", help="verdict, execution or doctor.")
    ],
    debug: _shell.DebugOption = False,
) -> None:
    """Print the JSON schema of what orbit writes."""
    from orbit.schemas import json_schema

    _shell.show_json(json_schema(name))
