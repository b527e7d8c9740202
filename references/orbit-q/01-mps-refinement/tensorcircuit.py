"""Reference of `mps-refinement` in TensorCircuit-NG: exact causal cones, all of one kind in a vectorized circuit.

The energy is a sum over bonds; a bond sees only the gates of its causal cone and the state on the sites of the cone.
What the matrix-product state holds beyond the cone enters through the square roots of its two environments, as a few
qubits on either side. Nothing is truncated. Bonds of one parity have cones of one shape; at the ends of the chain they
reach over dummy sites with zero angles.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def site_tensors(state):
    """Tensors (left, physical, right) of an open-boundary matrix-product state."""
    arrays = [np.asarray(array) for array in state.arrays]
    return [arrays[0][None], *arrays[1:-1], arrays[-1][:, :, None]]


def environment_roots(tensors):
    """R with R^dagger R the environment left of every site, and its mirror image right of every site."""
    left, right = [np.ones((1, 1))], [np.ones((1, 1))]
    for tensor in tensors:
        block = np.tensordot(left[-1], tensor, 1).reshape(-1, tensor.shape[2])
        left.append(np.linalg.qr(block, mode="r"))
    for tensor in reversed(tensors):
        block = np.tensordot(tensor, right[-1], 1).reshape(tensor.shape[0], -1)
        right.append(np.linalg.qr(block.T, mode="r").T)
    return left, right[::-1]


def cone_state(tensors, roots, first, last, rank):
    """State on sites first to last between its environments, shape (rank * 2**sites * rank,); |0> beyond the chain."""
    n = len(tensors)
    block = roots[0][max(first, 0)]
    n_left = len(block)
    for site in range(max(first, 0), min(last, n - 1) + 1):
        block = np.tensordot(block, tensors[site], 1).reshape(-1, tensors[site].shape[2])
    block = (block @ roots[1][min(last, n - 1) + 1]).reshape(n_left, -1, roots[1][min(last, n - 1) + 1].shape[1])
    state = np.zeros((rank, 2 ** (last - first + 1), rank), dtype=np.complex64)
    shift = 2 ** max(last - n + 1, 0)
    state[:n_left, : block.shape[1] * shift : shift, : block.shape[2]] = block
    return state.reshape(-1)


def pair_unitary(turns, exponents):
    """RZ RY RZ on both qubits of a pair, then exp[-i (xx XX + yy YY + zz ZZ)] between them."""
    circuit = tc.Circuit(2)
    for qubit in (0, 1):
        circuit.rz(qubit, theta=turns[qubit, 0])
        circuit.ry(qubit, theta=turns[qubit, 1])
        circuit.rz(qubit, theta=turns[qubit, 2])
    # RXX, RYY and RZZ carry a half that the exponentials of the task do not.
    circuit.rxx(0, 1, theta=2 * exponents[0])
    circuit.ryy(0, 1, theta=2 * exponents[1])
    circuit.rzz(0, 1, theta=2 * exponents[2])
    return circuit.matrix()


def run_solution(config):
    n, depth, steps, field = config["n_qubits"], config["n_layers"], config["max_steps"], config["field"]
    counts = [len(range(layer % 2, n - 1, 2)) for layer in range(depth)]
    initial = config.get("initial_parameters")
    if initial is None:
        size = sum(3 * n + 3 * count for count in counts)
        initial = np.random.default_rng(config["seed"]).normal(0.0, config["initial_parameter_scale"], size=size)
    tensors = site_tensors(config["dmrg_state"])
    roots = environment_roots(tensors)
    n_ancillas = max(1, int(np.ceil(np.log2(max(tensor.shape[2] for tensor in tensors)))))
    pad = depth + 1

    def angle_tables(parameters):
        """Angles by layer and site, and by layer and left site of a bond, zero beyond the chain."""
        turns, exponents, offset = [], [], 0
        for layer, count in enumerate(counts):
            turns.append(jnp.pad(parameters[offset : offset + 3 * n].reshape(n, 3), ((pad, pad), (0, 0))))
            offset += 3 * n
            table = jnp.zeros((n + 2 * pad, 3)).at[pad + layer % 2 : pad + layer % 2 + 2 * count : 2]
            exponents.append(table.set(parameters[offset : offset + 3 * count].reshape(count, 3)))
            offset += 3 * count
        return jnp.stack(turns), jnp.stack(exponents)

    def cones(parity):
        """Energy function of all bonds of one parity, from their states and the table of pair unitaries."""
        lefts = np.arange(parity, n - 1, 2)
        support, backwards = {0, 1}, []
        for layer in reversed(range(depth)):
            pairs = [(q, q + 1) for q in range(-depth - 1, depth + 2) if (q + parity - layer) % 2 == 0]
            pairs = [pair for pair in pairs if support & set(pair)]
            support |= {q for pair in pairs for q in pair}
            backwards.append((layer, pairs))
        first, width = min(support), len(support)
        states = [cone_state(tensors, roots, q + first, q + first + width - 1, 2**n_ancillas) for q in lefts]
        shares = np.stack([np.where(lefts == 0, 1.0, 0.5), np.where(lefts == n - 2, 1.0, 0.5)], axis=1)

        def energy(state, share, left, unitaries):
            circuit = tc.Circuit(width + 2 * n_ancillas, inputs=state)
            for layer, pairs in reversed(backwards):
                for a, b in pairs:
                    place = n_ancillas - first
                    circuit.unitary(place + a, place + b, unitary=unitaries[layer, left + a + pad])
            a = n_ancillas - first
            bond = circuit.expectation_ps(z=[a, a + 1])
            turned = share[0] * circuit.expectation_ps(x=[a]) + share[1] * circuit.expectation_ps(x=[a + 1])
            return -jnp.real(bond + field * turned)

        values = jax.vmap(energy, (0, 0, 0, None))
        arrays = jnp.asarray(np.stack(states)), jnp.asarray(shares, dtype=jnp.float32), jnp.asarray(lefts)
        return lambda unitaries: jnp.sum(values(*arrays, unitaries))

    parts = [cones(parity) for parity in (0, 1)]

    def total(parameters):
        turns, exponents = angle_tables(parameters)
        neighbours = jnp.stack([turns, jnp.roll(turns, -1, axis=1)], axis=2)
        unitaries = jax.vmap(jax.vmap(pair_unitary))(neighbours, exponents)
        return sum(part(unitaries) for part in parts)

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        parameters, moments = carry
        value, gradient = jax.value_and_grad(total)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (value, parameters)

    @jax.jit
    def train(parameters):
        return jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=steps)

    (final, _), (history, path) = train(jnp.asarray(initial, dtype=jnp.float32))
    result = {"energy_history": history, "initial_parameters": initial, "final_parameters": final}
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
