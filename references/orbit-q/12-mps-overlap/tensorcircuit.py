"""Reference of `mps-overlap` in TensorCircuit-NG: one compiled scan over all Adam updates around one contraction."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


# IX, IY, IZ, XI, ..., ZZ as 4 x 4 matrices: the generators of SU4 in the order of its angles.
SINGLE = [tc.gates.i().tensor, tc.gates.x().tensor, tc.gates.y().tensor, tc.gates.z().tensor]
WORDS = np.array([np.kron(left, right) for left in SINGLE for right in SINGLE][1:], dtype=np.complex64)


def product(left, right):
    """Matrix product of stacks of 4 x 4 matrices; written out, XLA fuses it, which it does not do with matmul."""
    return jnp.sum(left[:, :, :, None] * right[:, None, :, :], axis=2)


def su4(angles):
    """`exp(-i sum_k angles[g, k] P_k)` for all gates g at once, shape (gates, 4, 4).

    Taylor polynomial of degree 8 of a sixteenth of the exponent, squared four times: an eighth of the time and of the
    compiled code of the general matrix exponential in `tc.gates.su4_gate`, and exact to single precision.
    """
    first = jnp.tensordot(angles, WORDS, 1) * (-1j / 16)
    second = product(first, first)
    third, fourth = product(first, second), product(second, second)
    identity = jnp.eye(4, dtype=jnp.complex64)
    low = identity + first + second / 2 + third / 6
    high = identity / 24 + first / 120 + second / 720 + third / 5040 + fourth / 40320
    gates = low + product(fourth, high)
    for _ in range(4):
        gates = product(gates, gates)
    # Without the barrier the whole exponential is fused into every use of a gate and done again there.
    return jax.lax.optimization_barrier(gates)


def run_solution(config):
    n, steps = config["n_qubits"], config["max_steps"]
    bonds = [(left, left + 1) for layer in range(config["n_layers"]) for left in range(layer % 2, n - 1, 2)]
    initial = config.get("initial_parameters")
    if initial is None:
        rng = np.random.default_rng(config["seed"])
        initial = rng.normal(0.0, config["initial_parameter_scale"], size=15 * len(bonds))
    target = config["dmrg_state"].astype("complex64")

    def overlap(parameters):
        gates = su4(parameters.reshape(-1, 15))
        circuit = tc.Circuit(n)
        for qubit in range(1, n, 2):
            circuit.x(qubit)
        for gate, (left, right) in zip(gates, bonds, strict=True):
            circuit.unitary(left, right, unitary=gate)
        return (tc.quantum.quimb2qop(target).adjoint() @ circuit.get_quvector()).eval()

    def loss(parameters):
        fidelity = jnp.abs(overlap(parameters)) ** 2
        return 1 - fidelity, fidelity

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        parameters, moments = carry
        (value, fidelity), gradient = jax.value_and_grad(loss, has_aux=True)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (value, fidelity, parameters)

    @jax.jit
    def train(parameters):
        (final, _), histories = jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=steps)
        return final, jnp.angle(overlap(final)), histories

    final, phase, (losses, fidelities, path) = train(jnp.asarray(initial, dtype=jnp.float32))
    result = {
        "loss_history": losses,
        "fidelity_history": fidelities,
        "final_overlap_phase": phase,
        "initial_parameters": initial,
        "final_parameters": final,
    }
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
