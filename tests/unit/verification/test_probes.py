import numpy as np
import pytest

from orbit.errors import HarnessError
from orbit.verification.evaluator import Tolerance
from orbit.verification.probes import compare, draw_probe
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
