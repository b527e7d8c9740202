"""Commands end to end over stand-ins of the library functions that they call: arguments, output, exit codes."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from orbit.cli import main
from orbit.execution.jobs import JobOutcome, JobPlan
from orbit.execution.outcomes import Disposition, Ending
from orbit.execution.trials import AgentRecord, CellRecord, RunRecord, TrialRecord
from orbit.records import write_json
from orbit.reports.demo import TIMED_RUN, load_demo
from orbit.schemas import json_schema
from orbit.tasks import find_task
from orbit.verification.pipeline import VerifyOptions
from orbit.verification.verdict import Contract, Validity, Verdict
from tests.unit.reports.verdicts import error_verdict, invalid_verdict, make_verdict


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    code = end.value.code
    assert code is None or isinstance(code, int)
    return code or 0


# --- verify ---------------------------------------------------------------------------------------------------


class Pipeline:
    """Stands in for `orbit.verification.local.verify`."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.options: VerifyOptions | None = None
        self.arguments: dict[str, Any] = {}

    def __call__(self, solution: Path, task: Any, framework: Any, **arguments: Any) -> Verdict:
        self.options = arguments["options"]
        self.arguments = {"solution": solution, "task": task.id, "framework": framework.name, **arguments}
        arguments["progress"]("running timed-1")
        write_json(arguments["out_dir"] / "verdict.json", self.verdict)
        return self.verdict


VERIFY = ("verify", "mine.py", "--task", "02", "--framework", "tensorcircuit")


@pytest.mark.parametrize(
    ("verdict", "code", "word"),
    [(make_verdict(), 0, "PROVISIONAL"), (invalid_verdict(), 1, "INVALID"), (error_verdict(), 2, "ERROR")],
)
def test_verify_renders_and_exits_by_validity(
    verdict: Verdict,
    code: int,
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("orbit.verification.local.verify", Pipeline(verdict))
    assert run(*VERIFY, "--out", str(tmp_path / "out")) == code
    captured = capsys.readouterr()
    assert captured.out.split()[0] == word
    assert str(tmp_path / "out" / "verdict.json") in captured.out
    assert "running timed-1" in captured.err


def test_verify_passes_its_options_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline(make_verdict())
    monkeypatch.setattr("orbit.verification.local.verify", pipeline)
    options = ("--contract", "orbit-q-1", "--pairs", "5", "--probes", "3", "--seed", "11", "--keep-going")
    assert run(*VERIFY, *options, "--out", str(tmp_path / "out")) == 0
    assert pipeline.options == VerifyOptions(
        contract=Contract.ORBIT_Q_1, n_probes=3, n_pairs=5, seed=11, keep_going=True
    )
    assert pipeline.arguments["solution"] == Path("mine.py")
    assert pipeline.arguments["task"] == find_task("02").id


def test_verify_json_is_alone_on_standard_output_and_follows_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orbit.verification.local.verify", Pipeline(invalid_verdict()))
    assert run(*VERIFY, "--json", "--out", str(tmp_path / "out")) == 1
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, json_schema("verdict"))
    assert data["validity"] == "invalid"


@pytest.mark.parametrize("name", ["verdict", "execution", "doctor"])
def test_schema_is_a_valid_schema(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schema", name) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def test_schema_refuses_what_is_no_verdict() -> None:
    data = json.loads(make_verdict().model_dump_json())
    del data["stages"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json_schema("verdict"))


# --- tasks and frameworks -------------------------------------------------------------------------------------


def test_listings_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tasks", "--json") == 0
    tasks = json.loads(capsys.readouterr().out)
    assert tasks[0]["name"].startswith("orbit-q/01-")
    assert run("frameworks", "--json") == 0
    assert {item["name"] for item in json.loads(capsys.readouterr().out)} >= {"tensorcircuit", "pennylane"}


def test_a_statement_is_shown_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tasks", "show", "2") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert " ".join(find_task("02").instruction().split()) in shown


def test_a_framework_is_shown_with_its_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("frameworks", "show", "tensorcircuit") == 0
    assert "tensorcircuit-ng" in capsys.readouterr().out


# --- run and demo ---------------------------------------------------------------------------------------------


class Jobs:
    """Stands in for `run_job`: leaves a run directory with a verdict and a timed run per cell."""

    def __init__(self, verdicts: list[Verdict | None]) -> None:
        self.verdicts = verdicts
        self.plan: JobPlan | None = None

    def __call__(self, plan: JobPlan, progress: Any = None) -> JobOutcome:
        self.plan = plan
        trials = [self._trial(plan, k, verdict) for k, verdict in enumerate(self.verdicts)]
        record = RunRecord(
            run_id="r",
            created_at="2026-01-01T00:00:00+00:00",
            agent=AgentRecord(name=plan.agent.name),
            environment=plan.environment,
            n_attempts=plan.attempts,
            verify_options={},
            cells=[
                CellRecord(
                    name=f"c{k}",
                    task=find_task(cell.task).name,
                    framework=cell.framework,
                    contract=cell.contract,
                    staged_digest="d",
                    staged_dir="t",
                )
                for k, cell in enumerate(plan.cells)
            ],
        )
        return JobOutcome(run=record, trials=tuple(trials), out_dir=plan.out_dir)

    @staticmethod
    def _trial(plan: JobPlan, k: int, verdict: Verdict | None) -> TrialRecord:
        cell = plan.cells[k]
        directory = f"harbor/t{k}/verification"
        if verdict is not None:
            write_json(plan.out_dir / directory / "verdict.json", verdict)
            run_dir = plan.out_dir / directory / "runs" / TIMED_RUN
            run_dir.mkdir(parents=True)
            plot = next(item for item in load_demo().plots if find_task(item.task).id == find_task(cell.task).id)
            np.savez(run_dir / "result.npz", **{plot.history: np.linspace(1.0, 0.0, 20)})
        return TrialRecord(
            run_id="r",
            name=f"t{k}",
            task=find_task(cell.task).name,
            suite="orbit-q",
            framework=cell.framework,
            agent=plan.agent.name,
            contract=cell.contract,
            environment=plan.environment,
            staged_digest="d",
            verification_sec=3.0,
            ending=Ending.COMPLETED,
            disposition=Disposition.JUDGE,
            validity=verdict.validity if verdict else Validity.ERROR,
            reward=verdict.reward if verdict else None,
            summary=verdict.summary if verdict else "the harness failed",
            verdict_path=f"{directory}/verdict.json" if verdict else None,
            harbor_trial_dir=f"harbor/t{k}",
            harbor_result_path=f"harbor/t{k}/result.json",
        )


RUN = ("run", "--task", "02", "--task", "12", "--framework", "tensorcircuit", "--agent", "reference")


@pytest.mark.parametrize(
    ("verdicts", "code", "text"),
    [
        ([make_verdict(), make_verdict()], 0, "2 of 2 trials valid or provisional"),
        ([make_verdict(), invalid_verdict()], 1, "The final energy density misses its limit."),
        ([make_verdict(), None], 2, "the harness failed"),
        ([invalid_verdict(), None], 1, "0 of 2 trials valid or provisional"),
    ],
)
def test_run_shows_every_trial_and_exits_by_the_worst(
    verdicts: list[Verdict | None],
    code: int,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    jobs = Jobs(verdicts)
    monkeypatch.setattr("orbit.execution.jobs.run_job", jobs)
    assert run(*RUN, "--attempts", "2", "--out", str(tmp_path / "r")) == code
    out = capsys.readouterr().out
    assert text in out
    assert "t0: " in out
    assert "t1: " in out
    assert jobs.plan is not None
    assert jobs.plan.attempts == 2
    assert [cell.task for cell in jobs.plan.cells] == ["02", "12"]


def test_run_hands_the_agent_its_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs([make_verdict(), make_verdict()])
    monkeypatch.setattr("orbit.execution.jobs.run_job", jobs)
    agent = ("--agent", "codex", "--model", "openai/gpt-5.5", "--effort", "high", "--agent-timeout", "90")
    endpoint = ("--base-url", "http://127.0.0.1:1/v1", "--key-variable", "MY_KEY", "--environment", "docker")
    tasks = ("--task", "02", "--task", "12", "--framework", "tensorcircuit")
    assert run("run", *tasks, *agent, *endpoint, "--out", str(tmp_path / "r")) == 0
    assert jobs.plan is not None
    spec = jobs.plan.agent
    assert (spec.name, spec.model, spec.effort, spec.timeout_sec) == ("codex", "openai/gpt-5.5", "high", 90.0)
    assert (spec.base_url, spec.key_variable) == ("http://127.0.0.1:1/v1", "MY_KEY")
    assert jobs.plan.environment == "docker"


def test_run_json_has_a_record_per_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orbit.execution.jobs.run_job", Jobs([make_verdict(), make_verdict()]))
    assert run(*RUN, "--json", "--out", str(tmp_path / "r")) == 0
    data = json.loads(capsys.readouterr().out)
    assert [trial["reward"] for trial in data] == [1, 1]


@pytest.fixture
def demo_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orbit.reports.demo.environment_python", lambda framework, progress: Path("python"))


@pytest.mark.usefixtures("demo_environment")
def test_demo_writes_a_page_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orbit.execution.jobs.run_job", Jobs([make_verdict(), make_verdict()]))
    assert run("demo", "--out", str(tmp_path / "d")) == 0
    page = tmp_path / "d" / "index.html"
    assert str(page) in capsys.readouterr().out
    text = page.read_text()
    assert text.count("<svg") == len(load_demo().plots)
    assert all(plot.label in text for plot in load_demo().plots)


@pytest.mark.usefixtures("demo_environment")
def test_demo_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "index.html").write_text("mine")
    assert run("demo", "--out", str(tmp_path)) == 2
    assert "nothing is overwritten" in capsys.readouterr().err
    assert (tmp_path / "index.html").read_text() == "mine"


@pytest.mark.usefixtures("demo_environment")
def test_demo_without_verdict_is_an_error_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orbit.execution.jobs.run_job", Jobs([make_verdict(), None]))
    assert run("demo", "--out", str(tmp_path / "d")) == 2
    assert "has no verdict (the harness failed)" in capsys.readouterr().err


def test_every_task_of_the_demo_has_what_it_draws() -> None:
    for plot in load_demo().plots:
        task = find_task(plot.task)
        assert task.reference_path(load_demo().framework) is not None
        assert plot.history in task.load_evaluator().result_spec(task.config)
        if plot.threshold is not None:
            assert plot.threshold in task.config
        if plot.exact is not None:
            assert plot.exact in (task.exact(task.config) or {})
