"""Reference of `entanglement-profile` in TensorCircuit-NG.

Every loop of the circuit is a scan over bonds, so that the compiled program holds one bond and not the whole circuit:
each pass works on the first two qubits and then turns the register on, as on a ring. On odd sublayers the ring's
closing pair (n-1, 0) gets rotations but no exponential.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def turn(state, n_qubits):
    """Move the first `n_qubits` qubits behind all others (the last ones to the front if negative)."""
    rows = 2**n_qubits if n_qubits > 0 else -1
    return state.reshape(rows, state.size // 2**n_qubits if n_qubits > 0 else 2**-n_qubits).T.reshape(-1)


def pair_unitary(angles):
    """RY and RZ on both qubits of a pair, then exp[-i (xx XX + yy YY + zz ZZ)] between them."""
    circuit = tc.Circuit(2)
    for qubit in (0, 1):
        circuit.ry(qubit, theta=angles[2 * qubit])
        circuit.rz(qubit, theta=angles[2 * qubit + 1])
    # RXX, RYY and RZZ carry a half that the exponentials of the task do not.
    circuit.rxx(0, 1, theta=2 * angles[4])
    circuit.ryy(0, 1, theta=2 * angles[5])
    circuit.rzz(0, 1, theta=2 * angles[6])
    return circuit.matrix()


def pair_angles(block, n):
    """Angles (2, n/2, 7) of the pairs of an even and an odd sublayer from the flat parameters of a block."""
    sublayers = []
    for parity, flat in ((0, block[: 7 * n // 2]), (1, block[7 * n // 2 :])):
        rotations = jnp.roll(flat[: 2 * n].reshape(n, 2), -parity, axis=0).reshape(n // 2, 4)
        exponents = jnp.pad(flat[2 * n :].reshape(-1, 3), ((0, parity), (0, 0)))
        sublayers.append(jnp.concatenate([rotations, exponents], axis=1))
    return jnp.stack(sublayers)


def run_solution(config):
    n, steps, subsystem = config["n_qubits"], config["max_steps"], config["subsystem_size"]
    n_blocks = config["n_layers"] // 2
    targets = jnp.asarray(config["target_entropies"], dtype=jnp.float32)
    initial = config.get("initial_parameters")
    if initial is None:
        count = n_blocks * (4 * n + 3 * (n - 1))
        initial = np.random.default_rng(config["seed"]).normal(0.0, config["initial_parameter_scale"], size=count)
    neel = jnp.zeros(2**n, dtype=jnp.complex64).at[int("01" * (n // 2), 2)].set(1)
    # The term of pair (i, i+1): exchange, and the field on i; the closing pair has only a field.
    x, y, z = tc.gates.x().tensor, tc.gates.y().tensor, tc.gates.z().tensor
    exchange = np.kron(x, x) + np.kron(y, y) + config["zz_anisotropy"] * np.kron(z, z)
    open_chain = np.arange(n) < n - 1
    field = config["staggered_field"] * (-1.0) ** np.arange(n)
    terms = np.multiply.outer(open_chain, exchange) + np.multiply.outer(field, np.kron(z, np.eye(2)))

    def act(state, unitary):
        circuit = tc.Circuit(n, inputs=state)
        circuit.unitary(0, 1, unitary=unitary)
        return turn(circuit.state(), 2), None

    def block(state, unitaries):
        state, _ = jax.lax.scan(act, state, unitaries[0])
        state, _ = jax.lax.scan(act, turn(state, 1), unitaries[1])
        state = turn(state, -1)
        half = state.reshape(2**subsystem, -1)
        density = half @ half.conj().T
        return state, -jnp.log(jnp.sum(jnp.abs(density) ** 2))

    def measure(state, term):
        return turn(state, 1), jnp.real(tc.Circuit(n, inputs=state).expectation((term, [0, 1])))

    def loss(parameters):
        angles = jax.vmap(lambda flat: pair_angles(flat, n))(parameters.reshape(n_blocks, -1))
        unitaries = jax.vmap(jax.vmap(jax.vmap(pair_unitary)))(angles)
        state, entropies = jax.lax.scan(block, neel, unitaries)
        energy = jnp.sum(jax.lax.scan(measure, state, jnp.asarray(terms, dtype=jnp.complex64))[1]) / n
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

    (final, _), (losses, energies, mses, entropies, path) = train(jnp.asarray(initial, dtype=jnp.float32))
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
