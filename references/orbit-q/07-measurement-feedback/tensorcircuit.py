"""Reference of `measurement-feedback` in TensorCircuit-NG, on the data qubits alone, which is exact.

RZZ is diagonal and the ancillas' CNOT ladder permutes basis states, so a measured ancilla is a classical bit: rotated
by RY(t) it keeps that bit with probability cos^2(t/2) whatever the data qubits do, and its RZZ is an RZ of either
sign on its data qubit. At fixed outcomes the ancilla angles have no influence left; their gradient is zero, they stay
where they start, and so do the outcomes, which are therefore drawn once.

The qubits are scanned, so that the compiled program holds one of them: each pass works on the first two qubits and then
turns the register on, as on a ring.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def draw_outcomes(angles, uniforms):
    """Bits that the data qubits couple to and measured bits, each (T, n_layers, n), of ancilla angles (n_layers, n)."""
    coupled, outcomes = np.zeros(uniforms.shape, dtype=int), np.zeros(uniforms.shape, dtype=int)
    bits = np.zeros(uniforms.shape[::2], dtype=int)
    for layer, row in enumerate(angles):
        parity = np.zeros(len(uniforms), dtype=int)
        for i, angle in enumerate(row):
            zero = np.where(parity == bits[:, i], np.cos(angle / 2) ** 2, np.sin(angle / 2) ** 2)
            outcomes[:, layer, i] = uniforms[:, layer, i] >= zero
            coupled[:, layer, i] = outcomes[:, layer, i] ^ parity
            parity = outcomes[:, layer, i]
        bits = outcomes[:, layer]
    return coupled, outcomes


def ising(n, field):
    """Matrix of -sum ZZ - field sum X."""
    chain = np.zeros((2 * n - 1, n), dtype=int)
    for i in range(n - 1):
        chain[i, i : i + 2] = 3
    chain[n - 1 :] = np.eye(n, dtype=int)
    return tc.quantum.PauliStringSum2Dense(chain, [-1.0] * (n - 1) + [-field] * n)


def turn_on(state):
    """Move the first qubit behind all others."""
    return state.reshape(2, -1).T.reshape(-1)


def run_solution(config):
    n, n_layers, steps = config["n_data_qubits"], config["n_layers"], config["max_steps"]
    uniforms = np.asarray(config["trajectory_uniforms"])
    initial = config.get("initial_parameters")
    if initial is None:
        count = 6 * n * n_layers
        initial = np.random.default_rng(config["seed"]).normal(0.0, config["initial_parameter_scale"], size=count)
    coupled, outcomes = draw_outcomes(np.reshape(initial, (n_layers, 6, n))[:, 1], uniforms)
    signs = jnp.asarray(1.0 - 2.0 * coupled, dtype=jnp.float32)
    outcomes = jnp.asarray(outcomes)
    hamiltonian = ising(n, config["transverse_field"])
    zeros = jnp.zeros(2**n, dtype=jnp.complex64).at[0].set(1)

    def link(state, angles):
        """Rotations of the second qubit, CNOT from the first, and the RZ that ends the layer; later CNOTs let it by."""
        data, local, turn = angles
        circuit = tc.Circuit(n, inputs=state)
        circuit.ry(1, theta=data)
        circuit.rz(1, theta=local)
        circuit.cnot(0, 1)
        circuit.rz(1, theta=turn)
        return turn_on(circuit.state()), None

    def layer(state, inputs):
        (data, _, coupling, feedback_0, feedback_1, turn), sign, outcome = inputs
        local = sign * coupling + jnp.where(outcome == 0, feedback_0, -feedback_1)
        circuit = tc.Circuit(n, inputs=state)
        circuit.ry(0, theta=data[0])
        circuit.rz(0, theta=local[0] + turn[0])
        state, _ = jax.lax.scan(link, circuit.state(), (data[1:], local[1:], turn[1:]))
        return turn_on(state), None

    def trajectory_energy(parameters, sign, outcome):
        state, _ = jax.lax.scan(layer, zeros, (parameters.reshape(n_layers, 6, n), sign, outcome))
        return tc.templates.measurements.operator_expectation(tc.Circuit(n, inputs=state), hamiltonian)

    def energies(parameters):
        return jax.vmap(trajectory_energy, in_axes=(None, 0, 0))(parameters, signs, outcomes)

    optimizer = optax.adam(config["learning_rate"])

    def loss(parameters):
        each = energies(parameters)
        return jnp.mean(each), each

    def step(carry, _):
        parameters, moments = carry
        (energy, each), gradient = jax.value_and_grad(loss, has_aux=True)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (energy, each, parameters)

    @jax.jit
    def train(parameters):
        # One evaluation more than updates gives the energies after the last of them; its own update is not used.
        start = (parameters, optimizer.init(parameters))
        return jax.lax.scan(step, start, None, length=steps + 1)[1]

    history, each, path = train(jnp.asarray(initial, dtype=jnp.float32))
    result = {
        "energy_history": history[:steps],
        "final_trajectory_energies": each[steps],
        "initial_parameters": initial,
        "final_parameters": path[steps],
    }
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
