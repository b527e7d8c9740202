"""TensorCircuit-NG reference: the hyperedge as TensorCircuit's multi-controlled gate, a bond-2 operator string.

The gate stays factorized inside the circuit, so the whole energy network, Hamiltonian included, is a chain of small
tensors that the contractor closes exactly, at a cost that grows linearly with the number of qubits.
"""

import jax
import numpy as np
import optax
import tensorcircuit as tc

K = tc.set_backend("jax")
tc.set_dtype("complex64")


def ising_mpo(n, zz, x):
    """-zz sum ZZ - x sum X as a matrix-product operator; legs of a bulk tensor: left, right, out, in."""
    eye, sigma_x, sigma_z = np.eye(2), np.array([[0, 1], [1, 0]]), np.diag([1, -1])
    bulk = np.zeros((3, 3, 2, 2), np.complex64)
    bulk[0, 0], bulk[0, 1], bulk[0, 2], bulk[1, 2], bulk[2, 2] = eye, -zz * sigma_z, -x * sigma_x, sigma_z, eye
    nodes = [tc.gates.Gate(bulk[0])]
    nodes += [tc.gates.Gate(bulk) for _ in range(n - 2)]
    nodes.append(tc.gates.Gate(bulk[:, 2]))
    for k in range(n - 1):
        nodes[k][0 if k == 0 else 1] ^ nodes[k + 1][0]
    return tc.quantum.QuOperator([node[-2] for node in nodes], [node[-1] for node in nodes])


def rotations(parameters):
    """RY RZ RX of every layer and qubit as one matrix each, shape (n_layers, n_qubits, 2, 2)."""

    def matrices(gate, angles):
        return K.vmap(K.vmap(lambda theta: gate(theta=theta).tensor))(angles)

    rx = matrices(tc.gates.rx_gate, parameters[..., 0])
    rz = matrices(tc.gates.rz_gate, parameters[..., 1])
    ry = matrices(tc.gates.ry_gate, parameters[..., 2])
    return ry @ rz @ rx


def build_circuit(config, parameters):
    """Layers of RX RZ RY on every qubit, each followed by the controlled-Z on all selected qubits."""
    n, selected = config["n_qubits"], list(config["selected_qubits"])
    circuit = tc.Circuit(n)
    for q in config["initial_ones"]:
        circuit.x(q)
    # One merged gate per qubit and layer: a third of the nodes, and compilation is most of the run time.
    gates = rotations(parameters)
    for layer in range(config["n_layers"]):
        for q in range(n):
            circuit.unitary(q, unitary=gates[layer, q], name="ry rz rx")
        circuit.multicontrol(*selected, ctrl=[1] * (len(selected) - 1), unitary=tc.gates.z())
    return circuit


def run_solution(config):
    n, n_layers, max_steps = config["n_qubits"], config["n_layers"], config["max_steps"]
    if "initial_parameters" in config:
        start = np.asarray(config["initial_parameters"], dtype=np.float64)
    else:
        rng = np.random.default_rng(config["seed"])
        start = config["initial_parameter_scale"] * rng.standard_normal((n_layers, n, 3))
    optimizer = optax.adam(config["learning_rate"], b1=0.9, b2=0.999, eps=1e-8)

    def energy_density(parameters):
        mpo = ising_mpo(n, config["zz_strength"], config["x_strength"])
        return tc.templates.measurements.mpo_expectation(build_circuit(config, parameters), mpo) / n

    def step(carry, _):
        parameters, state = carry
        energy, gradient = jax.value_and_grad(energy_density)(parameters)
        updates, state = optimizer.update(gradient, state)
        return (optax.apply_updates(parameters, updates), state), (energy, parameters)

    def train(parameters):
        carry, trace = jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=max_steps)
        return carry[0], *trace

    # The tensors are tiny, so that optimizing machine code costs more than it saves.
    compiled = jax.jit(train, compiler_options={"xla_backend_optimization_level": 0})
    final, energies, visited = compiled(jax.numpy.asarray(start, dtype=jax.numpy.float32))
    visited = np.asarray(visited)
    return {
        "energy_history": np.asarray(energies),
        "initial_parameters": start,
        "final_parameters": np.asarray(final),
        "checkpoint_parameters": visited[list(config.get("checkpoint_steps", ()))],
    }
