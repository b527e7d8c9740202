"""Reference of `mps-overlap` in TensorCircuit-NG: one compiled scan over all Adam updates around one contraction."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def run_solution(config):
    n, steps = config["n_qubits"], config["max_steps"]
    bonds = [(left, left + 1) for layer in range(config["n_layers"]) for left in range(layer % 2, n - 1, 2)]
    initial = config.get("initial_parameters")
    if initial is None:
        rng = np.random.default_rng(config["seed"])
        initial = rng.normal(0.0, config["initial_parameter_scale"], size=15 * len(bonds))
    target = config["dmrg_state"].astype("complex64")

    def overlap(parameters):
        gates = jax.vmap(lambda angles: tc.gates.su4_gate(angles).tensor)(parameters.reshape(-1, 15))
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
