"""A trial of a real agent program on a scripted endpoint, for the tests of this directory."""

from orbit.execution.agents import AgentSpec
from orbit.execution.jobs import JobPlan, run_job
from tests.e2e.endpoint import ScriptedEndpoint

KEY = "canary-key-4711"
KEY_VARIABLE = "ORBIT_TEST_MODEL_KEY"
MODELS = {"codex": "openai/gpt-5.5", "claude-code": "anthropic/claude-sonnet-4-5"}


def run_agent(agent, turns, out_dir, cell, *, timeout_sec=None, repeat_last=False, **plan):
    """Run one trial in containers and return its record and the endpoint; the key must be nowhere in what is left.

    `KEY_VARIABLE` has to hold `KEY`. The rest is for `JobPlan`.
    """
    with ScriptedEndpoint(turns, repeat_last=repeat_last, key=KEY) as endpoint:
        spec = AgentSpec(
            agent,
            model=MODELS[agent],
            base_url=endpoint.anthropic_url if agent == "claude-code" else endpoint.openai_url,
            key_variable=KEY_VARIABLE,
            timeout_sec=timeout_sec,
        )
        outcome = run_job(JobPlan(cells=(cell,), agent=spec, out_dir=out_dir, environment="docker", **plan), print)
    for path in out_dir.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path
    (trial,) = outcome.trials
    return trial, endpoint
