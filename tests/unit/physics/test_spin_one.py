import numpy as np
import pytest
from scipy.linalg import expm

from orbit.physics.dense import product_state
from orbit.physics.spin_one import (
    BIQUADRATIC,
    HEISENBERG,
    LONGITUDINAL,
    SX,
    SY,
    SZ,
    TRANSVERSE,
    bilinear_biquadratic,
    bond_exponential,
    site_rotation,
    string_order,
    string_orders,
)


def test_spin_algebra():
    assert np.allclose(SX @ SY - SY @ SX, 1j * SZ)
    assert np.allclose(SX @ SX + SY @ SY + SZ @ SZ, 2 * np.eye(3))
    # S.S of two spins 1 is -2, -1 or 1 for total spin 0, 1, 2.
    assert np.allclose(np.linalg.eigvalsh(HEISENBERG), [-2] + 3 * [-1] + 5 * [1])


def test_gates_are_matrix_exponentials():
    assert np.allclose(site_rotation(0.3, 0.4, 0.5)[0], expm(-0.5j * SZ) @ expm(-0.4j * SY) @ expm(-0.3j * SZ))
    exponent = 0.3 * TRANSVERSE + 0.7 * LONGITUDINAL + 0.2 * BIQUADRATIC
    assert np.allclose(bond_exponential(0.3, 0.7, 0.2)[0], expm(-1j * exponent))


def test_aklt_chain():
    """At beta = 1/3 every bond projects on total spin 2: ground energy -2/3 a bond, fourfold on an open chain."""
    n = 5
    values, vectors = np.linalg.eigh(bilinear_biquadratic(n, 1 / 3, 0.0).dense())
    assert np.allclose(values[:4], -2 / 3 * (n - 1))
    assert values[4] > values[3] + 0.1
    # In the bulk of the AKLT state the string order is -4/9 in this sign convention; ends are mixed here, so average.
    mean = np.mean([string_order(vectors[:, k].astype(complex), 1, 3) for k in range(4)])
    assert mean == pytest.approx(-4 / 9, abs=0.05)


def test_string_of_the_neel_state():
    neel = product_state([0, 2, 0, 2], 3)
    assert string_order(neel, 0, 3) == pytest.approx(-1)
    assert string_order(neel, 0, 1) == pytest.approx(-1)
    assert string_order(neel, 0, 2) == pytest.approx(-1)
    assert string_order(neel, 0, 2, with_middle=False) == pytest.approx(1)
    assert string_orders(neel, 4).tolist() == pytest.approx([-1, -1, 0])
