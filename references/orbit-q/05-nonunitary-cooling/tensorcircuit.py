"""TensorCircuit-NG reference: real state vectors, whole layers of filters as a few contractions.

Every filter is a real matrix and |+> is real, so the network is contracted in real arithmetic, a quarter of the work of
a complex circuit. A layer's equal X filters are merged into one gate per group of neighbouring qubits.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

K = tc.set_backend("jax")
tc.set_dtype("complex64")

GROUP = 5


def bond_sums(n, parity):
    """Diagonal of sum Z_i Z_{i+1} over the bonds of a parity."""
    spins = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n - 1, -1, -1)) & 1)
    left = np.arange(parity, n - 1, 2)
    return np.sum(spins[:, left] * spins[:, left + 1], axis=1).astype(np.float32)


def group_sizes(n):
    return [len(part) for part in np.array_split(np.arange(n), -(-n // GROUP))]


def act_and_rotate(state, matrix):
    """Contract a gate on the leading qubits and move these behind all others; as many groups restore the order."""
    ket, gate = tc.gates.Gate(state.reshape(len(matrix), -1)), tc.gates.Gate(matrix)
    ket[0] ^ gate[1]
    order = [ket[1], gate[0]]
    return tc.contractor([ket, gate], output_edge_order=order).tensor


def field_filter(state, sizes, a):
    """exp(a X) / cosh(a) on every qubit; the factor drops out when the state is rescaled."""
    single = K.real(tc.gates.i().tensor) + K.tanh(a) * K.real(tc.gates.x().tensor)
    merged = {1: single}
    for k in range(2, max(sizes) + 1):
        merged[k] = K.kron(merged[k - 1], single)
    for size in sizes:
        state = act_and_rotate(state, merged[size])
    return state.reshape(-1)


def field_energy(state, sizes):
    """<sum X> by the sum of X over each group."""
    flip, total = np.array([[0, 1], [1, 0]], np.float32), 0.0
    for size in sizes:
        block = state.reshape(2**size, -1)
        generator = sum(np.kron(np.kron(np.eye(2**k), flip), np.eye(2 ** (size - 1 - k))) for k in range(size))
        total += K.sum(block.T * act_and_rotate(block, generator.astype(np.float32)))
        state = block.T.reshape(-1)
    return total


def make_energy(config):
    n = config["n_qubits"]
    sizes = group_sizes(n)
    sums = [bond_sums(n, parity) for parity in (0, 1)]
    plus = np.full(2**n, 2 ** (-n / 2), np.float32)

    def layer(state, a, b, parity):
        # The largest weight is 1, so that nothing overflows.
        exponents = b * sums[parity] - K.abs(b) * float(sums[parity].max())
        state = field_filter(state, sizes, a) * K.exp(exponents)
        return state / K.norm(state)

    def layer_pair(state, strengths):
        state = layer(state, strengths[0], strengths[1], 0)
        return layer(state, strengths[2], strengths[3], 1), None

    def energy_density(parameters):
        state, _ = jax.lax.scan(layer_pair, jnp.asarray(plus), parameters.reshape(-1, 4))
        bonds = K.sum(state**2 * (sums[0] + sums[1]))
        return (-bonds - config["transverse_field"] * field_energy(state, sizes)) / n

    return energy_density


def run_solution(config):
    start = np.full(2 * config["n_layers"], config["initial_filter_strength"], dtype=np.float64)
    start = np.asarray(config.get("initial_parameters", start), dtype=np.float64)
    energy_density = make_energy(config)
    optimizer = optax.adam(config["learning_rate"], b1=0.9, b2=0.999, eps=1e-8)

    def step(carry, _):
        parameters, moments = carry
        energy, gradient = jax.value_and_grad(energy_density)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (energy, parameters)

    @jax.jit
    def train(parameters):
        carry = (parameters, optimizer.init(parameters))
        (final, _), trace = jax.lax.scan(step, carry, None, length=config["max_steps"])
        return final, *trace

    final, energies, visited = map(np.asarray, train(jnp.asarray(start, jnp.float32)))
    return {
        "energy_density_history": energies,
        "final_a": final[0::2].reshape(-1, 2),
        "final_b": final[1::2].reshape(-1, 2),
        "initial_parameters": start,
        "final_parameters": final,
        "checkpoint_parameters": visited[list(config.get("checkpoint_steps", ()))],
    }
