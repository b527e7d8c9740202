"""Reading a file, counting its lines, and never failing on any bytes."""

from __future__ import annotations

import ast
import random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from orbit.verification.static_policy import check_source, effective_lines, stage
from orbit.verification.verdict import Contract, FailureMode, Outcome
from tests.unit.verification.static_policy_helpers import Lists
from tests.unit.verification.test_static_policy_cheats import FAILS, FLAGS
from tests.unit.verification.test_static_policy_honest import every_solution

LINES: list[tuple[str, int, int]] = [
    # source, lines under orbit-2, lines under orbit-q-1
    ("", 0, 0),
    ("x = 1\n", 1, 1),
    ("x = 1", 1, 1),
    ("\n\n  \t\n\x0c\nx = 1\n", 1, 1),
    ("# comment\n   # another\nx = 1  # trailing\n", 1, 1),
    ('"""One line."""\nx = 1\n', 1, 2),
    ('"""First.\n\nThird.\n"""\nx = 1\n', 1, 4),
    ('"a" "b"\nx = 1\n', 1, 2),
    ("def f():\n    '''doc\n    more'''\n    return 1\n", 2, 4),
    ("def f(): 'doc'; return 1\n", 1, 1),
    ("class A:\n    'doc'\n    'not a doc'\n", 2, 3),
    ("async def f():\n    'doc'\n", 1, 2),
    ('x = """\n# not a comment\n\nend"""\n', 3, 2),
    ("x = f'''\n# not a comment {1}\n'''\n", 3, 2),
    ("x = (1 +\n     # inside\n     2)\n", 2, 2),
    ("x = 1 + \\\n    2\n", 2, 2),
    ("x = 1; y = 2\n", 1, 1),
    ("x = '" + "a" * 114 + "'\n", 1, 1),
    ("x = '" + "a" * 115 + "'\n", 2, 1),
    ("x = '" + "a" * 355 + "'\n", 4, 1),
    ("x = '" + "ä" * 114 + "'\n", 1, 1),
    ("x = 1" + " " * 400 + "\n", 1, 1),
    ("x = 1\ry = 2\r\nz = 3\r", 3, 3),
    ("# c\r# d\rx = 1\r", 1, 1),
    ("x = '''a\r# b\r'''\n", 3, 2),
    ('"""ä""" ; x = 1\n', 1, 1),
    ("def f():\n\t'doc'\n\tx = '\u2028'\n", 2, 4),
]


@pytest.mark.parametrize(("source", "orbit_2", "published"), LINES)
def test_effective_lines(source: str, orbit_2: int, published: int) -> None:
    assert effective_lines(source.encode(), Contract.ORBIT_2) == orbit_2
    assert effective_lines(source.encode(), Contract.ORBIT_Q_1) == published


@pytest.mark.parametrize(("n_lines", "outcome"), [(200, Outcome.PASS), (201, Outcome.FAIL)])
@pytest.mark.parametrize("contract", Contract)
def test_line_count_says_number_and_limit(n_lines: int, outcome: Outcome, contract: Contract) -> None:
    source = b"x = y\n" * n_lines
    rows = check_source(source, framework=Lists(), contract=contract, max_lines=200)
    row = next(row for row in rows if row.check == "line_count")
    assert (row.outcome, row.value, row.limit) == (outcome, n_lines, 200)


def test_long_docstrings_count_under_the_published_contract_only() -> None:
    source = b'"""' + b"text\n" * 300 + b'"""\nx = 1\n'
    for contract, outcome in ((Contract.ORBIT_2, Outcome.PASS), (Contract.ORBIT_Q_1, Outcome.FAIL)):
        rows = check_source(source, framework=Lists(), contract=contract, max_lines=200)
        assert next(row for row in rows if row.check == "line_count").outcome is outcome


UNREADABLE: list[tuple[str, bytes]] = [
    ("syntax", b"def f(:\n"),
    ("indentation", b"if x:\ny\n"),
    ("null byte", b"x = 1\0\n"),
    ("not utf-8", b"x = '\xff'\n"),
    ("utf-16", "x = 1\n".encode("utf-16")),
    ("surrogate", b"x = '\xed\xa0\x80'\n"),
    ("latin cookie", b"# -*- coding: latin-1 -*-\nx = 1\n"),
    ("rot13 cookie", b"# coding: rot13\nvzcbeg bf\n"),
    ("utf-7 cookie", b"#!/usr/bin/python\n# vim: set fileencoding=utf-7 :\nx = 1\n"),
    ("cookie behind a carriage return", b"# x\r# coding: unicode_escape\rx = 1\r"),
    ("cookie behind a mark", b"\xef\xbb\xbf# coding: cp1252\nx = 1\n"),
    ("unknown cookie", b"# coding: no-such-encoding\nx = 1\n"),
    ("huge", b"#" * 10_000_000),
    ("parentheses", b"(" * 5000 + b")" * 5000),
    ("deep unary", b"x = " + b"-" * 900 + b"1"),
    ("deep attribute", b"x = a" + b".a" * 900),
    ("deep calls", b"x = a" + b"()" * 900),
    ("long sum", b"x = 1" + b" + 1" * 5000),
    ("digits", b"x = " + b"9" * 5000),
    ("many nodes", b"x = [" + b"a," * 60_000 + b"]"),
]


@pytest.mark.parametrize("contract", Contract)
@pytest.mark.parametrize("source", [row[1] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_unreadable_file_fails_to_parse(source: bytes, contract: Contract) -> None:
    rows = check_source(source, framework=Lists(), contract=contract, max_lines=200)
    assert [(row.check, row.outcome) for row in rows] == [("parses", Outcome.FAIL)]
    assert rows[0].message
    assert stage(rows).failure_mode is FailureMode.RUNTIME_API_EXCEPTION


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbfimport socket\n",
        b"# -*- coding: utf-8 -*-\nimport socket\n",
        b"#!/usr/bin/env python\n# vim: set fileencoding=UTF_8 :\nimport socket\n",
        b"# coding: ascii\nimport socket\n",
        b"x = 1\r\nimport socket\r\n",
        b"x = 1\rimport socket\r",
        b"\x0cimport socket\n",
        b"import \\\n  socket\n",
        "import ｓｏｃｋｅｔ\n".encode(),
        "def f():\n  import 𝓼𝓸𝓬𝓴𝓮𝓽\n".encode(),
    ],
)
def test_readable_in_spite_of_its_look(source: bytes) -> None:
    rows = check_source(source, framework=Lists(), contract=Contract.ORBIT_2, max_lines=200)
    assert any(row.check == "network_access" and row.outcome is Outcome.FAIL for row in rows)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
@example(b"\xef\xbb\xbf")
@example(b"\\")
@example(b"\x0c\\\r")
@example(b"x = '\\ud800'; import socket")
def test_any_bytes_are_judged(source: bytes) -> None:
    assert check_source(source, framework=Lists(), contract=Contract.ORBIT_2, max_lines=200)


_WORDS = (
    "x y np tc os sys . .. = == := ( ) [ ] { } : , * ** ' # \\ ; @ lambda def class for in if else import from as with "
    "match case global nonlocal del yield await async try except getattr setattr open type __dict__ __class__ 0 1.5 + %"
)
_PIECES = st.sampled_from([*_WORDS.split(), '"""', "f'", "b''", "\n", "\n ", "\r", "\t", "\x0c", "\\\n"])


@settings(max_examples=400, deadline=None)
@given(st.lists(_PIECES, max_size=40).map(" ".join))
def test_any_tokens_are_judged(text: str) -> None:
    for contract in Contract:
        assert check_source(text.encode(), framework=Lists(), contract=contract, max_lines=200)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(min_value=0, max_value=2**32))
def test_programs_with_lines_shuffled_are_judged(seed: int) -> None:
    rng = random.Random(seed)
    snippets = [snippet for _, snippet in (*FAILS, *FLAGS)] + [source for _, source in every_solution()]
    lines = [line for snippet in rng.sample(snippets, 6) for line in snippet.splitlines()]
    rng.shuffle(lines)
    parsing: list[str] = []
    for line in lines:
        try:
            ast.parse("\n".join([*parsing, line]))
        except (SyntaxError, ValueError):
            continue
        parsing.append(line)
    rows = check_source("\n".join(parsing).encode(), framework=Lists(), contract=Contract.ORBIT_2, max_lines=200)
    assert rows[0].check == "parses"
    assert rows[0].outcome is Outcome.PASS
    assert len(rows) > 15


@pytest.mark.parametrize(
    "source",
    [
        "\n".join(f"a{k} = a{k + 1}" for k in range(190)) + "\nimport os\na190 = os\na0.system('x')\n",
        "\n".join(f"a{k} = a{k - 1}" for k in range(190, 0, -1)) + "\nimport os\na0 = os\na190.system('x')\n",
        "import os\n" + "".join(f"def f{k}(x=os): return x\n" for k in range(90)) + "f1().system('x')\n",
    ],
)
def test_long_chain_of_aliases_is_followed_or_reported(source: str) -> None:
    rows = check_source(source.encode(), framework=Lists(), contract=Contract.ORBIT_2, max_lines=200)
    wanted = {"child_process", "computed_name", "file_access"}
    assert any(row.check in wanted and row.outcome in (Outcome.FAIL, Outcome.FLAG) for row in rows)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "source",
    [
        "\n".join(f"a{k} = a{(k * 7) % 90} or a{(k * 11) % 90} or a{(k * 13) % 90}" for k in range(90)),
        "\n".join(f"a{k} = a{k - 1} + a{k - 1}" for k in range(1, 90)) + "\na0 = 'x'\ngetattr(tc, a89)\n",
        "import tensorcircuit as tc\nx = tc\n" + "x = x.a[0](x)\n" * 150,
        "x = ''.join(chr(a) + chr(b) for a in range(9))\n" * 150,
        "s = ('a' * 400).replace('a', 'b' * 400).replace('b', 'c' * 400).replace('c', 'd' * 400)\n" * 100,
        "s = '%999999999s' % 'x'\ns = '{:999999999}'.format(1)\ns = 'x' * 10**9\ns = 9**9**9\n",
        "def run_solution(c):\n    return f(x)\n" + "x = f(x) > 12\n" * 1000 + "def f(x):\n    return min(x, 12)\n",
    ],
)
def test_entangled_names_take_bounded_time(source: str) -> None:
    assert check_source(source.encode(), framework=Lists(), contract=Contract.ORBIT_2, max_lines=200)
