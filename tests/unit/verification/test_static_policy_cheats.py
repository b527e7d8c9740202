"""What each rule must catch: a table of snippets, each with the rule it trips."""

from __future__ import annotations

import pytest

from orbit.verification.static_policy import stage
from orbit.verification.verdict import Contract, FailureMode, Outcome, StageStatus
from tests.unit.verification.static_policy_helpers import check, outcomes

FAILS: list[tuple[str, str]] = [
    # other frameworks
    ("other_framework_import", "import qiskit"),
    ("other_framework_import", "import qiskit.quantum_info as qi"),
    ("other_framework_import", "from cirq import Simulator"),
    ("other_framework_import", "from azure import quantum"),
    ("other_framework_import", "import azure.quantum.cirq"),
    ("other_framework_import", "try:\n    import pennylane as qml\nexcept ImportError:\n    qml = None"),
    ("other_framework_import", "def f():\n    from qutip import basis"),
    ("other_framework_import", "q = __import__('qiskit')"),
    ("other_framework_import", "import importlib\nq = importlib.import_module('cir' + 'q')"),
    ("other_framework_import", "from importlib import import_module as load\nload('qiskit.circuit')"),
    ("other_framework_import", "import sys\nq = sys.modules['qiskit']"),
    ("other_framework_import", "q = c.to_qiskit()"),
    ("other_framework_import", "c = tc.Circuit.from_qiskit(3)"),
    ("other_framework_import", "from tensorcircuit.translation import qiskit"),
    ("other_framework_import", "x = tc.translation.qiskit.QuantumCircuit(3)"),
    ("other_framework_import", "d = tc.device('qiskit.aer', wires=3)"),
    # code and modules that the source does not show
    ("dynamic_import", "exec('x = 1')"),
    ("dynamic_import", "e = eval\ne('1')"),
    ("dynamic_import", "f = compile('1', '', 'eval')"),
    ("dynamic_import", "m = __import__('numpy')"),
    ("dynamic_import", "imp = __import__\nm = imp('num' + 'py')"),
    ("dynamic_import", "import importlib.util"),
    ("dynamic_import", "import pickle\npickle.loads(b'x')"),
    ("dynamic_import", "import marshal"),
    ("dynamic_import", "from runpy import run_path"),
    ("dynamic_import", "import timeit\ntimeit.timeit('x')"),
    ("dynamic_import", "import builtins\nbuiltins.exec('1')"),
    ("dynamic_import", "import builtins as b\ngetattr(b, 'ex' + 'ec')('1')"),
    ("dynamic_import", "r = list(map(eval, ['1']))"),
    ("dynamic_import", "fs = {'e': exec}"),
    ("dynamic_import", "def f(g=eval):\n    return g('1')"),
    ("dynamic_import", "__loader__.load_module('x')"),
    ("dynamic_import", "m = __spec__.loader"),
    ("dynamic_import", "import typing\ntyping.get_type_hints(f)"),
    ("dynamic_import", "def f(x: \"print('side effect')\"): pass"),
    ("dynamic_import", "def f() -> \"print('side effect')\": pass"),
    ("dynamic_import", "np.testing.measure('x')"),
    ("dynamic_import", "import torch.utils.benchmark as b"),
    ("dynamic_import", "import sys\nsys.path.append('x')"),
    ("dynamic_import", "breakpoint()"),
    ("dynamic_import", "import ast\nast.parse('1')"),
    ("dynamic_import", "import torch\ntorch.jit.CompilationUnit('def f(): pass')"),
    ("dynamic_import", "r = [open for open in [eval]][0]('1')"),
    ("dynamic_import", "import numpy\nnumpy.os.sys.modules['builtins'].eval('1')"),
    # files
    ("file_access", "open('x')"),
    ("file_access", "f = open\nf('x')"),
    ("file_access", "with open('x') as h:\n    pass"),
    ("file_access", "import builtins\nbuiltins.open('x')"),
    ("file_access", "import io\nio.open('x')"),
    ("file_access", "from io import FileIO"),
    ("file_access", "import pathlib"),
    ("file_access", "from pathlib import Path as P"),
    ("file_access", "import os\nos.listdir('.')"),
    ("file_access", "import os as o\no.open('x', 0)"),
    ("file_access", "from os import *"),
    ("file_access", "import os.path\nos.path.exists('x')"),
    ("file_access", "import tempfile"),
    ("file_access", "import shutil as s"),
    ("file_access", "import glob"),
    ("file_access", "import codecs\ncodecs.open('x')"),
    ("file_access", "import linecache"),
    ("file_access", "import sqlite3"),
    ("file_access", "x = np.load('x.npy')"),
    ("file_access", "np.save('x', c)"),
    ("file_access", "from numpy import savez as keep"),
    ("file_access", "x = getattr(np, 'sa' + 'vez')"),
    ("file_access", "x = getattr(np, 'da'[::-1].join(('lo', '')))"),
    ("file_access", "n = ''.join(chr(k) for k in (108, 111, 97, 100))\nx = getattr(np, n)"),
    ("file_access", "n = bytes([108, 111, 97, 100]).decode()\nx = getattr(np, n)"),
    ("file_access", "x = np.memmap('x')"),
    ("file_access", "x = np.genfromtxt('x')"),
    ("file_access", "x = np.loadtxt('x')"),
    ("file_access", "np.savetxt('x', c)"),
    ("file_access", "np.zeros(3).tofile('x')"),
    ("file_access", "x = np.lib.npyio.load"),
    ("file_access", "n = np\nm = n\nm.load('x')"),
    ("file_access", "[np][0].load('x')"),
    ("file_access", "{'n': np}['n'].load('x')"),
    ("file_access", "for m in (np, tc):\n    m.load('x')"),
    ("file_access", "def f(m=np):\n    m.load('x')"),
    ("file_access", "class A:\n    m = np\n    def f(self):\n        self.m.load('x')"),
    ("file_access", "(lambda: np)().load('x')"),
    ("file_access", "(m := np).load('x')"),
    ("file_access", "a, b = np, tc\na.load('x')"),
    ("file_access", "x = np.__dict__['load']('x')"),
    ("file_access", "x = vars(np)['load']('x')"),
    ("file_access", "import operator\noperator.attrgetter('load')(np)('x')"),
    ("file_access", "import functools\nfunctools.partial(np.load, 'x')()"),
    ("file_access", "from numpy import *\nx = load('x')"),
    ("file_access", "import jax.numpy as jnp\njnp.load('x')"),
    ("file_access", "import jax\njax.config.update('jax_compilation_cache_dir', 'x')"),
    ("file_access", "import jax\njax.profiler.start_trace('x')"),
    ("file_access", "import torch\ntorch.save(c, 'x')"),
    ("file_access", "from scipy import io"),
    ("file_access", "from scipy.sparse import load_npz"),
    ("file_access", "x = __file__"),
    ("file_access", "p = '/proc/self/maps'"),
    ("file_access", "s = input()"),
    ("file_access", "import random\nrandom._os.remove('x')"),
    ("file_access", "if c:\n    open = None\nr = open('x')"),
    ("file_access", "def early():\n    return open('x')\nr = early()\nopen = None"),
    ("file_access", "class A:\n    h = open('x')\n    open = None"),
    ("file_access", "def f():\n    global h\n    h = open\nf()\nh('x')"),
    ("file_access", "l = license\nl()"),
    ("file_access", "import logging\nlogging.FileHandler('x')"),
    ("file_access", "d = {}\nd['x'] = np\nd['x'].load('f')"),
    ("file_access", "a = [0]\ndef f():\n    a[0] = np\n    a[0].load('f')"),
    ("file_access", "class A:\n    def f(self):\n        self.d['x'] = np\n        self.d['x'].load('f')"),
    ("file_access", "import networkx as nx\nnx.read_edgelist('x')"),
    ("file_access", "import sys\nsys.stdout.buffer.raw.__class__('x')"),
    ("file_access", "import sys\nf = type(sys.stdout)"),
    ("file_access", "import operator\noperator.methodcaller('load', 'x')(np)"),
    ("file_access", "import builtins\nbuiltins.__dict__['open']('x')"),
    ("file_access", "c.from_openqasm_file('x')"),
    ("file_access", "@print\ndef early():\n    return open('x')\ndef open(x): pass"),
    # processes
    ("child_process", "import subprocess"),
    ("child_process", "import os as o\no.system('ls')"),
    ("child_process", "from os import system as s\ns('ls')"),
    ("child_process", "import os\ngetattr(os, 'sys' 'tem')('ls')"),
    ("child_process", "import os\nos.fork()"),
    ("child_process", "import multiprocessing as mp"),
    ("child_process", "from concurrent.futures import ProcessPoolExecutor"),
    ("child_process", "import concurrent.futures as cf\ncf.ProcessPoolExecutor()"),
    ("child_process", "import torch\ntorch.multiprocessing.spawn(f)"),
    ("child_process", "import ｏｓ\nｏｓ.system('ls')"),
    ("child_process", "import dataclasses\ndataclasses.sys.modules['os'].system('ls')"),
    ("process_access", "import os\nos._exit(0)"),
    ("process_access", "import os\nos.kill(1, 9)"),
    ("process_access", "import signal"),
    ("process_access", "import resource"),
    # network, native code
    ("network_access", "import socket"),
    ("network_access", "from urllib.request import urlopen"),
    ("network_access", "import requests"),
    ("network_access", "import asyncio"),
    ("network_access", "import torch\ntorch.hub.load_state_dict_from_url('x')"),
    ("network_access", "x = tc.cloud.apis"),
    ("ctypes_access", "import ctypes"),
    ("ctypes_access", "from numpy import ctypeslib"),
    ("ctypes_access", "x = np.ctypeslib.as_array"),
    ("ctypes_access", "p = np.zeros(3).ctypes.data"),
    ("ctypes_access", "import cffi"),
    ("ctypes_access", "import mmap"),
    ("ctypes_access", "class A:\n    __array_interface__ = {'data': (1, False)}"),
    ("ctypes_access", "x = np.f2py"),
    ("ctypes_access", "import torch\ntorch.ops.load_library('x')"),
    # introspection
    ("introspection", "x = ().__class__.__subclasses__()"),
    ("introspection", "x = type(c).__mro__"),
    ("introspection", "x = getattr(c, '__glob' + 'als__')"),
    ("introspection", "x = getattr(check, '__code__')"),
    ("introspection", "x = globals()['__builtins__']"),
    ("introspection", "x = __builtins__"),
    ("introspection", "import builtins\nx = vars(builtins)"),
    ("introspection", "__builtins__ = {}"),
    ("introspection", "x = vars(tc)"),
    ("introspection", "import sys\nsys._getframe(1)"),
    ("introspection", "import sys\nf = sys._current_frames"),
    ("introspection", "import sys\nm = sys.modules"),
    ("introspection", "import sys\ns = [sys]"),
    ("introspection", "import sys\ndef f():\n    return sys"),
    ("introspection", "import sys as s\na = s.argv"),
    ("introspection", "import gc\ngc.get_objects()"),
    ("introspection", "import inspect\ninspect.currentframe()"),
    ("introspection", "from inspect import stack"),
    ("introspection", "import __main__"),
    ("introspection", "try:\n    pass\nexcept ValueError as e:\n    t = e.__traceback__.tb_frame"),
    ("introspection", "g = (i for i in [1])\nf = g.gi_frame.f_back"),
    ("introspection", "import operator\noperator.attrgetter('__globals__')(c)"),
    ("introspection", "s = '{0.__globals__}'.format(c)"),
    ("introspection", "match c:\n    case object(__globals__=g):\n        pass"),
    ("introspection", "b = print.__self__"),
    ("introspection", "import types\nf = types.FunctionType"),
    ("introspection", "import dis"),
    ("introspection", "import traceback\ntraceback.walk_stack(None)"),
    ("introspection", "x = locals()['__builtins__']"),
    # environment
    ("environment_access", "import os\nos.environ['X'] = '1'"),
    ("environment_access", "import os\nos.getenv('X')"),
    ("environment_access", "from os import environ as e"),
    ("environment_access", "import os\ne = getattr(os, 'environ')"),
    ("environment_access", "e = np.os.environ"),
    ("environment_access", "import jax\njax._src.config.os.environ"),
    # patching
    ("module_patching", "import time\ntime.perf_counter = lambda: 0.0"),
    ("module_patching", "import time as t\nt.perf_counter = lambda: 0.0"),
    ("module_patching", "import time\nt = time\nt.perf_counter = lambda: 0.0"),
    ("module_patching", "np.savez = print"),
    ("module_patching", "setattr(np, 'savez', print)"),
    ("module_patching", "s = setattr\ns(np, 'savez', print)"),
    ("module_patching", "delattr(np, 'savez')"),
    ("module_patching", "np.__dict__['savez'] = print"),
    ("module_patching", "vars(np)['savez'] = print"),
    ("module_patching", "np.__dict__.update(savez=print)"),
    ("module_patching", "vars(np).setdefault('x', 1)"),
    ("module_patching", "del np.savez"),
    ("module_patching", "np.pi += 1"),
    ("module_patching", "np.linalg.norm = print"),
    ("module_patching", "tc.backend.x = 1"),
    ("module_patching", "K = tc.set_backend('jax')\nK.expm = print"),
    ("module_patching", "tc.Circuit.h = print"),
    ("module_patching", "from tensorcircuit import Circuit as C\nC.h = print"),
    ("module_patching", "type(c).h = print"),
    ("module_patching", "c.__class__.h = print"),
    ("module_patching", "object.__setattr__(np, 'savez', print)"),
    ("module_patching", "type(np).__setattr__(np, 'savez', print)"),
    ("module_patching", "np.__setattr__('savez', print)"),
    ("module_patching", "import builtins\nbuiltins.print = None"),
    ("module_patching", "import sys\nsys.stdout = None"),
    ("module_patching", "import sys\nsys.modules['time'] = None"),
    ("module_patching", "import sys\nsys.modules['time'].perf_counter = None"),
    ("module_patching", "import unittest.mock as m\nm.patch('time.time')"),
    ("module_patching", "for np.pi in [3]:\n    pass"),
    ("module_patching", "[np.pi for np.pi in [3]]"),
    ("module_patching", "class A:\n    def f(self):\n        self.t = np\n        self.t.pi = 3"),
    ("module_patching", "def f():\n    import time as clock\n    clock.time = None"),
    ("module_patching", "(np, tc)[0].pi = 3"),
    ("module_patching", "(np if c else tc).pi = 3"),
    ("module_patching", "import torch\ntorch.backends.torch.save = print"),
    ("module_patching", "with tc.runtime_backend('numpy') as K:\n    K.expm = print"),
    ("module_patching", "setattr(*(np,), 'savez', print)"),
    ("module_patching", "with np.errstate() as np.pi:\n    pass"),
    # tests and rewards
    ("tests_access", "p = '/tests/evaluator.py'"),
    ("tests_access", "p = '/logs/verifier/' + 'reward.txt'"),
    ("tests_access", "p = f'/te{\"sts\"}/x'"),
    ("tests_access", "p = 'verdict.json'"),
    ("tests_access", "import evaluator"),
    ("tests_access", "from orbit.verification import runner"),
]

FLAGS: list[tuple[str, str]] = [
    ("background_work", "import threading"),
    ("background_work", "from concurrent.futures import ThreadPoolExecutor"),
    ("background_work", "import atexit"),
    ("background_work", "import weakref\nweakref.finalize(c, print)"),
    ("computed_name", "def f(k):\n    return getattr(np, k)"),
    ("computed_name", "def f(k):\n    return getattr(c, ''.join(chr(i) for i in k))"),
    ("computed_name", "def f(k):\n    n = k[::-1]\n    return getattr(c, n)"),
    ("computed_name", "x = list(map(getattr, [c], ['x']))"),
    ("computed_name", "import operator\ndef f(k):\n    return operator.attrgetter(k)"),
    ("computed_name", "def f(a):\n    return getattr(*a)"),
    ("computed_name", "def g(n):\n    return getattr(c, n)\ng(''.join(map(chr, f())))"),
    ("computed_name", "import functools\nfunctools.partial(setattr, c, 'x')(1)"),
    ("background_work", "class A:\n    def __del__(self): pass"),
    ("dynamic_import", "class A:\n    x: list[\"print('x')\"] = None"),
    ("introspection", "def __globals__(): pass\ngetattr(c, __globals__.__name__)"),
    ("introspection", "for n in dict(__globals__=1):\n    getattr(c, n)"),
    ("module_patching", "super(type(np), np).__setattr__('x', 1)"),
    ("child_process", "import torch.utils.data as d\nd.DataLoader([], num_workers=4)"),
    ("file_access", "def g():\n    yield np\nfor m in g():\n    m.load('f')"),
    ("file_access", "class A:\n    def __init__(self, m): self.m = m\nA(np).m.load('f')"),
    ("unlisted_import", "import strange_package"),
    ("unlisted_import", "from jax._src import util"),
    ("unlisted_import", "x = np._core"),
    ("unlisted_import", "from . import sibling"),
    ("bulk_data", "x = [" + ", ".join(f"{k}.5" for k in range(65)) + "]"),
    ("bulk_data", "x = [" + ", ".join(str(k % 2) for k in range(65)) + "]"),
    ("bulk_data", "x = [" + ", ".join("-1" for _ in range(65)) + "]"),
    ("bulk_data", "x = [" + ", ".join(str(k % 2 == 0) for k in range(65)) + "]"),
    ("bulk_data", "x = " + hex(2**4200)),
    ("bulk_data", "\n".join(f"x{k} = {k}.25" for k in range(65))),
    ("bulk_data", "x = f(" + ", ".join(str(k % 4) for k in range(65)) + ")"),
    ("bulk_data", "x = '" + "q" * 501 + "'"),
    ("bulk_data", "x = b'" + "q" * 501 + "'"),
    ("bulk_data", "x = [" + ", ".join("'abcdefghij'" for _ in range(51)) + "]"),
    ("bulk_data", "x = f'{c}" + "q" * 501 + "'"),
    ("bulk_data", "import zlib"),
    ("bulk_data", "def f():\n    'secret'\nx = f.__doc__"),
    ("bulk_data", "x = __doc__"),
    ("joined_statements", "\n".join("a = c; b = c" for _ in range(21))),
    ("introspection", "x = c.__dict__"),
    ("introspection", "x = dir(c)"),
    ("file_access", "def f(m):\n    m.load('x')\nf(np)"),
    ("module_patching", "def f(m):\n    m.pi = 3\nf(np)"),
    ("module_patching", "import functools, time\nfunctools.update_wrapper(time, f)"),
    ("ctypes_access", "x = np.lib.stride_tricks.as_strided(c)"),
]


@pytest.mark.parametrize(("rule", "snippet"), FAILS, ids=[f"{i}-{rule}" for i, (rule, _) in enumerate(FAILS)])
def test_cheat_fails_its_rule(rule: str, snippet: str) -> None:
    evidence = check(snippet)
    assert rule in outcomes(evidence, Outcome.FAIL), [row.message for row in evidence if row.message]
    row = next(row for row in evidence if row.check == rule and row.outcome is Outcome.FAIL)
    assert row.message.startswith("line ")
    assert stage(evidence).status is StageStatus.FAIL


@pytest.mark.parametrize(("rule", "snippet"), FLAGS, ids=[f"{i}-{rule}" for i, (rule, _) in enumerate(FLAGS)])
def test_doubtful_snippet_is_flagged(rule: str, snippet: str) -> None:
    evidence = check(snippet)
    assert rule in outcomes(evidence, Outcome.FLAG), [row.message for row in evidence if row.message]
    assert not outcomes(evidence, Outcome.FAIL), [row.message for row in evidence if row.message]
    assert stage(evidence).status is StageStatus.FLAGGED


PUBLISHED_RULES = {"other_framework_import", "module_patching", "tests_access", "parses", "line_count"}


@pytest.mark.parametrize(("rule", "snippet"), FAILS, ids=[f"{i}-{rule}" for i, (rule, _) in enumerate(FAILS)])
def test_published_contract_fails_published_rules_only(rule: str, snippet: str) -> None:
    evidence = check(snippet, Contract.ORBIT_Q_1)
    assert outcomes(evidence, Outcome.FAIL) <= PUBLISHED_RULES
    if rule in PUBLISHED_RULES:
        assert rule in outcomes(evidence, Outcome.FAIL)
    elif rule == "child_process":
        assert any(row.check == rule and row.outcome is Outcome.PASS and row.message for row in evidence)
    else:
        assert rule in outcomes(evidence, Outcome.FLAG)


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("import numpy as np\n", "required_framework_imported"),
        ("import tensorcircuit as tc\n", "required_framework_called"),
        ("import tensorcircuit as tc\nK = tc.set_backend('jax')\nx = K.ones(3)\n", "required_framework_called"),
        ("import tensorcircuit as tc\ntc.set_dtype('complex128')\n", "required_framework_called"),
        ("import tensorcircuit as tc\nx = tc.Circuit\n", "required_framework_called"),
        ("tc = __import__('tensorcircuit')\ntc.Circuit(2)\n", "required_framework_imported"),
        ("from .tensorcircuit import Circuit\nCircuit(2)\n", "required_framework_imported"),
        ("import tensorcircuit_fake as tc\ntc.Circuit(2)\n", "required_framework_imported"),
    ],
)
def test_framework_must_be_imported_and_called(source: str, rule: str) -> None:
    evidence = check(source.encode())
    assert rule in outcomes(evidence, Outcome.FAIL)
    assert stage(evidence).failure_mode is FailureMode.FRAMEWORK_BYPASS
    published = check(source.encode(), Contract.ORBIT_Q_1)
    expected = Outcome.FAIL if rule == "required_framework_imported" else Outcome.FLAG
    assert rule in outcomes(published, expected)


def test_tensor_network_library_is_a_note() -> None:
    evidence = check("import quimb.tensor as qtn\n")
    rows = [row for row in evidence if row.check == "tensor_network_library"]
    assert [row.outcome for row in rows] == [Outcome.PASS]
    assert "quimb" in rows[0].message
    assert stage(evidence).status is StageStatus.PASS


@pytest.mark.parametrize(
    ("snippet", "mode"),
    [
        ("x = 1 +", FailureMode.RUNTIME_API_EXCEPTION),
        ("import qiskit", FailureMode.FRAMEWORK_BYPASS),
        ("import qiskit, socket", FailureMode.FRAMEWORK_BYPASS),
        ("import socket", FailureMode.POLICY_VIOLATION),
        ("x = c\n" * 300, FailureMode.POLICY_VIOLATION),
    ],
)
def test_failure_mode(snippet: str, mode: FailureMode) -> None:
    assert stage(check(snippet)).failure_mode is mode


def test_findings_are_capped_and_counted() -> None:
    evidence = check("\n".join("import socket" for _ in range(30)))
    rows = [row for row in evidence if row.check == "network_access"]
    assert len(rows) == 20
    assert "(and 10 more)" in rows[-1].message


def test_message_cannot_break_whoever_shows_it() -> None:
    evidence = check("p = '/tests/\\ud800\\n\\x1b[31m" + "x" * 900 + "'")
    message = next(row.message for row in evidence if row.check == "tests_access")
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 320
