"""Oracle of `lightcone-512`: every gate as a Pauli rotation of the dense state of a cone, restarts side by side."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from orbit.physics.cones import Gate, causal_cone
from orbit.verification.evaluator import (
    Array,
    Config,
    Evaluation,
    Noise,
    Oracle,
    Trajectory,
    trajectory_parameters,
)

FALSE_AXES = {"rx": "ry", "ry": "rx", "rxx": "ryy", "ryy": "rxx"}


class LightconeOracle(Oracle):
    """One full vector per cone from the first gate on, each rotation `cos - i sin P` on all amplitudes."""

    mutations = (
        "plus_left_out",
        "coefficient",
        "last_term_missing",
        "one_qubit_axis",
        "two_qubit_axis",
        "full_angles",
        "time_reversed",
        "two_qubit_gradient_dropped",
        "minimized",
        "cloned",
        "first_only",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """The observable of every restart and the gradient of its negative."""
        values, gradient = np.zeros(len(parameters)), np.zeros(parameters.shape)
        if mutation == "cloned":
            parameters = np.broadcast_to(parameters[0], parameters.shape)
        terms = list(config["pauli_terms"])
        if mutation == "coefficient":
            terms[0] = (1.1 * terms[0][0], terms[0][1])
        for coefficient, factors in terms[:-1] if mutation == "last_term_missing" else terms:
            value, slope = _term(config, factors, parameters, mutation)
            values += coefficient * value
            gradient -= coefficient * slope
        if mutation == "minimized":
            gradient = -gradient
        if mutation == "first_only":
            gradient[1:] = 0
        return Evaluation({"observable_history": values}, gradient)

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The history with the restart as leading axis, the parameters."""
        history = np.ascontiguousarray(trajectory.history("observable_history").T)
        return {"observable_history": history, **trajectory_parameters(config, trajectory)}

    def solve(self, config: Config, *, noise: Noise | None = None, mutation: str | None = None) -> dict[str, Array]:
        """Gradients outside the cones are zero without any rounding, so noise spares them."""
        seen = np.zeros(config["parameter_count"], dtype=bool)
        for _, factors in config["pauli_terms"]:
            seen[list(causal_cone(config["gate_tape"], [site for site, _ in factors]).parameters)] = True

        def inside(gradient: NDArray[np.float64]) -> NDArray[np.float64]:
            assert noise is not None
            return np.where(seen, noise(gradient), gradient)

        return super().solve(config, noise=None if noise is None else inside, mutation=mutation)


def _term(
    config: Config, factors: tuple[tuple[int, str], ...], parameters: NDArray[np.float64], mutation: str | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Expectation of a Pauli product at each row of parameters, and its gradient."""
    cone = causal_cone(config["gate_tape"], [site for site, _ in factors])
    place = {site: k for k, site in enumerate(cone.sites)}
    n, gates = len(cone.sites), list(cone.gates)
    if mutation == "time_reversed":
        gates.reverse()
    scale = 2.0 if mutation == "full_angles" else 1.0
    state = np.full((len(parameters), 2**n), 2 ** (-n / 2), dtype=np.complex128)
    if mutation == "plus_left_out":
        state = np.zeros_like(state)
        state[:, 0] = 1
    rotations = [(_image_of(gate, place, n, mutation), gate) for gate in gates]
    for (phases, source), gate in rotations:
        half = scale * parameters[:, gate[-1], None] / 2
        state = np.cos(half) * state - 1j * np.sin(half) * phases * state[:, source]
    phases, source = _pauli_action(n, tuple((place[site], letter.upper()) for site, letter in factors))
    image = phases * state[:, source]
    values = np.einsum("ri,ri->r", state.conj(), image).real
    gradient = np.zeros(parameters.shape)
    for (phases, source), gate in reversed(rotations):
        moved = phases * state[:, source]
        if not (mutation == "two_qubit_gradient_dropped" and len(gate) == 4):
            gradient[:, gate[-1]] += scale * np.einsum("ri,ri->r", image.conj(), moved).imag
        half = scale * parameters[:, gate[-1], None] / 2
        state = np.cos(half) * state + 1j * np.sin(half) * moved
        image = np.cos(half) * image + 1j * np.sin(half) * phases * image[:, source]
    return values, gradient


def _image_of(
    gate: Gate, place: dict[int, int], n: int, mutation: str | None
) -> tuple[NDArray[np.complex128], NDArray[np.int64]]:
    name, sites = gate[0], gate[1:-1]
    if mutation == ("one_qubit_axis", "two_qubit_axis")[len(sites) - 1]:
        name = FALSE_AXES.get(name, name)
    return _pauli_action(n, tuple((place[site], letter) for site, letter in zip(sites, name[1:].upper(), strict=True)))


@cache
def _pauli_action(n: int, factors: tuple[tuple[int, str], ...]) -> tuple[NDArray[np.complex128], NDArray[np.int64]]:
    """Phases and sources with `(P psi)[i] = phases[i] psi[sources[i]]`."""
    index = np.arange(2**n)
    phases, source = np.ones(2**n, dtype=np.complex128), index
    for site, letter in factors:
        bit = (index >> (n - 1 - site)) & 1
        if letter != "Z":
            source = source ^ (1 << (n - 1 - site))
        if letter == "Y":
            phases = phases * np.where(bit == 0, -1j, 1j)
        elif letter == "Z":
            phases = phases * (1 - 2 * bit)
    return phases, source


ORACLE = LightconeOracle()
