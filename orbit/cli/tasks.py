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
    """Show a task: its statement, default configuration and limits, and every check with what it must meet."""
    from dataclasses import asdict

    from orbit.reports import catalogue
    from orbit.reports.checks import checks_of
    from orbit.tasks import DEFAULT_CONTRACT, find_task
    from orbit.verification.verdict import Contract

    task = find_task(name)
    statement = task.instruction(contract or DEFAULT_CONTRACT)
    checks = checks_of(task, Contract(contract or DEFAULT_CONTRACT))
    if json:
        details = {"statement": statement, "checks": [asdict(check) for check in checks]}
        _shell.show_json(catalogue.describe_task(task) | details)
    else:
        _shell.show(catalogue.render_task(task, statement, checks))


@app.command("lint", epilog=_shell.examples("orbit tasks lint", "orbit tasks lint 02 12 --deep"))
def lint_tasks(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Tasks to check; all of the default suite if omitted.")
    ] = None,
    deep: Annotated[
        bool,
        typer.Option(help="Also regenerate exact references, run correct solutions, kill every mutant (minutes)."),
    ] = False,
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """Check that task directories are complete and consistent; exit with 1 if one is not."""
    from orbit.lint import lint_task
    from orbit.reports import catalogue
    from orbit.tasks import all_tasks, find_task
    from orbit.verification.verdict import Outcome

    tasks = [find_task(name) for name in names] if names else all_tasks()
    with _shell.progress() as progress:
        found = {task.name: lint_task(task, deep=deep, progress=progress) for task in tasks}
    if json:
        _shell.show_json(found)
    else:
        _shell.show(catalogue.render_lint(found))
    if any(item.outcome is Outcome.FAIL for evidence in found.values() for item in evidence):
        raise typer.Exit(_shell.MEASURED_FAILURE)
