from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.analog import (
    AnalogTape,
    ChebyshevPropagator,
    SectorPropagator,
    bounded_pulse,
    exchange,
    z_field,
)
from orbit.physics.hamiltonians import pauli_sum, xxz_staggered

BONDS = ((0, 1), (1, 2), (2, 3))
SIGNS = (1.0, -1.0, 1.0, -1.0)
GENERATORS = (exchange(4, BONDS), z_field(SIGNS))


def random_state(n, seed=0):
    rng = np.random.default_rng(seed)
    state = rng.normal(size=2**n) + 1j * rng.normal(size=2**n)
    return state / np.linalg.norm(state)


def test_generators_are_the_pauli_sums():
    terms = [(1.0, word, bond) for bond in BONDS for word in ("XX", "YY")]
    assert np.array_equal(GENERATORS[0].toarray(), pauli_sum(4, terms).dense())
    assert np.array_equal(GENERATORS[1].toarray(), xxz_staggered(4, 0.0, 0.0, 1.0).dense())
    assert exchange(3, ()).nnz == 0


@pytest.mark.parametrize("kind", [SectorPropagator, ChebyshevPropagator])
@pytest.mark.parametrize("coefficients", [(0.4, -0.7), (3.0, 2.0), (0.0, 0.3), (0.0, 0.0)])
def test_propagators_equal_the_matrix_exponential(kind, coefficients):
    state = random_state(4)
    exponent = sum(c * g.toarray() for c, g in zip(coefficients, GENERATORS, strict=True))
    propagator = kind(GENERATORS, coefficients)
    assert propagator.forward(state) == pytest.approx(expm(-1j * exponent) @ state, abs=1e-12)
    assert propagator.backward(propagator.forward(state)) == pytest.approx(state, abs=1e-12)


@pytest.mark.parametrize("kind", [SectorPropagator, ChebyshevPropagator])
def test_derivatives_equal_central_differences(kind):
    state, coefficients, step = random_state(4), np.array([0.8, -1.1]), 1e-5
    for k, derivative in enumerate(kind(GENERATORS, coefficients).derivatives(state)):
        shift = step * np.eye(2)[k]
        above = kind(GENERATORS, coefficients + shift).forward(state)
        below = kind(GENERATORS, coefficients - shift).forward(state)
        assert derivative == pytest.approx((above - below) / (2 * step), abs=1e-9)


def test_chebyshev_keeps_the_norm_at_full_size():
    n = 14
    generators = (exchange(n, tuple((i, i + 1) for i in range(n - 1))), z_field((1.0, -1.0) * (n // 2)))
    state = random_state(n)
    evolved = ChebyshevPropagator(generators, (0.5, 0.5)).forward(state)
    assert np.linalg.norm(evolved) == pytest.approx(1, abs=1e-12)
    twice = ChebyshevPropagator(generators, (0.25, 0.25))
    assert twice.forward(twice.forward(state)) == pytest.approx(evolved, abs=1e-12)


def test_bounded_pulse_and_its_slopes():
    pulse = bounded_pulse((0.0, 0.5, -2.0), 0.1, 0.5)
    assert (pulse.time, pulse.coupling, pulse.detuning) == pytest.approx((0.3, np.tanh(0.5), np.tanh(-2.0)))
    for k, name in enumerate(("time", "coupling", "detuning")):
        shift = 1e-6 * np.eye(3)[k]
        above, below = (bounded_pulse(np.array([0.0, 0.5, -2.0]) + s, 0.1, 0.5) for s in (shift, -shift))
        assert pulse.slopes[k] == pytest.approx((getattr(above, name) - getattr(below, name)) / 2e-6, abs=1e-8)
    assert bounded_pulse((-800.0, 0.0, 0.0), 0.1, 0.5).time == pytest.approx(0.1)


def test_tape_gradient_of_an_evolution():
    hamiltonian = xxz_staggered(4, 0.7, 1.1, 0.25)

    def energy(x):
        tape = AnalogTape(random_state(4))
        # The first parameter enters both coefficients, as a duration does.
        tape.evolve(ChebyshevPropagator(GENERATORS, (x[0] * x[1], 0.3 * x[0])), ([(0, x[1]), (1, x[0])], [(0, 0.3)]))
        cotangent = hamiltonian.apply(tape.state)
        return hamiltonian.expectation(tape.state), tape.gradient(2, [(tape.position, cotangent)])

    point = np.array([0.9, -0.6])
    for k in range(2):
        shift = 1e-5 * np.eye(2)[k]
        numeric = (energy(point + shift)[0] - energy(point - shift)[0]) / 2e-5
        assert energy(point)[1][k] == pytest.approx(numeric, abs=1e-8)
