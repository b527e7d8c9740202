"""Reference of `kraus-calibration` in TensorCircuit-NG.

Every expectation value is one contraction of the same small tensor network: a noisy circuit whose input is a
matrix-product state of bond dimension two and whose observable is a product of one-qubit matrices. Inputs and
observables are batches, so that one network is compiled and mapped over both.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def input_tensors(n):
    """Tensors (left, physical, right) of the four inputs, as an array (4, n, 2, 2, 2), and their end vectors."""
    ghz = np.zeros((n, 2, 2, 2))
    ghz[:, 0, 0, 0] = ghz[:, 1, 1, 1] = 1
    pairs = np.zeros((n, 2, 2, 2))
    pairs[0::2, 0, 0, 0] = pairs[0::2, 0, 1, 1] = 1
    pairs[1::2, 0, 1, 0] = pairs[1::2, 1, 0, 0] = 2**-0.5
    zeros, pluses = np.zeros((n, 2, 2, 2)), np.zeros((n, 2, 2, 2))
    zeros[:, 0, 0, 0] = 1
    pluses[:, 0, :, 0] = 2**-0.5
    tensors = np.stack([ghz, pairs, zeros, pluses])
    ends = np.array([[2**-0.25, 2**-0.25], [1, 0], [1, 0], [1, 0]])
    return tensors, ends


def run_solution(config):
    n, angle = config["n_qubits"], config["entangler_angle"]
    tensors, ends = input_tensors(n)
    first = np.einsum("ia,iapr->ipr", ends, tensors[:, 0])[:, None]
    last = np.einsum("ilpa,ia->ilp", tensors[:, -1], ends)[..., None]
    inputs = tuple(jnp.asarray(part, dtype=jnp.complex64) for part in (first, tensors[:, 1:-1], last))
    # Observables as products of one matrix per qubit: Z on one qubit each, then Z on all.
    has_z = np.concatenate([np.eye(n, dtype=bool), np.ones((1, n), dtype=bool)])
    matrices = np.where(has_z[..., None, None], np.diag([1.0, -1.0]), np.eye(2))
    observables = jnp.asarray(matrices, dtype=jnp.complex64)

    def expectation(probabilities, state, matrices):
        p01, p10 = probabilities
        lower, upper = np.array([[0, 1], [0, 0]]), np.array([[0, 0], [1, 0]])
        kraus = [
            jnp.diag(jnp.sqrt(jnp.stack([1 - p01, 1 - p10]))),
            jnp.sqrt(p10) * lower,
            jnp.sqrt(p01) * upper,
        ]
        first, middle, last = state
        circuit = tc.DMCircuit2(n, tensors=[first, *middle, last])
        for left in (*range(0, n - 1, 2), *range(1, n - 1, 2)):
            circuit.rxx(left, left + 1, theta=angle)
            circuit.general_kraus(kraus, left)
            circuit.general_kraus(kraus, left + 1)
        return jnp.real(circuit.expectation(*((matrices[q], [q]) for q in range(n)), reuse=False))

    def table(probabilities):
        by_observable = jax.vmap(expectation, (None, None, 0))
        return jax.vmap(by_observable, (None, 0, None))(probabilities, inputs, observables)

    initial = config.get("initial_parameters")
    if initial is None:
        chances = np.array([config["initial_p01"], config["initial_p10"]])
        initial = np.log(chances / (1 - chances))
    optimizer = optax.adam(config["learning_rate"])

    @jax.jit
    def train(true_probabilities, logits):
        target = table(true_probabilities)

        def loss(logits):
            return jnp.mean((table(jax.nn.sigmoid(logits)) - target) ** 2)

        def step(carry, _):
            logits, moments = carry
            value, gradient = jax.value_and_grad(loss)(logits)
            updates, moments = optimizer.update(gradient, moments)
            return (optax.apply_updates(logits, updates), moments), (value, logits)

        start = (logits, optimizer.init(logits))
        (final, _), (losses, path) = jax.lax.scan(step, start, None, length=config["max_steps"])
        return losses, path, final, jax.nn.sigmoid(final), table(jax.nn.sigmoid(final))

    truth = jnp.array([config["true_p01"], config["true_p10"]], dtype=jnp.float32)
    losses, path, final, fitted, expectations = train(truth, jnp.asarray(initial, dtype=jnp.float32))
    result = {
        "loss_history": losses,
        "final_probabilities": fitted,
        "fitted_expectations": expectations,
        "initial_parameters": initial,
        "final_parameters": final,
    }
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
