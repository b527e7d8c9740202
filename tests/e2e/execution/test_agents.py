"""The real Codex and Claude Code in real containers, with a scripted model; only the judgement is a stand-in."""

import pytest

from orbit.execution.jobs import Cell
from orbit.execution.outcomes import Disposition, Ending
from orbit.reports.trial import load_trial
from orbit.verification.verdict import FailureMode, Validity
from tests.e2e.endpoint import Failure, Turn, Usage, total_usage
from tests.e2e.execution.agent_trials import KEY, KEY_VARIABLE, run_agent
from tests.unit.execution.test_jobs import JUDGES

pytestmark = pytest.mark.e2e

WRITE = Turn(command="echo '# good' > /app/solution.py", usage=Usage(input=1000, cached=200, output=50))
DONE = Turn(text="Done.", usage=Usage(input=100, cached=1200, output=20))
FAIL = Turn(failure=Failure(status=500))
LIMITED = Turn(failure=Failure(status=429))
REJECTED = Turn(failure=Failure(status=401))


@pytest.fixture
def solve(data, tmp_path, engine, monkeypatch):
    """Runs one trial of an agent on a script and returns its record."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    toml = data / "tasks" / "tiny" / "01-copy" / "task.toml"
    toml.write_text(toml.read_text().replace("timeout_sec = 60", "timeout_sec = 300"))

    def run(agent, turns, *, timeout_sec=None, max_retries=0):
        trial, _ = run_agent(
            agent,
            turns,
            tmp_path / "run",
            Cell("tiny/01", "tensorcircuit"),
            timeout_sec=timeout_sec,
            repeat_last=turns[-1].failure is not None,
            judge=f"{JUDGES}:by_content",
            max_retries=max_retries,
        )
        return trial

    return run


@pytest.mark.parametrize("agent", ["codex", "claude-code"])
def test_an_agent_solves_and_every_token_is_counted(solve, agent):
    trial = solve(agent, [WRITE, DONE])
    assert (trial.ending, trial.disposition) == (Ending.COMPLETED, Disposition.JUDGE)
    assert (trial.validity, trial.reward) == (Validity.PROVISIONAL, 1)
    expected = total_usage([WRITE, DONE])
    tokens = trial.usage.tokens
    assert (tokens.uncached_input, tokens.cached_input, tokens.output) == (
        expected.input,
        expected.cached,
        expected.output,
    )
    assert trial.usage.cost_usd > 0
    assert trial.agent_version not in (None, "unknown")


def test_an_artifact_left_by_a_stopped_agent_is_judged(solve, tmp_path):
    trial = solve("codex", [WRITE, *[Turn(command="sleep 500")] * 9], timeout_sec=60)
    assert (trial.ending, trial.disposition) == (Ending.AGENT_TIMEOUT, Disposition.JUDGE)
    assert trial.reward == 1
    assert trial.solving_sec < 90
    transcript = load_trial(tmp_path / "run").transcript
    assert transcript.steps[-1].actions[-1].text == "sleep 500", "what it did until it was stopped is kept"


def test_an_agent_that_writes_nothing_failed(solve):
    trial = solve("codex", [Turn(text="I could not do it.")])
    assert (trial.disposition, trial.failure_mode) == (Disposition.FAILED_TRIAL, FailureMode.AGENT_NO_ARTIFACT)
    assert trial.reward == 0


@pytest.mark.parametrize(("agent", "marked"), [("codex", False), ("claude-code", True)])
def test_a_refusal_is_told_apart(solve, agent, marked):
    trial = solve(agent, [Turn(text="I'm sorry, but I can't help with that request.", refusal=marked)])
    assert (trial.ending, trial.failure_mode) == (Ending.REFUSAL, FailureMode.SAFETY_REFUSAL)
    assert (trial.disposition, trial.reward) == (Disposition.FAILED_TRIAL, 0)


def test_an_endpoint_that_recovers_costs_the_agent_nothing(solve):
    trial = solve("codex", [FAIL, FAIL, WRITE, DONE])
    assert (trial.disposition, trial.reward) == (Disposition.JUDGE, 1)


def test_an_endpoint_that_stays_down_is_no_failure_of_the_agent(solve):
    trial = solve("codex", [FAIL])
    assert (trial.ending, trial.disposition) == (Ending.ENDPOINT_DOWN, Disposition.HARNESS_ERROR)
    assert (trial.validity, trial.reward, trial.failure_mode) == (Validity.ERROR, None, None)
    assert trial.summary.startswith("codex ended with status 1: ")


@pytest.mark.parametrize(("turn", "ending"), [(LIMITED, Ending.RATE_LIMIT), (REJECTED, Ending.MODEL_ACCESS)])
def test_what_the_provider_denies_is_no_failure_of_the_agent(solve, turn, ending):
    """Claude Code ends alike, after trying for three minutes."""
    trial = solve("codex", [turn])
    assert (trial.ending, trial.disposition) == (ending, Disposition.HARNESS_ERROR)
    assert (trial.validity, trial.reward, trial.failure_mode) == (Validity.ERROR, None, None)


def test_a_trial_is_repeated_when_the_endpoint_was_down(solve):
    """Codex gives up after 30 requests; the second trial finds the endpoint recovering."""
    trial = solve("codex", [*[FAIL] * 32, WRITE, DONE], max_retries=1)
    assert (trial.disposition, trial.reward) == (Disposition.JUDGE, 1)
