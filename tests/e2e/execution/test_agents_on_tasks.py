"""Real agents solve real tasks: what they write is judged and timed by the real pipeline in a second container.

The scripted model writes a known correct program, so that what is tested is the way from its shell to the verdict.
The verification is kept short by one probe and one pair, instead of two and five or more; nothing else is left out.
"""

import ast
import json
import math
from pathlib import Path

import pytest

from orbit.cli import main
from orbit.execution.jobs import Cell
from orbit.execution.outcomes import Disposition, Ending
from orbit.records import read_record
from orbit.tasks import find_task
from orbit.verification.execution import Execution
from orbit.verification.verdict import REQUIRED_STAGES, StageStatus, Validity, Verdict
from tests.e2e.endpoint import Turn, Usage, total_usage
from tests.e2e.execution.agent_trials import KEY, KEY_VARIABLE, run_agent

pytestmark = pytest.mark.e2e

SHORT = {"n_probes": 1, "n_pairs": 1, "seed": 20260101}
SOLUTIONS = Path(__file__).parent / "solutions"


CHECK = "python3 -c \"import ast; print(len(ast.parse(open('/app/solution.py').read()).body), 'statements')\""


def script(source):
    """What a model might do: look around, write the file, look at it, and say so."""
    return (
        Turn(text="I look around.", command="ls /app", usage=Usage(3000, 0, 400, 60, 20)),
        Turn(command=f"cat > /app/solution.py <<'END'\n{source}END", usage=Usage(700, 3400, 0, 1900)),
        Turn(command=CHECK, usage=Usage(250, 5300, 50, 40)),
        Turn(text="The program is at /app/solution.py.", usage=Usage(90, 5600, 0, 25)),
    )


def dollars(usage, price_in, price_cached, price_write, price_out):
    """The cost of the script; prices are in USD per million tokens."""
    parts = (usage.input, price_in), (usage.cached, price_cached), (usage.cache_write, price_write)
    return sum(tokens * price for tokens, price in (*parts, (usage.output, price_out))) / 1e6


@pytest.fixture
def solve(engine, tmp_path, monkeypatch):
    """Has an agent write a program for a task; returns the run directory, the record and the verdict."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)

    def run(agent, task, framework, turns):
        out_dir = tmp_path / "run"
        trial, endpoint = run_agent(agent, turns, out_dir, Cell(task, framework), verify_options=SHORT)
        assert (endpoint.n_turns_left, endpoint.n_overruns) == (0, 0)
        assert trial.verdict_path is not None, trial
        return out_dir, trial, read_record(out_dir / trial.verdict_path, Verdict)

    return run


def assert_judged_and_timed(out_dir, trial, verdict, source):
    assert (trial.ending, trial.disposition) == (Ending.COMPLETED, Disposition.JUDGE)
    statuses = {name: verdict.stages[name].status for name in REQUIRED_STAGES}
    assert statuses == dict.fromkeys(REQUIRED_STAGES, StageStatus.PASS), verdict.summary
    assert all(verdict.stages[name].evidence for name in REQUIRED_STAGES)
    # Only the audit, which needs a model of its own, is missing to a valid one.
    assert (trial.validity, trial.reward, trial.failure_mode) == (Validity.PROVISIONAL, 1, None)
    assert json.loads((out_dir / trial.harbor_trial_dir / "verifier" / "reward.json").read_text())["reward"] == 1
    assert (out_dir / trial.artifact_path).read_text() == source

    timing = verdict.timing
    assert len(timing.pairs) == 1
    assert timing.runtime_sec > 0
    assert timing.reference_sec > 0
    assert math.isfinite(timing.slowdown)
    assert timing.slowdown == pytest.approx(timing.runtime_sec / timing.reference_sec)
    assert (verdict.sandbox.kind, verdict.sandbox.network) == ("container", False)
    runs = (out_dir / trial.verdict_path).parent / "runs"
    made = [Execution.model_validate_json(path.read_text()) for path in sorted(runs.glob("*/execution.json"))]
    assert {"probe-1", "timed-1", "full-probe", "reference-1"} <= {path.name for path in runs.iterdir()}
    assert {execution.status for execution in made} == {"ok"}
    assert {execution.sandbox.kind for execution in made} == {"container"}


def assert_accounted_for(trial, turns, cost, *, reported):
    expected = total_usage(turns)
    assert trial.usage.tokens.model_dump() == {
        "uncached_input": expected.input,
        "cached_input": expected.cached,
        "cache_write": expected.cache_write,
        "output": expected.output,
    }
    assert trial.usage.cost_usd == pytest.approx(cost, rel=1e-9)
    assert trial.usage.warnings == []
    assert trial.usage.reported_cost_usd == (pytest.approx(cost, rel=1e-9) if reported else None)


def assert_shown(out_dir, trial, turns, source, capsys):
    """`orbit show` has the commands and words in order, the tokens, the program and the verdict."""
    trajectory = json.loads((out_dir / trial.harbor_trial_dir / "agent" / "trajectory.json").read_text())
    assert trajectory["agent"]["name"] == trial.agent
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(["show", str(out_dir), "--full"])
    assert not end.value.code
    text = capsys.readouterr().out
    total = total_usage(turns)
    wanted = [
        f"PROVISIONAL   {trial.name}",
        f"{total.input:,} uncached input · {total.cached:,} cached input",
        "I look around.",
        "$ ls /app",
        "$ cat > /app/solution.py <<'END'",
        f"      | {len(ast.parse(source).body)} statements\n",
        f"{total.all_input:,} tokens sent, {total.output:,} received so far",
        "The program is at /app/solution.py.",
        f"{len(source.splitlines())} lines\n",
        f"{source.splitlines().index('def run_solution(config):') + 1}  def run_solution(config):",
        "Time      ",
        "Verdict   ",
    ]
    places = [text.find(line) for line in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places)


def test_codex_solves_a_task_in_tensorcircuit(solve, capsys):
    source = find_task("04").reference_path("tensorcircuit").read_text()
    turns = script(source)
    out_dir, trial, verdict = solve("codex", "04", "tensorcircuit", turns)
    assert_judged_and_timed(out_dir, trial, verdict, source)
    assert_accounted_for(trial, turns, dollars(total_usage(turns), 5, 0.5, 5, 30), reported=False)
    assert_shown(out_dir, trial, turns, source, capsys)


def test_claude_code_solves_a_task_in_pennylane(solve, capsys):
    source = (SOLUTIONS / "pennylane_02.py").read_text()
    turns = script(source)
    out_dir, trial, verdict = solve("claude-code", "02", "pennylane", turns)
    assert_judged_and_timed(out_dir, trial, verdict, source)
    assert_accounted_for(trial, turns, dollars(total_usage(turns), 3, 0.3, 3.75, 15), reported=True)
    assert_shown(out_dir, trial, turns, source, capsys)
