"""Oracle of `grid-sampling`: the exact distribution of a small grid, gate by gate on the full register."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from orbit.physics.dense import Tape, product_state
from orbit.physics.gates import rotation
from orbit.verification.evaluator import Array, Config, Evaluation, Noise, Oracle, Trajectory


class GridSamplingOracle(Oracle):
    """Probabilities of all bit strings; there is nothing to train."""

    mutations = (
        "edges_counted_by_side",
        "edges_counted_from_one",
        "last_row_unlinked",
        "rx_column_sign",
        "rows_and_columns_swapped",
        "edge_layers_swapped",
        "vertical_edges_first",
        "half_angles",
        "last_rotation_missing",
        "qubits_transposed",
    )

    def evaluate(self, config: Config, parameters: NDArray[np.float64], mutation: str | None = None) -> Evaluation:
        """The output distribution, shape (2**n_qubits,)."""
        side, scale = config["grid_side"], 0.5 if mutation == "half_angles" else 1.0
        tape = Tape(product_state([0] * side**2))
        sites = [(row, col) for row in range(side) for col in range(side)]
        for row, col in sites:
            where = (col, row) if mutation == "rows_and_columns_swapped" else (row, col)
            tape.gate(rotation("Y", _ry(config, *where)), [_qubit(side, row, col)])
        layers = [_horizontal(config, mutation), _vertical(config, mutation)]
        for word, edges in layers[::-1] if mutation == "vertical_edges_first" else layers:
            for first, second, angle in edges:
                tape.gate(rotation(word, scale * angle), [first, second])
        if mutation != "last_rotation_missing":
            for row, col in sites:
                tape.gate(rotation("X", _rx(config, row, col, mutation)), [_qubit(side, row, col)])
        distribution = np.abs(tape.state) ** 2
        if mutation == "qubits_transposed":
            order = np.arange(side**2).reshape(side, side).T.ravel()
            distribution = distribution.reshape((2,) * side**2).transpose(order).ravel()
        return Evaluation({"probabilities": distribution})

    def outputs(self, config: Config, trajectory: Trajectory) -> dict[str, Array]:
        """The distribution in place of samples."""
        return {"probabilities": np.asarray(trajectory.final.observables["probabilities"])}

    def solve(self, config: Config, *, noise: Noise | None = None, mutation: str | None = None) -> dict[str, Array]:
        """The distribution; without parameters there are no gradients that noise could move."""
        final = self.evaluate(config, np.empty(0), mutation)
        return self.outputs(config, Trajectory(np.empty((0, 0)), [], final))


def _qubit(side: int, row: int, col: int) -> int:
    return side * row + col


def _wave(config: Config, name: str, argument: float) -> float:
    function = math.sin if name.endswith("sin") else math.cos
    value: float = config[f"{name}_scale"] * function(config[f"{name}_frequency"] * argument)
    return value


def _ry(config: Config, row: int, col: int) -> float:
    angle = config["ry_offset"] + _wave(config, "ry_row_sin", row + 1) + _wave(config, "ry_col_cos", col + 1)
    return float(angle + _wave(config, "ry_diag_sin", row + col + 2))


def _rx(config: Config, row: int, col: int, mutation: str | None) -> float:
    sign = 1 if mutation == "rx_column_sign" else -1
    angle = config["rx_offset"] + _wave(config, "rx_row_cos", row + 1) + sign * _wave(config, "rx_col_sin", col + 1)
    return float(angle + _wave(config, "rx_diag_cos", row + col + 2))


def _rzz(config: Config, number: int, row: int, col: int) -> float:
    wave = _wave(config, "rzz_edge_sin", number + 1) + _wave(config, "rzz_site_cos", 2 * row + col + 1)
    return float(config["rzz_offset"] + wave)


def _rxx(config: Config, number: int, row: int, col: int) -> float:
    wave = _wave(config, "rxx_edge_cos", number + 1) + _wave(config, "rxx_site_sin", row + 2 * col + 1)
    return float(config["rxx_offset"] + wave)


def _horizontal(config: Config, mutation: str | None) -> tuple[str, list[tuple[int, int, float]]]:
    side: int = config["grid_side"]
    edges: list[tuple[int, int, float]] = []
    angle = _rxx if mutation == "edge_layers_swapped" else _rzz
    for row in range(side):
        for col in range(side - 1):
            number = len(edges) + (mutation == "edges_counted_from_one")
            if mutation == "edges_counted_by_side":
                number = side * row + col
            edges.append((_qubit(side, row, col), _qubit(side, row, col + 1), angle(config, number, row, col)))
    return "ZZ", edges


def _vertical(config: Config, mutation: str | None) -> tuple[str, list[tuple[int, int, float]]]:
    side: int = config["grid_side"]
    edges: list[tuple[int, int, float]] = []
    angle = _rzz if mutation == "edge_layers_swapped" else _rxx
    for row in range(side - 1):
        for col in range(side):
            value = angle(config, len(edges) + (mutation == "edges_counted_from_one"), row, col)
            missing = mutation == "last_row_unlinked" and row == side - 2
            edges.append((_qubit(side, row, col), _qubit(side, row + 1, col), 0.0 if missing else value))
    return "XX", edges


ORACLE = GridSamplingOracle()
