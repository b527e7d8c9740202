"""A run against the paired reference: what is compared, and what may not hide in what."""

from __future__ import annotations

import numpy as np
import pytest

from orbit.verification.evaluator import Evaluator, Tolerance
from orbit.verification.replay import Replay, check_replay
from orbit.verification.verdict import Outcome

RATE = 0.05
N_STEPS = 30


class Columns(Evaluator):
    """Restarts in columns; only the history's tolerance matters here."""

    def histories(self, config):
        return {"energy_history": Tolerance(absolute=1e-3)}


Columns.__abstractmethods__ = frozenset()
EVALUATOR = Columns()


def outcomes(outputs, replay):
    found = check_replay(EVALUATOR, {"learning_rate": RATE, "max_steps": N_STEPS}, outputs, replay)
    return {item.check: item.outcome for item in found}


def trained(rng, n_flat=90, n_steady=10, n_untrained=900):
    """A reference and two runs that differ by rounding: far in flat directions, little in steady ones."""
    start = rng.standard_normal(n_flat + n_steady + n_untrained)
    moved = np.concatenate([rng.uniform(0.5, 1.0, n_flat + n_steady), np.zeros(n_untrained)])
    size = np.concatenate([np.full(n_flat, 0.1), np.full(n_steady, 1e-6), np.zeros(n_untrained)])
    runs = [start + moved + size * rng.standard_normal(start.size) * (number > 0) for number in range(4)]
    return [{"initial_parameters": start, "final_parameters": run} for run in runs]


def test_a_run_that_differs_by_rounding_passes():
    reference, first, second, third = trained(np.random.default_rng(0))
    assert set(outcomes(third, Replay(reference, [first, second])).values()) == {Outcome.PASS}


def test_one_perturbed_run_does_not_choose_and_allow_at_once():
    rng = np.random.default_rng(5)
    start = rng.standard_normal(500)
    runs = [start + 1 + 0.1 * rng.standard_normal(500) * (number > 0) for number in range(3)]
    reference, first, other = ({"initial_parameters": start, "final_parameters": run} for run in runs)
    assert set(outcomes(other, Replay(reference, [first])).values()) == {Outcome.PASS}


@pytest.mark.parametrize(
    ("missing", "expected"), [(0.005, (Outcome.FLAG, Outcome.PASS)), (0.1, (Outcome.FLAG, Outcome.FAIL))]
)
def test_flat_directions_and_untrained_parameters_do_not_hide_steady_ones(missing, expected):
    reference, first, second, third = trained(np.random.default_rng(1))
    third["final_parameters"][90:100] -= missing * RATE
    found = outcomes(third, Replay(reference, [first, second]))
    assert (found["replay_late:final_parameters"], found["replay_far:final_parameters"]) == expected


def test_untrained_parameters_do_not_dilute_trained_ones():
    reference, first, second, third = trained(np.random.default_rng(2), n_flat=0, n_steady=20, n_untrained=2000)
    third["final_parameters"][:20] -= RATE
    assert outcomes(third, Replay(reference, [first, second]))["replay_far:final_parameters"] is Outcome.FAIL


def test_one_restart_that_rounding_sends_elsewhere_does_not_excuse_the_others():
    rng = np.random.default_rng(3)
    reference = np.cumsum(rng.random((N_STEPS, 8)), axis=0)
    elsewhere = reference.copy()
    elsewhere[5:, 0] += 2.0
    replay = Replay({"energy_history": reference}, [{"energy_history": elsewhere}] * 2)
    stray = reference.copy()
    stray[7:, 0] -= 1.5
    assert set(outcomes({"energy_history": stray}, replay).values()) == {Outcome.PASS}
    off = reference.copy()
    off[25:, 1:] += 0.1
    found = outcomes({"energy_history": off}, replay)
    assert found["replay_late:energy_history"] is Outcome.FLAG
    assert found["replay_far:energy_history"] is Outcome.PASS


def test_what_a_statement_allows_is_allowed_and_no_more(monkeypatch):
    reference, first, second, third = trained(np.random.default_rng(4))
    replay = Replay(reference, [first, second])
    third["final_parameters"][:100] -= 0.05 * RATE
    assert outcomes(third, replay)["replay_late:final_parameters"] is Outcome.FLAG
    monkeypatch.setattr(Columns, "replay_slack", lambda self, config: 0.1)
    assert outcomes(third, replay)["replay_late:final_parameters"] is Outcome.PASS
    third["final_parameters"][:100] -= 5 * RATE
    assert outcomes(third, replay)["replay_far:final_parameters"] is Outcome.FAIL
