"""Adam as the tasks prescribe it (Kingma and Ba, arXiv:1412.6980, algorithm 1), and wrong relatives of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MUTATIONS = ("sgd", "adam_no_bias_correction", "adam_beta1_0.8", "adam_beta2_0.9")
"""Names that `adam_for` understands as wrong optimizers."""


@dataclass
class Adam:
    """First-order optimizer with bias-corrected moment estimates; `update` is applied exactly once per step."""

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    bias_correction: bool = True
    adaptive: bool = True
    _first: NDArray[np.float64] | None = field(default=None, repr=False)
    _second: NDArray[np.float64] | None = field(default=None, repr=False)
    _n_updates: int = 0

    def update(self, parameters: NDArray[np.float64], gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """The parameters after one more update; shapes are equal and arbitrary."""
        if not self.adaptive:
            return parameters - self.learning_rate * gradient
        first = np.zeros_like(parameters) if self._first is None else self._first
        second = np.zeros_like(parameters) if self._second is None else self._second
        self._n_updates += 1
        self._first = first = self.beta1 * first + (1 - self.beta1) * gradient
        self._second = second = self.beta2 * second + (1 - self.beta2) * gradient**2
        if self.bias_correction:
            first = first / (1 - self.beta1**self._n_updates)
            second = second / (1 - self.beta2**self._n_updates)
        return parameters - self.learning_rate * first / (np.sqrt(second) + self.epsilon)


def adam_for(learning_rate: float, mutation: str | None = None) -> Adam:
    """The prescribed optimizer, or the wrong one that `mutation` names; other mutations leave it as it is."""
    match mutation:
        case "sgd":
            return Adam(learning_rate, adaptive=False)
        case "adam_no_bias_correction":
            return Adam(learning_rate, bias_correction=False)
        case "adam_beta1_0.8":
            return Adam(learning_rate, beta1=0.8)
        case "adam_beta2_0.9":
            return Adam(learning_rate, beta2=0.9)
        case _:
            return Adam(learning_rate)
