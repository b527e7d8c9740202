"""Reference of `haldane-chain` in TensorCircuit-NG.

Every loop over the chain is a scan, so that the compiled program holds one bond: each pass works on the leading one or
two spins, the states of the others being a batch, and then turns the register on, as on a ring.
"""

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

# Where the seven numbers of a pair's exponential stand in its 9 x 9 matrix; rows are |+,+>, |+,0>, |+,->, |0,+>, ...
PICTURE = """
e........
.s.h.....
..d.w.x..
.h.s.....
..w.l.w..
.....s.h.
..x.w.d..
.....h.s.
........e
"""
ROWS = PICTURE.split()
PATTERNS = np.array([[[cell == letter for cell in row] for row in ROWS] for letter in "eshdxwl"], dtype=np.complex64)


def site_unitary(angles):
    """exp(-i a Sz), then exp(-i b Sy), then exp(-i c Sz) of one spin."""
    a, b, c = angles
    half, full = jnp.sin(b) / np.sqrt(2), jnp.cos(b)
    tilt = jnp.array(
        [[(1 + full) / 2, -half, (1 - full) / 2], [half, full, -half], [(1 - full) / 2, half, (1 + full) / 2]]
    )
    magnetization = jnp.array([1.0, 0.0, -1.0])
    return jnp.exp(-1j * c * magnetization)[:, None] * tilt * jnp.exp(-1j * a * magnetization)


def bond_unitary(angles, beta):
    """exp[-i th (SxSx + SySy) - i ph SzSz - i beta (S.S)^2], block by block of the pair's total Sz."""
    th, ph = angles
    # Total Sz +-2: a phase. Total Sz +-1: the transverse part swaps the spins, the others are numbers.
    edge = jnp.exp(-1j * (ph + beta))
    stay, hop = jnp.exp(-1j * beta) * jnp.cos(th), -1j * jnp.exp(-1j * beta) * jnp.sin(th)
    # Total Sz 0: |+,-> - |-,+> is an eigenstate; |+,-> + |-,+> and |0,0> couple like a spin 1/2 in a field (w, d).
    odd = jnp.exp(-1j * (beta - ph))
    mean, d, w = (5 * beta - ph) / 2, (beta - ph) / 2, np.sqrt(2) * (th - beta)
    length = jnp.sqrt(d**2 + w**2 + 1e-12)
    phase, tilt = jnp.exp(-1j * mean), jnp.sin(length) / length
    upper, lower = phase * (jnp.cos(length) - 1j * d * tilt), phase * (jnp.cos(length) + 1j * d * tilt)
    mixed = -1j * phase * w * tilt / np.sqrt(2)
    direct, swapped = (upper + odd) / 2, (upper - odd) / 2
    entries = jnp.stack([edge, stay, hop, direct, swapped, mixed, lower])
    return jnp.einsum("k,kab->ab", entries, jnp.asarray(PATTERNS))


def act(state, unitary):
    """Act on the leading spins, as many as the unitary has, and move them behind all others."""
    rows = unitary.shape[0]
    n_spins = 1 if rows == 3 else 2

    def on_column(column):
        circuit = tc.QuditCircuit(n_spins, dim=3, inputs=column)
        circuit.any(*range(n_spins), unitary=unitary)
        return circuit.wavefunction()

    return jax.vmap(on_column, 1, 0)(state.reshape(rows, -1)).reshape(-1), None


def turn(state):
    """Move the leading spin behind all others."""
    return state.reshape(3, -1).T.reshape(-1)


def measure(state, matrix):
    """Expectation value of a bond's matrix on the two leading spins; turns on by one."""

    def on_column(column):
        return jnp.real(tc.QuditCircuit(2, dim=3, inputs=column).expectation((matrix, [0, 1])))

    return turn(state), jnp.sum(jax.vmap(on_column, 1)(state.reshape(9, -1)))


def bond_terms(n, beta, anisotropy):
    """Hamiltonian as one matrix per bond (n-1, 9, 9): half of an on-site term to either bond, all of it at the ends."""
    square, one = anisotropy * SZ @ SZ, np.eye(3)
    coupling = TRANSVERSE + LONGITUDINAL + beta * BIQUADRATIC
    left, right = np.full(n - 1, 0.5), np.full(n - 1, 0.5)
    left[0] = right[-1] = 1.0
    terms = [coupling + a * np.kron(square, one) + b * np.kron(one, square) for a, b in zip(left, right, strict=True)]
    return jnp.asarray(np.stack(terms), dtype=jnp.complex64)


def string_factors(n):
    """Matrices (3, n, 3, 3) whose products along the chain are the strings between (0, n-1), (1, n-2), (2, n-3)."""
    factors = np.tile(np.eye(3), (3, n, 1, 1))
    for number in range(3):
        factors[number, number + 1 : n - 1 - number] = np.diag([-1.0, 1.0, -1.0])
        factors[number, [number, n - 1 - number]] = SZ
    return jnp.asarray(factors, dtype=jnp.complex64)


def run_solution(config):
    n, n_layers, steps, beta = config["n_sites"], config["n_layers"], config["max_steps"], config["beta"]
    count, n_even = 3 * n + 2 * (n - 1), n // 2
    initial = config.get("initial_parameters")
    if initial is None:
        rng = np.random.default_rng(config["seed"])
        initial = rng.normal(0.0, config["initial_parameter_scale"], size=n_layers * count)
    start = np.zeros((3,) * n, dtype=np.complex64)
    start[tuple(0 if site % 2 == 0 else 2 for site in range(n))] = 1
    start = jnp.asarray(start.reshape(-1))
    terms = bond_terms(n, beta, config["single_ion_anisotropy"])

    def layer(state, flat):
        turns = jax.vmap(site_unitary)(flat[: 3 * n].reshape(n, 3))
        exponentials = jax.vmap(bond_unitary, (0, None))(flat[3 * n :].reshape(-1, 2), beta)
        pairs = turns[: 2 * n_even].reshape(n_even, 2, 3, 3)
        fused = exponentials[:n_even] @ jax.vmap(jnp.kron)(pairs[:, 0], pairs[:, 1])
        state, _ = jax.lax.scan(act, state, fused)
        if n % 2:
            state, _ = act(state, turns[n - 1])
        state, _ = jax.lax.scan(act, turn(state), exponentials[n_even:])
        return state if n % 2 else turn(state), None

    def final_state(parameters):
        return jax.lax.scan(layer, start, parameters.reshape(n_layers, count), unroll=True)[0]

    def energy_density(parameters):
        return jnp.sum(jax.lax.scan(measure, final_state(parameters), terms)[1]) / n

    optimizer = optax.adam(config["learning_rate"])

    def step(carry, _):
        parameters, moments = carry
        value, gradient = jax.value_and_grad(energy_density)(parameters)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), (value, parameters)

    @jax.jit
    def train(parameters):
        # One evaluation more than there are updates: the last one belongs to the final parameters.
        return jax.lax.scan(step, (parameters, optimizer.init(parameters)), None, length=steps + 1)[1]

    @jax.jit
    def strings(parameters):
        state = final_state(parameters)
        images = jax.vmap(lambda factors: jax.lax.scan(act, state, factors)[0])(string_factors(n))
        return jnp.real(images @ jnp.conj(state)) * np.array([k < n - 1 - k for k in range(3)])

    values, path = train(jnp.asarray(initial, dtype=jnp.float32))
    result = {
        "energy_density_history": values[:steps],
        "final_energy_density": values[steps],
        "final_string_orders": strings(path[steps]),
        "initial_parameters": initial,
        "final_parameters": path[steps],
    }
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.asarray(path)[list(config["checkpoint_steps"])]
    return {key: np.asarray(value, dtype=np.float64) for key, value in result.items()}
