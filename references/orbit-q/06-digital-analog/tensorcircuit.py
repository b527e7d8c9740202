"""Reference of `digital-analog` in TensorCircuit-NG.

An analog block is `exp(-i K)` with K = t (J sum(XX + YY) + D sum (-1)^i Z). Its Chebyshev expansion with Bessel
coefficients is exact to single precision once the order exceeds the norm of K by a few, whatever J, D and t are: the
controls are bounded, so one bound on the norm, and one order, hold for the whole run. K acts as a sum of local
operators on runs of neighbouring qubits, each applied as one gate.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc
from scipy.special import jv

tc.set_backend("jax")
tc.set_dtype("complex64")

CONTROLS = ("final_analog_times", "final_analog_couplings", "final_analog_detunings")

RUN = 4


def local_terms(n, xy, zz, field):
    """Matrices of the chain's bonds and fields on runs of `RUN` qubits that overlap in one, and where each begins."""
    starts = list(range(0, n - RUN + 1, RUN - 1))
    if starts[-1] != n - RUN:
        starts.append(n - RUN)
    matrices, bond, site = [], 0, 0
    for start in starts:
        strings, weights = [], []
        while bond < start + RUN - 1:
            for pauli, weight in ((1, xy), (2, xy), (3, zz)):
                strings.append([pauli if k in (bond - start, bond - start + 1) else 0 for k in range(RUN)])
                weights.append(weight)
            bond += 1
        while site < start + RUN:
            strings.append([3 if k == site - start else 0 for k in range(RUN)])
            weights.append(field * (-1.0) ** site)
            site += 1
        matrices.append(np.asarray(tc.quantum.PauliStringSum2Dense(strings, weights)))
    return starts, np.stack(matrices)


def rotation(angles):
    """RZ, RY, RZ of one qubit."""
    circuit = tc.Circuit(1)
    circuit.rz(0, theta=angles[0])
    circuit.ry(0, theta=angles[1])
    circuit.rz(0, theta=angles[2])
    return circuit.matrix()


def run_solution(config):
    n, n_blocks, steps = config["n_qubits"], config["n_blocks"], config["max_steps"]
    t_min, t_max = config["t_min"], config["t_max"]
    initial = config.get("initial_parameters")
    if initial is None:
        rng = np.random.default_rng(config["seed"])
        angles = rng.normal(0.0, config["initial_parameter_scale"], size=(n_blocks, 3 * n))
        initial = np.hstack([np.tile([0.0, 0.1, 0.1], (n_blocks, 1)), angles]).reshape(-1)
    neel = jnp.zeros(2**n, dtype=jnp.complex64).at[int("01" * (n // 2), 2)].set(1)
    starts, exchange = local_terms(n, 1.0, 0.0, 0.0)
    detuning = local_terms(n, 0.0, 0.0, 1.0)[1]
    hamiltonian = local_terms(n, 0.7, 1.1, 0.25)[1]
    # The free fermions of the exchange have energies 4 cos k, those of the detuning 2 and -2; half of them are filled.
    modes = 4 * np.abs(np.cos(np.pi * np.arange(1, n + 1) / (n + 1)))
    bound = t_max * float(np.sum(np.sqrt(modes**2 + 4))) / 2
    orders = np.arange(int(bound + 9 * bound ** (1 / 3) + 12))
    weights = 2 * (-1j) ** orders * jv(orders, bound)
    weights = jnp.asarray(weights[np.abs(weights) > 1e-9][1:], dtype=jnp.complex64)

    def act(matrices, state):
        """Apply the sum of local operators, one to a run of qubits."""
        total = 0
        for start, matrix in zip(starts, matrices, strict=True):
            circuit = tc.Circuit(n, inputs=state)
            circuit.unitary(*range(start, start + RUN), unitary=matrix)
            total = total + circuit.state()
        return total

    def controls(parameters):
        s, j, d = parameters.reshape(n_blocks, -1)[:, :3].T
        return t_min + (t_max - t_min) * jax.nn.sigmoid(s), jnp.tanh(j), jnp.tanh(d)

    def block(state, inputs):
        time, coupling, drive, angles = inputs
        scaled = time / bound * (coupling * exchange + drive * detuning)

        def term(carry, weight):
            earlier, current, total = carry
            return (current, 2 * act(scaled, current) - earlier, total + weight * current), None

        first = jv(0, bound) * state
        (_, _, state), _ = jax.lax.scan(term, (state, act(scaled, state), first), weights)
        circuit = tc.Circuit(n, inputs=state)
        for qubit, matrix in enumerate(jax.vmap(rotation)(angles.reshape(n, 3))):
            circuit.unitary(qubit, unitary=matrix)
        return circuit.state(), None

    def energy_density(parameters):
        angles = parameters.reshape(n_blocks, -1)[:, 3:]
        state, _ = jax.lax.scan(block, neel, (*controls(parameters), angles))
        return jnp.real(jnp.vdot(state, act(hamiltonian, state))) / n

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        parameters, moments = carry
        energy, gradient = jax.value_and_grad(energy_density)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (energy, parameters)

    @jax.jit
    def train(parameters):
        return jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=steps)

    (final, _), (history, path) = train(jnp.asarray(initial, dtype=jnp.float32))
    result = {
        "energy_density_history": history,
        "initial_parameters": initial,
        "final_parameters": final,
        **dict(zip(CONTROLS, controls(final), strict=True)),
    }
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
