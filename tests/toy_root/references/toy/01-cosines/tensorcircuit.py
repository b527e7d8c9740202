"""Reference of the toy task."""

import numpy as np


def run_solution(config):
    weights, coupling, rate = np.array([1.0, 0.5, -0.7]), config["coupling"], config["learning_rate"]
    start = config.get("initial_parameters")
    if start is None:
        start = np.random.default_rng(config["seed"]).normal(0.5, 0.3, size=3)
    p, m, v, history, path = np.array(start), np.zeros(3), np.zeros(3), [], []
    for step in range(1, config["max_steps"] + 1):
        path.append(p)
        history.append(weights @ np.cos(p) + coupling * p[0] * p[1])
        gradient = -weights * np.sin(p) + coupling * np.array([p[1], p[0], 0.0])
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        p = p - rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    result = {"loss_history": np.array(history), "initial_parameters": np.array(start), "final_parameters": p}
    if "checkpoint_steps" in config:
        result["checkpoint_parameters"] = np.array(path)[list(config["checkpoint_steps"])]
    return result
