from __future__ import annotations

import numpy as np
import pytest

from orbit.tasks import find_task
from orbit.verification.probes import compare, draw_probe
from tests.unit.tasks.helpers import failed

pytestmark = pytest.mark.integration

TASK = find_task("orbit-q/06-digital-analog")

# An honest solution of another style than the reference: an adaptive Runge-Kutta integrator with its adjoint.
INTEGRATOR = """
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc
from jax.experimental.ode import odeint

tc.set_backend("jax")
tc.set_dtype("complex64")


def chain(n, xy, zz, field):
    strings, weights = [], []
    for i in range(n):
        for pauli, weight in ((1, xy), (2, xy), (3, zz)) if i < n - 1 else ():
            strings.append([pauli if k in (i, i + 1) else 0 for k in range(n)])
            weights.append(weight)
        strings.append([3 if k == i else 0 for k in range(n)])
        weights.append(field * (-1) ** i)
    return jnp.asarray(tc.quantum.PauliStringSum2Dense(strings, weights))


def run_solution(config):
    n, blocks = config["n_qubits"], config["n_blocks"]
    t_min, t_max = config["t_min"], config["t_max"]
    exchange, detuning, target = chain(n, 1.0, 0.0, 0.0), chain(n, 0.0, 0.0, 1.0), chain(n, 0.7, 1.1, 0.25)

    def controls(parameters):
        s, j, d = parameters.reshape(blocks, -1)[:, :3].T
        return t_min + (t_max - t_min) * jax.nn.sigmoid(s), jnp.tanh(j), jnp.tanh(d)

    def flow(state, time, duration, coupling, drive):
        return -1j * duration * (coupling * (exchange @ state) + drive * (detuning @ state))

    def energy(parameters):
        state = jnp.zeros(2**n, dtype=jnp.complex64).at[int("01" * (n // 2), 2)].set(1)
        for row, *control in zip(parameters.reshape(blocks, -1), *controls(parameters)):
            tolerances = {"rtol": config["ode_rtol"], "atol": config["ode_atol"], "mxstep": config["ode_max_steps"]}
            state = odeint(flow, state, jnp.array([0.0, 1.0]), *control, **tolerances)[-1]
            c = tc.Circuit(n, inputs=state)
            for i in range(n):
                c.rz(i, theta=row[3 + 3 * i])
                c.ry(i, theta=row[4 + 3 * i])
                c.rz(i, theta=row[5 + 3 * i])
            state = c.state()
        return tc.templates.measurements.operator_expectation(c, target) / n

    optimizer = optax.adam(config["learning_rate"])

    @jax.jit
    def step(parameters, moments):
        value, gradient = jax.value_and_grad(energy)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return value, optax.apply_updates(parameters, updates), moments

    path, history = [jnp.asarray(config["initial_parameters"], dtype=jnp.float32)], []
    moments = optimizer.init(path[0])
    for _ in range(config["max_steps"]):
        value, following, moments = step(path[-1], moments)
        history.append(value)
        path.append(following)
    names = ("final_analog_times", "final_analog_couplings", "final_analog_detunings")
    result = {
        "energy_density_history": history,
        **dict(zip(names, controls(path[-1]))),
        "initial_parameters": config["initial_parameters"],
        "final_parameters": path[-1],
        "checkpoint_parameters": [path[k] for k in config["checkpoint_steps"]],
    }
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
"""


def test_an_adaptive_integrator_passes_a_probe(worker):
    """Integration to a relative and absolute tolerance of 1e-6 in single precision is good enough."""
    evaluator, oracle = TASK.load_evaluator(), TASK.load_oracle()
    probe = draw_probe(evaluator, oracle, dict(TASK.config), np.random.default_rng(6), name="draw", long=False)
    outputs, error = worker.run(INTEGRATOR, probe.run.config)
    assert outputs is not None, error
    assert failed(compare(evaluator, probe, outputs)) == set()
