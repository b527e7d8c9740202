"""Trusted checks of `kraus-calibration`: two rates of a channel fitted to expectation values of several circuits."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from orbit.errors import HarnessError
from orbit.physics.adam import adam_for
from orbit.physics.channels import Real, asymmetric_flip_transfer, pauli_vector, transfer_matrix
from orbit.physics.dense import plus_state, product_state
from orbit.physics.gates import pauli, rotation
from orbit.verification.evaluator import (
    SCALAR,
    VANISHING,
    ArraySpec,
    Config,
    Evaluation,
    Evaluator,
    Outputs,
    Run,
    Tolerance,
    at_least,
    at_most,
    below,
    draw_checkpoints,
    parameter_specs,
    parameter_tolerances,
)
from orbit.verification.verdict import Evidence

TABLE_LIMIT = 3e-4
RATE_LIMIT = Tolerance(absolute=2e-5)
"""Reported rates against those at the reported logits, and against the trusted trajectory."""
PROBE_RATE_LIMIT = Tolerance(absolute=2e-3)
HISTORY_LIMIT = Tolerance(relative=1e-2, absolute=1e-8)
"""A whole loss history against the trusted one."""
FLOAT32_ALLOWANCE = 1e-5
FAIR_FINAL_ERROR = 1e-4
"""A timed draw is fair if the trusted trajectory ends this close to the true rates."""
MAX_DRAWS = 400
_RANGES = {
    "entangler_angle": (0.25, 0.40),
    "true_p01": (0.02, 0.05),
    "true_p10": (0.005, 0.02),
    "initial_p01": (0.05, 0.09),
    "initial_p10": (0.03, 0.06),
}
_PROBE_RANGES = {"entangler_angle": (0.2, 0.9), **dict.fromkeys(list(_RANGES)[1:], (0.01, 0.2))}


class KrausCalibration(Evaluator):
    """Observables pulled back through two layers of bonds: an exact chain of 4 x 4 matrices at any length."""

    probe_steps = (5, 20)
    gradient_noise = 1e-8

    # --- inputs -----------------------------------------------------------------------------------------------

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """Logits of the initial rates."""
        rates = np.array([config["initial_p01"], config["initial_p10"]], dtype=np.float64)
        return np.asarray(np.log(rates / (1 - rates)))

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published size with other physics, drawn until an exact run of the optimizer finds the rates."""
        for _ in range(MAX_DRAWS):
            config = self._with_start({**defaults, **_drawn(_RANGES, rng)}, rng)
            final = self._trajectory(config)[-1].observables["final_probabilities"]
            if np.abs(final - _true_rates(config)).max() <= FAIR_FINAL_ERROR:
                return config
        raise HarnessError(f"{MAX_DRAWS} draws in a row end farther than {FAIR_FINAL_ERROR} from the true rates")

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """Four to eight qubits, angle and rates drawn in the ranges that the statement gives."""
        n = int(rng.choice((4, 6, 8), p=(0.45, 0.45, 0.1)))  # the oracle's density matrices of eight qubits are slow
        return self._with_start({**defaults, **_drawn(_PROBE_RANGES, rng), "n_qubits": n, "max_steps": n_steps}, rng)

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published size, other physics, three steps."""
        return self._with_start({**defaults, **_drawn(_RANGES, rng), "max_steps": 3}, rng)

    def _with_start(self, config: Config, rng: np.random.Generator) -> Config:
        config["initial_parameters"] = self.initial_parameters(config)
        config["checkpoint_steps"] = draw_checkpoints(config["max_steps"], rng)
        return config

    # --- judgement --------------------------------------------------------------------------------------------

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """The loss history, the fitted rates and table, and the logits."""
        return {
            "loss_history": ArraySpec((config["max_steps"],), published=True),
            "final_probabilities": ArraySpec((2,), published=True),
            "fitted_expectations": ArraySpec((4, config["n_qubits"] + 1), published=True),
            **parameter_specs(config, (2,)),
        }

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """Rates are probabilities, losses are not negative, expectation values lie within the spectrum."""
        rates, table = outputs["final_probabilities"], outputs["fitted_expectations"]
        return [
            at_least("loss_not_negative", float(outputs["loss_history"].min()), 0.0),
            at_least("probabilities_positive", float(rates.min()), float(np.finfo(np.float64).tiny)),
            below("probabilities_below_one", float(rates.max()), 1.0),
            at_most("expectation_bound", float(np.abs(table).max()), 1 + FLOAT32_ALLOWANCE),
        ]

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The loss improves and the rates are found."""
        loss = outputs["loss_history"]
        error = float(np.abs(outputs["final_probabilities"] - _true_rates(config)).max())
        return [
            below("loss_improves", float(loss[-1]), float(loss[0])),
            at_most("probability_error", error, config["probability_absolute_tolerance"], "from the true rates"),
        ]

    def published_criteria(self) -> frozenset[str]:
        """Improvement, possible rates, and the true ones."""
        return frozenset({"loss_improves", "probabilities_positive", "probabilities_below_one", "probability_error"})

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """Loss, rates and table at the given logits."""
        rates = 1 / (1 + np.exp(-parameters))
        target = _table(config, _true_rates(config))[0]
        table, *slopes = _table(config, rates)
        miss = table - target
        observables = {
            "loss_history": float(np.mean(miss**2)),
            "final_probabilities": rates,
            "fitted_expectations": table,
        }
        by_rate = np.array([2 * np.mean(miss * slope) for slope in slopes])
        return Evaluation(observables, by_rate * rates * (1 - rates) if gradient else None)

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """The loss vanishes, so that its tolerance is relative at every size."""
        return {"loss_history": VANISHING}

    def final_parameters(self, config: Config, outputs: Outputs) -> NDArray[np.float64] | None:
        """The logits, or those of the rates where logits are not among the results."""
        if "final_parameters" in outputs:
            return super().final_parameters(config, outputs)
        rates = np.clip(outputs["final_probabilities"], 1e-12, 1 - 1e-12)
        return np.asarray(np.log(rates / (1 - rates)))

    def final_quantities(self, config: Config, outputs: Outputs) -> dict[str, Tolerance]:
        """Rates and table after the last update."""
        return {"final_probabilities": RATE_LIMIT, "fitted_expectations": Tolerance(absolute=TABLE_LIMIT)}

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """A loss that vanishes, physical parameters, expectation values, logits."""
        return {
            "loss_history": VANISHING,
            "final_probabilities": PROBE_RATE_LIMIT,
            "fitted_expectations": SCALAR,
            **parameter_tolerances(config),
        }

    def task_checks(self, run: Run, outputs: Outputs) -> list[Evidence]:
        """With two logits and no random numbers, the whole run is known: history, rates and table."""
        trusted = self._trajectory(run.config)
        losses = np.array([item.observables["loss_history"] for item in trusted[:-1]])
        ratio = HISTORY_LIMIT.distance(outputs["loss_history"], losses) / HISTORY_LIMIT.allowed(losses)
        step = int(np.argmax(ratio))
        message = f"step {step}: {outputs['loss_history'][step]:.9g}, trusted {losses[step]:.9g}, in tolerances"
        evidence = [at_most("trajectory:loss_history", float(ratio[step]), 1.0, message)]
        for key, tolerance in self.final_quantities(run.config, outputs).items():
            expected = trusted[-1].observables[key]
            distance = float(tolerance.distance(outputs[key], expected).max())
            evidence.append(at_most(f"trajectory:{key}", distance, tolerance.absolute, "largest distance"))
        return evidence

    def _trajectory(self, config: Config) -> list[Evaluation]:
        """One evaluation per update, and a last one behind them."""
        parameters = config.get("initial_parameters", self.initial_parameters(config))
        optimizer, found = adam_for(config["learning_rate"]), []
        for _ in range(config["max_steps"]):
            found.append(self.evaluate(config, parameters, gradient=True))
            slope = found[-1].gradient
            assert slope is not None
            parameters = optimizer.update(parameters, slope)
        return [*found, self.evaluate(config, parameters)]

    def exact_keys(self) -> tuple[str, ...]:
        """What the target table depends on."""
        return ("n_qubits", "entangler_angle", "true_p01", "true_p10")

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Target table, input by input, by pulling the observables back through the circuit."""
        return {"target_expectations": _table(config, _true_rates(config))[0].ravel().tolist()}


def _drawn(ranges: dict[str, tuple[float, float]], rng: np.random.Generator) -> dict[str, float]:
    return {key: float(rng.uniform(*limits)) for key, limits in ranges.items()}


def _true_rates(config: Config) -> Real:
    return np.array([config["true_p01"], config["true_p10"]], dtype=np.float64)


# --- expectation values -----------------------------------------------------------------------------------------
#
# Arrays carry a leading axis of three: the value, and its derivatives by p01 and p10. Pulled back through odd bonds,
# an observable is a product over these bonds of 4 x 4 coefficient matrices in the Pauli basis. An even bond couples the
# right leg of one such matrix with the left leg of the next; averaged over an input that is a product over pairs, it is
# a 4 x 4 matrix between them. GHZ is half the sum of four such products, |s...s><t...t|.


def _table(config: Config, rates: Real) -> Real:
    """Expectation values of all inputs and observables with derivatives, shape (3, 4, n+1)."""
    n = config["n_qubits"]
    block = _bond_block(config["entangler_angle"], *rates.tolist())
    vectors, weights = _pair_sectors()
    transfers = np.einsum("sy,kxy->ksx", vectors, block).reshape(3, len(vectors), 4, 4)
    letters = np.concatenate([np.eye(n, dtype=int), np.ones((1, n), dtype=int)])  # 1 where the observable has Z
    ends = np.zeros((2, 4))
    ends[0, 0] = ends[1, 3] = 1
    # Coefficients of an odd bond by whether its observable has a Z on the left and on the right qubit.
    products = np.einsum("ax,by->abxy", ends, ends).reshape(4, 16)
    coefficients = np.einsum("ox,kxy->koy", products, block).reshape(3, 4, 4, 4)
    running = np.zeros((3, n + 1, len(vectors), 4), dtype=np.complex128)
    running[0] = ends[letters[:, 0], None, :]
    for left in range(0, n, 2):
        running = _times("osb,sba->osa", running, transfers)
        if left + 2 < n:
            kind = 2 * letters[:, left + 1] + letters[:, left + 2]
            running = _times("osb,oba->osa", running, coefficients[:, kind])
    values = np.einsum("kosa,oa->kso", running, ends[letters[:, -1]])
    return np.asarray(np.einsum("is,kso->kio", weights, values).real)


def _times(subscripts: str, first: NDArray[np.complex128], second: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Product rule along the leading axes."""
    value = np.einsum(subscripts, first[0], second[0])
    slopes = [np.einsum(subscripts, first[k], second[0]) + np.einsum(subscripts, first[0], second[k]) for k in (1, 2)]
    return np.array([value, *slopes])


def _bond_block(angle: float, p01: float, p10: float) -> Real:
    """Transfer matrix of RXX followed by the channel on both qubits, with derivatives, shape (3, 16, 16)."""
    channel = asymmetric_flip_transfer(p01, p10)
    both = np.array([np.kron(channel[k], channel[0]) for k in range(3)])
    both[1:] += [np.kron(channel[0], channel[k]) for k in (1, 2)]
    return np.asarray(both @ _rxx(angle))


@cache
def _rxx(angle: float) -> Real:
    return transfer_matrix([rotation("XX", angle)])


@cache
def _pair_sectors() -> tuple[NDArray[np.complex128], Real]:
    """Pauli vectors of a pair, one per product that the inputs consist of, and the inputs as sums of them."""
    letters = np.array([pauli(letter) for letter in "IXYZ"])
    sectors = [np.kron(letters[:, t, s], letters[:, t, s]) for s, t in ((0, 0), (1, 1), (0, 1), (1, 0))]
    exchange = (product_state([0, 1]) + product_state([1, 0])) / np.sqrt(2)
    sectors += [pauli_vector(state) for state in (exchange, product_state([0, 0]), plus_state(2))]
    weights = np.zeros((4, 7))
    weights[0, :4] = 0.5
    weights[1, 4] = weights[2, 5] = weights[3, 6] = 1
    return np.array(sectors), weights


EVALUATOR = KrausCalibration()
