"""Reference of `entanglement-profile` in TensorCircuit-NG: one compiled scan over all Adam updates."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def block(state, angles, n, subsystem):
    """One even and one odd sublayer, and the second Renyi entropy of the first `subsystem` qubits behind them."""
    circuit = tc.Circuit(n, inputs=state)
    offset = 0
    for parity in (0, 1):
        for qubit in range(n):
            circuit.ry(qubit, theta=angles[offset + 2 * qubit])
            circuit.rz(qubit, theta=angles[offset + 2 * qubit + 1])
        offset += 2 * n
        for left in range(parity, n - 1, 2):
            # RXX, RYY and RZZ carry a half that the exponentials of the task do not.
            circuit.rxx(left, left + 1, theta=2 * angles[offset])
            circuit.ryy(left, left + 1, theta=2 * angles[offset + 1])
            circuit.rzz(left, left + 1, theta=2 * angles[offset + 2])
            offset += 3
    state = circuit.state()
    half = state.reshape(2**subsystem, -1)
    density = half @ half.conj().T
    return state, -jnp.log(jnp.sum(jnp.abs(density) ** 2))


def run_solution(config):
    n, steps, subsystem = config["n_qubits"], config["max_steps"], config["subsystem_size"]
    targets = jnp.asarray(config["target_entropies"], dtype=jnp.float32)
    n_blocks = config["n_layers"] // 2
    count = n_blocks * (4 * n + 3 * (n - 1))
    initial = config.get("initial_parameters")
    if initial is None:
        initial = np.random.default_rng(config["seed"]).normal(0.0, config["initial_parameter_scale"], size=count)
    neel = np.zeros(2**n, dtype=np.complex64)
    neel[int("01" * (n // 2) + "0" * (n % 2), 2)] = 1
    words = [[p if q in (i, i + 1) else 0 for q in range(n)] for i in range(n - 1) for p in (1, 2, 3)]
    weights = [w for _ in range(n - 1) for w in (1.0, 1.0, config["zz_anisotropy"])]
    words += [[3 if q == i else 0 for q in range(n)] for i in range(n)]
    weights += [config["staggered_field"] * (-1) ** i for i in range(n)]
    hamiltonian = tc.quantum.PauliStringSum2COO(words, weights)

    def loss(parameters):
        angles = parameters.reshape(n_blocks, -1)
        state, entropies = jax.lax.scan(partial(block, n=n, subsystem=subsystem), jnp.asarray(neel), angles)
        energy = tc.templates.measurements.operator_expectation(tc.Circuit(n, inputs=state), hamiltonian) / n
        mse = jnp.mean((entropies - targets) ** 2)
        return energy + config["entropy_weight"] * mse, (energy, mse, entropies)

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        parameters, moments = carry
        (value, parts), gradient = jax.value_and_grad(loss, has_aux=True)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (value, *parts, parameters)

    @jax.jit
    def train(parameters):
        return jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=steps)

    start = jnp.asarray(initial, dtype=jnp.float32)
    (final, _), (losses, energies, mses, entropies, path) = train(start)
    result = {
        "energy_density_history": energies,
        "loss_history": losses,
        "entropy_mse_history": mses,
        "entropy_history": entropies,
        "initial_parameters": initial,
        "final_parameters": final,
    }
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
