"""Honest TorchQuantum and MindQuantum solutions: nothing of them may fail or be flagged."""

from __future__ import annotations

import textwrap

import pytest

from orbit.frameworks import all_frameworks
from orbit.paths import data_root
from orbit.verification.static_policy import check_source
from orbit.verification.verdict import Contract, Outcome
from tests.unit.verification.static_policy_helpers import Lists

TORCHQUANTUM = Lists(
    name="torchquantum",
    required_imports=("torchquantum",),
    bare_imports=("numpy", "torch", "torchquantum"),
    forbidden_imports=frozenset({"qiskit", "cirq", "tensorcircuit", "mindquantum", "pennylane"}),
)
MINDQUANTUM = Lists(
    name="mindquantum",
    required_imports=("mindquantum",),
    bare_imports=("numpy", "scipy", "mindquantum"),
    forbidden_imports=frozenset({"qiskit", "cirq", "tensorcircuit", "pennylane", "torchquantum"}),
)

SOLUTIONS: list[tuple[str, Lists, str]] = [
    (
        "quantum-module",
        TORCHQUANTUM,
        """
        import numpy as np
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        import torchquantum as tq
        import torchquantum.functional as tqf

        torch.set_num_threads(8)
        torch.manual_seed(0)
        torch.set_default_dtype(torch.float32)
        torch.backends.cudnn.deterministic = True

        class Model(tq.QuantumModule):
            def __init__(self, n):
                super().__init__()
                self.n_wires = n
                self.encoder = tq.GeneralEncoder([{"input_idx": [0], "func": "ry", "wires": [0]}])
                self.rx = nn.ModuleList([tq.RX(has_params=True, trainable=True) for _ in range(n)])
                self.measure = tq.MeasureAll(tq.PauliZ)

            def forward(self, dev):
                dev.reset_states(1)
                for k, gate in enumerate(self.rx):
                    gate(dev, wires=k)
                tqf.cnot(dev, wires=[0, 1])
                return self.measure(dev)

        def run_solution(config):
            model = Model(config["n_qubits"])
            dev = tq.QuantumDevice(n_wires=config["n_qubits"], bsz=1, device="cpu")
            optimizer = torch.optim.Adam(model.parameters(), lr=config["learning_rate"], betas=(0.9, 0.999), eps=1e-8)
            losses = []
            for _ in range(config["max_steps"]):
                optimizer.zero_grad()
                loss = F.softplus(model(dev)).sum()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            model.eval()
            with torch.no_grad():
                final = torch.cat([p.flatten() for p in model.parameters()]).detach().cpu().numpy()
            return {"loss_history": np.array(losses), "final_parameters": final}
        """,
    ),
    (
        "functional-gates",
        TORCHQUANTUM,
        """
        import numpy as np
        import torch
        import torchquantum as tq
        from torchquantum.functional import rx, rzz, func_name_dict
        from torchquantum.measurement import expval_joint_analytical

        def apply(dev, tape, params):
            for name, *wires, k in tape:
                getattr(tq.functional, name.lower() if False else "ry")(dev, wires=wires, params=params[k])
                func_name_dict[name](dev, wires=wires, params=params[k : k + 1])

        def run_solution(config):
            params = torch.tensor(np.asarray(config["initial_parameters"]), requires_grad=True)
            dev = tq.QuantumDevice(n_wires=3)
            apply(dev, config["gate_tape"], params)
            rx(dev, wires=0, params=params[0])
            rzz(dev, wires=[0, 1], params=params[1])
            value = expval_joint_analytical(dev, "ZZI")
            grad, = torch.autograd.grad(value.sum(), params)
            params.data -= 0.01 * grad
            params.grad = None
            dev.states = dev.states.clone()
            return {"energy_history": value.detach().numpy()}
        """,
    ),
    (
        "torch-func",
        TORCHQUANTUM,
        """
        import torch
        import torchquantum as tq
        from torch.func import grad_and_value, vmap

        @torch.compile
        def matmul(a, b):
            return a @ b

        def run_solution(config):
            dev = tq.QuantumDevice(n_wires=2)
            tq.QuantumState(n_wires=2)
            tq.h(dev, wires=0) if hasattr(tq, "h") else tq.functional.hadamard(dev, wires=0)
            state = dev.get_states_1d()
            f = vmap(grad_and_value(lambda t: (t * t).sum()))
            g, v = f(torch.zeros(3, 4))
            return {"loss_history": v.numpy(), "state": matmul(state.conj(), state.T).real.numpy()}
        """,
    ),
    (
        "encoder-strings",
        TORCHQUANTUM,
        """
        import numpy as np
        import torch
        import torchquantum as tq

        PAULIS = ("IX", "IY", "IZ", "XI", "XX", "XY", "XZ", "YI", "YX", "YY", "YZ", "ZI", "ZX", "ZY", "ZZ")
        MATRICES = {
            "I": [[1, 0], [0, 1]], "X": [[0, 1], [1, 0]], "Y": [[0, -1j], [1j, 0]], "Z": [[1, 0], [0, -1]],
        }

        def word(name):
            a, b = (torch.tensor(MATRICES[letter], dtype=torch.complex64) for letter in name)
            return torch.kron(a, b)

        def run_solution(config):
            generators = torch.stack([word(name) for name in PAULIS])
            theta = torch.zeros(15, requires_grad=True)
            unitary = torch.matrix_exp(-1j * torch.einsum("k,kab->ab", theta.to(torch.complex64), generators))
            dev = tq.QuantumDevice(n_wires=2)
            tq.functional.qubitunitary_strict(dev, wires=[0, 1], params=unitary)
            vars_ = {k: v for k, v in config.items() if k != "seed"}
            return {"loss_history": np.array([float(len(vars_))]), "state": dev.states.abs().detach().numpy()}
        """,
    ),
    (
        "star-import",
        MINDQUANTUM,
        """
        import numpy as np
        from mindquantum import *
        from mindquantum.core.gates import RX, RY, RZ, X
        from mindquantum.simulator import Simulator
        from scipy.optimize import minimize

        def run_solution(config):
            n = config["n_qubits"]
            circ = Circuit()
            for i in range(n):
                circ += RY(f"a{i}").on(i)
                circ += RZ({f"b{i}": 2}).on(i)
            circ += X.on(0, [1, 2])
            ham = Hamiltonian(QubitOperator("Z0 Z1", -1.0) + QubitOperator("X0", 0.5))
            sim = Simulator("mqvector", n)
            grad_ops = sim.get_expectation_with_grad(ham, circ)
            theta = np.asarray(config["initial_parameters"], dtype=float)
            m = v = np.zeros_like(theta)
            history = []
            for k in range(1, config["max_steps"] + 1):
                f, g = grad_ops(theta)
                f, g = float(np.real(f[0, 0])), np.real(g[0, 0])
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
                theta = theta - config["learning_rate"] * m / (1 - 0.9**k) / (np.sqrt(v / (1 - 0.999**k)) + 1e-8)
                history.append(f)
            return {"energy_history": np.array(history), "final_parameters": theta}
        """,
    ),
    (
        "feedback",
        MINDQUANTUM,
        """
        from dataclasses import dataclass

        import numpy as np
        from mindquantum.core import gates as G
        from mindquantum.core.circuit import Circuit
        from mindquantum.core.parameterresolver import ParameterResolver as PR
        from mindquantum.simulator import Simulator

        @dataclass(frozen=True)
        class Layer:
            ry: np.ndarray
            feedback: tuple[float, float]

            @property
            def n(self) -> int:
                return len(self.ry)

            def __eq__(self, other: "Layer") -> bool:
                return self.__class__ is other.__class__ and np.allclose(self.ry, other.ry)

        def branch(sim, qubit, u):
            rho = sim.get_partial_trace([q for q in range(4) if q != qubit])
            return int(u >= rho[0, 0].real)

        def run_solution(config):
            sim = Simulator("mqvector", 4)
            layer = Layer(np.full(4, 0.1), (0.2, 0.3))
            for q in range(layer.n):
                sim.apply_gate(getattr(G, "RY")(PR({"t": 1.0})).on(q), {"t": layer.ry[q]})
            outcome = branch(sim, 0, config["trajectory_uniforms"][0, 0, 0])
            sim.apply_circuit(Circuit([G.Rzz(layer.feedback[outcome]).on([0, 1])]))
            return {"energy_history": np.array([np.vdot(sim.get_qs(), sim.get_qs()).real])}
        """,
    ),
    (
        "channels",
        MINDQUANTUM,
        """
        import numpy as np
        import mindquantum as mq
        from mindquantum.core.gates import KrausChannel, UnivMathGate, Measure
        from mindquantum.core.operators import Hamiltonian, QubitOperator
        from mindquantum.core.circuit import Circuit, UN, pauli_word_to_circuits

        def run_solution(config):
            sim = mq.Simulator("mqmatrix", 3, seed=int(config["seed"]))
            circ = UN(mq.gates.H, 3) + Circuit([KrausChannel("amp", [np.eye(2), np.zeros((2, 2))]).on(0)])
            circ += UnivMathGate("su4", np.eye(4)).on([0, 1])
            circ += Measure("m0").on(0)
            sim.apply_circuit(circ)
            rho = sim.get_qs()
            z = [sim.get_expectation(Hamiltonian(QubitOperator(f"Z{i}"))).real for i in range(3)]
            return {"fitted_expectations": np.array(z), "trace": np.trace(rho).real}
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


def test_every_reference_passes_under_the_real_lists() -> None:
    judged = 0
    for framework in all_frameworks():
        for path in sorted(data_root().glob(f"references/*/*/{framework.name}.py")):
            for contract in Contract:
                evidence = check_source(path.read_bytes(), framework=framework, contract=contract, max_lines=200)
                assert [row.message for row in evidence if row.outcome is not Outcome.PASS] == [], path
            judged += 1
    assert judged


def test_real_frameworks_forbid_each_other() -> None:
    frameworks = all_frameworks()
    for framework in frameworks:
        for other in frameworks:
            source = f"import {other.import_name} as q\nq.Circuit(2)\n".encode()
            evidence = check_source(source, framework=framework, contract=Contract.ORBIT_2, max_lines=200)
            failed = {row.check for row in evidence if row.outcome is Outcome.FAIL}
            assert ("other_framework_import" in failed) is (framework.name != other.name), (framework.name, other.name)
