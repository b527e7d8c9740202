"""Reference of `lightcone-512` in TensorCircuit-NG: each observable on the circuit of its causal cone alone.

An observable depends only on the gates that it can see going backwards, and these touch a few qubits. The cone's
expectation is contracted as a tensor network, whose treewidth is small because few of its gates act on two qubits; all
restarts are one vectorized contraction. Parameters outside every cone have no gradient and stay as they are.

To keep the compiled program small, a two-qubit gate and the one-qubit gates before it are one unitary, and the
unitaries of all such blocks come from one vectorized two-qubit circuit, with angle zero where a block has fewer gates.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")

PAULIS = {
    "x": np.array([[0, 1], [1, 0]], dtype=np.complex64),
    "y": np.array([[0, -1j], [1j, 0]], dtype=np.complex64),
    "z": np.array([[1, 0], [0, -1]], dtype=np.complex64),
}


def causal_cone(tape, sites):
    """Qubits and gates, in time order, that an observable on `sites` depends on."""
    seen, backwards = set(sites), []
    for gate in reversed(tape):
        qubits = gate[1:-1]
        if seen.intersection(qubits):
            seen.update(qubits)
            backwards.append(gate)
    return sorted(seen), backwards[::-1]


def split(gates):
    """Blocks (one-qubit gates on either qubit, two-qubit gate), and the one-qubit gates that no block takes up."""
    waiting, blocks = {}, []
    for gate in gates:
        if len(gate) == 3:
            waiting.setdefault(gate[1], []).append(gate)
        else:
            blocks.append(([waiting.pop(qubit, []) for qubit in gate[1:3]], gate))
    return blocks, [gate for left in waiting.values() for gate in left]


def block_tables(blocks, column, zero):
    """Columns of the angles and Pauli matrices of blocks; short runs of one-qubit gates are padded with `zero`."""
    width = max((len(run) for runs, _ in blocks for run in runs), default=0)
    columns = np.full((len(blocks), 2 * width + 1), zero)
    turns = np.tile(np.eye(2, dtype=np.complex64), (len(blocks), 2, width, 1, 1))
    for k, (runs, gate) in enumerate(blocks):
        columns[k, -1] = column[gate[-1]]
        for side, run in enumerate(runs):
            for slot, (name, _, parameter) in enumerate(run):
                columns[k, side * width + slot] = column[parameter]
                turns[k, side, slot] = PAULIS[name[1:]]
    couplings = np.array([np.kron(PAULIS[gate[0][1]], PAULIS[gate[0][2]]) for _, gate in blocks])
    return columns, jnp.asarray(turns), jnp.asarray(couplings)


def block_unitary(angles, turns, coupling):
    """Unitary (4, 4) of one block."""
    circuit = tc.Circuit(2)
    width = turns.shape[1]
    for side in range(2):
        for slot in range(width):
            circuit.exp1(side, unitary=turns[side, slot], theta=angles[side * width + slot], half=True)
    circuit.exp1(0, 1, unitary=coupling, theta=angles[-1], half=True)
    return circuit.matrix()


def run_solution(config):
    tape, restarts, steps = config["gate_tape"], config["n_restarts"], config["max_steps"]
    initial = config.get("initial_parameters")
    if initial is None:
        scale, count = config["initial_parameter_scale"], config["parameter_count"]
        seeds = [config["seed"] + 100000 + r for r in range(restarts)]
        initial = np.stack([np.random.default_rng(seed).normal(0.0, scale, size=count) for seed in seeds])
    initial = np.asarray(initial)
    cones = [causal_cone(tape, [site for site, _ in factors]) for _, factors in config["pauli_terms"]]
    active = sorted({gate[-1] for _, gates in cones for gate in gates})
    column = {parameter: k for k, parameter in enumerate(active)}

    def term(factors, sites, gates):
        """Expectation of a product of Paulis as a function of the angles, the cone's qubits renumbered."""
        place = {site: k for k, site in enumerate(sites)}
        word = {axis: [place[site] for site, letter in factors if letter.lower() == axis] for axis in "xyz"}
        blocks, last = split(gates)
        columns, turns, couplings = block_tables(blocks, column, len(active))

        def expectation(angles):
            circuit = tc.Circuit(len(sites))
            circuit.h(range(len(sites)))
            if blocks:
                padded = jnp.append(angles, 0.0)
                unitaries = jax.vmap(block_unitary)(padded[columns], turns, couplings)
                for unitary, (_, gate) in zip(unitaries, blocks, strict=True):
                    circuit.unitary(place[gate[1]], place[gate[2]], unitary=unitary)
            for name, site, parameter in last:
                getattr(circuit, name)(place[site], theta=angles[column[parameter]])
            return jnp.real(circuit.expectation_ps(**word, reuse=False))

        return expectation

    terms = [
        (coefficient, term(factors, *cone))
        for (coefficient, factors), cone in zip(config["pauli_terms"], cones, strict=True)
    ]

    def objective(angles):
        """Weighted sum over the terms for one restart."""
        return sum(coefficient * expectation(angles) for coefficient, expectation in terms)

    def loss(angles):
        """Restarts are independent, so the gradient of the sum holds each one's own."""
        values = jax.vmap(objective)(angles)
        return -jnp.sum(values), values

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        angles, moments = carry
        (_, values), gradient = jax.value_and_grad(loss, has_aux=True)(angles)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(angles, updates), moments), (values, angles)

    @jax.jit
    def train(angles):
        return jax.lax.scan(step, (angles, optimizer.init(angles)), None, length=steps)

    (last, _), (history, path) = train(jnp.asarray(initial[:, active], dtype=jnp.float32))

    def complete(angles):
        """All parameters of all restarts, given those of the cones."""
        full = np.array(initial, dtype=np.float32)
        full[:, active] = angles
        return full

    result = {
        "observable_history": np.asarray(history, dtype=np.float64).T,
        "initial_parameters": initial,
        "final_parameters": complete(last),
    }
    if "checkpoint_steps" in config:
        rows = [complete(path[k]) for k in config["checkpoint_steps"]]
        result["checkpoint_parameters"] = np.stack(rows) if rows else np.zeros((0, *initial.shape))
    return result
