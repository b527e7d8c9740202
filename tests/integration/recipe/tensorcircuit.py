"""Reference of the small chain."""

from functools import partial

import jax
import numpy as np
import optax
import tensorcircuit as tc

K = tc.set_backend("jax")


def run_solution(config):
    n, n_layers, field = config["n_qubits"], config["n_layers"], config["field"]
    count = n_layers * (2 * n - 1)
    start = config.get("initial_parameters")
    if start is None:
        start = np.random.default_rng(config["seed"]).normal(0.0, config["initial_parameter_scale"], size=count)
    optimizer = optax.adam(config["learning_rate"], b1=0.9, b2=0.999, eps=1e-8)

    def energy_density(parameters):
        angles = K.reshape(parameters, (n_layers, 2 * n - 1))
        circuit = tc.Circuit(n)
        for layer in range(n_layers):
            for q in range(n):
                circuit.ry(q, theta=angles[layer, q])
            for q in range(n - 1):
                circuit.rzz(q, q + 1, theta=angles[layer, n + q])
        zz = sum(circuit.expectation_ps(z=[q, q + 1]) for q in range(n - 1))
        x = sum(circuit.expectation_ps(x=[q]) for q in range(n))
        return K.real(-zz - field * x) / n

    def step(carry, _):
        parameters, state = carry
        energy, gradient = jax.value_and_grad(energy_density)(parameters)
        updates, state = optimizer.update(gradient, state)
        return (optax.apply_updates(parameters, updates), state), (energy, parameters)

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def train(parameters):
        carry = (parameters, optimizer.init(parameters))
        (final, _), trace = jax.lax.scan(step, carry, length=config["max_steps"])
        return final, *trace

    final, history, visited = train(jax.numpy.asarray(start, dtype=jax.numpy.float32))
    return {
        "energy_density_history": np.asarray(history),
        "initial_parameters": np.asarray(start),
        "final_parameters": np.asarray(final),
        "checkpoint_parameters": np.asarray(visited)[list(config.get("checkpoint_steps", ()))],
    }
