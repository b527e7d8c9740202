"""`orbit verify`: is this file right, and how fast is it?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from orbit.cli import _shell

EXAMPLES = (
    "orbit verify my_solution.py --task 02 --framework tensorcircuit",
    "orbit verify my_solution.py --task 12-mps-overlap --framework tensorcircuit --pairs 5",
    "orbit verify old_solution.py --task 02 --framework tensorcircuit --contract orbit-q-1",
    "orbit verify my_solution.py --task 02 --framework tensorcircuit --json > verdict.json",
)


def command(
    solution: Annotated[Path, typer.Argument(metavar="SOLUTION", help="Python file with run_solution(config).")],
    task: Annotated[str, typer.Option(help="Number, id or suite/id of the task.")],
    framework: Annotated[str, typer.Option(help="Framework that the file must use.")],
    contract: Annotated[
        Literal["orbit-2", "orbit-q-1"], typer.Option(help="Version of the task interface to judge under.")
    ] = "orbit-2",
    pairs: Annotated[int, typer.Option(min=0, help="Paired runs with the reference; 5 or more for a leaderboard.")] = 1,
    probes: Annotated[int, typer.Option(min=0, help="Small random configurations compared with the oracle.")] = 2,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of every draw; drawn and recorded if omitted.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for verdict, outputs and logs; must be new or empty [default: runs/verify-TIME]."),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on after a failed stage, to see everything.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every piece of evidence.")] = False,
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """Judge a file, and time it.

    Static policy, runs in a sandbox, checks, probes against an independent oracle, and time next to the reference.

    Exit code 0: valid or provisional; 1: invalid; 2: wrong usage, set-up, or the harness failed.
    """
    from orbit.reports.verdict_text import exit_code, render_verdict
    from orbit.verification.local import verify_file
    from orbit.verification.pipeline import VerifyOptions
    from orbit.verification.verdict import Contract

    options = VerifyOptions(
        contract=Contract(contract), n_probes=probes, n_pairs=pairs, seed=seed, keep_going=keep_going
    )
    with _shell.progress() as report:
        verdict, path = verify_file(solution, task, framework, out_dir=out, options=options, progress=report)
    if json:
        _shell.show_json(verdict)
    else:
        _shell.show(render_verdict(verdict, path, verbose=verbose))
    raise typer.Exit(exit_code(verdict))
