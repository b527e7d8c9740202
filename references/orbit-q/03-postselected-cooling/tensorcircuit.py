"""Reference of `postselected-cooling` in TensorCircuit-NG.

One scan over steps, in it one scan over the measured qubits 0, 2, 4, ...: each pass works on the first three qubits,
the states of the others being a batch, and then turns the register on by two, as on a ring. The pass of qubit q holds
the exponentials of (q, q+1) and (q+1, q+2), of which an even step uses the first and an odd step the second, and the
rotations of q and q+1; q has no further gate in this step then, so that its post-selection may follow at once.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def turn(state, n_qubits):
    """Move the first `n_qubits` qubits behind all others."""
    return state.reshape(2**n_qubits, -1).T.reshape(-1)


def pass_unitary(angles):
    """exp[-i (xx XX + zz ZZ)] on (0, 1) and on (1, 2), then RX on 0 and 1."""
    circuit = tc.Circuit(3)
    # RXX and RZZ carry a half that the exponentials of the task do not.
    for left in (0, 1):
        circuit.rxx(left, left + 1, theta=2 * angles[2 * left])
        circuit.rzz(left, left + 1, theta=2 * angles[2 * left + 1])
    circuit.rx(0, theta=angles[4])
    circuit.rx(1, theta=angles[5])
    return circuit.matrix()


def pass_angles(flat, n, n_steps):
    """Angles (n_steps, n/2, 6) of all passes from the flat parameters; absent exponentials have zeros."""
    steps, offset = [], 0
    for parity in (step % 2 for step in range(n_steps)):
        n_bonds = n // 2 - parity
        exponents = jnp.pad(flat[offset : offset + 2 * n_bonds].reshape(-1, 2), ((0, parity), (0, 0)))
        offset += 2 * n_bonds
        nothing = jnp.zeros_like(exponents)
        pair = (nothing, exponents) if parity else (exponents, nothing)
        steps.append(jnp.concatenate([*pair, flat[offset : offset + n].reshape(-1, 2)], axis=1))
        offset += n
    return jnp.stack(steps)


def run_solution(config):
    n, n_steps, weight = config["n_qubits"], config["n_steps"], config["log_probability_weight"]
    initial = config.get("initial_parameters")
    if initial is None:
        count = sum(2 * (n // 2 - step % 2) + n for step in range(n_steps))
        initial = np.random.default_rng(config["seed"]).normal(0.0, config["initial_parameter_scale"], size=count)
    plus = jnp.full(2**n, 2 ** (-n / 2), dtype=jnp.complex64)
    # Coupling of the pair (i, i+1), none for the closing pair of the ring.
    couplings = jnp.asarray(np.arange(n) < n - 1, dtype=jnp.float32)

    def select(state, unitary):
        def act(column):
            circuit = tc.Circuit(3, inputs=column)
            circuit.unitary(0, 1, 2, unitary=unitary)
            circuit.post_select(0, keep=0)
            return circuit.state()

        state = jax.vmap(act, 1, 1)(state.reshape(8, -1)).reshape(-1)
        probability = jnp.sum(jnp.abs(state) ** 2)
        return turn(state / jnp.sqrt(probability), 2), probability

    def measure(state, coupling):
        def observe(column):
            circuit = tc.Circuit(2, inputs=column)
            return coupling * circuit.expectation_ps(z=[0, 1]) + config["transverse_field"] * circuit.expectation_ps(
                x=[0]
            )

        return turn(state, 1), -jnp.sum(jnp.real(jax.vmap(observe, 1)(state.reshape(4, -1))))

    def loss(parameters):
        unitaries = jax.vmap(jax.vmap(pass_unitary))(pass_angles(parameters, n, n_steps))
        state, probabilities = jax.lax.scan(lambda s, u: jax.lax.scan(select, s, u), plus, unitaries)
        energy = jnp.sum(jax.lax.scan(measure, state, couplings)[1]) / n
        mean_log = jnp.mean(jnp.log(probabilities + 1e-12))
        return energy - weight * mean_log, (energy, mean_log, jnp.prod(probabilities))

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        parameters, moments = carry
        (value, parts), gradient = jax.value_and_grad(loss, has_aux=True)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (value, *parts, parameters)

    @jax.jit
    def train(parameters):
        return jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=config["max_steps"])

    (final, _), (losses, energies, mean_logs, successes, path) = train(jnp.asarray(initial, dtype=jnp.float32))
    result = {
        "energy_density_history": energies,
        "success_probability_history": successes,
        "mean_log_probability_history": mean_logs,
        "loss_history": losses,
        "initial_parameters": initial,
        "final_parameters": final,
    }
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
