"""`orbit run`: have somebody solve tasks, through harbor, and judge what comes out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from orbit.cli import _shell

if TYPE_CHECKING:
    from orbit.execution.jobs import JobPlan

EXAMPLES = (
    "orbit run --task 02 --task 12 --framework tensorcircuit --agent reference",
    "orbit run --task 02 --framework tensorcircuit --agent file:my_solution.py --attempts 3",
    "orbit run --task 02 --framework tensorcircuit --agent reference --out runs/first   (again: resumes it)",
    "orbit run --task 03 --framework pennylane --agent codex --model openai/gpt-5.5 --environment docker",
)


def command(
    task: Annotated[list[str], typer.Option(help="Number, id or suite/id of a task; may be repeated.")],
    framework: Annotated[list[str], typer.Option(help="Framework to solve it in; may be repeated.")],
    agent: Annotated[str, typer.Option(help="Who solves: reference, file:PATH, or an agent of harbor.")] = "reference",
    model: Annotated[str | None, typer.Option(help="Model of the agent, as provider/model.")] = None,
    effort: Annotated[str | None, typer.Option(help="Reasoning effort of the model.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Endpoint of the model instead of the provider's.")] = None,
    key_variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable that holds the model's key.")
    ] = None,
    agent_timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit of solving, instead of the task's.")
    ] = None,
    agent_version: Annotated[
        str | None, typer.Option(metavar="PIN", help="Version of the agent's program; another one is refused.")
    ] = None,
    agent_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Option of harbor's adapter; may be repeated.")
    ] = None,
    environment: Annotated[
        str, typer.Option(help="Where solving happens: local, docker, podman, or one of harbor's.")
    ] = "local",
    image_prefix: Annotated[
        str | None, typer.Option(metavar="REGISTRY/PATH", help="Where an environment of harbor's gets our images.")
    ] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="Cores, instead of the task's.")] = None,
    memory_mb: Annotated[int | None, typer.Option(min=1, help="MiB of memory, instead of the task's.")] = None,
    storage_mb: Annotated[int | None, typer.Option(min=1, help="MiB of disk, instead of the task's.")] = None,
    run_timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit of one run of the artifact.")
    ] = None,
    verification_timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit of judging, all runs together.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="Prompt variant of the framework.")] = None,
    contract: Annotated[
        Literal["orbit-2", "orbit-q-1"], typer.Option(help="Version of the task interface to judge under.")
    ] = "orbit-2",
    attempts: Annotated[int, typer.Option(min=1, help="Trials per task and framework.")] = 1,
    retries: Annotated[int, typer.Option(min=0, help="Of a trial that the harness or the endpoint broke.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="Trials at once; more than one disturbs the timing.")] = 1,
    pairs: Annotated[int, typer.Option(min=0, help="Paired runs with the reference per trial.")] = 1,
    probes: Annotated[int, typer.Option(min=0, help="Small random configurations per trial.")] = 2,
    out: Annotated[
        Path | None, typer.Option(help="Run directory, new or of the same run before [default: runs/run-TIME].")
    ] = None,
    allow_unsandboxed: Annotated[
        bool, typer.Option("--allow-unsandboxed", help="Let a third-party agent run commands on this host.")
    ] = False,
    json: _shell.JsonOption = False,
    debug: _shell.DebugOption = False,
) -> None:
    """Solve tasks through harbor, and judge.

    The same command with the same --out resumes a run: finished trials are kept.

    Exit code 0: every trial is valid or provisional; 1: one is invalid; 2: usage, set-up, or one could not be judged.
    """
    from orbit.execution.agent_options import parse_agent_options
    from orbit.execution.agents import AgentSpec
    from orbit.execution.jobs import Cell, JobPlan
    from orbit.execution.limits import Overrides
    from orbit.run_directory import run_directory
    from orbit.verification.verdict import Contract

    cells = tuple(Cell(name, package, variant, Contract(contract)) for package in framework for name in task)
    plan = JobPlan(
        cells=cells,
        agent=AgentSpec(
            agent,
            model=model,
            effort=effort,
            options=parse_agent_options(agent_option or []),
            key_variable=key_variable,
            base_url=base_url,
            timeout_sec=agent_timeout,
            version=agent_version,
        ),
        out_dir=run_directory("run", out),
        environment=environment,
        image_prefix=image_prefix,
        attempts=attempts,
        n_concurrent=concurrency,
        max_retries=retries,
        limits=Overrides(cpus, memory_mb, storage_mb, run_timeout, verification_timeout),
        verify_options={"n_pairs": pairs, "n_probes": probes},
        allow_unsandboxed=allow_unsandboxed,
    )
    _carry_out(plan, json=json)


def _carry_out(plan: JobPlan, *, json: bool) -> None:
    """Run a plan, show its trials, and exit by the worst of them."""
    from orbit.execution.jobs import run_job
    from orbit.reports.trials_text import exit_code, render_trials

    with _shell.progress() as report:
        outcome = run_job(plan, report)
    if json:
        _shell.show_json(outcome.trials)
    else:
        _shell.show(render_trials(outcome.trials, outcome.out_dir))
    raise typer.Exit(exit_code(outcome.trials))
