import json
import tomllib

import pytest

from orbit.execution import start_cost

TOML = """\
[verifier.environment]
docker_image = "image:1"
cpus = 1
network_mode = "no-network"

[environment]
docker_image = "image:1"
network_mode = "no-network"
"""


def test_the_ratio_is_that_within_a_pair():
    pairs = [(10.0, 20.0), (30.0, 40.0), (12.0, 12.0)]
    assert start_cost.summary(pairs) == "3 pairs, medians: orbit 12.0 s, harbor 20.0 s, ratio within a pair 0.75"


@pytest.fixture
def sides(tmp_path, monkeypatch):
    """Stands in for both programs; `rewards` says what each bare job leaves."""
    started, rewards = [], []

    def timed(command):
        side = "harbor" if command[1] == "run" else "orbit"
        started.append(side)
        if len(started) == 1:
            staged = tmp_path / "staged" / "tasks" / "cell"
            (staged / "tests").mkdir(parents=True)
            (staged / "task.toml").write_text(TOML)
        if side == "harbor":
            result = tmp_path / f"harbor-{started.count('harbor') - 1}" / "job" / "trial" / "result.json"
            result.parent.mkdir(parents=True)
            result.write_text(json.dumps({"verifier_result": {"rewards": {"reward": rewards.pop(0)}}}))
        return 1.0 if side == "orbit" else 2.0

    monkeypatch.setattr(start_cost, "_timed", timed)
    return started, rewards


def test_pairs_alternate_and_run_the_same_task(sides, tmp_path):
    started, rewards = sides
    rewards += [1, 1]
    assert start_cost.measure(2, tmp_path) == [(1.0, 2.0), (1.0, 2.0)]
    assert started == ["orbit", "orbit", "harbor", "harbor", "orbit"]
    toml = tomllib.loads((tmp_path / "task" / "task.toml").read_text())
    assert toml["verifier"]["environment"] == {"cpus": 1, "network_mode": "public"}
    assert toml["environment"] == {"docker_image": "image:1", "network_mode": "public"}
    assert "reward.txt" in (tmp_path / "task" / "tests" / "test.sh").read_text()


def test_a_bare_job_that_failed_is_no_measurement(sides, tmp_path):
    sides[1].append(0)
    with pytest.raises(RuntimeError, match="no reward"):
        start_cost.measure(1, tmp_path)
