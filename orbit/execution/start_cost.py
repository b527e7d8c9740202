"""What `orbit run` costs beside harbor: `python -m orbit.execution.start_cost`.

Pairs of processes, alternating: one trial of a trivial artifact in Docker through `orbit run`, whose verdict needs no
run, and a bare `harbor run` of the very same staged task with the oracle agent and a script that writes the reward.
Both make two containers of the same image, one to solve and a separate one to verify. The order within a pair changes,
so that neither side always finds the caches warm.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import orbit
from orbit.execution._protocol import VerificationRequest
from orbit.execution.jobs import STAGED_DIR
from orbit.verification.execution import Executor
from orbit.verification.verdict import REQUIRED_STAGES, Stage, StageStatus, Timing, Verdict, decide, reward

TASK, FRAMEWORK = "12", "tensorcircuit"
_REWARD_SCRIPT = "#!/bin/sh\nmkdir -p /logs/verifier\ntest -f /app/solution.py && echo 1 > /logs/verifier/reward.txt\n"
_JUDGE = "orbit.execution.start_cost:judge_nothing"
_TIMEOUT_SEC = 600.0

_ORBIT = """
import sys
from pathlib import Path
from orbit.execution.agents import AgentSpec
from orbit.execution.jobs import Cell, JobPlan, run_job

cells = (Cell(sys.argv[2], sys.argv[3]),)
agent = AgentSpec(f"file:{sys.argv[1]}")
outcome = run_job(JobPlan(cells, agent, Path(sys.argv[4]), environment="docker", judge=sys.argv[5], max_retries=0))
assert [trial.reward for trial in outcome.trials] == [1], outcome.trials
"""


def judge_nothing(request: VerificationRequest, executor: Executor, progress: Callable[[str], None]) -> Verdict:
    """A verdict without a look at the artifact, so that everything but the judgement is measured."""
    stages = {name: Stage(status=StageStatus.PASS) for name in REQUIRED_STAGES}
    decision = decide(stages)
    suite, _, task = request.task.partition("/")
    return Verdict(
        task=task,
        suite=suite,
        framework=request.framework,
        contract=request.contract,
        validity=decision.validity,
        failure_mode=decision.failure_mode,
        summary="not judged: this measures what the rest costs",
        reward=reward(stages),
        stages=stages,
        timing=Timing(),
        seed=0,
        verified_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def measure(n_pairs: int, work_dir: Path) -> list[tuple[float, float]]:
    """Seconds of `orbit run` and of `harbor run`, pair by pair."""
    artifact = work_dir / "trivial.py"
    artifact.write_text("def run_solution(config):\n    return {}\n")
    _timed(_orbit_command(artifact, work_dir / "staged"))  # warms the engine, and stages the task for both
    staged = next((work_dir / "staged" / STAGED_DIR).iterdir())
    task_dir = work_dir / "task"
    for_bare_harbor(staged, task_dir)
    pairs = []
    for number in range(n_pairs):
        sides = {
            "orbit": _orbit_command(artifact, work_dir / f"orbit-{number}"),
            "harbor": _harbor_command(task_dir, work_dir / f"harbor-{number}"),
        }
        names = ("orbit", "harbor") if number % 2 == 0 else ("harbor", "orbit")
        taken = {name: _timed(sides[name]) for name in names}
        if _harbor_reward(work_dir / f"harbor-{number}") != 1:
            raise RuntimeError(f"{work_dir}/harbor-{number}: the bare job gave no reward; its time means nothing")
        pairs.append((taken["orbit"], taken["harbor"]))
        print(f"pair {number + 1}: orbit {taken['orbit']:.1f} s, harbor {taken['harbor']:.1f} s", flush=True)
    return pairs


def summary(pairs: Sequence[tuple[float, float]]) -> str:
    """Medians and the median of the ratios within pairs, which load that both sides met does not move."""
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(own / bare for own, bare in pairs)
    return f"{len(pairs)} pairs, medians: orbit {ours:.1f} s, harbor {theirs:.1f} s, ratio within a pair {ratio:.2f}"


def _orbit_command(artifact: Path, out_dir: Path) -> list[str]:
    return [sys.executable, "-c", _ORBIT, str(artifact), TASK, FRAMEWORK, str(out_dir), _JUDGE]


def _harbor_command(task_dir: Path, jobs_dir: Path) -> list[str]:
    program = str(Path(sys.executable).with_name("harbor"))
    return [program, "run", "--path", str(task_dir), "--agent", "oracle", "--jobs-dir", str(jobs_dir), "--quiet"]


def for_bare_harbor(staged: Path, task_dir: Path) -> None:
    """Copy a staged task for harbor's own verifier and environment.

    harbor cuts the network off with images from a registry, so it is left open. It copies a verifier's script in only
    if the verifier's container is given no image of its own; it then takes the task's, which is the same one.
    """
    shutil.copytree(staged, task_dir)
    (task_dir / "tests" / "test.sh").write_text(_REWARD_SCRIPT)
    toml = task_dir / "task.toml"
    head, table, rest = toml.read_text().replace('"no-network"', '"public"').partition("[verifier.environment]\n")
    own, blank, others = rest.partition("\n\n")
    kept = [line for line in own.splitlines() if not line.startswith("docker_image")]
    toml.write_text(head + table + "\n".join(kept) + blank + others)


def _harbor_reward(jobs_dir: Path) -> float | None:
    for path in jobs_dir.glob("*/*/result.json"):
        rewards = (json.loads(path.read_text()).get("verifier_result") or {}).get("rewards") or {}
        return rewards.get("reward")
    return None


def _timed(command: Sequence[str]) -> float:
    environment = {**os.environ, "PYTHONPATH": str(Path(orbit.__file__).parents[1])}
    environment |= {"HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, timeout=_TIMEOUT_SEC, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Measure as many pairs as the first argument says (5), and print the medians."""
    n_pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="orbit-start-cost-") as name:
        print(f"load {os.getloadavg()[0]:.1f} before")
        pairs = measure(n_pairs, Path(name))
        print(f"load {os.getloadavg()[0]:.1f} after")
        print(summary(pairs))


if __name__ == "__main__":
    main()
