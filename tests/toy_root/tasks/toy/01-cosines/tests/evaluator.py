"""Evaluator of the toy task: loss `sum_i w_i cos(p_i) + coupling * p_0 p_1` of three parameters."""

from __future__ import annotations

import numpy as np

from orbit.verification.evaluator import (
    SCALAR,
    ArraySpec,
    Evaluation,
    Evaluator,
    Tolerance,
    at_least,
    below,
    draw_checkpoints,
    parameter_specs,
    parameter_tolerances,
)

WEIGHTS = np.array([1.0, 0.5, -0.7])


class ToyEvaluator(Evaluator):
    def initial_parameters(self, config):
        return np.random.default_rng(config["seed"]).normal(0.5, 0.3, size=3)

    def draw_timed(self, defaults, rng):
        return self._start(dict(defaults, seed=int(rng.integers(2**31))), rng)

    def draw_probe(self, defaults, rng, n_steps):
        config = dict(defaults, max_steps=n_steps, coupling=float(rng.uniform(0.2, 0.5)), seed=int(rng.integers(2**31)))
        return self._start(config, rng)

    def draw_full_probe(self, defaults, rng):
        return self._start(dict(defaults, max_steps=3), rng)

    def _start(self, config, rng):
        config["initial_parameters"] = self.initial_parameters(config)
        config["checkpoint_steps"] = draw_checkpoints(config["max_steps"], rng)
        return config

    def result_spec(self, config):
        return {"loss_history": ArraySpec((config["max_steps"],), published=True), **parameter_specs(config, (3,))}

    def invariants(self, config, outputs):
        return [at_least("loss_bound", float(outputs["loss_history"].min()), -20.0)]

    def thresholds(self, config, outputs):
        return [below("loss_improves", float(outputs["loss_history"][-1]), float(outputs["loss_history"][0]))]

    def published_criteria(self):
        return frozenset({"loss_improves"})

    def evaluate(self, config, parameters, *, gradient=False):
        p, coupling = parameters, config["coupling"]
        value = float(WEIGHTS @ np.cos(p) + coupling * p[0] * p[1])
        slope = -WEIGHTS * np.sin(p) + coupling * np.array([p[1], p[0], 0.0])
        return Evaluation({"loss_history": value}, slope if gradient else None)

    def histories(self, config):
        return {"loss_history": Tolerance(absolute=3e-4)}

    def probe_tolerances(self, config):
        return {"loss_history": SCALAR, **parameter_tolerances(config)}


EVALUATOR = ToyEvaluator()
