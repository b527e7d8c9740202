"""Reference of `lightcone-512` in TensorCircuit-NG: each observable on the circuit of its causal cone alone.

An observable depends only on the gates that it can see going backwards, and these touch a few qubits. The cone's
expectation is contracted as a tensor network, whose treewidth is small because few of its gates act on two qubits; all
restarts are one vectorized contraction. Parameters outside every cone have no gradient and stay as they are.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def causal_cone(tape, sites):
    """Qubits and gates, in time order, that an observable on `sites` depends on."""
    seen, backwards = set(sites), []
    for gate in reversed(tape):
        qubits = gate[1:-1]
        if seen.intersection(qubits):
            seen.update(qubits)
            backwards.append(gate)
    return sorted(seen), backwards[::-1]


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

    def term(angles, factors, sites, gates):
        """Expectation of a product of Paulis, the cone's qubits renumbered."""
        place = {site: k for k, site in enumerate(sites)}
        circuit = tc.Circuit(len(sites))
        circuit.h(range(len(sites)))
        for gate in gates:
            qubits = [place[site] for site in gate[1:-1]]
            getattr(circuit, gate[0])(*qubits, theta=angles[column[gate[-1]]])
        word = {axis: [place[site] for site, letter in factors if letter.lower() == axis] for axis in "xyz"}
        return jnp.real(circuit.expectation_ps(**word, reuse=False))

    def objective(angles):
        """Weighted sum over the terms for one restart."""
        terms = zip(config["pauli_terms"], cones, strict=True)
        return sum(coefficient * term(angles, factors, *cone) for (coefficient, factors), cone in terms)

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
