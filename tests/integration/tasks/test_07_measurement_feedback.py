from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task
from orbit.verification.evaluator import Run, RunKind
from orbit.verification.probes import compare, draw_probe
from tests.unit.tasks.helpers import failed, judged

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/07-measurement-feedback")

# An honest solution of another style than the reference: the full register, measured qubit by qubit.
FULL_REGISTER = """
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def run_solution(config):
    n, n_layers, steps = config["n_data_qubits"], config["n_layers"], config["max_steps"]
    uniforms = jnp.asarray(config["trajectory_uniforms"], dtype=jnp.float32)

    def energy(parameters, uniform):
        c = tc.Circuit(2 * n)
        for layer, (data, ancilla, coupling, fb0, fb1, turn) in enumerate(parameters.reshape(n_layers, 6, n)):
            for i in range(n):
                c.ry(i, theta=data[i])
                c.ry(n + i, theta=ancilla[i])
                c.rzz(n + i, i, theta=coupling[i])
            for i in range(n - 1):
                c.cnot(n + i, n + i + 1)
            outcomes = [c.cond_measurement(n + i, status=uniform[layer, i]) for i in range(n)]
            for i in range(n):
                c.rzz(n + i, i, theta=jnp.where(outcomes[i] == 0, fb0[i], fb1[i]))
            for i in range(n - 1):
                c.cnot(i, i + 1)
            for i in range(n):
                c.rz(i, theta=turn[i])
        value = sum(-c.expectation_ps(z=[i, i + 1]) for i in range(n - 1))
        return jnp.real(value - config["transverse_field"] * sum(c.expectation_ps(x=[i]) for i in range(n)))

    def loss(parameters):
        each = jax.vmap(energy, in_axes=(None, 0))(parameters, uniforms)
        return jnp.mean(each), each

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        parameters, moments = carry
        (mean, each), gradient = jax.value_and_grad(loss, has_aux=True)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (mean, each, parameters)

    @jax.jit
    def train(parameters):
        return jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=steps + 1)[1]

    initial = np.asarray(config["initial_parameters"])
    history, each, path = train(jnp.asarray(initial, dtype=jnp.float32))
    return {
        "energy_history": np.asarray(history)[:steps],
        "final_trajectory_energies": np.asarray(each)[steps],
        "initial_parameters": initial,
        "final_parameters": np.asarray(path)[steps],
        "checkpoint_parameters": np.asarray(path)[list(config["checkpoint_steps"])],
    }
"""


@pytest.mark.slow
def test_reference_passes_the_timed_run_and_the_published_one(run_reference):
    evaluator = TASK.load_evaluator()
    for config in (
        evaluator.draw_timed(dict(TASK.config), np.random.default_rng(0)),
        evaluator.prepare(dict(TASK.config)),
    ):
        assert failed(judged(evaluator, config, run_reference(TASK, config))) == set()


def test_a_solution_on_the_full_register_passes_a_probe(worker):
    """Its ancilla angles drift by rounding, as the reference's do not."""
    evaluator, oracle = TASK.load_evaluator(), TASK.load_oracle()
    probe = draw_probe(evaluator, oracle, dict(TASK.config), np.random.default_rng(7), name="draw", long=True)
    outputs, error = worker.run(FULL_REGISTER, probe.run.config)
    assert outputs is not None, error
    assert failed(compare(evaluator, probe, outputs)) == set()


@pytest.mark.slow
def test_rounding_neither_changes_outcomes_nor_looks_like_training(worker):
    evaluator = TASK.load_evaluator()
    small = {**TASK.config, "n_data_qubits": 3, "n_ancilla_qubits": 3, "n_qubits": 6}
    for seed in range(3):
        config = evaluator.draw_timed(small, np.random.default_rng(seed))
        outputs, error = worker.run(FULL_REGISTER, config)
        assert outputs is not None, error
        ancillas = [np.reshape(outputs[key], (2, 6, 3))[:, 1] for key in ("initial_parameters", "final_parameters")]
        assert 1e-3 < np.abs(ancillas[1] - ancillas[0]).max() < 0.6
        evidence = evaluator.task_checks(Run(RunKind.TIMED, "timed", config), outputs)
        assert len(evidence) == 2
        assert failed(evidence) == set()
