"""Evaluator of `grid-sampling`: exact Z strings and a battery for independent samples of the right distribution."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from orbit.errors import HarnessError
from orbit.physics import sampling_statistics as battery
from orbit.physics.grid import (
    GridCircuit,
    basis_signs,
    conditional_probabilities,
    cut_scores,
    probabilities,
    string_indices,
    turned_by_half,
    z_string_expectations,
)
from orbit.physics.sampling_statistics import TailTest
from orbit.verification.evaluator import (
    ArraySpec,
    Config,
    Evaluation,
    Evaluator,
    Oracle,
    Outputs,
    Run,
    RunKind,
    Tolerance,
    at_least,
    at_most,
)
from orbit.verification.verdict import Evidence

WAVES = (
    *("ry_row_sin", "ry_col_cos", "ry_diag_sin", "rzz_edge_sin", "rzz_site_cos"),
    *("rxx_edge_cos", "rxx_site_sin", "rx_row_cos", "rx_col_sin", "rx_diag_cos"),
)
OFFSETS = ("ry_offset", "rzz_offset", "rxx_offset", "rx_offset")
REJECTED = 1e-10
"""A test of the battery fails below this probability.

Some fifty of them stay far below 1e-5 together, even where a true tail is a hundred times that of the assumed law.
"""
STANDARD_ERRORS = 6.0
"""Room for chance where a published tolerance is closer than that to an honest sampler."""
MIN_ORDER_SAMPLES = 4096
"""Tests of the order of rows rely on sums of many products."""
MIN_EVENTS = 50
"""Events that are expected less often have no normal frequency and count less in Hotelling's tests."""
N_PAIRS, N_PATCHES, N_LONG = 40, 20, 20
PROBE_SIDE, PROBE_SAMPLES, FULL_PROBE_SAMPLES = 4, 4096, 512
PROBE_FACTORS = {"offset": (1.0, 3.0), "scale": (2.0, 4.0), "frequency": (0.7, 1.3)}
FULL_PROBE_FACTORS = dict.fromkeys(PROBE_FACTORS, (0.8, 1.2))
"""Ranges of the factors by which a drawn coefficient differs from the published one."""
SHARP = 3.0
"""A probe's statistic must reject every wrong circuit with so many standard deviations to spare."""
MAX_PROBE_DRAWS = 60


class GridSamplingEvaluator(Evaluator):
    """Samples of a shallow circuit on a square grid."""

    has_parameters = False

    # --- inputs -----------------------------------------------------------------------------------------------

    def initial_parameters(self, config: Config) -> NDArray[np.float64]:
        """There are none."""
        return np.empty(0)

    def draw_timed(self, defaults: Config, rng: np.random.Generator) -> Config:
        """A drawn seed."""
        return {**defaults, "seed": int(rng.integers(1, 2**31))}

    def draw_probe(self, defaults: Config, rng: np.random.Generator, n_steps: int) -> Config:
        """A 4 x 4 grid: offsets 1 to 3 times, scales 2 to 4 times, frequencies 0.7 to 1.3 times the published ones."""
        config = {**defaults, "grid_side": PROBE_SIDE, "n_qubits": PROBE_SIDE**2, "n_samples": PROBE_SAMPLES}
        config |= _scattered(defaults, rng, PROBE_FACTORS)
        return {**config, "seed": int(rng.integers(1, 2**31))}

    def draw_full_probe(self, defaults: Config, rng: np.random.Generator) -> Config:
        """The published size, 512 samples, every coefficient within 20% of its published value."""
        config = {**defaults, "n_samples": FULL_PROBE_SAMPLES, **_scattered(defaults, rng, FULL_PROBE_FACTORS)}
        return {**config, "seed": int(rng.integers(1, 2**31))}

    # --- judgement --------------------------------------------------------------------------------------------

    def result_spec(self, config: Config) -> dict[str, ArraySpec]:
        """The samples."""
        return {"samples": ArraySpec((config["n_samples"], config["n_qubits"]), integer=True, published=True)}

    def invariants(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """Bits are 0 or 1."""
        samples = np.asarray(outputs["samples"])
        strange = int(np.sum((samples != 0) & (samples != 1)))
        return [at_most("binary", strange, 0, "entries that are neither 0 nor 1")]

    def thresholds(self, config: Config, outputs: Outputs) -> list[Evidence]:
        """The published tolerance of single sites; that of drawn strings is among the drawn checks."""
        samples, sites = np.asarray(outputs["samples"]), np.eye(config["n_qubits"], dtype=bool)
        exact = z_string_expectations(grid_circuit(config), sites.reshape(-1, *(config["grid_side"],) * 2))
        return [_worst("single_z", *_errors(config, samples, sites, exact, config["single_z_tolerance"]))]

    def published_criteria(self) -> frozenset[str]:
        """Bits, and the three tolerances."""
        return frozenset({"binary", "single_z", "hidden_z_string_max", "hidden_z_string_mean"})

    def drawn_checks(self, run: Run, outputs: Outputs, rng: np.random.Generator) -> list[Evidence]:
        """The published tolerances of the strings drawn for this judgement, and the battery."""
        config, samples = run.config, np.asarray(outputs["samples"])
        masks = draw_strings(config["grid_side"], strings_rng(samples, rng))
        circuit, flat = grid_circuit(config), masks.reshape(len(masks), -1)
        exact, evidence = z_string_expectations(circuit, masks), []
        if run.kind is RunKind.TIMED:
            hidden = slice(config["n_qubits"], None)
            errors, limits = _errors(
                config, samples, flat[hidden], exact[hidden], config["hidden_z_string_max_tolerance"]
            )
            evidence = [
                _worst("hidden_z_string_max", errors, limits),
                at_most("hidden_z_string_mean", float(errors.mean()), config["hidden_z_string_mean_tolerance"]),
            ]
        if run.kind is not RunKind.PROBE and np.isin(samples, (0, 1)).all():
            rows = exact_rows(circuit, samples, len(samples))
            evidence += [_judged(test) for test in tests_of_samples(samples, flat, exact, rows)]
        return evidence

    def evaluate(self, config: Config, parameters: NDArray[np.float64], *, gradient: bool = False) -> Evaluation:
        """Exact expectation values of the single sites."""
        sites = np.eye(config["n_qubits"], dtype=bool).reshape(-1, config["grid_side"], config["grid_side"])
        return Evaluation({"single_z": z_string_expectations(grid_circuit(config), sites)})

    def histories(self, config: Config) -> dict[str, Tolerance]:
        """There are none."""
        return {}

    def probe_tolerances(self, config: Config) -> dict[str, Tolerance]:
        """Samples are judged together, by their distribution."""
        return {}

    # --- the probe: one grid, three runs with seeds A, A, B ---------------------------------------------------

    def draw_joint_probe(self, defaults: Config, oracle: Oracle, rng: np.random.Generator) -> list[Config]:
        """A small grid on which two runs together tell every wrong circuit of the oracle from the right one."""
        for _ in range(MAX_PROBE_DRAWS):
            first = self.draw_probe(defaults, rng, 0)
            right = _probe_law(first, oracle)
            wrong = (oracle.solve(first, mutation=name)["probabilities"] for name in oracle.mutations)
            if all(right.separation(distribution) > SHARP for distribution in wrong):
                return [first, dict(first), {**first, "seed": int(rng.integers(1, 2**31))}]
        raise HarnessError(f"{MAX_PROBE_DRAWS} draws of the probe in a row cannot tell all wrong circuits apart")

    def judge_joint_probe(
        self, configs: Sequence[Config], outputs: Sequence[Outputs], oracle: Oracle, rng: np.random.Generator
    ) -> list[Evidence]:
        """Chi-square and string tests against the exact distribution; equal seeds repeat, other seeds do not."""
        law = _probe_law(configs[0], oracle)
        distribution = law.distribution
        keys = [string_indices(np.asarray(found["samples"])) for found in outputs]
        counts = [np.bincount(key, minlength=len(distribution)) for key in keys]
        evidence = [
            at_most("probe:seed_repeats", float(np.mean(keys[0] != keys[1])), 0, "rows that differ for one seed"),
            _judged(_equal_rows("probe:seed_differs", keys[0], keys[2], distribution)),
            _judged(battery.two_samples("probe:seed_independent", counts[0], counts[2], distribution)),
            _judged(law.test(counts[0] + counts[2])),
            _judged(battery.chi_square("probe:distribution", counts[0] + counts[2], distribution)),
        ]
        for number in (0, 2):
            found = [battery.chi_square("probe:distribution", counts[number], distribution), law.test(counts[number])]
            signs = 1.0 - 2.0 * np.asarray(outputs[number]["samples"]) - law.means[: configs[0]["n_qubits"]]
            white = battery.whitened(signs)
            found += [_renamed(test) for test in (*battery.block_means(white), *battery.row_correlations(white))]
            evidence += [_judged(test).model_copy(update={"run": f"probe-{number + 1}"}) for test in found]
        return evidence

    # --- exact references -------------------------------------------------------------------------------------

    def exact_keys(self) -> tuple[str, ...]:
        """The circuit."""
        waves = tuple(f"{name}_{part}" for name in WAVES for part in ("scale", "frequency"))
        return ("grid_side", *OFFSETS, *waves)

    def compute_exact(self, config: Config) -> dict[str, float | list[float]]:
        """Expectation values of Z on every site by a boundary contraction of the whole grid."""
        found: list[float] = (
            self.evaluate({**config, "n_qubits": config["grid_side"] ** 2}, np.empty(0))
            .observables["single_z"]
            .tolist()
        )
        return {"single_z": found}


def grid_circuit(config: Config) -> GridCircuit:
    """The angles that the statement gives."""
    side = config["grid_side"]
    row, col = np.mgrid[:side, :side]

    def wave(name: str, argument: NDArray[np.int64]) -> NDArray[np.float64]:
        function = np.sin if name.endswith("sin") else np.cos
        return np.asarray(config[f"{name}_scale"] * function(config[f"{name}_frequency"] * argument))

    horizontal, vertical = row * (side - 1) + col, row * side + col
    ry = wave("ry_row_sin", row + 1) + wave("ry_col_cos", col + 1) + wave("ry_diag_sin", row + col + 2)
    rx = wave("rx_row_cos", row + 1) - wave("rx_col_sin", col + 1) + wave("rx_diag_cos", row + col + 2)
    rzz = wave("rzz_edge_sin", horizontal + 1) + wave("rzz_site_cos", 2 * row + col + 1)
    rxx = wave("rxx_edge_cos", vertical + 1) + wave("rxx_site_sin", row + 2 * col + 1)
    return GridCircuit(
        ry=config["ry_offset"] + ry,
        rzz=config["rzz_offset"] + rzz[:, :-1],
        rxx=config["rxx_offset"] + rxx[:-1],
        rx=config["rx_offset"] + rx,
    )


def strings_rng(samples: NDArray[np.int64], secret: np.random.Generator) -> np.random.Generator:
    """Source of the drawn strings, from the samples and a secret: nobody can choose samples that suit them."""
    digest = hashlib.sha256(np.ascontiguousarray(samples, dtype=np.int8).tobytes()).digest()
    return np.random.default_rng([int.from_bytes(digest), int(secret.integers(2**62))])


def draw_strings(side: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Masks (n, side, side): every site, 40 pairs, 20 rectangles of at least two rows and columns, 20 long strings."""
    n = side**2
    masks = list(np.eye(n, dtype=bool))
    pairs = list(combinations(range(n), 2))
    for index in rng.choice(len(pairs), N_PAIRS, replace=False):
        masks.append(np.isin(np.arange(n), pairs[index]))
    rows, cols = np.mgrid[:side, :side]
    known = {mask.tobytes() for mask in masks}
    while len(masks) < n + N_PAIRS + N_PATCHES + N_LONG:
        if len(masks) < n + N_PAIRS + N_PATCHES:
            height, width = rng.integers(2, 5, size=2)
            top, left = rng.integers(0, side - np.minimum((height, width), side) + 1)
            mask = ((top <= rows) & (rows < top + height) & (left <= cols) & (cols < left + width)).ravel()
        else:
            length = int(rng.integers(n // 4, n // 2 + 1))
            mask = np.isin(np.arange(n), rng.choice(n, length, replace=False))
        if mask.tobytes() not in known:
            known.add(mask.tobytes())
            masks.append(mask)
    return np.array(masks).reshape(-1, side, side)


@dataclass(frozen=True)
class ExactRows:
    """What is known exactly of every sample.

    Attributes:
        probabilities: shape (n,).
        scores: of all straight cuts, shape (n, n_cuts).
        onwards: probability of each bit given those before it, shape (n, n_sites); 1 where no beginning can be rare.
        backwards: that of each bit given those after it, the last bit first.
    """

    probabilities: NDArray[np.float64]
    scores: NDArray[np.float64]
    onwards: NDArray[np.float64]
    backwards: NDArray[np.float64]

    def __getitem__(self, chosen: NDArray[np.int64]) -> ExactRows:
        """Those of some of the samples."""
        return ExactRows(self.probabilities[chosen], self.scores[chosen], self.onwards[chosen], self.backwards[chosen])


def exact_rows(circuit: GridCircuit, samples: NDArray[np.int64], n_samples: int) -> ExactRows:
    """By contraction of the grid for every distinct sample, to be judged by `n_samples` at a time."""
    likely = probabilities(circuit, samples)
    rare = likely <= 2 * battery.RARE_BEGINNING_PAIRS / n_samples
    onwards, backwards = np.ones(samples.shape), np.ones(samples.shape)
    if rare.any():
        onwards[rare] = conditional_probabilities(circuit, samples[rare])
        backwards[rare] = conditional_probabilities(turned_by_half(circuit), samples[rare, ::-1])
    return ExactRows(likely, cut_scores(circuit, samples), onwards, backwards)


def tests_of_samples(
    samples: NDArray[np.int64], masks: NDArray[np.bool_], exact: NDArray[np.float64], rows: ExactRows
) -> list[TailTest]:
    """The battery.

    Args:
        samples: bits, shape (n_samples, n_sites).
        masks: of Z strings, the single sites first, shape (n_strings, n_sites).
        exact: their expectation values.
        rows: what is known of each sample.
    """
    n, n_sites = samples.shape
    centred = battery.parities(samples, masks) - exact
    # A rare event E shows in the features as 4 * (E happens) / sqrt(3), the worst case being that two bits are both 1.
    least = 16 / 3 * MIN_EVENTS / n
    tests = [
        battery.hotelling("hotelling_sites", centred[:, :n_sites], least),
        battery.hotelling("hotelling_all", centred, least),
    ]
    tests += battery.repeated_rows(string_indices(samples), rows.probabilities)
    tests += [
        battery.repeated_beginnings("rare_beginnings", samples, rows.onwards),
        battery.repeated_beginnings("rare_endings", samples[:, ::-1], rows.backwards),
    ]
    if n >= MIN_ORDER_SAMPLES:
        white = battery.whitened(centred[:, :n_sites])
        tests += [battery.hotelling("cut_scores", rows.scores)]
        tests += [*battery.block_means(white), *battery.row_correlations(white)]
    return tests


def _scattered(defaults: Config, rng: np.random.Generator, factors: dict[str, tuple[float, float]]) -> Config:
    """All coefficients of the angles, each multiplied by a factor of its own from the range of its kind."""
    keys = [*OFFSETS, *(f"{name}_{part}" for name in WAVES for part in ("scale", "frequency"))]
    return {key: float(defaults[key] * rng.uniform(*factors[key.rsplit("_", 1)[1]])) for key in keys}


class _ProbeLaw:
    """Means and covariance of all strings of one or two sites under an exact distribution."""

    def __init__(self, n_samples: int, n_qubits: int, distribution: NDArray[np.float64]) -> None:
        self.distribution = distribution
        signs = basis_signs(n_qubits)
        pairs = [signs[:, a] * signs[:, b] for a, b in combinations(range(n_qubits), 2)]
        self._features = np.column_stack([signs, *pairs])
        self._n_samples = n_samples
        self.means = distribution @ self._features
        centred = self._features - self.means
        self._inverse = np.linalg.inv((centred * distribution[:, None]).T @ centred)

    def _squared(self, distribution: NDArray[np.float64]) -> float:
        apart = distribution @ self._features - self.means
        return float(self._n_samples * apart @ self._inverse @ apart)

    def test(self, counts: NDArray[np.int64]) -> TailTest:
        """Distance of the sample means, as chi-square."""
        size = len(self.means)
        statistic = self._squared(counts / counts.sum()) * float(counts.sum()) / self._n_samples
        return battery.two_sided("probe:strings", statistic, size, 2.0 * size, "T^2 of strings of one and two sites")

    def separation(self, distribution: NDArray[np.float64]) -> float:
        """How far beyond the limit a sampler of another distribution is expected, in its standard deviations."""
        size = len(self.means)
        distance = self._squared(distribution)
        limit = float(stats.chi2.isf(REJECTED / 2, size))
        return (size + distance - limit) / float(np.sqrt(2 * size + 4 * distance))


def _probe_law(config: Config, oracle: Oracle) -> _ProbeLaw:
    """The law of two runs; the last one is kept, since a probe is drawn, judged and maybe judged again."""
    key = repr(sorted((name, value) for name, value in config.items() if name != "seed"))
    if key not in _LAWS:
        _LAWS.clear()
        distribution = oracle.solve(config)["probabilities"]
        _LAWS[key] = _ProbeLaw(2 * config["n_samples"], config["n_qubits"], distribution)
    return _LAWS[key]


_LAWS: dict[str, _ProbeLaw] = {}


def _equal_rows(
    name: str, first: NDArray[np.int64], second: NDArray[np.int64], distribution: NDArray[np.float64]
) -> TailTest:
    """Rows that agree at the same place in runs with different seeds, against chance."""
    equal = int(np.sum(first == second))
    chance = float(np.sum(distribution**2))
    probability = float(stats.binom.sf(equal - 1, len(first), chance))
    return TailTest(name, probability, f"{equal} rows agree for two seeds, {chance * len(first):.1f} expected")


def _renamed(test: TailTest) -> TailTest:
    return TailTest(f"probe:{test.name}", test.probability, test.message)


def _judged(test: TailTest) -> Evidence:
    return at_least(test.name, test.probability, REJECTED, f"probability by chance; {test.message}")


def _errors(
    config: Config, samples: NDArray[np.int64], masks: NDArray[np.bool_], exact: NDArray[np.float64], tolerance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Errors of sample means of Z strings, and their limits."""
    errors = np.abs(battery.parities(samples, masks).mean(axis=0) - exact)
    return errors, np.maximum(tolerance, STANDARD_ERRORS * np.sqrt((1 - exact**2) / config["n_samples"]))


def _worst(check: str, errors: NDArray[np.float64], limits: NDArray[np.float64]) -> Evidence:
    index = int(np.argmax(errors / limits))
    return at_most(check, float(errors[index]), float(limits[index]), f"string {index} of {len(errors)}")


EVALUATOR = GridSamplingEvaluator()
