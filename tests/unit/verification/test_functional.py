"""Every generic check passes on an honest outcome and fails on an input made to break it alone."""

import numpy as np
import pytest

from orbit.verification.evaluator import ArraySpec, Run, RunKind, Tolerance, draw_checkpoints
from orbit.verification.functional import check_form, judge
from orbit.verification.replay import Replay
from orbit.verification.verdict import Contract, Outcome

from .toy import DEFAULTS, ToyEvaluator, ToyOracle

EVALUATOR, ORACLE = ToyEvaluator(), ToyOracle()


def timed_run():
    return Run(RunKind.TIMED, "timed", EVALUATOR.draw_timed(dict(DEFAULTS), np.random.default_rng(1)))


def judged(run, outputs, *, contract=Contract.ORBIT_2, replay=None):
    evidence = judge(EVALUATOR, run, outputs, contract=contract, replay=replay, rng=np.random.default_rng(2))
    assert all(item.run == run.name for item in evidence)
    return {item.check: item for item in evidence if item.outcome in (Outcome.FAIL, Outcome.FLAG)}


def honest(run):
    return {key: np.array(value) for key, value in ORACLE.solve(run.config).items()}


def test_an_honest_outcome_passes_and_every_check_looked_at_it():
    run = timed_run()
    outputs = honest(run)
    replay = Replay(outputs, [ORACLE.solve(EVALUATOR.perturbed(run.config, np.random.default_rng(k))) for k in (1, 2)])
    evidence = judge(EVALUATOR, run, outputs, contract=Contract.ORBIT_2, replay=replay, rng=np.random.default_rng(2))
    assert {item.outcome for item in evidence} == {Outcome.PASS}
    assert {item.check for item in evidence} == {
        "form",
        "shape:loss_history",
        "loss_bound",
        "loss_improves",
        "initial_parameters",
        "recompute:loss_history",
        "continuity:loss_history",
        "first_update",
        "replay:loss_history",
        "replay_late:loss_history",
        "replay_far:loss_history",
        "replay_late:checkpoint_parameters",
        "replay_far:checkpoint_parameters",
        "replay_late:final_parameters",
        "replay_far:final_parameters",
    }


def single_precision(outputs):
    return {key: value.astype(np.float32) for key, value in outputs.items()}


def test_single_precision_passes():
    run = timed_run()
    assert judged(run, single_precision(honest(run))) == {}


def constant(outputs):
    outputs["loss_history"][:] = outputs["loss_history"][0]


def linear(outputs):
    history = outputs["loss_history"]
    history[:] = np.linspace(history[0], history[-1], len(history))


def wrong_entry(outputs):
    outputs["loss_history"][0] += 1e-3


def wrong_end(outputs):
    outputs["final_parameters"][:] += 0.5


def wrong_start(outputs):
    outputs["initial_parameters"][0] += 1e-3


def frozen_parameter(outputs):
    outputs["checkpoint_parameters"][0, :] = outputs["initial_parameters"]


def too_low(outputs):
    outputs["loss_history"][20] = -21.0


def not_improved(outputs):
    outputs["loss_history"][:] = outputs["loss_history"][::-1]


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        (constant, "shape:loss_history"),
        (linear, "shape:loss_history"),
        (wrong_entry, "recompute:loss_history"),
        (wrong_end, "continuity:loss_history"),
        (wrong_start, "initial_parameters"),
        (frozen_parameter, "first_update"),
        (too_low, "loss_bound"),
        (not_improved, "loss_improves"),
    ],
)
def test_each_check_can_fail(damage, check):
    run = timed_run()
    outputs = honest(run)
    damage(outputs)
    found = judged(run, outputs)
    assert found[check].outcome is Outcome.FAIL
    assert found[check].value is not None


def test_replay_fails_early_and_flags_late():
    run = timed_run()
    outputs = honest(run)
    replay = Replay(dict(outputs), [dict(outputs)])
    moved = {key: value.copy() for key, value in outputs.items()}
    moved["loss_history"][5] += 2e-3
    assert judged(run, moved, replay=replay)["replay:loss_history"].outcome is Outcome.FAIL
    late = {key: value.copy() for key, value in outputs.items()}
    step = next(k for k in range(25, 35) if k not in run.config["checkpoint_steps"])
    late["loss_history"][step] += 2e-3
    found = judged(run, late, replay=replay)
    assert list(found) == ["replay_late:loss_history"]
    assert found["replay_late:loss_history"].outcome is Outcome.FLAG
    late["loss_history"][step] += 2e-2
    assert judged(run, late, replay=replay)["replay_far:loss_history"].outcome is Outcome.FAIL


@pytest.mark.parametrize("key", ["checkpoint_parameters", "final_parameters"])
def test_parameters_that_stopped_moving_are_flagged_and_fail_far_away(key):
    run = timed_run()
    outputs = honest(run)
    moved = [ORACLE.solve(EVALUATOR.perturbed(run.config, np.random.default_rng(k))) for k in (1, 2)]
    replay = Replay(dict(outputs), moved)
    rate = run.config["learning_rate"]
    for distance, outcomes in ((0.005, (Outcome.FLAG, Outcome.PASS)), (0.5, (Outcome.FLAG, Outcome.FAIL))):
        off = {name: value.copy() for name, value in outputs.items()}
        off[key] += distance * rate
        evidence = judge(EVALUATOR, run, off, contract=Contract.ORBIT_2, replay=replay, rng=np.random.default_rng(2))
        found = {item.check: item.outcome for item in evidence}
        assert (found[f"replay_late:{key}"], found[f"replay_far:{key}"]) == outcomes


def test_absurd_numbers_are_not_looked_at():
    run = timed_run()
    outputs = honest(run)
    outputs["final_parameters"] = np.full_like(outputs["final_parameters"], 1e200)
    assert judged(run, outputs)["form"].outcome is Outcome.FAIL


def test_the_published_contract_fails_only_on_its_own_criteria():
    config = dict(DEFAULTS)
    run = Run(RunKind.TIMED, "timed", config)
    history = ORACLE.solve({**config, "initial_parameters": EVALUATOR.initial_parameters(config)})["loss_history"]
    assert judged(run, {"loss_history": history}, contract=Contract.ORBIT_Q_1) == {}
    wrong = history.copy()
    wrong[0] += 0.01
    found = judged(run, {"loss_history": wrong}, contract=Contract.ORBIT_Q_1)
    assert found["recompute:loss_history"].outcome is Outcome.FLAG
    worse = judged(run, {"loss_history": history[::-1]}, contract=Contract.ORBIT_Q_1)
    assert worse["loss_improves"].outcome is Outcome.FAIL


FORM = {"x": ArraySpec((3,)), "n": ArraySpec((2,), integer=True), "extra": ArraySpec((), published=False)}
GOOD = {"x": np.zeros(3), "n": np.zeros(2, dtype=np.int32), "extra": np.float32(1)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": np.zeros((3, 1))}, "shape"),
        ({"x": np.zeros(3, dtype=complex)}, "dtype complex128"),
        ({"x": np.array(["a", "b", "c"])}, "dtype"),
        ({"x": np.zeros(3, dtype=bool)}, "dtype bool"),
        ({"x": np.array([0, np.nan, 1])}, "not finite"),
        ({"x": np.array([0, np.inf, 1])}, "not finite"),
        ({"n": np.zeros(2)}, "an integer"),
        ({"x": None}, "is missing"),
    ],
)
def test_form_refuses(change, said):
    outputs = {key: np.asarray(value) for key, value in {**GOOD, **change}.items() if value is not None}
    found = check_form(FORM, outputs, Contract.ORBIT_2)
    assert [item.outcome for item in found] == [Outcome.FAIL]
    assert said in found[0].message


def test_form_accepts_and_names_what_it_ignores():
    outputs = {key: np.asarray(value) for key, value in GOOD.items()}
    found = check_form(FORM, {**outputs, "unknown": np.zeros(1)}, Contract.ORBIT_2)
    assert [item.outcome for item in found] == [Outcome.PASS]
    assert "unknown" in found[0].message
    del outputs["extra"]
    assert check_form(FORM, outputs, Contract.ORBIT_2)[0].outcome is Outcome.FAIL
    published = {key: ArraySpec(form.shape, form.integer, key != "extra") for key, form in FORM.items()}
    assert check_form(published, outputs, Contract.ORBIT_Q_1)[0].outcome is Outcome.PASS


def test_absurd_numbers_are_judged_and_fail():
    run = timed_run()
    outputs = honest(run)
    outputs["loss_history"][3] = 1e300
    outputs["final_parameters"][:] = 1e300
    assert "shape:loss_history" not in judged(run, honest(run))
    assert judged(run, outputs)


def test_tolerance_of_phases_and_logarithms():
    phase = Tolerance(absolute=1e-3, period=2 * np.pi)
    assert phase.distance(np.array(3.14159), np.array(-3.14159)) < 1e-4
    logarithm = Tolerance(floor_relative=1e-3, logarithm=True)
    assert logarithm.distance(np.array([0.0]), np.array([0.5]))[0] == np.inf
    assert logarithm.distance(np.array([0.5]), np.array([0.5]))[0] == 0


def test_checkpoints_are_ascending_and_inside():
    for steps in range(1, 30):
        drawn = draw_checkpoints(steps, np.random.default_rng(steps))
        assert list(drawn) == sorted(set(drawn))
        assert all(1 <= step < steps for step in drawn)
    assert draw_checkpoints(500, np.random.default_rng(0))[:2] == (1, 2)


def test_a_start_that_is_left_out_is_no_crash():
    run = timed_run()
    outputs = honest(run)
    del outputs["initial_parameters"]
    found = judge(EVALUATOR, run, outputs, contract=Contract.ORBIT_Q_1, rng=np.random.default_rng(2))
    assert {item.check: item.outcome for item in found}["first_update"] is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(("max_steps", "looked_at"), [(3, False), (6, True)])
def test_a_few_moves_say_nothing_of_the_next(max_steps, looked_at):
    """The reference of a task failed a full-size probe on which a quantity turned around within its two moves."""
    config = EVALUATOR.draw_timed({**DEFAULTS, "max_steps": max_steps}, np.random.default_rng(1))
    run = Run(RunKind.FULL_PROBE, "full-probe", config)
    evidence = judge(EVALUATOR, run, honest(run), contract=Contract.ORBIT_2, rng=np.random.default_rng(2))
    assert ("continuity:loss_history" in {item.check for item in evidence}) == looked_at
