"""Framework lists and shorthands for the tests of the static policy."""

from __future__ import annotations

from dataclasses import dataclass

from orbit.verification.static_policy import check_source
from orbit.verification.verdict import Contract, Evidence, Outcome


@dataclass(frozen=True)
class Lists:
    """The lists of a framework, cut down to what the snippets need."""

    name: str = "tensorcircuit"
    required_imports: tuple[str, ...] = ("tensorcircuit",)
    companions: tuple[str, ...] = ()
    bare_imports: tuple[str, ...] = ("numpy", "jax", "tensorcircuit", "optax")
    forbidden_imports: frozenset[str] = frozenset({"qiskit", "cirq", "pennylane", "qutip", "azure.quantum", "qulacs"})
    tensor_network_libraries: frozenset[str] = frozenset({"quimb", "cotengra"})


HONEST_HEAD = "import tensorcircuit as tc\nimport numpy as np\nc = tc.Circuit(2)\n"


def check(snippet: str | bytes, contract: Contract = Contract.ORBIT_2, head: str = HONEST_HEAD) -> list[Evidence]:
    source = snippet if isinstance(snippet, bytes) else (head + snippet).encode()
    return check_source(source, framework=Lists(), contract=contract, max_lines=200)


def outcomes(evidence: list[Evidence], outcome: Outcome) -> set[str]:
    return {str(row.check) for row in evidence if row.outcome is outcome}
