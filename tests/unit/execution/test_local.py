import asyncio
import time
from pathlib import Path

import psutil
import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.config import AgentConfig, TaskConfig, TrialConfig
from harbor.models.trial.paths import TrialPaths

from orbit.errors import SetupError
from orbit.execution import _roots, local
from orbit.execution._roots import BOUND_ROOTS, UnboundPathError
from orbit.execution.local import LocalEnvironment

needs_bubblewrap = pytest.mark.skipif(_roots.bubblewrap() is None, reason="bubblewrap cannot be used here")


@pytest.fixture(params=["bubblewrap", "rewriting"])
def confinement(request, monkeypatch):
    if request.param == "rewriting":
        monkeypatch.setattr(local, "bubblewrap", lambda: None)
    elif _roots.bubblewrap() is None:
        pytest.skip("bubblewrap cannot be used here")
    return request.param


def make(directory, name="trial__env", agent=None, policy=None, **options):
    paths = TrialPaths(directory)
    paths.mkdir()
    if agent is not None:
        config = TrialConfig(task=TaskConfig(path=directory), agent=AgentConfig(name=agent))
        paths.config_path.write_text(config.model_dump_json())
    return LocalEnvironment(
        environment_dir=directory / "environment",
        environment_name="task",
        session_id=name,
        trial_paths=paths,
        task_env_config=EnvironmentConfig(),
        network_policy=policy,
        **options,
    )


def run(environment, *steps):
    async def inner():
        await environment.start(force_build=False)
        try:
            return [await step(environment) for step in steps]
        finally:
            await environment.stop(delete=True)

    return asyncio.run(inner())


def host_roots():
    """What lies in the host's own directories of these names, /tmp aside."""
    names = [name for name in BOUND_ROOTS if name != "tmp"]
    return {
        str(path)
        for name in names
        if Path("/", name).exists()
        for path in [Path("/", name), *Path("/", name).rglob("*")]
    }


def test_commands_write_into_the_environment_and_not_into_the_host(tmp_path, confinement):
    before = host_roots()

    async def write(environment):
        return await environment.exec(
            "echo one > /app/a.txt && mkdir -p /logs/agent && cat /app/a.txt && touch /tests/t"
        )

    async def download(environment):
        await environment.download_file("/app/a.txt", tmp_path / "back" / "a.txt")

    result, _ = run(make(tmp_path / "trial"), write, download)
    assert (result.return_code, result.stdout) == (0, "one\n")
    assert (tmp_path / "back" / "a.txt").read_text() == "one\n"
    assert host_roots() == before
    assert not (tmp_path / "trial" / "local" / "trial__env").exists()


def test_uploaded_script_uses_the_environments_own_directories(tmp_path, confinement):
    script = tmp_path / "solution" / "solve.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/bash\ncp /solution/given.py /app/solution.py\n")
    (script.parent / "given.py").write_text("x = 1\n")
    before = host_roots()

    async def solve(environment):
        await environment.upload_dir(script.parent, "/solution")
        return await environment.exec("chmod +x /solution/solve.sh && (/solution/solve.sh) > /logs/agent/log.txt 2>&1")

    async def download(environment):
        await environment.download_dir("/app", tmp_path / "app")

    result, _ = run(make(tmp_path / "trial"), solve, download)
    assert result.return_code == 0, result
    assert (tmp_path / "app" / "solution.py").read_text() == "x = 1\n"
    assert host_roots() == before


def test_emptying_directories_leaves_the_host_alone(tmp_path, confinement):
    before = host_roots()

    async def empty(environment):
        await environment.exec("touch /logs/verifier/old")
        await environment.empty_dirs(["/logs/verifier"])
        return await environment.exec("ls -A /logs/verifier")

    (result,) = run(make(tmp_path / "trial"), empty)
    assert result.return_code == 0
    assert result.stdout is None
    assert host_roots() == before


def test_three_at_once_do_not_collide(tmp_path, confinement):
    async def one(index):
        environment = make(tmp_path / f"trial{index}")
        await environment.start(force_build=False)
        await environment.exec(f"echo {index} > /app/who; echo {index} > /tmp/who; touch /app/only{index}")
        await environment.exec("sleep 0.3")
        result = await environment.exec("cat /app/who /tmp/who; ls /app")
        await environment.stop(delete=True)
        return result.stdout

    async def three():
        return await asyncio.gather(*(one(index) for index in range(3)))

    outputs = asyncio.run(three())
    assert outputs == [f"{index}\n{index}\nonly{index}\nwho\n" for index in range(3)]


def test_timeout_kills_the_whole_group(tmp_path, confinement):
    async def hang(environment):
        with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
            await environment.exec("sleep 98765 & sleep 98765", timeout_sec=1)

    started = time.monotonic()
    run(make(tmp_path / "trial"), hang)
    assert time.monotonic() - started < 10
    assert not processes_with("98765")


def test_background_processes_end_with_their_command(tmp_path, confinement):
    async def leave(environment):
        return await environment.exec("setsid sleep 87654 & echo started")

    (result,) = run(make(tmp_path / "trial"), leave)
    assert result.stdout == "started\n"
    assert not processes_with("87654")


def test_cancelled_command_is_killed(tmp_path, confinement):
    async def cancel(environment):
        task = asyncio.create_task(environment.exec("sleep 76543"))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(make(tmp_path / "trial"), cancel)
    assert not processes_with("76543")


def processes_with(argument):
    deadline = time.monotonic() + 3
    while True:
        found = [p.pid for p in psutil.process_iter(["cmdline"]) if argument in (p.info["cmdline"] or [])]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def test_no_variable_of_the_host_reaches_a_command(tmp_path, confinement, monkeypatch):
    monkeypatch.setenv("SECRET_API_KEY", "canary-value")

    async def show(environment):
        return await environment.exec("env", env={"GIVEN": "yes"})

    (result,) = run(make(tmp_path / "trial"), show)
    assert "canary-value" not in result.stdout
    assert "GIVEN=yes" in result.stdout


@needs_bubblewrap
def test_system_is_read_only_and_the_rest_of_the_host_absent(tmp_path):
    async def look(environment):
        return await environment.exec("touch /usr/x; touch /x; ls / ; ls /home /root /work 2>&1")

    (result,) = run(make(tmp_path / "trial"), look)
    assert not Path("/usr/x").exists()
    assert set(result.stdout.split("\n")) >= {"app", "usr"}
    assert "home" not in result.stdout.split("\n")


@needs_bubblewrap
def test_no_network_is_enforced(tmp_path):
    async def look(environment):
        return await environment.exec("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '")

    policy = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
    (result,) = run(make(tmp_path / "trial", policy=policy), look)
    assert result.stdout == "lo\n"


def test_no_network_is_refused_where_it_cannot_be_enforced(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "bubblewrap", lambda: None)
    with pytest.raises(ValueError, match="no-network"):
        make(tmp_path / "trial", policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK))


@pytest.mark.parametrize(
    "command", ["cat /etc/passwd", "rm -rf /", "touch /app/../x", "ls ~", "echo >/var/x", "ls /work"]
)
def test_without_bubblewrap_other_places_are_refused(tmp_path, monkeypatch, command):
    monkeypatch.setattr(local, "bubblewrap", lambda: None)

    async def use(environment):
        await environment.exec(command)

    with pytest.raises(UnboundPathError):
        run(make(tmp_path / "trial"), use)


def test_without_bubblewrap_a_directory_that_needs_quoting_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "bubblewrap", lambda: None)

    async def use(environment):
        await environment.exec("ls /app")

    with pytest.raises(SetupError, match="bubblewrap"):
        run(make(tmp_path / "my trial"), use)


@pytest.mark.parametrize("path", ["/etc/passwd", "/app/../etc", "app/x", "/", "/var/x"])
def test_transfers_stay_in_the_environment(tmp_path, path):
    async def download(environment):
        await environment.download_file(path, tmp_path / "stolen")

    with pytest.raises(UnboundPathError):
        run(make(tmp_path / "trial"), download)


def test_links_out_of_the_environment_are_not_followed(tmp_path):
    (tmp_path / "key").write_text("secret")
    environment = make(tmp_path / "trial")

    async def download_link(environment):
        app = environment._roots.host_path("/app")
        (app / "solution.py").symlink_to(tmp_path / "key")
        (app / "real.txt").write_text("real")
        with pytest.raises(UnboundPathError):
            await environment.download_file("/app/solution.py", tmp_path / "stolen")
        await environment.download_dir("/app", tmp_path / "copy")

    run(environment, download_link)
    assert not (tmp_path / "stolen").exists()
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["real.txt"]


@pytest.mark.parametrize("agent", ["codex", "claude-code"])
def test_third_party_agents_are_refused(tmp_path, agent):
    with pytest.raises(SetupError, match="--allow-unsandboxed"):
        run(make(tmp_path / "trial", agent=agent))
    run(make(tmp_path / "allowed", agent=agent, allow_unsandboxed=True))


@pytest.mark.parametrize("agent", ["oracle", "nop"])
def test_trusted_agents_are_not_refused(tmp_path, agent):
    assert run(make(tmp_path / "trial", agent=agent)) == []


def test_an_unknown_option_is_refused(tmp_path):
    with pytest.raises(ValueError, match="allow_everything"):
        make(tmp_path / "trial", allow_everything=True)
