import numpy as np
import pytest

from orbit.errors import HarnessError
from orbit.verification.evaluator import Tolerance, at_most
from orbit.verification.probes import JointProbe, Probe, compare, compare_joint, draw_probe, draw_probes
from orbit.verification.verdict import Outcome

from .toy import DEFAULTS, ToyEvaluator, ToyOracle


def drawn(seed=0, *, evaluator=None, oracle=None, long=True):
    rng = np.random.default_rng(seed)
    return draw_probe(
        evaluator or ToyEvaluator(), oracle or ToyOracle(), dict(DEFAULTS), rng, name="probe-1", long=long
    )


def failures(probe, outputs):
    return {item.check for item in compare(ToyEvaluator(), probe, outputs) if item.outcome is Outcome.FAIL}


def test_the_first_probe_is_long():
    assert all(drawn(seed).run.config["max_steps"] >= 10 for seed in range(5))
    assert any(drawn(seed, long=False).run.config["max_steps"] < 10 for seed in range(5))


def test_the_oracle_and_its_single_precision_rounding_pass():
    probe = drawn()
    assert failures(probe, dict(probe.expected)) == set()
    assert failures(probe, {key: value.astype(np.float32) for key, value in probe.expected.items()}) == set()


@pytest.mark.parametrize(
    "mutation", ["coupling_sign", "sgd", "adam_beta1_0.8", "adam_beta2_0.9", "adam_no_bias_correction"]
)
def test_every_wrong_variant_fails(mutation):
    for seed in range(3):
        probe = drawn(seed)
        assert failures(probe, ToyOracle().solve(probe.run.config, mutation=mutation))


def test_a_wrong_form_fails_before_anything_is_compared():
    probe = drawn()
    outputs = {**probe.expected, "loss_history": np.zeros(1)}
    assert failures(probe, outputs) == {"form"}


def test_a_blunt_task_is_refused():
    class Blunt(ToyOracle):
        mutations = ("nothing_at_all",)

    with pytest.raises(HarnessError, match="'nothing_at_all' cannot be told"):
        drawn(oracle=Blunt())


def test_an_unstable_task_is_refused():
    class Unstable(ToyEvaluator):
        def probe_tolerances(self, config):
            return {**super().probe_tolerances(config), "loss_history": Tolerance(absolute=1e-9)}

    with pytest.raises(HarnessError, match="moves loss_history"):
        drawn(evaluator=Unstable())


def test_ill_conditioned_parameters_are_left_out_and_counted():
    class Flat(ToyOracle):
        """The loss does not depend on the third parameter, so noise alone drives it."""

        def evaluate(self, config, parameters, mutation=None):
            return super().evaluate(config, parameters * np.array([1.0, 1.0, 0.0]), mutation)

    probe = drawn(oracle=Flat())
    assert probe.n_left_out > 0
    assert not probe.comparable["final_parameters"][2]
    assert probe.comparable["final_parameters"][:2].all()
    drifted = {key: np.array(value) for key, value in probe.expected.items()}
    drifted["final_parameters"][2] += 0.3
    assert failures(probe, drifted) == set()
    drifted["final_parameters"][0] += 0.3
    assert failures(probe, drifted) == {"probe:final_parameters"}


def test_an_entry_that_moves_only_now_and_then_is_left_out():
    class Rare(ToyOracle):
        """Noise of the expected size hardly ever moves the third parameter, four times as much always does."""

        def solve(self, config, *, noise=None, mutation=None):
            outputs = super().solve(config, noise=noise, mutation=mutation)
            if noise is None:
                return outputs
            final = np.array(outputs["final_parameters"])
            sigmas = float(np.abs(noise(np.ones(100)) - 1).mean()) / sum(self.noise)
            final[2] += 1.0 if sigmas > 2 else 0.0
            return {**outputs, "final_parameters": final}

    probe = drawn(oracle=Rare())
    assert probe.comparable["final_parameters"].tolist() == [True, True, False]


class Joint(ToyEvaluator):
    """Two equal runs, judged by whether they agree."""

    def draw_joint_probe(self, defaults, oracle, rng):
        config = self.draw_probe(defaults, rng, 4)
        return [config, dict(config)]

    def judge_joint_probe(self, configs, outputs, oracle, rng):
        one, other = (found["loss_history"] for found in outputs)
        return [at_most("probe:repeats", float(np.abs(one - other).max()), 0.0)]


def joint_failures(change):
    (probe,) = draw_probes(Joint(), ToyOracle(), dict(DEFAULTS), [np.random.default_rng(0), np.random.default_rng(1)])
    assert isinstance(probe, JointProbe)
    outputs = [ToyOracle().solve(run.config) for run in probe.runs]
    outputs[1] = {**outputs[1], "loss_history": change(outputs[1]["loss_history"])}
    evidence = compare_joint(Joint(), ToyOracle(), probe, outputs, np.random.default_rng(0))
    assert {item.run for item in evidence} == {"probe-1", "probe-2"}
    return {item.check for item in evidence if item.outcome is Outcome.FAIL}


def test_a_joint_probe_takes_the_place_of_single_ones():
    assert joint_failures(lambda history: history) == set()
    assert joint_failures(lambda history: history + 1e-9) == {"probe:repeats"}


def test_the_runs_of_a_joint_probe_are_held_to_form_and_invariants():
    assert joint_failures(lambda history: history[1:]) == {"form"}
    assert joint_failures(lambda history: history - 100) == {"loss_bound"}


def test_single_probes_come_one_per_generator_and_none_without():
    drawn_probes = draw_probes(
        ToyEvaluator(), ToyOracle(), dict(DEFAULTS), [np.random.default_rng(k) for k in range(2)]
    )
    assert [probe.runs[0].name for probe in drawn_probes] == ["probe-1", "probe-2"]
    assert all(isinstance(probe, Probe) for probe in drawn_probes)
    assert draw_probes(ToyEvaluator(), ToyOracle(), dict(DEFAULTS), []) == []


def test_a_joint_probe_must_be_judged():
    with pytest.raises(NotImplementedError, match="does not judge them"):
        ToyEvaluator().judge_joint_probe([], [], ToyOracle(), np.random.default_rng(0))
