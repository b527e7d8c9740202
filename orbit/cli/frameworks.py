"""`orbit frameworks`: what programs are written in."""

from __future__ import annotations

from typing import Annotated

import typer

from orbit.cli import _shell

app = typer.Typer(
    name="frameworks",
    help="List frameworks, or make environments.",
    invoke_without_command=True,
    epilog=_shell.examples(
        "orbit frameworks", "orbit frameworks show tensorcircuit", "orbit frameworks sync tensorcircuit"
    ),
)


@app.callback()
def list_frameworks(context: typer.Context, json: _shell.JsonOption = False, debug: _shell.DebugOption = False) -> None:
    """List the frameworks and whether their environments exist."""
    if context.invoked_subcommand is not None:
        return
    from orbit.frameworks import all_frameworks
    from orbit.reports import catalogue

    found = all_frameworks()
    if json:
        _shell.show_json([catalogue.describe_framework(framework) for framework in found])
    else:
        _shell.show(catalogue.render_frameworks(found))


@app.command(
    "show", epilog=_shell.examples("orbit frameworks show tensorcircuit", "orbit frameworks show pennylane --json")
)
def show_framework(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a framework.")],
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """Show a framework: version, interpreter, environment, policy lists and prompt variants."""
    from orbit.frameworks import find_framework
    from orbit.reports import catalogue

    framework = find_framework(name)
    if json:
        _shell.show_json(catalogue.describe_framework(framework))
    else:
        _shell.show(catalogue.render_framework(framework))


@app.command(
    "sync",
    epilog=_shell.examples("orbit frameworks sync tensorcircuit", "orbit frameworks sync tensorcircuit pennylane"),
)
def sync_frameworks(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of frameworks.")],
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """Make the Python environments of frameworks; one that exists is left alone."""
    from orbit.environments import environment_python
    from orbit.frameworks import find_framework

    wanted = [find_framework(name) for name in names]
    made = {}
    with _shell.progress() as report:
        for framework in wanted:
            made[framework.name] = str(environment_python(framework, progress=report))
    if json:
        _shell.show_json(made)
    else:
        for name, python in made.items():
            _shell.show(f"{name}: {python}")
