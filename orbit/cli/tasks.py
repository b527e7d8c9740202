"""`orbit tasks`: what there is to solve."""

from __future__ import annotations

from typing import Annotated

import typer

from orbit.cli import _shell

app = typer.Typer(
    name="tasks",
    help="List the tasks of a suite, or show one.",
    invoke_without_command=True,
    epilog=_shell.examples("orbit tasks", "orbit tasks --json", "orbit tasks show 02"),
)


@app.callback()
def list_tasks(
    context: typer.Context,
    suite: Annotated[str | None, typer.Option(help="Suite to list; the default suite if omitted.")] = None,
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """List the tasks of a suite."""
    if context.invoked_subcommand is not None:
        return
    from orbit.reports import catalogue
    from orbit.tasks import DEFAULT_SUITE, all_tasks

    found = all_tasks(suite or DEFAULT_SUITE)
    if json:
        _shell.show_json([catalogue.describe_task(task) for task in found])
    else:
        _shell.show(catalogue.render_tasks(found))


@app.command(
    "show", epilog=_shell.examples("orbit tasks show 02", "orbit tasks show orbit-q/02-entanglement-profile --json")
)
def show_task(
    name: Annotated[str, typer.Argument(metavar="ID", help="Number, id or suite/id.")],
    contract: Annotated[str | None, typer.Option(help="Version of the interface whose statement is shown.")] = None,
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """Show a task: its statement, default configuration and limits."""
    from orbit.reports import catalogue
    from orbit.tasks import DEFAULT_CONTRACT, find_task

    task = find_task(name)
    statement = task.instruction(contract or DEFAULT_CONTRACT)
    if json:
        _shell.show_json(catalogue.describe_task(task) | {"statement": statement})
    else:
        _shell.show(catalogue.render_task(task, statement))
