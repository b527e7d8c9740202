"""The command table."""

from __future__ import annotations

from typing import Annotated

import typer

import orbit
from orbit.cli import _shell, demo, doctor, frameworks, images, run, schema, show, tasks, verify

app = typer.Typer(
    help="Benchmark coding agents and quantum software frameworks on research-grade workflows.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_shell.examples(
        "orbit demo", "orbit doctor", "orbit verify my_solution.py --task 02 --framework tensorcircuit"
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"orbit {orbit.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    debug: _shell.DebugOption = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options that stand before the command."""
    # What a killed run left in containers is taken down before any command starts.
    from orbit.execution.left_overs import take_down

    take_down(lambda line: typer.echo(line, err=True))


_COMMANDS = {"doctor": doctor, "verify": verify, "run": run, "show": show, "demo": demo, "schema": schema}
for _name, _module in _COMMANDS.items():
    app.command(_name, epilog=_shell.examples(*_module.EXAMPLES))(_module.command)
for _group in (tasks, frameworks, images):
    app.add_typer(_group.app)
