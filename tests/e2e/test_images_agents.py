"""The real agent programs, in the real images, hold whole conversations with the scripted endpoint.

This is the floor under the end-to-end tests of trials: whatever fails there and not here is ours, not an agent's.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from orbit.accounting import account
from orbit.errors import SetupError
from orbit.images import check_image
from tests.e2e.endpoint import Failure, ScriptedEndpoint, Turn, Usage, total_usage

pytestmark = pytest.mark.e2e

SCRIPT = (
    Turn(command="echo 'def run_solution(config): return {}' > /app/solution.py", usage=Usage(1000, 200, 50, 30, 5)),
    Turn(failure=Failure(status=500)),
    Turn(text="I check it.", command="cat /app/solution.py", usage=Usage(2000, 1000, 0, 40)),
    Turn(text="Done.", usage=Usage(10, 20, 30, 40)),
)
CODEX_CONFIG = """
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
COMMANDS = {
    "codex": (
        "mkdir -p ~/.codex && cp /in/config.toml ~/.codex/ && codex exec --dangerously-bypass-approvals-and-sandbox "
        "--skip-git-repo-check --model gpt-5.5 --json -- 'write the file' </dev/null > /out/codex.txt; "
        "cp /app/* /out/"
    ),
    "claude-code": (
        "claude --verbose --output-format=stream-json --permission-mode=bypassPermissions --model claude-sonnet-4-5 "
        "--print -- 'write the file' </dev/null > /out/claude-code.txt; cp /app/* /out/"
    ),
}
# USD by the price table; the sum of the script's tokens times the model's prices.
COSTS = {
    "codex": (3010 * 5 + 1220 * 0.5 + 80 * 5 + 110 * 30) / 1e6,
    "claude-code": (3010 * 3 + 1220 * 0.3 + 80 * 3.75 + 110 * 15) / 1e6,
}
FRAMEWORKS = {"codex": "tensorcircuit", "claude-code": "pennylane"}


def converse(agent: str, endpoint: ScriptedEndpoint, directory: Path) -> Path:
    """Run the agent in its image, sharing only the host's loopback, and return what it left."""
    try:
        image = check_image(FRAMEWORKS[agent])
    except SetupError as error:
        pytest.skip(str(error))
    given, left = directory / "in", directory / "out"
    given.mkdir()
    left.mkdir()
    left.chmod(0o777)
    (given / "config.toml").write_text(CODEX_CONFIG.format(url=endpoint.openai_url))
    environment = {
        "OPENAI_API_KEY": "canary",
        "ANTHROPIC_API_KEY": "canary",
        "ANTHROPIC_BASE_URL": endpoint.anthropic_url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    command = ["docker", "run", "--rm", "--network", "host", "--user", "agent", "--label", "orbit.test=images"]
    command += ["-v", f"{given}:/in:ro", "-v", f"{left}:/out"]
    for key, value in environment.items():
        command += ["-e", f"{key}={value}"]
    done = subprocess.run(
        [*command, image.name, "bash", "-c", COMMANDS[agent]], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return left


@pytest.mark.parametrize("agent", sorted(COMMANDS))
def test_a_conversation_writes_a_file_and_is_accounted_for_to_the_token(agent, tmp_path):
    with ScriptedEndpoint(SCRIPT, key="canary") as endpoint:
        left = converse(agent, endpoint, tmp_path)
        assert (endpoint.n_turns_left, endpoint.n_overruns) == (0, 0)
        assert len(endpoint.conversation) == len(SCRIPT), "the failed turn was tried again, nothing else"
    assert (left / "solution.py").read_text() == "def run_solution(config): return {}\n"
    usage = account(left, model="gpt-5.5")
    expected = total_usage(SCRIPT)
    assert usage is not None
    assert usage.tokens.model_dump() == {
        "uncached_input": expected.input,
        "cached_input": expected.cached,
        "cache_write": expected.cache_write,
        "output": expected.output,
    }
    assert usage.cost_usd == pytest.approx(COSTS[agent], rel=1e-9)
    assert usage.warnings == []
    if agent == "claude-code":
        assert usage.reported_cost_usd == pytest.approx(COSTS[agent], rel=1e-9)
