from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.gates import pauli
from orbit.tasks import find_task
from orbit.verification import exact
from orbit.verification.evaluator import RunKind
from orbit.verification.replay import Replay, check_replay
from orbit.verification.verdict import Contract, Outcome
from tests.unit.tasks.helpers import central_differences, failed, judged, single_precision_failures

TASK = find_task("orbit-q/09-lightcone-512")
EVALUATOR, ORACLE = TASK.load_evaluator(), TASK.load_oracle()


def small_config(seed=0, n_steps=8, **changes):
    """A probe; restarts beyond the drawn ones continue the draw."""
    config = EVALUATOR.draw_probe({**TASK.config, "success_threshold": -5.0}, np.random.default_rng(seed), n_steps)
    config.update(changes)
    shape = (config["n_restarts"], config["parameter_count"])
    config["initial_parameters"] = np.random.default_rng(seed).uniform(-1, 1, size=shape)
    return config


@pytest.fixture(scope="module")
def honest():
    config = small_config(3, 30, n_restarts=3)
    return config, ORACLE.solve(config)


def full_register(tape, terms, n, parameters):
    """The objective by matrices on all qubits and matrix exponentials."""
    state = np.full(2**n, 2 ** (-n / 2), dtype=complex)
    for name, *sites, index in tape:
        state = expm(-0.5j * parameters[index] * word(dict(zip(sites, name[1:].upper(), strict=True)), n)) @ state
    return sum(coefficient * np.vdot(state, word(dict(factors), n) @ state).real for coefficient, factors in terms)


def word(letters, n):
    return pauli("".join(letters.get(site, "I") for site in range(n)))


def test_oracle_and_evaluator_equal_the_full_register():
    module = EVALUATOR.evaluate.__globals__
    tape = module["ladder_tape"](6, 3, 0.6, 5)
    terms = ((0.7, ((1, "X"), (3, "Z"))), (-1.1, ((4, "Y"),)))
    config = module["_with_terms"]({**TASK.config, "n_qubits": 6, "n_restarts": 2}, tape, terms)
    parameters = np.random.default_rng(1).uniform(-1, 1, size=(2, len(tape)))
    expected = [full_register(tape, terms, 6, row) for row in parameters]
    for judge in (ORACLE, EVALUATOR):
        observed = judge.evaluate(config, parameters).observables["observable_history"]
        assert observed == pytest.approx(expected, abs=1e-12)


def test_gradients_equal_central_differences():
    config = small_config(1, n_restarts=2)
    point = config["initial_parameters"]

    def loss(parameters):
        return -float(EVALUATOR.evaluate(config, parameters).observables["observable_history"].sum())

    expected = central_differences(loss, point)
    assert ORACLE.evaluate(config, point).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point, gradient=True).gradient == pytest.approx(expected, abs=1e-8)
    assert EVALUATOR.evaluate(config, point).gradient is None


@pytest.mark.parametrize("mutation", ORACLE.mutations)
def test_every_mutation_changes_something(honest, mutation):
    config = {**honest[0], "max_steps": 3}
    right, wrong = ORACLE.solve(config), ORACLE.solve(config, mutation=mutation)
    assert max(np.abs(right[key] - wrong[key]).max() for key in right) > 1e-3


def test_published_tape_and_terms():
    config = EVALUATOR.prepare(dict(TASK.config))
    tape = config["gate_tape"]
    assert (len(tape), sum(len(gate) == 4 for gate in tape)) == (3897, 825)
    assert [gate[-1] for gate in tape] == list(range(3897))
    assert config["pauli_cone_sizes"] == (18, 15)
    assert EVALUATOR.prepare(config) is config
    start = EVALUATOR.initial_parameters({**config, "n_restarts": 2})
    assert start.shape == (2, 3897)
    assert np.array_equal(start[1], np.random.default_rng(102036).normal(0.0, 0.02, size=3897))


def test_two_qubit_gates_of_a_layer_share_no_qubit():
    tape = EVALUATOR.prepare(dict(TASK.config))["gate_tape"]
    layers, seen = [], set()
    for gate in tape:
        if len(gate) == 3:
            if gate[1] == 0:
                seen = set()
                layers.append(seen)
            continue
        assert not seen.intersection(gate[1:3])
        assert abs(gate[1] - gate[2]) <= 3
        seen.update(gate[1:3])
    assert len(layers) == 6


def test_exact_values_are_stored_and_regenerate():
    assert TASK.exact(TASK.config) is not None
    assert exact.distance(TASK) == 0


def test_draws_stay_in_the_ranges_of_the_statement():
    for seed in range(20):
        config = EVALUATOR.draw_probe(TASK.config, np.random.default_rng(seed), 3)
        assert config["n_qubits"] in range(12, 33, 2)
        assert 2 <= config["n_layers"] <= 4
        assert 2 <= config["n_restarts"] <= 4
        assert 2 <= len(config["pauli_terms"]) <= 3
        assert all(4 <= size <= 12 for size in config["pauli_cone_sizes"])
        assert all(0.4 <= abs(coefficient) <= 1.2 for coefficient, _ in config["pauli_terms"])
        assert 0.03 <= config["learning_rate"] <= 0.1
        assert config["initial_parameters"].shape == (config["n_restarts"], len(config["gate_tape"]))
        assert np.abs(config["initial_parameters"]).max() <= 1
    timed = EVALUATOR.draw_timed(TASK.config, np.random.default_rng(0))
    full = EVALUATOR.draw_full_probe(TASK.config, np.random.default_rng(0))
    for config, scale in ((timed, 0.02), (full, 0.3)):
        assert config["initial_parameters"].std() == pytest.approx(scale, rel=0.01)
        assert config["seed"] == TASK.config["seed"]  # of the tape, which stays
        assert config["checkpoint_steps"] == (1,)
    assert full["max_steps"] == 3


def test_an_honest_run_passes_everything(honest):
    config, outputs = honest
    assert failed(judged(EVALUATOR, config, outputs)) == set()
    single = {key: value.astype(np.float32) for key, value in outputs.items()}
    assert failed(judged(EVALUATOR, config, single)) == set()


@pytest.mark.parametrize("seed", range(2))
def test_single_precision_passes_probes(seed):
    assert single_precision_failures(TASK, seed) == []


def shifted(where, amount):
    def change(array):
        changed = array.copy()
        changed[where] += amount
        return changed

    return change


def outside():
    """A parameter of the honest run's tape that no term sees."""
    return int(np.flatnonzero(~EVALUATOR.evaluate.__globals__["inside_cones"](small_config(3, 30)))[0])


@pytest.mark.parametrize(
    ("key", "change", "check"),
    [
        ("observable_history", shifted((1, 4), 9.0), "objective_bound"),
        ("observable_history", lambda h: np.repeat(h[:1], len(h), axis=0), "histories_differ"),
        ("observable_history", lambda h: h[:, ::-1], "mean_improves"),
        ("observable_history", lambda h: h - 9.0, "best_final"),
        ("observable_history", shifted((2, 0), 5e-4), "recompute:observable_history"),
        ("observable_history", shifted((0, 1), 5e-4), "recompute:observable_history"),
        ("observable_history", lambda h: np.tile(h[:, :1], h.shape[1]), "shape:observable_history"),
        ("checkpoint_parameters", lambda p: p[:, ::-1], "first_update"),
        ("final_parameters", lambda p: p + 1.0, "continuity:observable_history"),
        ("final_parameters", lambda p: p + 1.0, "outside_cones"),
        ("final_parameters", shifted((0, outside()), 1e-5), "outside_cones"),
        ("checkpoint_parameters", shifted((0, 0, outside()), 1e-5), "outside_cones"),
        ("final_parameters", lambda p: np.repeat(p[:1], len(p), axis=0), "restarts_differ"),
        ("initial_parameters", lambda p: p[::-1], "initial_parameters"),
    ],
)
def test_bad_outputs_fail_the_check_made_for_them(honest, key, change, check):
    config, outputs = honest
    assert check in failed(judged(EVALUATOR, config, {**outputs, key: change(outputs[key])}))


def test_thresholds_are_for_the_timed_run_only(honest):
    config, outputs = honest
    reversed_history = {**outputs, "observable_history": outputs["observable_history"][:, ::-1]}
    assert "mean_improves" not in failed(judged(EVALUATOR, config, reversed_history, kind=RunKind.FULL_PROBE))


def test_twenty_restarts_are_recomputed():
    config = small_config(3, 30, n_restarts=50)
    number = np.arange(50.0)[:, None]  # of the restart, in every entry
    outputs = {
        "observable_history": number * np.ones(30),
        "final_parameters": number * np.ones(config["parameter_count"]),
    }
    part, kept = EVALUATOR.part_to_recompute(config, EVALUATOR.by_step(config, outputs), np.random.default_rng(0))
    assert part["n_restarts"] == 20
    rows = kept["final_parameters"][:, 0].astype(int)
    assert len(set(rows)) == 20
    assert np.array_equal(kept["observable_history"], np.ones((30, 1)) * rows)
    assert np.array_equal(part["initial_parameters"], config["initial_parameters"][rows])


def test_replay_compares_every_restart_step_by_step(honest):
    config, outputs = honest
    replay = Replay(outputs, [outputs])
    late, early = (shifted((2, step), 0.1)(outputs["observable_history"]) for step in (25, 5))
    for history, expected in (
        (late, {"replay_late": Outcome.FLAG, "replay_far": Outcome.FAIL}),
        (early, {"replay": Outcome.FAIL}),
    ):
        changed = EVALUATOR.by_step(config, {"observable_history": history})
        found = check_replay(EVALUATOR, config, changed, replay)
        bad = {item.check.partition(":")[0]: item.outcome for item in found if item.outcome is not Outcome.PASS}
        assert bad == expected


def test_a_published_run_without_parameters_is_judged_by_its_history():
    config = EVALUATOR.prepare({**TASK.config, "n_restarts": 2, "max_steps": 3})
    start = EVALUATOR.initial_parameters(config)
    first = EVALUATOR.evaluate(config, start).observables["observable_history"]
    history = first[:, None] + np.array([[0.0, 0.4, 1.2], [0.0, 0.5, 1.3]])
    evidence = judged(EVALUATOR, config, {"observable_history": history}, contract=Contract.ORBIT_Q_1)
    assert not [item.check for item in evidence if item.outcome in (Outcome.FAIL, Outcome.FLAG)]
    wrong = judged(EVALUATOR, config, {"observable_history": history - 0.5}, contract=Contract.ORBIT_Q_1)
    assert failed(wrong) == {"best_final"}
