"""Adam as the tasks prescribe it (Kingma and Ba, arXiv:1412.6980, algorithm 1), and wrong relatives of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class Adam:
    """First-order optimizer with bias-corrected moment estimates; `update` is applied exactly once per step.

    Attributes:
        learning_rate, beta1, beta2, epsilon: as in the paper.
        bias_correction, adaptive: switched off by the wrong relatives only.
        precision: floating type of moments, powers and updates. In single precision `1 - beta2**t` of the first updates
            is off by 1e-5 of itself, which is what an honest single-precision program computes too.
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    bias_correction: bool = True
    adaptive: bool = True
    precision: type[np.floating[Any]] = np.float64
    _first: NDArray[Any] | None = field(default=None, repr=False)
    _second: NDArray[Any] | None = field(default=None, repr=False)
    _n_updates: int = 0

    def update(self, parameters: NDArray[np.float64], gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """The parameters after one more update; shapes are equal and arbitrary."""
        real = self.precision
        rate, beta1, beta2 = real(self.learning_rate), real(self.beta1), real(self.beta2)
        start, slope = parameters.astype(real), gradient.astype(real)
        if not self.adaptive:
            return np.asarray(start - rate * slope, dtype=np.float64)
        first = np.zeros_like(start) if self._first is None else self._first
        second = np.zeros_like(start) if self._second is None else self._second
        self._n_updates += 1
        count = real(self._n_updates)
        self._first = first = beta1 * first + (real(1) - beta1) * slope
        self._second = second = beta2 * second + (real(1) - beta2) * slope * slope
        if self.bias_correction:
            first = first / (real(1) - beta1**count)
            second = second / (real(1) - beta2**count)
        return np.asarray(start - rate * first / (np.sqrt(second) + real(self.epsilon)), dtype=np.float64)


_WRONG: dict[str, dict[str, Any]] = {
    "sgd": {"adaptive": False},
    "adam_no_bias_correction": {"bias_correction": False},
    "adam_beta1_0.8": {"beta1": 0.8},
    "adam_beta2_0.9": {"beta2": 0.9},
}
MUTATIONS = tuple(_WRONG)
"""Names that `adam_for` understands as wrong optimizers."""


def adam_for(learning_rate: float, mutation: str | None = None, *, single_precision: bool = False) -> Adam:
    """The prescribed optimizer, or the wrong one that `mutation` names; other mutations leave it as it is."""
    precision = np.float32 if single_precision else np.float64
    return Adam(learning_rate, precision=precision, **_WRONG.get(mutation or "", {}))
