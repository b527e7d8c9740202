"""harbor's verifier interface over our own verification.

harbor brings the artifact back to the host; the verification runs there in a process of its own. Only the execution of
the artifact takes place in an environment: the local sandbox, or harbor's separate verification environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, override

import psutil
from harbor.constants import MAIN_SERVICE_NAME
from harbor.models.verifier.result import VerifierResult
from harbor.verifier.base import BaseVerifier

from orbit.assembly import ARTIFACT_PATH
from orbit.errors import HarnessError
from orbit.execution._agent_logs import final_message, is_refusal
from orbit.execution._protocol import EVENTS, Done, Failed, JobEnded, Progress, RunJob, VerificationRequest
from orbit.execution._reporting import REPORT
from orbit.execution.container import prepare_environment, run_in_environment
from orbit.execution.local import LocalEnvironment
from orbit.execution.rewards import rewards_of
from orbit.execution.trials import RUN_FILE, CellRecord, RunRecord
from orbit.execution.worker import PIPELINE
from orbit.host import capture_host, n_cores_allowed
from orbit.records import read_record, write_json
from orbit.tasks import find_task
from orbit.verification.verdict import (
    STAGES,
    Evidence,
    FailureMode,
    Outcome,
    Stage,
    Timing,
    Validity,
    Verdict,
    decide,
    reward,
)

VERIFICATION_DIR = "verification"
"""Beside harbor's `verifier` directory of a trial: the verdict, the runs and the log."""

_MAX_ARTIFACT_BYTES = 16 * 2**20
_LINE_LIMIT_BYTES = 16 * 2**20
_END_SEC = 10.0
_MAX_MESSAGE_CHARS = 2000


class OrbitVerifier(BaseVerifier):
    """Turns an artifact into a verdict and the verdict into harbor's rewards."""

    def __init__(self, *, run_dir: str, judge: str = PIPELINE, **kwargs: Any) -> None:
        """Read what is judged from the run's own record.

        Args:
            run_dir: the run directory.
            judge: `module:function`; see `orbit.execution.worker`.
            **kwargs: what harbor gives every verifier.
        """
        super().__init__(**kwargs)
        self._judge = judge
        self._run = read_record(Path(run_dir) / RUN_FILE, RunRecord)
        self._cell = self._run.cell(self.task.paths.task_dir.name)
        self._out_dir = self.trial_paths.trial_dir / VERIFICATION_DIR

    @override
    async def verify(self) -> VerifierResult:
        """Verify the artifact, or conclude that there is none.

        Raises:
            HarnessError: the artifact could not be judged; harbor records it and gives no reward.
        """
        self._out_dir.mkdir(parents=True, exist_ok=True)
        artifact = self.trial_paths.host_artifact_path(MAIN_SERVICE_NAME, ARTIFACT_PATH)
        problem = problem_with_artifact(artifact)
        if problem is not None:
            verdict = verdict_without_artifact(self._cell, problem, final_message(self.trial_paths.agent_dir))
            write_json(self._out_dir / "verdict.json", verdict)
        else:
            await self._verify_in_worker(artifact)
            verdict = read_record(self._out_dir / "verdict.json", Verdict)
        if verdict.validity is Validity.ERROR:
            raise HarnessError(verdict.summary or "the verification could not be carried out; see verdict.json")
        rewards = rewards_of(verdict)
        write_json(self.trial_paths.reward_json_path, dict(rewards))
        return VerifierResult(rewards=rewards)

    async def _verify_in_worker(self, artifact: Path) -> None:
        limits = self._cell.limits
        bridged = not isinstance(self.environment, LocalEnvironment)
        request = VerificationRequest(
            solution=artifact.absolute(),
            task=self._cell.task,
            framework=self._cell.framework,
            contract=self._cell.contract,
            options=self._run.verify_options,
            out_dir=self._out_dir.absolute(),
            judge=self._judge,
            bridged=bridged,
            memory_mb=limits.memory_mb,
            run_timeout_sec=limits.run_timeout_sec,
            n_cores=limits.cpus if bridged or (limits.cpus or 0) < n_cores_allowed() else None,
        )
        if request.bridged:
            await prepare_environment(self.environment)
        with (self._out_dir / "log.txt").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "orbit.execution.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                limit=_LINE_LIMIT_BYTES,
            )
            try:
                await self._converse(process, request)
            finally:
                await asyncio.shield(_end(process))

    async def _converse(self, process: asyncio.subprocess.Process, request: VerificationRequest) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{request.model_dump_json()}\n".encode())
        jobs: set[asyncio.Task[None]] = set()
        try:
            await self._listen(process, jobs)
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)

    async def _listen(self, process: asyncio.subprocess.Process, jobs: set[asyncio.Task[None]]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        while line := await process.stdout.readline():
            match EVENTS.validate_json(line):
                case Progress(text=text):
                    self.logger.debug(text)
                    report = REPORT.get()
                    if report is not None:
                        report(f"{self.trial_paths.trial_dir.name}: {text}")
                case RunJob() as job:
                    jobs.add(asyncio.create_task(self._run_job(job, process.stdin)))
                case Failed() as failed:
                    (self._out_dir / "traceback.txt").write_text(failed.traceback)
                    raise HarnessError(failed.text)
                case Done():
                    return
        status = await process.wait()
        raise HarnessError(f"the verification process ended with status {status}; see {self._out_dir / 'log.txt'}")

    async def _run_job(self, job: RunJob, answers: asyncio.StreamWriter) -> None:
        error = None
        try:
            await run_in_environment(self.environment, job)
        except Exception as failure:
            self.logger.exception("a job in the verification environment failed")
            error = f"the verification environment failed: {failure}"
        answers.write(f"{JobEnded(number=job.number, error=error).model_dump_json()}\n".encode())


async def _end(process: asyncio.subprocess.Process) -> None:
    """Have the worker end, and kill it with everything it started if it does not."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _END_SEC)
        return
    except TimeoutError:
        pass
    with contextlib.suppress(psutil.NoSuchProcess):
        worker = psutil.Process(process.pid)
        for member in (*worker.children(recursive=True), worker):
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
    await process.wait()


def problem_with_artifact(path: Path) -> str | None:
    """Why the file that came back is no artifact, or None if it is one."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return f"the agent left no {ARTIFACT_PATH}"
    if not stat.S_ISREG(status.st_mode):
        return f"{ARTIFACT_PATH} is not a regular file"
    if status.st_size > _MAX_ARTIFACT_BYTES:
        return f"{ARTIFACT_PATH} has {status.st_size} bytes, more than {_MAX_ARTIFACT_BYTES}, and was not read"
    return None


def verdict_without_artifact(cell: CellRecord, problem: str, message: str | None = None) -> Verdict:
    """The verdict on an agent that left nothing to judge; its last message may say that it refused."""
    evidence = [Evidence(check="artifact_exists", outcome=Outcome.FAIL, message=problem)]
    mode = FailureMode.AGENT_NO_ARTIFACT
    if message is not None and is_refusal(message):
        mode = FailureMode.SAFETY_REFUSAL
        problem = f"the agent refused, by its last message, and {problem.removeprefix('the agent ')}"
        evidence.append(Evidence(check="refusal", outcome=Outcome.FLAG, message=message[:_MAX_MESSAGE_CHARS]))
    stages = {name: Stage.skipped("no artifact") for name in STAGES}
    stages["solving"] = Stage.from_evidence(evidence, mode)
    decision = decide(stages)
    task = find_task(cell.task)
    return Verdict(
        task=task.id,
        suite=task.suite,
        framework=cell.framework,
        contract=cell.contract,
        validity=decision.validity,
        failure_mode=decision.failure_mode,
        summary=problem,
        reward=reward(stages),
        stages=stages,
        timing=Timing(),
        evaluator_digest=task.evaluator_digest(),
        host=capture_host(),
        seed=0,
        verified_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
