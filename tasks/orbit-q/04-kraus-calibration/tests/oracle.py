"""Oracle of `kraus-calibration`: the whole register in the Pauli basis, forward through every gate and channel.

Two wrong variants are absent because the observables of this task cannot tell them from the truth: coherences that the
channel leaves alone (what they feed into a Z string vanishes in all four inputs), and, on many draws, odd bonds first.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from orbit.physics.channels import Real, act, asymmetric_flip, kraus_transfer, pauli_vector, transfer_matrix
from orbit.physics.dense import apply, plus_state, product_state
from orbit.physics.gates import bonds, rotation
from orbit.verification.evaluator import Array, Config, Evaluation, Oracle, Trajectory, trajectory_parameters


class KrausCalibrationOracle(Oracle):
    """Dense density matrices with tangents; the evaluator pulls each observable back through its light cone."""

    mutations = (
        "full_angle",
        "rates_swapped",
        "spectators_too",
        "second_channel_missing",
        "channel_before_gate",
        "parity_left_out",
        "loss_summed",
    )
    noise = (1e-5, 1e-9)

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """Loss against the target table, the fitted table, the probabilities, and the gradient by the logits."""
        chances = 1 / (1 + np.exp(-parameters))
        n, angle = config["n_qubits"], config["entangler_angle"]
        target, _ = _table(n, angle, config["true_p01"], config["true_p10"], mutation)
        table, slopes = _table(n, angle, *chances.tolist(), mutation)
        miss = table - target
        if mutation == "parity_left_out":
            miss[:, -1] = 0
        n_counted = 1 if mutation == "loss_summed" else miss.size
        gradient = 2 * np.einsum("ij,kij->k", miss, slopes) / n_counted * chances * (1 - chances)
        observables = {
            "loss_history": float(np.sum(miss**2)) / n_counted,
            "final_probabilities": chances,
            "fitted_expectations": table,
        }
        return Evaluation(observables, gradient)

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The loss history, and rates and table after the last update."""
        final = trajectory.final.observables
        return {
            "loss_history": trajectory.history("loss_history"),
            "final_probabilities": np.array(final["final_probabilities"]),
            "fitted_expectations": np.array(final["fitted_expectations"]),
            **trajectory_parameters(config, trajectory),
        }


@cache
def _inputs(n: int) -> Real:
    """Pauli vectors of the four inputs, shape (4**n, 4); read-only."""
    zero, one = product_state([0] * n), product_state([1] * n)
    pairs = product_state([k % 2 for k in range(n)])
    exchange = np.eye(4, dtype=np.complex128)[[0, 2, 1, 3]]
    for bond in bonds(n, 0):
        pairs = (pairs + apply(exchange, pairs, bond)) / np.sqrt(2)
    ghz = pauli_vector((zero + one) / np.sqrt(2))
    vectors = np.array([ghz, pauli_vector(pairs), pauli_vector(zero), pauli_vector(plus_state(n))]).T
    vectors.setflags(write=False)
    return vectors


@lru_cache(maxsize=4)
def _table(n: int, angle: float, p01: float, p10: float, mutation: str | None) -> tuple[Real, Real]:
    """Expectation values (4, n+1), and their derivatives by p01 and p10, shape (2, 4, n+1); read-only."""
    channel = kraus_transfer(*asymmetric_flip(p01, p10))
    if mutation == "rates_swapped":
        channel = kraus_transfer(*asymmetric_flip(p10, p01))[[0, 2, 1]]
    gate = transfer_matrix([rotation("XX", angle * (2 if mutation == "full_angle" else 1))])
    # Value and both tangents travel together: the tangents of the channel act on the value.
    vectors = np.zeros((4**n, 3, 4))
    vectors[:, 0] = _inputs(n)
    for parity in (0, 1):
        vectors = _layer(vectors, gate, channel, n, parity, mutation)
    words = [3 * 4 ** (n - 1 - qubit) for qubit in range(n)]
    measured = np.moveaxis(vectors[[*words, sum(words)]], 0, -1)
    measured.setflags(write=False)
    return measured[0], measured[1:]


def _layer(vectors: Real, gate: Real, channel: Real, n: int, parity: int, mutation: str | None) -> Real:
    """RXX and the channel on both its qubits, bond by bond."""
    first, second = channel, channel
    if mutation == "second_channel_missing":
        second = np.array([np.eye(4), np.zeros((4, 4)), np.zeros((4, 4))])
    both = np.array([np.kron(first[0], second[0]), *(np.kron(first[k], second[0]) for k in (1, 2))])
    both[1:] += [np.kron(first[0], second[k]) for k in (1, 2)]
    block = gate @ both if mutation == "channel_before_gate" else both @ gate
    pairs = bonds(n, parity)
    for left, _ in pairs:
        vectors = _moved(block, vectors, left)
    if mutation == "spectators_too":
        for qubit in sorted(set(range(n)) - {qubit for bond in pairs for qubit in bond}):
            vectors = _moved(channel, vectors, qubit)
    return vectors


def _moved(maps: Real, vectors: Real, site: int) -> Real:
    """Value and tangents behind a map with derivatives: `v' = R v` and `t'_k = R t_k + R_k v`."""
    result = act(maps[0], vectors, site)
    for k in (1, 2):
        result[:, k] += act(maps[k], np.ascontiguousarray(vectors[:, 0]), site)
    return result


ORACLE = KrausCalibrationOracle()
