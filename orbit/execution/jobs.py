"""Running many cells as one resumable harbor job.

A run directory holds `run.json` (what was asked), `tasks/` (staged task directories), `harbor/` (harbor's job with its
own result files and, per trial, our verdict) and `trials/<name>/trial.json` (what came of each trial). The same
command again resumes it: finished trials are kept, interrupted ones and harness errors are repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from orbit.errors import SetupError, UsageError
from orbit.execution import outcomes
from orbit.execution._environments import EnvironmentChoice, choose_environment
from orbit.execution._reporting import REPORT
from orbit.execution.agents import AgentSpec
from orbit.execution.limits import Overrides, effective_limits, with_limits
from orbit.execution.trials import RUN_FILE, TRIAL_FILE, CellRecord, OptionValue, RunRecord, TrialRecord
from orbit.execution.worker import PIPELINE, load_judge, verify_options
from orbit.records import read_record, write_json
from orbit.verification.verdict import Contract, Validity

if TYPE_CHECKING:
    from harbor.job import Job
    from harbor.models.job.config import JobConfig
    from harbor.trial.hooks import TrialHookEvent

    from orbit.frameworks import Framework
    from orbit.tasks import Task

JOB_DIR = "harbor"
STAGED_DIR = "tasks"
_LOCK_FILE = ".lock"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Cell:
    """Task, framework and prompt, to be solved by the run's agent. Names as `find_task` and `find_framework` take."""

    task: str
    framework: str
    variant: str | None = None
    contract: Contract = Contract.ORBIT_2


@dataclass(frozen=True)
class JobPlan:
    """What to run.

    Attributes:
        cells: in the order of the run.
        agent: who solves.
        out_dir: the run directory, new or of the same run before.
        environment: `local`, `docker`, `podman` or another of harbor's environments.
        image_prefix: registry and namespace that another of harbor's environments gets our images from.
        attempts: trials per cell.
        n_concurrent: trials at once; more than one disturbs the timing.
        max_retries: of trials whose ending says that trying again may help.
        limits: instead of the tasks' own.
        verify_options: arguments of `orbit.verification.pipeline.VerifyOptions` other than the contract.
        allow_unsandboxed: let a third-party agent run commands on this host.
        judge: `module:function` that verifies; see `orbit.execution.worker`.
    """

    cells: tuple[Cell, ...]
    agent: AgentSpec
    out_dir: Path
    environment: str = "local"
    image_prefix: str | None = None
    attempts: int = 1
    n_concurrent: int = 1
    max_retries: int = 1
    limits: Overrides = field(default_factory=Overrides)
    verify_options: Mapping[str, OptionValue] = field(default_factory=dict)
    allow_unsandboxed: bool = False
    judge: str = PIPELINE


@dataclass(frozen=True)
class _Resolved:
    """A cell whose names were looked up."""

    cell: Cell
    task: Task
    framework: Framework
    solution: Path | None


@dataclass(frozen=True)
class JobOutcome:
    """What came of a run."""

    run: RunRecord
    trials: tuple[TrialRecord, ...]
    out_dir: Path

    @property
    def succeeded(self) -> bool:
        """Whether every trial was judged and none is invalid."""
        return bool(self.trials) and all(
            trial.validity in (Validity.VALID, Validity.PROVISIONAL) for trial in self.trials
        )


def run_job(plan: JobPlan, progress: Progress | None = None) -> JobOutcome:
    """Run every cell that is not finished yet, and return the records of all.

    Raises:
        UsageError: the run directory holds another run, or a name in the plan is unknown.
        SetupError: the environment cannot be used on this machine.
        KeyboardInterrupt: the user stopped it; what was finished is recorded.
    """
    report: Progress = progress or (lambda text: None)
    _check(plan)
    out_dir = plan.out_dir.expanduser().absolute()
    environment = choose_environment(
        plan.environment, allow_unsandboxed=plan.allow_unsandboxed, image_prefix=plan.image_prefix
    )
    resolved = [_resolve(plan, cell) for cell in plan.cells]
    with _alone_in(out_dir):
        run = _stage(plan, resolved, out_dir, environment)
        for warning in dict.fromkeys(warning for cell in run.cells for warning in cell.warnings):
            report(f"note: {warning}")
        environment.prepare(run.run_id, _frameworks_needed(plan) if plan.judge == PIPELINE else [], report)
        try:
            with _quiet_harbor():
                asyncio.run(_run(plan, run, out_dir, environment, report))
        except asyncio.CancelledError as error:
            raise KeyboardInterrupt from error
        except (OSError, ExceptionGroup) as error:  # harbor runs trials in a group, whose errors come together
            if not _says_disk_full(error):
                raise
            raise SetupError(f"{out_dir}: no space left on its disk; free some and repeat the command") from error
        finally:
            environment.clean_up(run.run_id, report)
        return JobOutcome(run=run, trials=tuple(_all_records(run, out_dir)), out_dir=out_dir)


def _says_disk_full(error: BaseException) -> bool:
    """Whether an error, or one that it holds, follows or comes from, is that of a full disk."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return True
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return any(_says_disk_full(other) for other in (*inner, error.__cause__, error.__context__) if other is not None)


@contextlib.contextmanager
def _alone_in(out_dir: Path) -> Iterator[None]:
    """Hold the run directory against another process.

    Raises:
        UsageError: another process runs it, or it cannot be made.
    """
    from filelock import FileLock, Timeout

    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{out_dir}: cannot be made ({error.strerror}); choose another --out") from error
    lock = FileLock(out_dir / _LOCK_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError(f"{out_dir}: another orbit is running it; wait for it, or choose another --out") from None
    try:
        yield
    finally:
        lock.release()


def _frameworks_needed(plan: JobPlan) -> list[Framework]:
    """Those of the cells, and the one whose references set the time unit."""
    from orbit.frameworks import REFERENCE_FRAMEWORK, find_framework

    names = dict.fromkeys([*(cell.framework for cell in plan.cells), REFERENCE_FRAMEWORK])
    return [find_framework(name) for name in names]


def _check(plan: JobPlan) -> None:
    if not plan.cells:
        raise UsageError("nothing to run: name at least one task and framework")
    for name in ("attempts", "n_concurrent"):
        if getattr(plan, name) < 1:
            raise UsageError(f"{name} = {getattr(plan, name)}: must be at least 1")
    if plan.max_retries < 0:
        raise UsageError(f"max_retries = {plan.max_retries}: must be at least 0")
    plan.limits.check()
    load_judge(plan.judge)
    if plan.verify_options:
        verify_options(Contract.ORBIT_2, plan.verify_options)
    if plan.environment == "local" and not plan.agent.is_trusted and not plan.allow_unsandboxed:
        raise UsageError(
            f"agent {plan.agent.name} would run commands on this host without a container; "
            "use --environment docker, or --allow-unsandboxed if you trust it"
        )
    plan.agent.check()
    if not plan.agent.is_trusted:
        plan.agent.to_harbor()  # refuses unknown options before anything is written


def _stage(plan: JobPlan, resolved: list[_Resolved], out_dir: Path, environment: EnvironmentChoice) -> RunRecord:
    """Stage every cell, and write what is asked, or check that the run directory was asked the same before."""
    path = out_dir / RUN_FILE
    earlier = read_record(path, RunRecord) if path.exists() else None
    if earlier is None and any(entry.name != _LOCK_FILE for entry in out_dir.iterdir()):
        raise UsageError(f"{out_dir}: not empty and not a run directory; choose another --out")
    cells = [_stage_cell(plan, cell, out_dir, environment) for cell in resolved]
    if len({cell.name for cell in cells}) < len(cells):
        raise UsageError("a task is named twice with the same framework, variant and contract; use --attempts instead")
    run = RunRecord(
        run_id=earlier.run_id if earlier else uuid.uuid4().hex[:12],
        created_at=earlier.created_at if earlier else _now(),
        agent=plan.agent.record(),
        environment=plan.environment,
        n_attempts=plan.attempts,
        max_retries=plan.max_retries,
        limits=plan.limits.record(),
        verify_options=dict(plan.verify_options),
        cells=cells,
    )
    if earlier is not None and earlier != run:
        changed = [name for name in RunRecord.model_fields if getattr(earlier, name) != getattr(run, name)]
        raise UsageError(f"{out_dir}: holds a run with other {', '.join(changed)}; choose another --out")
    if earlier is None:
        write_json(path, run)
    return run


def _resolve(plan: JobPlan, cell: Cell) -> _Resolved:
    """Look a cell's names up.

    Raises:
        UsageError: one of them is unknown, or the agent has no solution for the cell.
    """
    from orbit.frameworks import find_framework
    from orbit.tasks import find_task

    task, framework = find_task(cell.task), find_framework(cell.framework)
    return _Resolved(cell, task, framework, plan.agent.solution(task, framework.name))


def _stage_cell(plan: JobPlan, resolved: _Resolved, out_dir: Path, environment: EnvironmentChoice) -> CellRecord:
    from orbit.assembly import stage

    cell, task, framework = resolved.cell, resolved.task, resolved.framework
    parts = [task.id, framework.name, *([cell.variant] if cell.variant else [])]
    if cell.contract is not Contract.ORBIT_2:
        parts.append(cell.contract.value)
    name = "--".join(parts)
    limits, notes = effective_limits(task.limits, plan.limits, environment.capacity(), plan.verify_options)
    task = with_limits(task, {**asdict(plan.limits), "agent_timeout_sec": plan.agent.timeout_sec})
    place = environment.for_cell(framework, plan.agent, limits)
    staged = stage(
        task,
        framework,
        variant=cell.variant,
        contract=cell.contract,
        target=out_dir / STAGED_DIR / name,
        environment=place.spec,
        solution=resolved.solution,
    )
    return CellRecord(
        name=name,
        task=task.name,
        framework=framework.name,
        variant=cell.variant,
        contract=cell.contract,
        staged_digest=staged.digest,
        staged_dir=str(staged.directory.relative_to(out_dir)),
        image=place.spec.image,
        image_id=place.image_id,
        limits=limits,
        warnings=[*notes, *place.warnings, *staged.warnings],
    )


def _job_config(plan: JobPlan, run: RunRecord, out_dir: Path, environment: EnvironmentChoice) -> JobConfig:
    from harbor.models.job.config import JobConfig, RetryConfig
    from harbor.models.trial.config import TaskConfig, VerifierConfig
    from harbor.models.trial.error_policy import ErrorPolicyOverride

    retryable = outcomes.retryable_exceptions()
    return JobConfig(
        job_name=JOB_DIR,
        jobs_dir=out_dir,
        n_attempts=plan.attempts,
        n_concurrent_trials=plan.n_concurrent,
        quiet=True,
        retry=RetryConfig(max_retries=plan.max_retries, include_exceptions=retryable, exclude_exceptions=set()),
        override_error_policy={
            name: ErrorPolicyOverride(**override) for name, override in outcomes.policy_overrides().items()
        },
        environment=environment.to_harbor(run.run_id, plan.agent),
        verifier=VerifierConfig(
            import_path="orbit.execution.verifier:OrbitVerifier",
            kwargs={"run_dir": str(out_dir), "judge": plan.judge},
        ),
        agents=[plan.agent.to_harbor()],
        tasks=[TaskConfig(path=out_dir / cell.staged_dir) for cell in run.cells],
    )


async def _run(plan: JobPlan, run: RunRecord, out_dir: Path, environment: EnvironmentChoice, report: Progress) -> None:
    from harbor.job import Job

    from orbit.execution._records import write_trial_record
    from orbit.execution._resume import make_resumable

    REPORT.set(report)
    _interrupt_on_termination()
    config = _job_config(plan, run, out_dir, environment)
    make_resumable(config, report)
    job = await Job.create(config)
    _silence_console()
    _report_phases(job, report)

    async def record(event: TrialHookEvent) -> None:
        trial = write_trial_record(run, event.result, out_dir)
        if error := event.result.exception_info:  # harbor decides on a retry after this, by the type alone
            error.exception_type = outcomes.telling_type(error.exception_type, error.exception_message)
        report(f"{trial.name}: {trial.validity.value} ({trial.summary or trial.ending.value})")

    job.on_trial_ended(record)
    result = await job.run()
    # A run that was killed between harbor's file and ours has results without record.
    for trial_result in result.trial_results:
        if not (out_dir / "trials" / trial_result.trial_name / TRIAL_FILE).exists():
            write_trial_record(run, trial_result, out_dir)


def _interrupt_on_termination() -> None:
    """Treat SIGTERM as Ctrl-C, so that containers and processes are taken down as well."""
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _report_phases(job: Job, report: Progress) -> None:
    from harbor.trial.hooks import TrialEvent

    phases = {
        TrialEvent.ENVIRONMENT_START: "starting the environment",
        TrialEvent.AGENT_START: "solving",
        TrialEvent.VERIFICATION_START: "verifying",
    }
    for event, text in phases.items():

        async def tell(happened: TrialHookEvent, text: str = text) -> None:
            report(f"{happened.trial_name}: {text}")

        job.add_hook(event, tell)


@contextlib.contextmanager
def _quiet_harbor() -> Iterator[None]:
    """Keep harbor's progress display, which it writes to standard output, away from ours."""
    import rich

    console = rich.get_console()
    before = console.quiet
    console.quiet = True
    try:
        yield
    finally:
        console.quiet = before


def _silence_console() -> None:
    """Harbor logs every step to the terminal; `harbor/job.log` has it all, and errors are in the records."""
    from harbor.utils.logger import logger

    for handler in logger.handlers:
        if type(handler) is logging.StreamHandler:
            handler.setLevel(logging.CRITICAL)


def _all_records(run: RunRecord, out_dir: Path) -> list[TrialRecord]:
    records = [read_record(path, TrialRecord) for path in sorted((out_dir / "trials").glob("*/trial.json"))]
    return [record for record in records if record.run_id == run.run_id]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
