import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from orbit.errors import HarnessError
from orbit.execution import container
from orbit.execution._protocol import RunJob
from orbit.execution.container import ContainerExecutor, image_python, prepare_environment, run_in_environment
from orbit.verification.execution import ExecutionRequest, Limits


class DirectoryEnvironment:
    """An environment of harbor's interface that is a directory of this host."""

    def __init__(self):
        self.commands = []

    async def upload_dir(self, source, target):
        shutil.copytree(source, target)

    async def download_dir(self, source, target):
        shutil.copytree(source, target)

    async def exec(self, command, cwd=None, user=None, timeout_sec=None):
        self.commands.append((command, user))
        if os.geteuid() != 0:
            command = command.replace("chown -R 0:0", "ls")
        ended = subprocess.run(["bash", "-c", command], cwd=cwd, capture_output=True, text=True, timeout=timeout_sec)
        return SimpleNamespace(return_code=ended.returncode, stdout=ended.stdout, stderr=ended.stderr)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Runs lie in a directory that every user can reach, as in a container."""
    root = PurePosixPath("/tmp") / f"orbit-test-{tmp_path.name}-{os.getpid()}"
    monkeypatch.setattr(container, "_ROOT", root)
    monkeypatch.setattr(container, "_SHARED_DIRS", (str(root),))
    yield root
    shutil.rmtree(root, ignore_errors=True)


def request(tmp_path, **limits):
    solution = tmp_path / "solution.py"
    solution.write_text("x = 1\n")
    return ExecutionRequest(
        name="timed",
        role="candidate",
        solution=solution,
        framework="tensorcircuit",
        config={"n": 3},
        output_dir=tmp_path / "out",
        limits=Limits(timeout_sec=20, **limits),
    )


def test_files_are_laid_down_closed_and_outputs_come_back(tmp_path, root):
    environment = DirectoryEnvironment()
    asyncio.run(prepare_environment(environment))
    assert Path(root).stat().st_mode & 0o777 == 0o711
    host = tmp_path / "host"
    (host / "run" / "child" / "work").mkdir(parents=True)
    (host / "run" / "job.json").write_text("{}")
    directory = f"{root}/one"
    job = RunJob(host_dir=host, directory=directory, command=["touch", f"{directory}/out/made"], timeout_sec=5)
    asyncio.run(run_in_environment(environment, job))
    assert [path.name for path in (host / "out").iterdir()] == ["made"]
    modes = {name: (Path(directory) / name).stat().st_mode & 0o777 for name in (".", "child", "out", "job.json")}
    assert modes == {".": 0o711, "child": 0o755, "out": 0o700, "job.json": 0o600}
    assert {user for _, user in environment.commands} == {"root"}


def test_an_artifact_that_is_no_file_never_reaches_the_environment(tmp_path):
    asked = request(tmp_path)
    asked.solution.unlink()
    asked.solution.symlink_to("/etc/passwd")
    execution = ContainerExecutor(pytest.fail, python_for=lambda *_: "python").run(asked)
    assert execution.status == "load_error"


def test_a_failing_environment_is_an_error_of_the_harness(tmp_path, root):
    def fail(job):
        raise HarnessError("the engine is gone")

    broken = ContainerExecutor(fail, python_for=lambda *_: "python", bare_imports=lambda _: [])
    with pytest.raises(HarnessError, match="engine is gone"):
        broken.run(request(tmp_path))
    silent = ContainerExecutor(lambda job: None, python_for=lambda *_: "python", bare_imports=lambda _: [])
    with pytest.raises(HarnessError, match="left no answer"):
        silent.run(request(tmp_path))


@pytest.mark.parametrize("group_id", [None, 1001])
def test_who_may_read_a_run(tmp_path, group_id):
    (tmp_path / "host" / "run" / "child").mkdir(parents=True)
    job = RunJob(host_dir=tmp_path / "host", directory="/d/x", group_id=group_id, command=["true"], timeout_sec=5)
    environment = DirectoryEnvironment()
    environment.upload_dir = lambda source, target: asyncio.sleep(0)
    with pytest.raises(HarnessError):
        asyncio.run(run_in_environment(environment, job))
    ((command, _),) = environment.commands
    assert ("chgrp -R 1001 /d/x/child" in command) == (group_id is not None)
    assert ("o= /d/x/child" in command) == (group_id is not None)


def test_the_reference_is_for_its_own_group_and_memory_for_the_runner(tmp_path):
    jobs = []

    def keep(job):
        jobs.append((job, json.loads((job.host_dir / "run" / "job.json").read_text())))
        raise HarnessError("not run")

    for role in ("candidate", "reference"):
        asked = request(tmp_path, memory_bytes=32 * 2**30)
        asked = ExecutionRequest(**{**vars(asked), "role": role})
        with pytest.raises(HarnessError):
            ContainerExecutor(keep, memory_mb=1000).run(asked)
    assert [job.group_id for job, _ in jobs] == [None, container.REFERENCE_GID]
    assert [job.command[0] for job, _ in jobs] == [
        "/usr/local/bin/python3.12",
        image_python("reference", "tensorcircuit"),
    ]
    assert all(written["limits"]["memory_bytes"] == 950 * 2**20 for _, written in jobs)
