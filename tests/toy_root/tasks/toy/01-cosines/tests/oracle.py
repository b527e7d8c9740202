"""Oracle of the toy task."""

from __future__ import annotations

import numpy as np

from orbit.verification.evaluator import Evaluation, Oracle, trajectory_parameters

WEIGHTS = np.array([1.0, 0.5, -0.7])


def value_and_gradient(config, p, mutation=None):
    coupling = -config["coupling"] if mutation == "coupling_sign" else config["coupling"]
    value = WEIGHTS @ np.cos(p) + coupling * p[0] * p[1]
    gradient = -WEIGHTS * np.sin(p) + coupling * np.array([p[1], p[0], 0.0])
    return float(value), gradient


class ToyOracle(Oracle):
    mutations = ("coupling_sign",)

    def evaluate(self, config, parameters, mutation=None):
        value, gradient = value_and_gradient(config, parameters, mutation)
        return Evaluation({"loss_history": value}, gradient)

    def outputs(self, config, trajectory):
        return {"loss_history": trajectory.history("loss_history"), **trajectory_parameters(config, trajectory)}


ORACLE = ToyOracle()
