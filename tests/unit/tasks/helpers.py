"""What the tests of all tasks need."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from orbit.tasks import Task
from orbit.verification.evaluator import Evaluator, Outputs, Run, RunKind
from orbit.verification.functional import judge
from orbit.verification.probes import compare, draw_probe, single_precision_noise
from orbit.verification.verdict import Contract, Evidence, Outcome


def central_differences(
    function: Callable[[NDArray[np.float64]], float], point: NDArray[np.float64], step: float = 1e-5
) -> NDArray[np.float64]:
    """Gradient of a real function, good to about 1e-9 for functions of order one."""
    gradient = np.empty(point.shape)
    for index in np.ndindex(point.shape):
        shift = np.zeros(point.shape)
        shift[index] = step
        gradient[index] = (function(point + shift) - function(point - shift)) / (2 * step)
    return gradient


def failed(evidence: Iterable[Evidence]) -> set[str]:
    """Names of the checks that failed."""
    return {item.check for item in evidence if item.outcome is Outcome.FAIL}


def judged(
    evaluator: Evaluator, config: dict, outputs: Outputs, *, kind=RunKind.TIMED, contract=Contract.ORBIT_2
) -> list[Evidence]:
    """All functional checks of stored outputs, without a paired reference."""
    run = Run(kind, kind.value, config)
    return judge(evaluator, run, outputs, contract=contract, rng=np.random.default_rng(0))


def single_precision_failures(task: Task, seed: int) -> list[Evidence]:
    """What a probe holds against the oracle itself, run with noisy gradients and reported in single precision.

    The noise is the model that conditioned the draw, so this cannot show that the model is large enough; only real
    solutions can, as in the integration tests.
    """
    evaluator, oracle = task.load_evaluator(), task.load_oracle()
    rng = np.random.default_rng(seed)
    probe = draw_probe(evaluator, oracle, dict(task.config), rng, name=f"draw-{seed}", long=seed % 2 == 1)
    outputs = oracle.solve(probe.run.config, noise=single_precision_noise(oracle, rng))
    single = {key: np.asarray(value, dtype=np.float32) for key, value in outputs.items()}
    return [item for item in compare(evaluator, probe, single) if item.outcome is Outcome.FAIL]
