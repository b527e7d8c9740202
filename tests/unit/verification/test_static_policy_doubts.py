"""What is flagged for a person to look at: nominal use of the framework, hidden data, decisions by size.

Each table of what must be flagged stands beside one of honest code that looks alike and must not be.
"""

from __future__ import annotations

import textwrap

import pytest

from orbit.verification.static_policy import stage
from orbit.verification.verdict import Contract, Outcome, StageStatus
from tests.unit.verification.static_policy_helpers import check, outcomes

HEAD = (
    "import numpy as np\nimport jax\nimport jax.numpy as jnp\nimport tensorcircuit as tc\nK = tc.set_backend('jax')\n"
)
PLAIN = "def run_solution(config):\n    state = jnp.ones(4)\n    return {'x': np.asarray(state)}\n"
UNREACHED = "can be reached from run_solution"
DISCARDED = "is discarded"

NOMINAL: dict[str, tuple[str, str]] = {
    "at the top": (UNREACHED, "tc.Circuit(1).h(0)\n" + PLAIN),
    "kept at the top": (UNREACHED, "c = tc.Circuit(1)\nc.h(0)\n" + PLAIN),
    "in a function never called": (UNREACHED, "def unused():\n    return tc.Circuit(1).state()\n" + PLAIN),
    "in functions that call each other only": (
        UNREACHED,
        "def a():\n    return b()\ndef b():\n    a()\n    return tc.Circuit(1).state()\n" + PLAIN,
    ),
    "as a base of a class never used": (UNREACHED, "class C(tc.Circuit):\n    pass\n" + PLAIN),
    "in a lambda never called": (UNREACHED, "f = lambda n: tc.Circuit(n).state()\n" + PLAIN),
    "run_solution of another module": (UNREACHED, "c = tc.Circuit(1)\nfrom jax.numpy import sum as run_solution\n"),
    "statement": (DISCARDED, "def run_solution(config):\n    tc.Circuit(1).h(0)\n    return {}\n"),
    "statement with the right size": (
        DISCARDED,
        "def run_solution(config):\n    n = config['n_qubits']\n    tc.Circuit(n).h(0)\n    return {'x': np.ones(n)}\n",
    ),
    "name never read": (
        DISCARDED,
        "def run_solution(config):\n    n = int(config['n_qubits'])\n    c = tc.Circuit(n)\n    c.h(0)\n"
        "    s = c.state()\n    return {'x': np.ones(n)}\n",
    ),
    "printed": (
        DISCARDED,
        "def run_solution(config):\n    x = jnp.ones(4)\n    print(tc.Circuit(1), x)\n"
        "    return {'x': np.asarray(x)}\n",
    ),
    "helper": (
        DISCARDED,
        "def run_solution(config):\n    tc.quantum.PauliStringSum2Dense([[1]])\n    return {'x': np.ones(3)}\n",
    ),
    "own function whose value nobody takes": (
        DISCARDED,
        "def nominal(n):\n    c = tc.Circuit(n)\n    return c.state()\n"
        "def run_solution(config):\n    nominal(2)\n    return {'x': np.ones(3)}\n",
    ),
    "inside a function that hands out something else": (
        DISCARDED,
        "def energy(p):\n    c = tc.Circuit(2)\n    c.rx(0, theta=p)\n    return jnp.cos(p)\n"
        "def run_solution(config):\n    return {'x': np.asarray(jax.jit(energy)(0.1))}\n",
    ),
    "in the branch of a loop": (
        DISCARDED,
        "def run_solution(config):\n    out = []\n    for k in range(config['max_steps']):\n        tc.Circuit(1)\n"
        "        out.append(jnp.cos(k))\n    return {'x': np.array(out)}\n",
    ),
    "in a nested function never called": (
        DISCARDED,
        "def run_solution(config):\n    def f():\n        return tc.Circuit(1).state()\n    return {'x': np.ones(3)}\n",
    ),
}

USED: dict[str, str] = {
    "returned": "def run_solution(config):\n    return {'x': np.asarray(tc.Circuit(2).state())}\n",
    "changed in a helper": """
        def apply(c, n):
            for i in range(n):
                c.h(i)

        def run_solution(config):
            c = tc.Circuit(config["n_qubits"])
            apply(c, config["n_qubits"])
            return {"x": np.asarray(c.state())}
        """,
    "filled from inside": """
        def run_solution(config):
            history = []

            def loss(p):
                c = tc.Circuit(2)
                c.rx(0, theta=p)
                return K.real(c.expectation_ps(z=[0]))

            step = jax.value_and_grad(loss)

            def record(p):
                history.append(float(step(p)[0]))

            for _ in range(config["max_steps"]):
                record(0.1)
            return {"x": np.array(history)}
        """,
    "by nonlocal": """
        def run_solution(config):
            value = None

            def work():
                nonlocal value
                value = tc.Circuit(2).state()

            work()
            return {"x": np.asarray(value)}
        """,
    "in a method": """
        class Ansatz:
            def __init__(self, n):
                self.c = tc.Circuit(n)

            def run(self):
                self.c.h(0)
                return self.c.state()

        def run_solution(config):
            return {"x": np.asarray(Ansatz(2).run())}
        """,
    "in a property of an own class": """
        class Own(tc.Circuit):
            @property
            def z(self):
                return self.expectation_ps(z=[0])

        def run_solution(config):
            return {"x": np.asarray(Own(2).z)}
        """,
    "in a table of functions": """
        def one(n):
            return tc.Circuit(n).state()

        TABLE = {"one": one}

        def run_solution(config):
            return {"x": np.asarray(TABLE[config["kind"]](2))}
        """,
    "through a lambda": """
        make = lambda n: tc.Circuit(n)

        def run_solution(config):
            return {"x": np.asarray(jax.vmap(lambda p: make(2).expectation_ps(z=[0]) * p)(np.ones(2)))}
        """,
    "scanned": """
        def run_solution(config):
            def step(carry, _):
                c = tc.Circuit(2, inputs=carry)
                c.h(0)
                return c.state(), None

            final, _ = jax.lax.scan(step, jnp.ones(4) / 2, None, length=config["max_steps"])
            return {"x": np.asarray(final)}
        """,
    "made by a decorator": """
        def circuit(f):
            def inner(n):
                c = tc.Circuit(n)
                f(c)
                return c.state()
            return inner

        @circuit
        def bell(c):
            c.h(0)
            c.cnot(0, 1)

        def run_solution(config):
            return {"x": np.asarray(bell(2))}
        """,
    "partial": """
        import functools

        def solve(kind, config):
            return {"x": np.asarray(tc.Circuit(2).state())}

        run_solution = functools.partial(solve, "plain")
        """,
    "decides a branch": """
        def run_solution(config):
            out = np.zeros(2)
            if tc.Circuit(1).measure(0)[0] > 0:
                out[0] = 1
            return {"x": out}
        """,
    "drives a loop": """
        def run_solution(config):
            out = []
            for q in tc.Circuit(2).expectation_before():
                out.append(q)
            return {"x": np.array(out)}
        """,
    "kept in a module's table": """
        CACHE = {}

        def fill(n):
            CACHE[n] = tc.Circuit(n)

        def run_solution(config):
            fill(2)
            return {"x": np.asarray(CACHE[2].state())}
        """,
    "edges of a network": """
        def run_solution(config):
            nodes = [tc.gates.Gate(np.eye(2)) for _ in range(2)]
            nodes[0][0] ^ nodes[1][0]
            return {"x": np.asarray(tc.quantum.QuOperator([nodes[0][1]], [nodes[1][1]]).eval())}
        """,
    "by an exception": """
        def run_solution(config):
            try:
                x = tc.Circuit(2).state()
                raise ValueError(x)
            except ValueError as error:
                return {"x": np.asarray(error.args[0])}
        """,
    "generator": """
        def states(n):
            for k in range(n):
                yield tc.Circuit(2).state()

        def run_solution(config):
            return {"x": np.array([s for s in states(3)])}
        """,
}


def snippet(text: str) -> str:
    return textwrap.dedent(text).lstrip()


@pytest.mark.parametrize(("reason", "text"), NOMINAL.values(), ids=NOMINAL)
def test_nominal_use_of_the_framework_is_flagged(reason: str, text: str) -> None:
    evidence = check(text, head=HEAD)
    rows = [row for row in evidence if row.check == "required_framework_called"]
    assert [row.outcome for row in rows] == [Outcome.FLAG]
    assert reason in rows[0].message
    assert stage(evidence).status is StageStatus.FLAGGED


@pytest.mark.parametrize("contract", Contract)
@pytest.mark.parametrize("text", USED.values(), ids=USED)
def test_use_of_the_framework_that_reaches_the_result_passes(text: str, contract: Contract) -> None:
    evidence = check(snippet(text), contract, head=HEAD)
    assert [row.message for row in evidence if row.outcome is not Outcome.PASS] == []


def _words(count: int, shape: str) -> str:
    return ", ".join(shape.format(k * 7919 % 99991) for k in range(count))


DATA: dict[str, str] = {
    "list of names": "x = [" + ", ".join("oi"[k % 3 % 2] for k in range(65)) + "]",
    "many short lists of names": "\n".join("x = [" + ", ".join("o" * 60) + "]" for _ in range(9)),
    "set of calls": "x = {" + ", ".join("o()" for _ in range(65)) + "}",
    "argument list of names": "x = f(" + ", ".join("o" * 65) + ")",
    "comparison": "x = " + " < ".join("oi"[k % 3 % 2] for k in range(66)),
    "disjunction": "x = " + " or ".join("oi"[k % 3 % 2] for k in range(65)),
    "formatted string": "x = f'" + "{o}{i}" * 33 + "'",
    "assignment chain": " = ".join(f"x{k}" for k in range(66)) + " = o",
    "parameters": f"def f({_words(65, 'q{:05d}')}): pass",
    "keywords": f"x = dict({_words(65, 'k{:05d}=o')})",
    "imported names": f"from numpy import {_words(65, 'a{:05d}')}",
    "global names": f"def f():\n    global {_words(65, 'q{:05d}')}",
    "fields": "class D:\n" + "".join(f"    q{k * 7919 % 99991:05d}: int\n" for k in range(60)),
    "functions": "".join(f"def q{k * 7919 % 99991:05d}(): pass\n" for k in range(60)),
    "enum": f"import enum\nD = enum.Enum('D', '{' '.join(f'a{k:04d}' for k in range(70))}')",
    "digits in a string": "x = '" + "7" * 400 + "'",
    "different names, all read": "\n".join(f"a{k}, b{k} = b{k}, a{k}" for k in range(151)),
    "long names": "\n".join(f"x.{'a' * 100}{k}" for k in range(6)),
    "long integer": "x = " + "7" * 1200,
    "long integer in hexadecimal": "x = 0x" + "7" * 400,
    "several long integers": "\n".join("x = " + "7" * 100 for _ in range(5)),
}

HONEST_DATA: dict[str, str] = {
    "pauli words": "x = (" + ", ".join(f"'{a}{b}'" for a in "IXYZ" for b in "IXYZ") + ")",
    "matrices": "\n".join("m = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]" for _ in range(5)),
    "results": "r = {" + ", ".join(f"'quantity_{name}': c" for name in "abcdefghijklmnopqrst") + "}",
    "masks": "seed = 0xFFFFFFFFFFFFFFFF\nlarge = 2**127 - 1\nkey = 18446744073709551615",
    "types": "\n".join("x = np.zeros(3, dtype='complex64')" for _ in range(20)),
    "settings": "f(" + ", ".join(f"option_{name}=c" for name in "abcdefghijklmnopqrst") + ")",
    "variables": "\n".join(f"v{k} = c\nw = v{k}" for k in range(90)),
    "table of gates": "g = {" + ", ".join(f"'{name}': tc.gates" for name in "abcdefghijklmnopqrstuvwxyz") + "}",
}


@pytest.mark.parametrize("text", DATA.values(), ids=DATA)
def test_data_without_literals_is_flagged(text: str) -> None:
    evidence = check(text)
    assert "bulk_data" in outcomes(evidence, Outcome.FLAG)
    assert not outcomes(evidence, Outcome.FAIL)


@pytest.mark.parametrize("text", HONEST_DATA.values(), ids=HONEST_DATA)
def test_honest_tables_and_names_pass(text: str) -> None:
    evidence = check(text)
    assert [row.message for row in evidence if row.outcome is not Outcome.PASS] == []


S = "config['max_steps']"
N = "config['n_qubits']"
DECISIONS: dict[str, str] = {
    "min": f"x = min({S}, 200)",
    "min of a list": f"x = min([{S}, 200])",
    "max": f"x = max({S}, 5)",
    "np.minimum": f"x = np.minimum({S}, 200)",
    "np.clip": f"x = np.clip({S}, 1, 200)",
    "np.where by name": f"s = {S}\nx = np.where(s > 20, 1, 0)",
    "if": f"if {S} > 20:\n    x = 1",
    "if, turned round": f"x = 1 if 20 < {S} else 0",
    "the full-size probe": f"if {S} == 3:\n    x = 1",
    "one of several": f"if {S} in (3, 400):\n    x = 1",
    "float": f"x = {S} > 20.5",
    "by get": "x = config.get('max_steps', 1) > 20",
    "by a variable": f"steps = int({S})\nif steps >= 20:\n    x = 1",
    "by several variables": f"n, steps = {N}, {S}\nk = steps\nwhile k > 20:\n    x = 1",
    "by a walrus": f"if (k := {S}) and k > 20:\n    x = 1",
    "by a constant": f"LIMIT = 10 * 2\nif {S} > LIMIT:\n    x = 1",
    "by a built key": "key = 'max_' + 'steps'\nif config[key] > 20:\n    x = 1",
    "by arithmetic": f"x = {S} // 2 > 20",
    "as text": f"x = str({S}) == '200'",
    "by an operator": f"import operator\nx = operator.gt({S}, 20)",
    "by a method": f"x = int({S}).__gt__(20)",
    "by an argument": f"def f(a, b):\n    return b > 20\nx = f(1, {S})",
    "by a named argument": f"def f(a, b):\n    return b > 20\nx = f(1, b={S})",
    "by an unpacked argument": "def f(max_steps, **rest):\n    return max_steps > 20\nx = f(**config)",
    "by an attribute": f"class A:\n    def f(self):\n        self.s = {S}\n    def g(self):\n        x = self.s > 20",
    "by a namespace": "x = f(**config).max_steps > 20",
    "by a closure": f"def g():\n    s = {S}\n    def h():\n        return s > 20\n    return h",
    "match": f"match {S}:\n    case 200:\n        x = 1",
    "qubits": f"if {N} > 16:\n    x = 1",
    "qubits exactly": f"n = {N}\nx = n == 20",
    "sites": "x = config['n_sites'] >= 13",
    "side": "side = config['grid_side']\nx = 100 < side",
}

HONEST_DECISIONS: dict[str, str] = {
    "parity": f"n = {N}\nif n % 2 == 0:\n    x = 1",
    "parity of steps": f"for k in range({S}):\n    x = k % 50 == 0",
    "tiny size": f"n = {N}\nif n < 2 or n <= 4:\n    x = 1",
    "no steps": f"steps = {S}\nif steps == 0 or steps < 1:\n    x = max(steps, 1)",
    "default": "steps = config.get('max_steps', 400)\nif steps < 1:\n    x = 1",
    "default by condition": f"steps = {S} if 'max_steps' in config else 400\nif steps < 1:\n    x = 1",
    "loop variable": f"for k in range({S}):\n    x = k > 20",
    "last step": f"steps = {S}\nfor k in range(steps):\n    x = k == steps - 1 or min(k + 20, steps)",
    "sizes of each other": f"n, depth = {N}, config['n_layers']\nx = min(n, depth) if n > depth else min(n // 2, 16)",
    "layers": "x = config['n_layers'] > 20",
    "bond dimension": f"x = min(2 ** ({N} // 2), 128)",
    "edges": "side = config['grid_side']\nfor r in range(side):\n    x = r + 1 < side and r > 0",
    "chunks": f"x = range(0, {S}, 50)",
    "a float": "x = config['learning_rate'] > 20",
    "other text": "x = config['kind'] == '200'",
    "argument of another call": f"def f(a, b):\n    return b > 20\nx = f({S}, 1)",
}


@pytest.mark.parametrize("contract", Contract)
@pytest.mark.parametrize("text", DECISIONS.values(), ids=DECISIONS)
def test_decision_by_size_is_flagged(text: str, contract: Contract) -> None:
    evidence = check(f"config = f()\n{text}", contract)
    assert outcomes(evidence, Outcome.FLAG) == {"size_decision"}
    assert not outcomes(evidence, Outcome.FAIL)


@pytest.mark.parametrize("text", HONEST_DECISIONS.values(), ids=HONEST_DECISIONS)
def test_honest_question_about_a_size_passes(text: str) -> None:
    evidence = check(f"config = f()\n{text}")
    assert [row.message for row in evidence if row.outcome is not Outcome.PASS] == []
