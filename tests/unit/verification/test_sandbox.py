"""How a run is laid out and confined, without running it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from orbit.errors import HarnessError, SetupError
from orbit.verification import _bwrap, _jobs, sandbox
from orbit.verification.execution import Execution, ExecutionRequest, ExecutionStatus, Limits
from orbit.verification.sandbox import LocalExecutor, SandboxProbe


def request(tmp_path: Path, **changes: Any) -> ExecutionRequest:
    solution = tmp_path / "solution.py"
    if not solution.exists():
        solution.write_text("def run_solution(config):\n    return {}\n")
    values: dict[str, Any] = {
        "name": "timed-1",
        "role": "candidate",
        "solution": solution,
        "framework": "plain",
        "config": {"n_qubits": 4},
        "output_dir": tmp_path / "out",
    }
    return ExecutionRequest(**{**values, **changes})


class TestReadSource:
    def test_reads_bytes(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_bytes(b"\xff")
        assert _jobs.read_source(tmp_path / "a.py") == b"\xff"

    def test_refuses_a_link_that_may_lead_to_a_reference(self, tmp_path: Path) -> None:
        (tmp_path / "reference.py").write_text("")
        (tmp_path / "a.py").symlink_to(tmp_path / "reference.py")
        with pytest.raises(_jobs.SourceError, match=r"^a\.py: is a symbolic link"):
            _jobs.read_source(tmp_path / "a.py")

    def test_refuses_what_is_no_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.py")
        (tmp_path / "directory.py").mkdir()
        (tmp_path / "long.py").write_bytes(bytes(_jobs.SOURCE_LIMIT + 1))
        expected = {
            "absent.py": "No such file",
            "pipe.py": "not a regular file",
            "directory.py": "not a regular file",
            "long.py": "more than 1048576 bytes",
        }
        for name, message in expected.items():
            with pytest.raises(_jobs.SourceError, match=message):
                _jobs.read_source(tmp_path / name)


class TestMissingArtifact:
    def test_is_a_load_error_with_a_record(self, tmp_path: Path) -> None:
        executor = LocalExecutor(lambda _role, _name: Path(sys.executable), lambda _name: [], kind="process")
        missing = request(tmp_path, solution=tmp_path / "absent.py")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "result.npz").write_bytes(b"of an earlier run")
        execution = executor.run(missing)
        assert (execution.status, execution.message) == (
            ExecutionStatus.LOAD_ERROR,
            "absent.py: No such file or directory",
        )
        assert Execution.model_validate_json((tmp_path / "out" / "execution.json").read_text()) == execution
        assert not (tmp_path / "out" / "result.npz").exists()


class TestContainerRun:
    def test_holds_all_that_the_parent_needs(self, tmp_path: Path) -> None:
        limits = Limits(n_cores=2)
        run = _jobs.container_run(
            request(tmp_path, limits=limits),
            python="/env/bin/python",
            imports=["tensorcircuit"],
            directory=PurePosixPath("/run/orbit"),
            gid=700,
        )
        assert run.command == [
            *("/env/bin/python", "-I", "-B", "/run/orbit/child/runner.pyz"),
            *("parent", "/run/orbit/job.json"),
        ]
        job = json.loads(run.files["job.json"])
        below = {path.removeprefix("/run/orbit/") for path in (job["setup"]["config"], job["setup"]["solution"])}
        assert below == {"child/config", "child/work/solution.py"}
        assert {"child/config/config.json", "child/work/solution.py", "child/runner.pyz"} <= set(run.files)
        assert (job["drop_uid"], job["gid"], job["sandbox"]["kind"]) == (True, 700, "container")
        assert job["env"]["OMP_NUM_THREADS"] == "2"

    def test_hands_over_the_adapter_only_when_asked(self, tmp_path: Path) -> None:
        adapter = tmp_path / "provenance.py"
        adapter.write_text("def counts():\n    return {}\n")
        for wanted in (True, False):
            run = _jobs.container_run(
                request(tmp_path, provenance=wanted),
                python="python",
                imports=[],
                directory=PurePosixPath("/r"),
                adapter=adapter,
            )
            assert ("child/adapter.py" in run.files) is wanted
            assert json.loads(run.files["job.json"])["setup"]["adapter"] == ("/r/child/adapter.py" if wanted else None)


class TestEnvironment:
    def test_is_an_allow_list(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
        names = set(_jobs.environment("/env/bin/python", "/tmp/home", Limits(), None))
        assert names == {"PATH", "LANG", "TZ", "HOME", "TMPDIR", "USER", "LOGNAME", "NUMBA_DISABLE_JIT"}


class TestBubblewrapCommand:
    def mounts(self, arguments: list[str]) -> dict[str, str]:
        """Destination to source of everything bound."""
        at = [index for index, argument in enumerate(arguments) if argument in ("--ro-bind", "--ro-bind-try")]
        return {arguments[index + 2]: arguments[index + 1] for index in at}

    @pytest.mark.parametrize("as_root", [True, False])
    def test_shows_the_interpreter_the_run_and_the_system_alone(self, tmp_path: Path, as_root: bool) -> None:
        python = _bwrap.interpreter(Path(sys.executable))
        arguments = _bwrap.command(python, tmp_path, scratch_bytes=1, hidden=[Path("/usr/lib")], as_root=as_root)
        mounts = self.mounts(arguments)
        assert mounts.pop(str(_bwrap.INSIDE)) == str(tmp_path)
        assert all(source == target for target, source in mounts.items())
        system = {"/usr", *_bwrap.SYSTEM_DIRS, *_bwrap.SYSTEM_FILES, _bwrap.CPU_TOPOLOGY}
        assert set(mounts) - system <= {str(root) for root in python.roots}
        assert "--bind" not in arguments
        assert "--share-net" not in arguments

    def test_hides_our_own_data_where_it_lies_inside_something_shown(self, tmp_path: Path) -> None:
        (tmp_path / "orbit").mkdir()
        python = _bwrap.Interpreter(tmp_path / "bin" / "python", (tmp_path,), ())
        hidden = [tmp_path / "orbit", tmp_path.parent]
        arguments = _bwrap.command(python, None, scratch_bytes=1, hidden=hidden, as_root=False)
        assert arguments[arguments.index("--remount-ro") + 1] == str(tmp_path / "orbit")
        assert str(tmp_path.parent) not in arguments[arguments.index("--remount-ro") :]

    def test_recreates_links_on_the_way_to_the_interpreter(self, tmp_path: Path) -> None:
        link = tmp_path / "python"
        link.symlink_to(sys.executable)
        layout = _bwrap.interpreter(link)
        assert (link, sys.executable) in layout.links
        arguments = _bwrap.command(layout, None, scratch_bytes=1, as_root=False)
        assert arguments[arguments.index(str(link)) - 2 : arguments.index(str(link))] == ["--symlink", sys.executable]

    def test_says_which_interpreter_does_not_start(self, tmp_path: Path) -> None:
        with pytest.raises(SetupError, match=r"absent.*does not start"):
            _bwrap.interpreter(tmp_path / "absent")


class TestProbe:
    def test_names_what_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_bwrap.shutil, "which", lambda _name: None)
        monkeypatch.setattr(_bwrap, "probe", _bwrap.probe.__wrapped__)
        probe = sandbox.probe_sandbox()
        assert probe == SandboxProbe("process", "bubblewrap is not installed (apt install bubblewrap)")
        assert not sandbox.sandbox_available()

    def test_notices_a_bubblewrap_that_does_not_work(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        broken = tmp_path / "bwrap"
        broken.write_text("#!/bin/sh\necho 'bwrap: Creating new namespace failed' >&2\nexit 1\n")
        broken.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert "Creating new namespace failed" in str(_bwrap.probe.__wrapped__())

    def test_verdicts_carry_the_warning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_bwrap, "probe", lambda: "bubblewrap is not installed")
        described = sandbox._describe_sandbox("process")
        assert described.network
        assert "no sandbox: bubblewrap is not installed" in described.warnings[0]


class TestLimits:
    def test_memory_is_held_to_what_the_machine_has(self, tmp_path: Path) -> None:
        limited = sandbox._limited(request(tmp_path, limits=Limits(memory_bytes=2**60)))
        assert 2**20 < limited.limits.memory_bytes < 2**60
        assert sandbox._limited(request(tmp_path, limits=Limits(memory_bytes=2**20))).limits.memory_bytes == 2**20

    def test_processes_of_a_shared_user_are_added(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sandbox.os, "geteuid", lambda: 0)
        assert sandbox._process_limit(512, "process") == 512
        monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1000)
        monkeypatch.setattr(sandbox, "_kernel", lambda: (6, 1))
        assert sandbox._process_limit(512, "bubblewrap") == 512
        assert sandbox._process_limit(512, "process") > 512
        monkeypatch.setattr(sandbox, "_kernel", lambda: (5, 10))
        assert sandbox._process_limit(512, "bubblewrap") > 512

    def test_a_closed_environment_is_named_with_its_fix(self, tmp_path: Path) -> None:
        closed = tmp_path / "environment"
        closed.mkdir(mode=0o700)
        layout = _bwrap.Interpreter(closed / "bin" / "python", (closed,), ())
        with pytest.raises(SetupError, match=f"chmod -R o\\+rX {closed}"):
            sandbox._check_readable(layout, through_parents=False)
        closed.chmod(0o755)
        sandbox._check_readable(layout, through_parents=False)
        closed.parent.chmod(0o700)
        with pytest.raises(SetupError, match="install bubblewrap"):
            sandbox._check_readable(layout, through_parents=True)


class TestCollect:
    def write(self, out_dir: Path, **fields: Any) -> None:
        out_dir.mkdir()
        answer = {"schema_version": 1, "name": "timed-1", "role": "candidate", "status": "ok", **fields}
        (out_dir / "execution.json").write_text(json.dumps(answer))

    def test_moves_outputs_and_forgets_those_of_an_earlier_run(self, tmp_path: Path) -> None:
        self.write(tmp_path / "from")
        (tmp_path / "from" / "stdout.txt").write_bytes(b"hello")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "result.npz").write_bytes(b"of an earlier run")
        execution = _jobs.collect(request(tmp_path), tmp_path / "from")
        assert execution.status is ExecutionStatus.OK
        assert {path.name for path in (tmp_path / "out").iterdir()} == {"execution.json", "stdout.txt"}

    def test_says_when_the_network_was_open(self, tmp_path: Path) -> None:
        described = {"kind": "process", "network": True, "unprivileged": True, "warnings": []}
        self.write(tmp_path / "from", sandbox=described, versions={"numpy": "2"})
        execution = _jobs.collect(request(tmp_path), tmp_path / "from")
        assert execution.sandbox is not None
        assert execution.sandbox.warnings == ["the network was open to the artifact"]

    def test_no_answer_is_the_harness_failing(self, tmp_path: Path) -> None:
        (tmp_path / "from").mkdir()
        with pytest.raises(HarnessError, match="run timed-1: the runner left no answer"):
            _jobs.collect(request(tmp_path), tmp_path / "from")
