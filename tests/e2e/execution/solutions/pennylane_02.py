"""Task `entanglement-profile` in PennyLane: QNodes on `default.qubit`, differentiated and compiled by JAX.

Written from the statement alone. The rotations in front of a bond's exponential are multiplied into its matrix, so that
a block is one gate per bond, which JAX compiles several times faster.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pennylane as qml


def run_solution(config):
    n, n_blocks = config["n_qubits"], config["n_layers"] // 2
    left = list(range(config["subsystem_size"]))
    targets = jnp.asarray(config["target_entropies"], dtype=jnp.float32)
    bonds = [[(i, i + 1) for i in range(parity, n - 1, 2)] for parity in (0, 1)]

    start = config.get("initial_parameters")
    if start is None:
        count = n_blocks * sum(2 * n + 3 * len(pairs) for pairs in bonds)
        start = np.random.default_rng(config["seed"]).normal(0.0, config["initial_parameter_scale"], size=count)
    start = np.asarray(start, dtype=np.float64)

    coefficients = [1.0, 1.0, config["zz_anisotropy"]] * (n - 1)
    words = [pauli(i) @ pauli(i + 1) for i in range(n - 1) for pauli in (qml.X, qml.Y, qml.Z)]
    coefficients += [config["staggered_field"] * (-1) ** i for i in range(n)]
    words += [qml.Z(i) for i in range(n)]
    hamiltonian = qml.Hamiltonian(coefficients, words)
    device = qml.device("default.qubit", wires=n)

    @qml.qnode(device, interface="jax", diff_method="backprop")
    def neel():
        qml.BasisState(np.arange(n) % 2, wires=range(n))
        return qml.state()

    @qml.qnode(device, interface="jax", diff_method="backprop")
    def block(state, theta):
        qml.StatePrep(state, wires=range(n), validate_norm=False)
        offset = 0
        for pairs in bonds:
            angles = theta[offset : offset + 2 * n].reshape(n, 2)
            offset += 2 * n
            # The Ising gates carry a half that the exponentials of the task do not.
            xyz = 2.0 * theta[offset : offset + 3 * len(pairs)].reshape(-1, 3)
            offset += 3 * len(pairs)
            local = qml.RZ.compute_matrix(angles[:, 1]) @ qml.RY.compute_matrix(angles[:, 0])
            first = pairs[0][0]
            ends = local[first : first + 2 * len(pairs)].reshape(-1, 2, 2, 2)
            rotations = jnp.einsum("pab,pcd->pacbd", ends[:, 0], ends[:, 1]).reshape(-1, 4, 4)
            bond = qml.IsingXX.compute_matrix(xyz[:, 0]) @ qml.IsingYY.compute_matrix(xyz[:, 1])
            bond = bond @ qml.IsingZZ.compute_matrix(xyz[:, 2]) @ rotations
            for wire in set(range(n)) - {wire for pair in pairs for wire in pair}:
                qml.QubitUnitary(local[wire], wires=wire)
            for unitary, pair in zip(bond, pairs, strict=True):
                qml.QubitUnitary(unitary, wires=pair)
        return qml.state()

    @qml.qnode(device, interface="jax", diff_method="backprop")
    def energy(state):
        qml.StatePrep(state, wires=range(n), validate_norm=False)
        return qml.expval(hamiltonian)

    def advance(state, theta):
        state = block(state, theta)
        rho = qml.math.reduce_statevector(state, left, c_dtype="complex64")
        return state, -jnp.log(jnp.sum(jnp.abs(rho) ** 2))

    def loss(parameters):
        initial = jnp.asarray(neel(), dtype=jnp.complex64)
        state, entropies = jax.lax.scan(advance, initial, parameters.reshape(n_blocks, -1))
        density = jnp.real(energy(state)) / n
        mse = jnp.mean((entropies - targets) ** 2)
        return density + config["entropy_weight"] * mse, (density, mse, entropies)

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        parameters, moments = carry
        (value, parts), gradient = jax.value_and_grad(loss, has_aux=True)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (value, *parts, parameters)

    @jax.jit
    def train(parameters):
        return jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=config["max_steps"])

    (final, _), (losses, densities, mses, entropies, path) = train(jnp.asarray(start, dtype=jnp.float32))
    result = {
        "energy_density_history": densities,
        "loss_history": losses,
        "entropy_mse_history": mses,
        "entropy_history": entropies,
        "initial_parameters": start,
        "final_parameters": final,
    }
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
