"""Honest TensorCircuit solutions, in the styles people write them: nothing of them may fail or be flagged."""

from __future__ import annotations

import textwrap

import pytest

from orbit.verification.static_policy import check_source
from orbit.verification.verdict import Contract, Outcome
from tests.unit.verification.static_policy_helpers import Lists

SOLUTIONS: dict[str, str] = {
    "scan-vqe": '''
        """Variational ground state by a scanned Adam loop."""

        from functools import partial

        import jax
        import jax.numpy as jnp
        import numpy as np
        import optax
        import tensorcircuit as tc

        jax.config.update("jax_enable_x64", False)
        K = tc.set_backend("jax")
        tc.set_dtype("complex64")
        tc.set_contractor("cotengra-8192-8192")

        def energy(params, n, field):
            c = tc.Circuit(n)
            for i in range(n):
                c.h(i)
            for layer in range(params.shape[0]):
                for i in range(n - 1):
                    c.rzz(i, i + 1, theta=params[layer, i, 0])
                for i in range(n):
                    c.rx(i, theta=params[layer, i, 1])
            value = sum(-c.expectation_ps(z=[i, i + 1]) for i in range(n - 1))
            value -= field * sum(c.expectation_ps(x=[i]) for i in range(n))
            return K.real(value)

        @partial(jax.jit, static_argnums=(1, 3))
        def train(params, n, field, steps):
            optimizer = optax.adam(0.02, b1=0.9, b2=0.999, eps=1e-8)
            step = jax.value_and_grad(energy)

            def body(carry, _):
                params, state = carry
                value, grad = step(params, n, field)
                updates, state = optimizer.update(grad, state)
                return (optax.apply_updates(params, updates), state), value

            return jax.lax.scan(body, (params, optimizer.init(params)), None, length=steps)

        def run_solution(config):
            n, steps = config["n_qubits"], config["max_steps"]
            rng = np.random.default_rng(config["seed"])
            start = rng.normal(scale=0.02, size=(4, n, 2))
            (final, _), history = train(jnp.asarray(start), n, config["transverse_field"], steps)
            return {"energy_history": np.asarray(history), "final_parameters": np.asarray(final)}
        ''',
    "loop-of-steps": """
        import tensorcircuit as tc
        import numpy as np

        K = tc.set_backend("jax")

        def run_solution(config):
            n = int(config["n_qubits"])
            beta1, beta2, eps = 0.9, 0.999, 1e-8

            def loss(theta):
                c = tc.Circuit(n)
                for i in range(n):
                    c.ry(i, theta=theta[2 * i])
                    c.rz(i, theta=theta[2 * i + 1])
                return K.real(c.expectation((tc.gates.z(), [0])))

            vg = K.jit(K.value_and_grad(loss))
            theta = np.asarray(config["initial_parameters"], dtype=np.float32)
            m, v, history = np.zeros_like(theta), np.zeros_like(theta), []
            for t in range(1, config["max_steps"] + 1):
                value, g = vg(K.convert_to_tensor(theta))
                g = np.asarray(g)
                m = beta1 * m + (1 - beta1) * g
                v = beta2 * v + (1 - beta2) * g**2
                theta = theta - config["learning_rate"] * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
                history.append(float(value))
            return {"loss_history": np.array(history), "final_parameters": theta}
        """,
    "gate-tape": """
        import tensorcircuit as tc
        from tensorcircuit import Circuit, gates

        K = tc.set_backend("jax")
        ROTATIONS = ("rx", "ry", "rz")

        def apply(c, tape, params):
            for name, *qubits, p in tape:
                getattr(c, name)(*qubits, theta=params[p])
            return c

        def objective(params, tape, n):
            c = Circuit(n)
            for i in range(n):
                c.H(i)
            c = apply(c, tape, params)
            return K.real(c.expectation([gates.x(), [0]], [gates.z(), [2]]))

        def run_solution(config):
            f = K.jit(K.vmap(K.value_and_grad(lambda p: objective(p, config["gate_tape"], config["n_qubits"]))))
            return {"observable_history": K.numpy(f(config["initial_parameters"])[0])}
        """,
    "einsum-letters": """
        import jax.numpy as jnp
        import tensorcircuit as tc

        def apply_pair(state, gate, i, n):
            letters = [chr(97 + k) for k in range(n)]
            new = letters.copy()
            new[i], new[i + 1] = "A", "B"
            return jnp.einsum("AB" + letters[i] + letters[i + 1] + "," + "".join(letters) + "->" + "".join(new),
                              gate.reshape((2, 2, 2, 2)), state)

        def run_solution(config):
            c = tc.Circuit(config["n_qubits"], inputs=config["state"])
            c.exp1(0, 1, unitary=tc.gates._zz_matrix, theta=0.3)
            return {"state": apply_pair(c.state().reshape([2] * 4), jnp.eye(4), 0, 4)}
        """,
    "settings": """
        import os
        import sys
        import time
        import warnings

        import jax
        import tensorcircuit as tc

        warnings.filterwarnings("ignore")
        sys.setrecursionlimit(10000)
        jax.config.update("jax_platform_name", "cpu")
        tc.set_dtype("complex128")

        def run_solution(config):
            start = time.perf_counter()
            workers = os.cpu_count() or 1
            c = tc.Circuit(3)
            c.h(0)
            print("took", time.perf_counter() - start, "with", workers, file=sys.stderr)
            return {"z": tc.backend.numpy(c.expectation_ps(z=[0]))}
        """,
    "mps": """
        import numpy as np
        import quimb.tensor as qtn
        import tensorcircuit as tc

        K = tc.set_backend("jax")

        def tensors_of(state):
            arrays = [np.asarray(t) for t in state.arrays]
            arrays[0] = arrays[0][None]
            arrays[-1] = arrays[-1][:, None]
            return arrays

        def run_solution(config):
            state: qtn.MatrixProductState = config["dmrg_state"]
            c = tc.MPSCircuit(config["n_qubits"], tensors=tensors_of(state))
            c.set_split_rules({"max_singular_values": 128})
            for i in range(0, config["n_qubits"] - 1, 2):
                c.apply_double_gate(tc.gates.exp1_gate(tc.gates._zz_matrix, theta=0.1), i, i + 1)
            return {"energy_history": np.array([float(K.real(c.norm()))])}
        """,
    "classes": '''
        from __future__ import annotations

        from dataclasses import dataclass, field
        from typing import NamedTuple

        import numpy as np
        import tensorcircuit as tc

        class Point(NamedTuple):
            """A point."""

            r: int
            c: int

        @dataclass
        class Ansatz:
            n: int
            layers: int = 2
            history: list[float] = field(default_factory=list)

            def __post_init__(self):
                self.size = 2 * self.n * self.layers
                self.sites = [Point(r, c) for r in range(7) for c in range(7)]

            def circuit(self, theta) -> "tc.Circuit":
                c = tc.Circuit(self.n)
                for k, i in enumerate(range(self.n)):
                    c.rx(i, theta=theta[k])
                return c

            def load(self, values):
                self.values = values
                return self

            def save(self):
                return self.values

        def run_solution(config):
            ansatz = Ansatz(config["n_qubits"]).load([0.1])
            ansatz.extra = "note"
            ansatz.history.append(1.0)
            setattr(ansatz, "label", "x")
            out = {}
            out["final"] = np.array(ansatz.save())
            out["state"] = np.asarray(ansatz.circuit(np.zeros(99)).state())
            return out
        ''',
    "spin-one": """
        import jax.numpy as jnp
        import numpy as np
        import tensorcircuit as tc

        SQ = 1 / np.sqrt(2.0)
        SX = SQ * np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        SY = SQ * np.array([[0, -1j, 0], [1j, 0, -1j], [0, 1j, 0]])
        SZ = np.diag([1.0, 0.0, -1.0])

        def run_solution(config):
            c = tc.QuditCircuit(config["n_sites"], dim=3)
            ss = sum(np.kron(s, s) for s in (SX, SY, SZ))
            w, v = np.linalg.eigh(ss)
            c.any(0, 1, unitary=jnp.asarray(v @ np.diag(np.exp(-1j * 0.2 * w**2)) @ v.conj().T))
            return {"final_energy_density": np.real(c.wavefunction()[0])}
        """,
    "grid-angles": """
        import numpy as np
        import tensorcircuit as tc

        def run_solution(config):
            side = config["grid_side"]
            c = tc.Circuit(side * side)
            for r in range(side):
                for col in range(side):
                    theta = (0.19 + 0.07 * np.sin(0.83 * (r + 1)) + 0.05 * np.cos(0.61 * (col + 1))
                             + 0.03 * np.sin(0.29 * (r + col + 2)))
                    c.ry(side * r + col, theta=theta)
            for k in range(side * (side - 1)):
                r, col = divmod(k, side - 1)
                theta = 0.31 + 0.09 * np.sin(0.47 * (k + 1)) + 0.06 * np.cos(0.38 * (2 * r + col + 1))
                c.rzz(side * r + col, side * r + col + 1, theta=theta)
                theta = 0.27 + 0.08 * np.cos(0.41 * (k + 1)) + 0.07 * np.sin(0.33 * (r + 2 * col + 1))
                c.rxx(side * r + col, side * r + col + side, theta=theta)
            names = ["ry_row_sin", "ry_col_cos", "ry_diag_sin", "rzz_edge_sin", "rzz_site_cos", "rxx_edge_cos"]
            table = {name: config[f"{name}_scale"] for name in names}
            table["total"] = sum(table.values())
            samples = c.sample(batch=config["n_samples"], allow_state=False, format="sample_bin")
            return {"samples": np.asarray(samples, dtype=np.int64)}
        """,
    "kraus": """
        import jax
        import jax.numpy as jnp
        import numpy as np
        import tensorcircuit as tc

        K = tc.set_backend("jax")

        def channel(p01, p10):
            k0 = jnp.diag(jnp.array([jnp.sqrt(1 - p01), jnp.sqrt(1 - p10)]))
            k1 = jnp.array([[0.0, 1.0], [0.0, 0.0]]) * jnp.sqrt(p10)
            k2 = jnp.array([[0.0, 0.0], [1.0, 0.0]]) * jnp.sqrt(p01)
            return [tc.gates.Gate(k) for k in (k0, k1, k2)]

        def run_solution(config):
            c = tc.DMCircuit(4)
            c.general_kraus(channel(jax.nn.sigmoid(0.1), jax.nn.sigmoid(0.2)), 0)
            key = jax.random.PRNGKey(config.get("seed", 1234))
            key, sub = jax.random.split(key)
            lr = config.get("learning_rate", 0.04)
            return {"loss_history": np.asarray([lr, float(K.real(c.expectation_ps(z=[0])))])}
        """,
    "ode": """
        import diffrax
        import jax
        import jax.numpy as jnp
        import numpy as np
        import tensorcircuit as tc
        from scipy.sparse import linalg as sla

        def run_solution(config):
            term = diffrax.ODETerm(lambda t, y, args: -1j * y)
            solver = diffrax.Dopri5()
            controller = diffrax.PIDController(rtol=config["ode_rtol"], atol=config["ode_atol"])
            c = tc.Circuit(2)
            sol = diffrax.diffeqsolve(term, solver, 0.0, 1.0, 0.1, c.state(), stepsize_controller=controller)
            y = jax.device_get(sol.ys[-1])
            assert sla is not None
            return {"energy_density_history": np.real(np.vdot(y, y)), "t": jnp.asarray(0.5)}
        """,
    "module-aliases": """
        import numpy as np
        import tensorcircuit as tc
        from tensorcircuit import backend as K0
        from jax import numpy as jnp, vmap, jit, lax

        xp = jnp

        def run_solution(config):
            global STATE
            STATE = {}
            xp_local = jnp if config["seed"] else np
            c = tc.Circuit(2)
            STATE["c"] = c
            x = xp.zeros((2, 2)) + xp_local.ones((2, 2))
            y = lax.fori_loop(0, 3, lambda i, a: a + i, x)
            return {"x": np.asarray(vmap(jit(jnp.sum))(y)), "k": np.asarray(K0.real(c.state()[0]))}
        """,
    "local-names-like-builtins": """
        import numpy as np
        import tensorcircuit as tc

        def eval(params):
            return tc.Circuit(2).expectation_ps(z=[0]) * params

        def compile(circuit, open=False, vars=(), input=None):
            dir = len(vars)
            return circuit if open else input, dir

        def run_solution(config):
            vars = [1, 2]
            input = np.ones(2)
            compile(eval(input[0]), open=True, vars=vars)
            license = "MIT"
            return {"x": np.array(vars), "y": input, "license": np.array(len(license))}
        """,
    "memo": """
        import functools
        import itertools
        import math
        from collections import defaultdict

        import numpy as np
        import tensorcircuit as tc

        @functools.lru_cache(maxsize=None)
        def bonds(n, parity):
            return tuple((i, i + 1) for i in range(parity, n - 1, 2))

        def run_solution(config):
            counts = defaultdict(int)
            for a, b in itertools.chain(bonds(6, 0), bonds(6, 1)):
                counts[a] += 1
            run_solution.calls = getattr(run_solution, "calls", 0) + 1
            c = tc.Circuit(6)
            c.cnot(0, 1)
            try:
                norm = float(np.linalg.norm(c.state()))
            except FloatingPointError as error:
                raise ValueError(f"norm failed: {error}") from error
            return {"x": np.array([counts[0], norm, math.pi])}
        """,
    "callback": """
        import gc

        import jax
        import numpy as np
        import tensorcircuit as tc
        from jax.experimental import io_callback, checkify
        from jax.experimental.ode import odeint

        def run_solution(config):
            c = tc.Circuit(1)
            shape = jax.ShapeDtypeStruct((), np.float32)
            u = jax.pure_callback(lambda x: np.float32(x), shape, 0.5)
            y = odeint(lambda y, t: -y, 1.0, np.linspace(0.0, 1.0, 3))
            jax.block_until_ready(y)
            jax.debug.print("u {}", u)
            jax.clear_caches()
            gc.collect()
            return {"x": np.asarray(c.state()).real}
        """,
}


def every_solution() -> list[tuple[str, str]]:
    return [(name, textwrap.dedent(text).lstrip()) for name, text in SOLUTIONS.items()]


@pytest.mark.parametrize("contract", Contract)
@pytest.mark.parametrize(("name", "source"), every_solution(), ids=SOLUTIONS)
def test_honest_solution_passes_every_rule(name: str, source: str, contract: Contract) -> None:
    compile(source, name, "exec")
    evidence = check_source(source.encode(), framework=Lists(), contract=contract, max_lines=200)
    assert [row.message for row in evidence if row.outcome is not Outcome.PASS] == []
