"""Reference of `haldane-chain` in TensorCircuit-NG: a native qutrit circuit, one layer compiled and scanned."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")

SX = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]) / np.sqrt(2)
SY = np.array([[0, -1j, 0], [1j, 0, -1j], [0, 1j, 0]]) / np.sqrt(2)
SZ = np.diag([1.0, 0.0, -1.0])
TRANSVERSE = (np.kron(SX, SX) + np.kron(SY, SY)).real
LONGITUDINAL = np.kron(SZ, SZ)
BIQUADRATIC = (TRANSVERSE + LONGITUDINAL) @ (TRANSVERSE + LONGITUDINAL)


def site_unitary(angles):
    """exp(-i a Sz), then exp(-i b Sy), then exp(-i c Sz) of one spin."""
    a, b, c = angles
    half, full = jnp.sin(b) / np.sqrt(2), jnp.cos(b)
    tilt = jnp.array([[(1 + full) / 2, -half, (1 - full) / 2], [half, full, -half], [(1 - full) / 2, half, (1 + full) / 2]])
    magnetization = jnp.array([1.0, 0.0, -1.0])
    return jnp.exp(-1j * c * magnetization)[:, None] * tilt * jnp.exp(-1j * a * magnetization)


def bond_unitary(angles, beta):
    """exp[-i th (SxSx + SySy) - i ph SzSz - i beta (S.S)^2]."""
    return jax.scipy.linalg.expm(-1j * (angles[0] * TRANSVERSE + angles[1] * LONGITUDINAL + beta * BIQUADRATIC))


def run_solution(config):
    n, n_layers, steps, beta = config["n_sites"], config["n_layers"], config["max_steps"], config["beta"]
    bonds = [(i, i + 1) for i in (*range(0, n - 1, 2), *range(1, n - 1, 2))]
    count = 3 * n + 2 * (n - 1)
    initial = config.get("initial_parameters")
    if initial is None:
        rng = np.random.default_rng(config["seed"])
        initial = rng.normal(0.0, config["initial_parameter_scale"], size=n_layers * count)
    start = np.zeros((3,) * n, dtype=np.complex64)
    start[tuple(0 if site % 2 == 0 else 2 for site in range(n))] = 1
    start = jnp.asarray(start.reshape(-1))
    # Half of each on-site term goes to either bond of a site, the whole of it at the ends.
    square = config["single_ion_anisotropy"] * SZ @ SZ
    coupling = TRANSVERSE + LONGITUDINAL + beta * BIQUADRATIC
    terms = []
    for left, right in bonds:
        weights = (1.0 if left == 0 else 0.5, 1.0 if right == n - 1 else 0.5)
        local = weights[0] * np.kron(square, np.eye(3)) + weights[1] * np.kron(np.eye(3), square)
        terms.append(((coupling + local).astype(np.complex64), (left, right)))

    def layer(state, flat):
        turns = jax.vmap(site_unitary)(flat[: 3 * n].reshape(n, 3))
        exponentials = jax.vmap(bond_unitary, (0, None))(flat[3 * n :].reshape(-1, 2), beta)
        circuit = tc.QuditCircuit(n, dim=3, inputs=state)
        for number, (left, right) in enumerate(bonds):
            unitary = exponentials[number]
            if left % 2 == 0:
                unitary = unitary @ jnp.kron(turns[left], turns[right])
            elif number == n // 2 and n % 2:
                circuit.any(n - 1, unitary=turns[n - 1])
            circuit.any(left, right, unitary=unitary)
        return circuit.wavefunction(), None

    def final_state(parameters):
        return jax.lax.scan(layer, start, parameters.reshape(n_layers, count))[0]

    def energy_density(parameters):
        circuit = tc.QuditCircuit(n, dim=3, inputs=final_state(parameters))
        return sum(jnp.real(circuit.expectation((matrix, sites))) for matrix, sites in terms) / n

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        parameters, moments = carry
        value, gradient = jax.value_and_grad(energy_density)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (value, parameters)

    @jax.jit
    def train(parameters):
        return jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=steps)

    @jax.jit
    def observe(parameters):
        circuit = tc.QuditCircuit(n, dim=3, inputs=final_state(parameters))
        strings = []
        for first, last in ((k, n - 1 - k) for k in range(3)):
            middle = [(np.diag([-1.0, 1.0, -1.0]).astype(np.complex64), [k]) for k in range(first + 1, last)]
            ends = [(SZ.astype(np.complex64), [first]), (SZ.astype(np.complex64), [last])]
            strings.append(jnp.real(circuit.expectation(*ends, *middle)) if first < last else jnp.zeros(()))
        return energy_density(parameters), jnp.stack(strings)

    (final, _), (history, path) = train(jnp.asarray(initial, dtype=jnp.float32))
    final_energy, strings = observe(final)
    result = {
        "energy_density_history": history,
        "final_energy_density": final_energy,
        "final_string_orders": strings,
        "initial_parameters": initial,
        "final_parameters": final,
    }
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
