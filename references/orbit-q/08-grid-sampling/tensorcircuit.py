"""Reference of `grid-sampling` in TensorCircuit-NG.

The qubits are measured one after another in row-major order, and a qubit is prepared only when it is needed. Each gate
commutes with all gates of its own kind, so before qubit q is measured only the gates on q, q + 1, ..., q + side + 1 and
on qubits that are gone already must have acted: RZZ on both horizontal edges of q + side, then RXX between q and
q + side. A circuit on a window of side + 2 qubits with a mid-circuit measurement of its first one draws exactly from
the output distribution. Every step is the same circuit with other angles, so one of them is compiled.
"""

import jax
import jax.numpy as jnp
import numpy as np
import tensorcircuit as tc

tc.set_backend("jax")
tc.set_dtype("complex64")


def grid_angles(config):
    """Angles of RY and RX by site, of RZZ by the left site of its edge and of RXX by the upper one; 0 for no edge."""
    side = config["grid_side"]
    row, col = np.mgrid[:side, :side]
    horizontal, vertical = row * (side - 1) + col, row * side + col

    def wave(name, function, argument):
        return config[f"{name}_scale"] * function(config[f"{name}_frequency"] * argument)

    ry = config["ry_offset"] + wave("ry_row_sin", np.sin, row + 1) + wave("ry_col_cos", np.cos, col + 1)
    ry = ry + wave("ry_diag_sin", np.sin, row + col + 2)
    rzz = config["rzz_offset"] + wave("rzz_edge_sin", np.sin, horizontal + 1)
    rzz = rzz + wave("rzz_site_cos", np.cos, 2 * row + col + 1)
    rxx = config["rxx_offset"] + wave("rxx_edge_cos", np.cos, vertical + 1)
    rxx = rxx + wave("rxx_site_sin", np.sin, row + 2 * col + 1)
    rx = config["rx_offset"] + wave("rx_row_cos", np.cos, row + 1) - wave("rx_col_sin", np.sin, col + 1)
    rx = rx + wave("rx_diag_cos", np.cos, row + col + 2)
    return [angle.ravel() for angle in (ry, np.where(col < side - 1, rzz, 0), np.where(row < side - 1, rxx, 0), rx)]


def run_solution(config):
    side, n, n_samples = config["grid_side"], config["n_qubits"], config["n_samples"]
    ry, rzz, rxx, rx = grid_angles(config)
    width = side + 2
    # Step q prepares qubit q + side + 1 and measures qubit q; before qubit 0 and beyond qubit n - 1 there is nothing.
    lead = width - 1
    angles = np.stack(
        [
            np.concatenate([ry, np.zeros(lead)]),
            np.concatenate([[0], rzz, np.zeros(lead - 1)]),
            np.concatenate([np.zeros(lead), rxx]),
            np.concatenate([np.zeros(lead), rx]),
        ],
        axis=1,
    )

    def measure_first(window, angle, uniform):
        """One step on the window's amplitudes; the last qubit is fresh, the first one leaves."""
        circuit = tc.Circuit(width, inputs=window)
        circuit.ry(width - 1, theta=angle[0])
        circuit.rzz(width - 2, width - 1, theta=angle[1])
        circuit.rxx(0, width - 2, theta=angle[2])
        circuit.rx(0, theta=angle[3])
        outcome = circuit.cond_measurement(0, status=uniform)
        left = circuit.state().reshape(2, -1)[outcome]
        left = left / jnp.linalg.norm(left)
        return jnp.stack([left, jnp.zeros_like(left)], axis=-1).reshape(-1), outcome

    def step(windows, inputs):
        angle, key = inputs
        uniforms = jax.random.uniform(key, (n_samples,))
        windows, outcomes = jax.vmap(measure_first, in_axes=(0, None, 0))(windows, angle, uniforms)
        return windows, outcomes.astype(jnp.int8)

    @jax.jit
    def sample(angles, key):
        windows = jnp.zeros((n_samples, 2**width), dtype=jnp.complex64).at[:, 0].set(1)
        return jax.lax.scan(step, windows, (angles, jax.random.split(key, n + lead)))[1]

    bits = sample(jnp.asarray(angles, dtype=jnp.float32), jax.random.key(config["seed"]))
    return {"samples": np.asarray(bits[lead:].T, dtype=np.int64)}
