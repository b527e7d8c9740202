"""Whole verifications of the toy task, honest and hostile, through the real sandbox; none takes more than seconds."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import jsonschema
import pytest

from orbit.frameworks import Framework, find_framework
from orbit.tasks import Task, find_task
from orbit.verification.pipeline import VerifyOptions, verify
from orbit.verification.sandbox import LocalExecutor
from orbit.verification.verdict import Contract, FailureMode, Outcome, StageStatus, Validity, Verdict

from .hostile.cases import CASES, Case

TOY_ROOT = Path(__file__).parents[1] / "toy_root"
HONEST = TOY_ROOT / "references/toy/01-cosines/tensorcircuit.py"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> tuple[Task, Framework]:
    monkeypatch.setenv("ORBIT_DATA", str(TOY_ROOT))
    return find_task("toy/01-cosines"), find_framework("tensorcircuit")


def verified(toy, solution: Path, out_dir: Path, **options) -> Verdict:
    task, framework = toy
    executor = LocalExecutor(lambda role, name: Path(sys.executable), lambda name: ["numpy"])
    chosen = VerifyOptions(**{"seed": 11, **options})
    verdict = verify(solution, task, framework, executor=executor, out_dir=out_dir, options=chosen)
    stored = json.loads((out_dir / "verdict.json").read_text())
    assert Verdict.model_validate(stored) == verdict
    jsonschema.validate(stored, Verdict.model_json_schema(mode="serialization"))
    return verdict


def failed_checks(verdict: Verdict) -> set[str]:
    return {item.check for stage in verdict.stages.values() for item in stage.evidence if item.outcome is Outcome.FAIL}


def test_only_reference_runs_that_share_the_machine_get_longer(toy, tmp_path):
    limits = {}

    class Noting(LocalExecutor):
        def run(self, request):
            limits[request.name] = request.limits.timeout_sec
            return super().run(request)

    task, framework = toy
    executor = Noting(lambda role, name: Path(sys.executable), lambda name: ["numpy"])
    verify(HONEST, task, framework, executor=executor, out_dir=tmp_path, options=VerifyOptions(seed=11))
    alone = task.limits.run_timeout_sec
    assert {name: limit for name, limit in limits.items() if limit != alone} == {
        "perturbed-1": 2 * alone,
        "perturbed-2": 2 * alone,
    }
    assert {"timed-1", "reference-1", "full-probe"} <= set(limits)


def test_the_reference_is_provisional_for_want_of_an_audit(toy, tmp_path):
    verdict = verified(toy, HONEST, tmp_path, n_pairs=3)
    assert verdict.validity is Validity.PROVISIONAL
    assert "audit" in verdict.summary
    assert verdict.reward == 1
    assert failed_checks(verdict) == set()
    assert {name: stage.status for name, stage in verdict.stages.items()} == {
        "static_policy": StageStatus.PASS,
        "execution": StageStatus.PASS,
        "functional": StageStatus.PASS,
        "probes": StageStatus.PASS,
        "provenance": StageStatus.SKIPPED,
        "semantic_audit": StageStatus.SKIPPED,
    }
    assert len(verdict.timing.pairs) == 3
    assert any("the artifact is the reference itself" in line for line in verdict.timing.warnings)
    assert verdict.seed == 11
    runs = {path.name for path in (tmp_path / "runs").iterdir()}
    assert {"timed-1", "timed-3", "reference-1", "probe-1", "probe-2", "full-probe", "perturbed-2"} <= runs


def test_the_published_contract_has_no_probes(toy, tmp_path):
    verdict = verified(toy, HONEST, tmp_path, contract=Contract.ORBIT_Q_1)
    assert verdict.validity is Validity.PROVISIONAL
    assert [item.outcome for item in verdict.stages["probes"].evidence] == [Outcome.NOT_APPLICABLE]


JOINT = """

class JointToy(ToyEvaluator):
    def draw_joint_probe(self, defaults, oracle, rng):
        return [self.draw_probe(defaults, rng, 4) for _ in range(3)]

    def judge_joint_probe(self, configs, outputs, oracle, rng):
        losses = [float(found["loss_history"][0]) for found in outputs]
        return [at_least("probe:spread", max(losses) - min(losses), %s)]


EVALUATOR = JointToy()
"""


@pytest.mark.parametrize(("least", "status"), [(1e-6, StageStatus.PASS), (1e6, StageStatus.FAIL)])
def test_a_joint_probe_is_run_and_judged_as_a_whole(tmp_path, monkeypatch, least, status):
    root = shutil.copytree(TOY_ROOT, tmp_path / "root")
    with (root / "tasks/toy/01-cosines/tests/evaluator.py").open("a") as stream:
        stream.write(JOINT % least)
    monkeypatch.setenv("ORBIT_DATA", str(root))
    toy = find_task("toy/01-cosines"), find_framework("tensorcircuit")
    verdict = verified(toy, HONEST, tmp_path / "out")
    assert verdict.stages["probes"].status is status
    assert {f"probe-{k}" for k in (1, 2, 3)} <= {path.name for path in (tmp_path / "out/runs").iterdir()}
    assert "probe:spread" in {item.check for item in verdict.stages["probes"].evidence}


def edited(tmp_path: Path, old: str, new: str) -> Path:
    source = HONEST.read_text()
    assert source.count(old) == 1
    path = tmp_path / "candidate.py"
    path.write_text(source.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("coupling * p[0] * p[1])", "coupling * p[0] * p[0])", "probe:loss_history"),
        ("0.9 * m", "0.8 * m", "probe:final_parameters"),
        ('"loss_history": np', '"loss": np', "form"),
        ('"final_parameters": p}', '"final_parameters": p[:2]}', "form"),
        ('"loss_history": np.array(history)', '"loss_history": np.array(history) * np.nan', "form"),
        ('"loss_history": np.array(history)', '"loss_history": np.array(history) + 0j', "form"),
    ],
)
def test_wrong_solutions_fail_where_they_are_wrong(toy, tmp_path, old, new, check):
    verdict = verified(toy, edited(tmp_path, old, new), tmp_path / "out")
    assert verdict.validity is Validity.INVALID
    assert verdict.failure_mode is FailureMode.PROBLEM_MISMATCH
    assert verdict.reward == 0
    assert check in failed_checks(verdict)


def test_a_solution_that_is_honest_only_below_a_size_fails_at_full_size(toy, tmp_path):
    lie = 'history.append(0.0 if abs(coupling - 0.3) < 1e-12 and config["max_steps"] == 3 else weights'
    verdict = verified(toy, edited(tmp_path, "history.append(weights", lie), tmp_path / "out")
    failed = {(item.run, item.check) for item in verdict.stages["probes"].evidence if item.outcome is Outcome.FAIL}
    assert ("full-probe", "recompute:loss_history") in failed
    assert verdict.stages["functional"].status is StageStatus.PASS


def test_a_missing_file_gets_a_verdict(toy, tmp_path):
    verdict = verified(toy, tmp_path / "nothing.py", tmp_path / "out")
    assert (verdict.validity, verdict.failure_mode) == (Validity.INVALID, FailureMode.AGENT_NO_ARTIFACT)
    assert f"{tmp_path / 'nothing.py'}: cannot be read" in verdict.summary


def test_a_rejected_artifact_does_not_run(toy, tmp_path):
    source = tmp_path / "candidate.py"
    source.write_text("import numpy as np\nimport socket\nnp.zeros(1)\ndef run_solution(config):\n    return {}\n")
    verdict = verified(toy, source, tmp_path / "out")
    assert verdict.failure_mode is FailureMode.POLICY_VIOLATION
    assert verdict.stages["execution"].status is StageStatus.SKIPPED
    assert not (tmp_path / "out" / "runs").exists()


def test_a_broken_reference_is_an_error_of_the_harness(toy, tmp_path, monkeypatch):
    task, framework = toy
    broken = tmp_path / "tensorcircuit.py"
    broken.write_text("def run_solution(config):\n    raise RuntimeError('out of order')\n")
    monkeypatch.setattr(type(task), "reference_path", lambda self, name: broken)
    verdict = verified((task, framework), HONEST, tmp_path / "out")
    assert verdict.validity is Validity.ERROR
    assert "out of order" in verdict.summary
    assert verdict.failure_mode is None


def test_a_defect_of_the_judge_is_an_error_with_its_traceback(toy, tmp_path, monkeypatch):
    broken = tmp_path / "root"
    shutil.copytree(TOY_ROOT, broken)
    evaluator = broken / "tasks/toy/01-cosines/tests/evaluator.py"
    evaluator.write_text(evaluator.read_text().replace('outputs["loss_history"].min()', "1 / 0"))
    monkeypatch.setenv("ORBIT_DATA", str(broken))
    toy = find_task("toy/01-cosines"), find_framework("tensorcircuit")
    verdict = verified(toy, HONEST, tmp_path / "out")
    assert verdict.validity is Validity.ERROR
    assert "ZeroDivisionError" in verdict.stages["execution"].reason


MODES = {
    "load_error": FailureMode.RUNTIME_API_EXCEPTION,
    "exception": FailureMode.RUNTIME_API_EXCEPTION,
    "bad_result": FailureMode.RUNTIME_API_EXCEPTION,
    "died": FailureMode.RUNTIME_API_EXCEPTION,
    "timeout": FailureMode.RESOURCE_TIMEOUT_OOM,
    "memory": FailureMode.RESOURCE_TIMEOUT_OOM,
    "output_limit": FailureMode.RESOURCE_TIMEOUT_OOM,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_hostile_artifact_passes(toy, tmp_path, case: Case):
    """Even where static policy is overruled, so that every artifact really runs."""
    verdict = verified(toy, case.path, tmp_path / "out", keep_going=True, n_probes=1)
    assert verdict.validity is Validity.INVALID
    assert verdict.reward == 0
    execution = verdict.stages["execution"]
    if execution.status is StageStatus.FAIL:
        ended = next(item.check for item in execution.evidence if item.outcome is Outcome.FAIL)
        assert execution.failure_mode is MODES[ended]
    else:
        assert failed_checks(verdict) & {"form", "probe:loss_history"}
