"""Honest PennyLane solutions: nothing of them may fail or be flagged."""

from __future__ import annotations

import textwrap

import pytest

from orbit.verification.static_policy import check_source
from orbit.verification.verdict import Contract, Outcome
from tests.unit.verification.static_policy_helpers import Lists

PENNYLANE = Lists(
    name="pennylane",
    required_imports=("pennylane",),
    companions=("pennylane_lightning",),
    bare_imports=("numpy", "jax", "pennylane", "optax"),
    forbidden_imports=frozenset({"qiskit", "cirq", "tensorcircuit", "mindquantum", "torchquantum", "qulacs"}),
)

SOLUTIONS: list[tuple[str, Lists, str]] = [
    (
        "qnode-jax",
        PENNYLANE,
        """
        import jax
        import jax.numpy as jnp
        import numpy as np
        import optax
        import pennylane as qml

        jax.config.update("jax_enable_x64", True)

        def run_solution(config):
            n = config["n_qubits"]
            dev = qml.device("default.qubit", wires=n)
            H = qml.Hamiltonian([-1.0] * (n - 1), [qml.PauliZ(i) @ qml.PauliZ(i + 1) for i in range(n - 1)])

            @qml.qnode(dev, interface="jax", diff_method="backprop")
            def energy(theta):
                for i in range(n):
                    qml.RY(theta[i, 0], wires=i)
                    qml.RZ(theta[i, 1], wires=i)
                for i in range(n - 1):
                    qml.IsingZZ(theta[i, 2], wires=[i, i + 1])
                return qml.expval(H)

            opt = optax.adam(config["learning_rate"])
            theta = jnp.asarray(config["initial_parameters"]).reshape(n, 3)
            state = opt.init(theta)
            step = jax.jit(jax.value_and_grad(energy))
            history = []
            for _ in range(config["max_steps"]):
                value, grad = step(theta)
                updates, state = opt.update(grad, state, theta)
                theta = optax.apply_updates(theta, updates)
                history.append(value)
            return {"energy_history": np.asarray(history), "final_parameters": np.asarray(theta).ravel()}
        """,
    ),
    (
        "gates-by-name",
        PENNYLANE,
        """
        import numpy as np
        import pennylane as qml

        GATES = {"rx": "RX", "ry": "RY", "rz": "RZ", "rxx": "IsingXX", "ryy": "IsingYY", "rzz": "IsingZZ"}
        CLASSES = {"rx": qml.RX, "rzz": qml.IsingZZ}

        def run_solution(config):
            dev = qml.device("lightning.qubit", wires=4)

            @qml.qnode(dev, diff_method="adjoint")
            def circuit(p):
                for name, *wires, k in config["gate_tape"]:
                    getattr(qml, GATES[name])(p[k], wires=wires)
                    getattr(qml, name.upper())(p[k], wires=wires)
                    getattr(qml, f"Pauli{'XYZ'[k % 3]}")(wires[0])
                    CLASSES.get(name, qml.RX)(p[k], wires=wires)
                return qml.expval(qml.prod(qml.X(0), qml.Z(2)))

            return {"observable_history": np.array([circuit(np.zeros(3))])}
        """,
    ),
    (
        "pennylane-numpy",
        PENNYLANE,
        """
        import pennylane as qml
        from pennylane import numpy as pnp

        def run_solution(config):
            dev = qml.device("default.mixed", wires=2)

            @qml.qnode(dev)
            def f(x):
                qml.QubitChannel([pnp.eye(2)], wires=0)
                qml.ctrl(qml.PauliZ, control=[0])(wires=1)
                m = qml.measure(0)
                qml.cond(m, qml.RZ)(x, wires=1)
                return qml.density_matrix(wires=[0, 1])

            opt = qml.AdamOptimizer(0.02)
            x = pnp.array(0.1, requires_grad=True)
            x, cost = opt.step_and_cost(lambda x: pnp.real(f(x)[0, 0]), x)
            return {"loss_history": pnp.array([cost])}
        """,
    ),
    (
        "tapes",
        PENNYLANE,
        """
        import numpy as np
        import pennylane as qml
        from pennylane import qnode, expval
        from pennylane.ops import Hermitian

        dev = qml.device("default.qubit", wires=3)

        @qml.compile
        @qnode(dev)
        def circuit(x):
            qml.layer(lambda w: qml.SpecialUnitary(w, wires=[0, 1]), 2, np.zeros((2, 15)))
            qml.MultiControlledX(wires=[0, 1, 2])
            return expval(Hermitian(np.eye(2), wires=0))

        def run_solution(config):
            value, grads = circuit(0.1), qml.gradients.param_shift(circuit)
            return {"loss_history": np.array([value]), "ok": np.array(callable(grads))}
        """,
    ),
    (
        "late-names",
        PENNYLANE,
        """
        import functools

        import jax
        import numpy as np
        import pennylane as qml

        jax.config.update("jax_enable_x64", True)
        DEV = qml.device("default.qubit", wires=2)

        @functools.partial(jax.jit, static_argnums=0)
        @qml.qnode(DEV, interface="jax")
        def circuit(n, x):
            qml.RX(x, wires=0)
            return qml.expval(qml.Z(0))

        def eval(x):
            return circuit(2, x)

        def open(chain):
            return chain

        def run_solution(config):
            for step, value in enumerate(map(eval, np.linspace(0, 1, 3))):
                open([step, value])
            return {"energy_history": np.array([float(eval(0.1))])}
        """,
    ),
]


@pytest.mark.parametrize("contract", Contract)
@pytest.mark.parametrize(("lists", "source"), [row[1:] for row in SOLUTIONS], ids=[row[0] for row in SOLUTIONS])
def test_honest_solution_passes_every_rule(lists: Lists, source: str, contract: Contract) -> None:
    text = textwrap.dedent(source).lstrip()
    compile(text, lists.name, "exec")
    evidence = check_source(text.encode(), framework=lists, contract=contract, max_lines=200)
    assert [row.message for row in evidence if row.outcome is not Outcome.PASS] == []
