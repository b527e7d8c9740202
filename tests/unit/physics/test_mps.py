import numpy as np
import pytest

from orbit.physics import mps
from orbit.physics.dense import apply, product_state, transition
from orbit.physics.gates import TWO_QUBIT_WORDS, bonds, hermitian_exponential, pauli
from orbit.physics.hamiltonians import ising_ground_energy, xxz_staggered


def random_layers(n, n_layers, rng):
    words = [pauli(word) for word in TWO_QUBIT_WORDS]
    return [
        {bond: hermitian_exponential(words, rng.normal(size=15).tolist())[0] for bond in bonds(n, number % 2)}
        for number in range(n_layers)
    ]


def test_product_state_and_dense_amplitudes():
    assert np.array_equal(mps.dense_state(mps.product_mps([0, 1, 1])), product_state([0, 1, 1]))
    assert np.array_equal(mps.dense_state(mps.product_mps([2, 0], 3)), product_state([2, 0], 3))


def test_random_states_are_normalized_with_uneven_bonds_and_no_canonical_form():
    tensors = mps.random_mps(10, 6, np.random.default_rng(0))
    sizes = [tensor.shape[2] for tensor in tensors]
    assert np.linalg.norm(mps.dense_state(tensors)) == pytest.approx(1, abs=1e-12)
    assert len(set(sizes[1:-2])) > 1
    assert max(sizes) <= 6
    isometric = [np.allclose(np.einsum("lpr,lps->rs", t.conj(), t), np.eye(t.shape[2]), atol=1e-3) for t in tensors]
    assert not any(isometric)


def test_overlap_equals_the_dense_one():
    rng = np.random.default_rng(1)
    bra, ket = mps.random_mps(7, 4, rng), mps.random_mps(7, 5, rng)
    assert mps.overlap(bra, ket) == pytest.approx(np.vdot(mps.dense_state(bra), mps.dense_state(ket)), abs=1e-13)


def test_layers_act_as_on_the_dense_state_and_nothing_is_cut():
    rng = np.random.default_rng(2)
    tensors, layers = mps.random_mps(6, 3, rng), random_layers(6, 3, rng)
    dense = mps.dense_state(tensors)
    for layer in layers:
        tensors = mps.apply_layer(tensors, layer)
        for bond, matrix in layer.items():
            dense = apply(matrix, dense, bond)
    assert mps.dense_state(tensors) == pytest.approx(dense, abs=1e-12)
    for layer in reversed(layers):
        tensors = mps.apply_layer(tensors, mps.adjoint(layer))
    assert mps.overlap(tensors, tensors).real == pytest.approx(1, abs=1e-10)


def test_a_product_gate_leaves_the_bond_alone():
    tensors = mps.apply_layer(mps.product_mps([0, 0]), {(0, 1): np.kron(pauli("X"), pauli("Y"))})
    assert tensors[0].shape == (1, 2, 1)
    assert mps.dense_state(tensors) == pytest.approx(1j * product_state([1, 1]))


def test_transitions_equal_the_dense_ones():
    rng = np.random.default_rng(3)
    bra, ket, layers = mps.random_mps(5, 4, rng), mps.random_mps(5, 3, rng), random_layers(5, 3, rng)
    amplitude, transitions = mps.circuit_transitions(bra, ket, layers)
    flat = [(number, bond, matrix) for number, layer in enumerate(layers) for bond, matrix in layer.items()]
    for index, (number, bond, _) in enumerate(flat):
        lower = mps.dense_state(ket)
        for _, sites, matrix in flat[:index]:
            lower = apply(matrix, lower, sites)
        upper = mps.dense_state(bra)
        for _, sites, matrix in reversed(flat[index + 1 :]):
            upper = apply(matrix.conj().T, upper, sites)
        assert transitions[number][bond] == pytest.approx(transition(upper, lower, bond), abs=1e-12)
        assert np.trace(layers[number][bond] @ transitions[number][bond]) == pytest.approx(amplitude, abs=1e-12)


def test_quimb_states_are_read_by_index_name():
    quimb = pytest.importorskip("quimb.tensor")
    tensors = mps.random_mps(6, 4, np.random.default_rng(4))
    state = mps.to_quimb(tensors)
    assert isinstance(state, quimb.MatrixProductState)
    assert np.asarray(state.to_dense()).ravel() == pytest.approx(mps.dense_state(tensors), abs=1e-13)
    for site, tensor in enumerate(tensors):
        assert state[site].inds[int(site > 0)] == f"k{site}"
        outer_left, outer_right = site == 0, site == 5
        assert state[site].shape == tensor.shape[outer_left : 3 - outer_right]
    for site in range(6):  # turn the axes of every tensor around
        state[site].transpose_(*reversed(state[site].inds))
    state.exponent = 1.0
    assert mps.dense_state(mps.from_quimb(state)) == pytest.approx(10 * mps.dense_state(tensors), abs=1e-12)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ORBIT_CACHE_DIR", str(tmp_path))
    return tmp_path / "dmrg"


def test_dmrg_finds_ground_states_and_is_computed_once(cache, monkeypatch):
    field = mps.DmrgProblem((0.0, 0.0, -1.0), ((-1.05, 0.0),) * 8, chi=8, sweeps=6, tolerance=1e-9, seed=1)
    tensors, energy = mps.dmrg_state(field)
    assert energy == pytest.approx(ising_ground_energy(8, 1.05), abs=1e-6)
    monkeypatch.setattr(mps, "_run_dmrg", lambda problem: pytest.fail("computed again"))
    again, same = mps.dmrg_state(field)
    assert same == energy
    assert all(np.array_equal(one, other) for one, other in zip(tensors, again, strict=True))
    assert len(list(cache.iterdir())) == 1


def test_dmrg_state_belongs_to_the_hamiltonian_and_depends_on_the_problem_alone(cache):
    n = 8
    fields = tuple((0.0, 0.2 * (-1) ** site) for site in range(n))
    problem = mps.DmrgProblem((1.0, 1.0, 1.4), fields, chi=16, sweeps=6, tolerance=1e-9, seed=2)
    tensors, energy = mps.dmrg_state(problem)
    hamiltonian = xxz_staggered(n, 1.0, 1.4, 0.2)
    dense = mps.dense_state(tensors)
    assert np.linalg.norm(dense) == pytest.approx(1, abs=1e-12)
    assert hamiltonian.expectation(dense) == pytest.approx(energy, abs=1e-9)
    assert energy == pytest.approx(hamiltonian.ground_energy(), abs=1e-6)
    (cache / f"{problem.digest}.npz").unlink()
    repeated, _ = mps.dmrg_state(problem)
    assert all(np.array_equal(one, other) for one, other in zip(tensors, repeated, strict=True))
    assert problem.digest != mps.DmrgProblem((1.0, 1.0, 1.4), fields, 16, 6, 1e-9, seed=3).digest


def test_compression_keeps_the_largest_schmidt_values():
    state = mps.random_mps(8, 6, np.random.default_rng(3), min_bond=6)
    assert [tensor.shape[2] for tensor in state] == [2, 4, 6, 6, 6, 4, 2, 1]
    exact = mps.dense_state(state)
    assert abs(np.vdot(mps.dense_state(mps.compress(state, 6)), exact)) == pytest.approx(1, abs=1e-12)
    # With one cut that binds, the best approximation is known: the largest Schmidt values of that cut.
    pair = mps.random_mps(4, 4, np.random.default_rng(4), min_bond=4)
    left, values, right = np.linalg.svd(mps.dense_state(pair).reshape(4, 4))
    best = (left[:, :2] * values[:2]) @ right[:2] / np.linalg.norm(values[:2])
    compressed = mps.compress(pair, 2)
    assert [tensor.shape[2] for tensor in compressed] == [2, 2, 2, 1]
    assert abs(np.vdot(mps.dense_state(compressed), best)) == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(mps.dense_state(compressed)) == pytest.approx(1, abs=1e-12)
