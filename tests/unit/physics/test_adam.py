import numpy as np
import pytest

from orbit.physics.adam import MUTATIONS, Adam, adam_for


def test_hand_worked_case():
    """Two updates with gradients 2 and -1 from 0.5, learning rate 0.1, worked by hand."""
    optimizer = Adam(0.1)
    first = optimizer.update(np.array([0.5]), np.array([2.0]))
    assert first[0] == pytest.approx(0.4, abs=1e-9)  # the first move is the learning rate against the sign
    second = optimizer.update(first, np.array([-1.0]))
    m = (0.9 * 0.2 + 0.1 * -1) / (1 - 0.81)
    v = (0.999 * 0.004 + 0.001 * 1) / (1 - 0.999**2)
    assert second[0] == pytest.approx(first[0] - 0.1 * m / (np.sqrt(v) + 1e-8), abs=1e-12)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_every_wrong_optimizer_differs_within_three_updates(mutation):
    right, wrong = adam_for(0.1), adam_for(0.1, mutation)
    a = b = np.array([0.5])
    apart = 0.0
    for gradient in (0.3, -0.2, 0.9):
        a, b = right.update(a, np.array([gradient])), wrong.update(b, np.array([gradient]))
        apart = max(apart, abs(a[0] - b[0]))
    assert apart > 1e-3


def test_a_physics_mutation_leaves_the_optimizer_alone():
    assert adam_for(0.1, "wrong_sign") == Adam(0.1)


def test_single_precision_keeps_close_and_is_told_apart():
    double, single = adam_for(0.1), adam_for(0.1, single_precision=True)
    a = b = np.array([0.5, -0.3])
    for k in range(12):
        gradient = np.array([np.sin(k + 1.0), np.cos(3.0 * k)])
        a, b = double.update(a, gradient), single.update(b, gradient)
    assert 1e-9 < np.abs(a - b).max() < 1e-4
    assert b.dtype == np.float64
