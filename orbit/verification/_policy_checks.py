"""Looks at every node of a file and reports what breaks a rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from orbit.verification import _policy_scopes
from orbit.verification._policy_escapes import escaping_modules
from orbit.verification._policy_flow import Flow
from orbit.verification._policy_imports import ImportRules, StaticPolicyLists
from orbit.verification._policy_names import BACKENDS, IMPORTERS, Paths, Resolver, namespace_of
from orbit.verification._policy_obscure import is_built, is_harmless_pattern
from orbit.verification._policy_rules import Finding, Rule
from orbit.verification._policy_sizes import SizeRules
from orbit.verification._policy_tables import (
    ANY_OBJECT,
    CALLED_BUILTINS,
    DOUBTFUL_ATTRIBUTES,
    MIXED,
    classify,
    join,
)
from orbit.verification._policy_text import Source, docstrings

_JUDGE_PATH = re.compile(
    r"(?:^|[\s\"'=:])/(?:tests|logs|solution|oracle|app)(?:/|$)"
    r"|(?:^|/)(?:evaluator|oracle|test_outputs)\.py$"
    r"|(?:^|/)(?:reward|verdict|exact|execution)\.(?:json|txt)$"
)
_SYSTEM_PATH = re.compile(r"^/(?:proc|etc|dev|sys|root|home|tmp|var)(?:/|$)|^\.\./")
_CACHE_OPTION = re.compile(r"cache_dir|dump|_dir$|profil")
_MUTATORS = frozenset({"update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__", "__ior__"})
_SETTERS = frozenset({"__setattr__", "__delattr__"})
_MEMORY = frozenset({"__array_interface__", "__array_struct__", "__cuda_array_interface__"})
_INTERPRETER = frozenset({"__builtins__", "__loader__", "__spec__", "__import__"})
_SETTINGS = re.compile(r"torch\.backends(\.(cuda|cudnn|mkl|mkldnn|mps|openmp|opt_einsum))?(\.matmul)?|jax\.config")
_ACCESSORS = frozenset({"builtins.getattr", "builtins.setattr", "builtins.delattr"})
_STRING_PARTS = (ast.BinOp, ast.JoinedStr, ast.FormattedValue)


class Checker:
    """Checks one file.

    Attributes:
        imported: whether the required framework is imported by a statement.
        called: whether something of it is called, or subclassed.
        reached: whether such a call can run because `run_solution` is called.
        used: whether the value of such a call may reach the result.
        findings: what was found, without repeats, in order of line.
    """

    def __init__(self, source: Source, framework: StaticPolicyLists) -> None:
        self.imported = False
        self._uses: set[ast.AST] = set()
        self._imports = ImportRules(framework)
        self._scopes = _policy_scopes.build(source.tree)
        self._resolver = Resolver(self._scopes)
        self._docstrings = {id(node) for node in docstrings(source.tree)}
        # Children first, so that long chains are resolved from their inner end.
        nodes = [*ast.walk(source.tree)][::-1]
        self._escaped, escapes = escaping_modules(nodes, self._scopes, self._resolver)
        found = [*escapes, *(finding for node in nodes for finding in self._node(node))]
        sizes = SizeRules(self._scopes, self._resolver)
        found.extend(finding for node in nodes for finding in sizes.findings(node))
        if self._resolver.exhausted:
            found.append(Finding(Rule.COMPUTED_NAME, 0, "names are handed on too often to be followed"))
        flow = Flow(source.tree, self._scopes, self._resolver)
        self.called = bool(self._uses)
        self.reached = bool(self._uses & flow.reached)
        self.used = bool(self._uses & flow.used)
        unique = {(finding.rule, finding.line, finding.doubtful): finding for finding in found}
        self.findings = sorted(unique.values(), key=lambda finding: (finding.line, finding.rule))

    # --- dispatch -------------------------------------------------------------------------------------------------

    def _node(self, node: ast.AST) -> Iterator[Finding]:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._note_import(node)
                yield from self._imports.statement(node)
            case ast.Name():
                yield from self._name(node)
            case ast.Attribute(attr=name):
                yield from self._attribute_name(name, node)
                yield from self._attribute(node)
            case ast.Subscript():
                yield from self._subscript(node)
            case ast.Call():
                yield from self._call(node)
                yield from self._text(node)
            case ast.Constant() | ast.BinOp() | ast.JoinedStr():
                yield from self._text(node)
            case (
                ast.FunctionDef(name=name, decorator_list=users) | ast.AsyncFunctionDef(name=name, decorator_list=users)
            ):
                self._note_use(users)
                if node.returns is not None:
                    yield from self._annotation(node.returns)
                yield from self._definition(name, node)
            case ast.ClassDef(name=name, bases=bases, decorator_list=users):
                self._note_use([*bases, *users])
                yield from self._definition(name, node)
            case ast.keyword(arg=str(name), value=value):
                yield from self._definition(name, value)
            case ast.MatchClass(kwd_attrs=names):
                for name in names:
                    yield from self._attribute_name(name, node)
                    yield from self._maybe_escaped(name, node)
            case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
                yield from self._annotation(annotation)
            case _:
                pass

    def _note_import(self, node: ast.Import | ast.ImportFrom) -> None:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        level = node.level if isinstance(node, ast.ImportFrom) else 0
        self.imported |= not level and any(self._imports.is_required(name) for name in names)

    def _note_use(self, nodes: Iterable[ast.expr]) -> None:
        self._uses.update(node for node in nodes if any(map(self._imports.is_use, self._resolver.paths(node))))

    # --- names and attributes -------------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> Iterator[Finding]:
        if not isinstance(node.ctx, ast.Load):
            yield from self._definition(node.id, node)
            return
        if node.id == "__doc__":
            yield Finding(Rule.BULK_DATA, node.lineno, "reads a docstring")
        parent = self._scopes.parents.get(node)
        is_called = isinstance(parent, ast.Call) and parent.func is node
        bindings, _ = self._scopes.of[node].lookup(node.id)
        if node.id in CALLED_BUILTINS and ((bindings and not is_called) or node.id in ("vars", "locals", "dir")):
            return  # `vars`, `locals` and `dir` are judged by what they are called with.
        for path in self._resolver.paths(node):
            yield from self._imports.path(path, node.lineno)
        if self._resolver.paths(node) & _ACCESSORS and not is_called and not isinstance(parent, ast.Assign):
            yield Finding(Rule.COMPUTED_NAME, node.lineno, f"{node.id} is handed around")

    def _definition(self, name: str, node: ast.stmt | ast.expr) -> Iterator[Finding]:
        if name in _MEMORY:
            yield Finding(Rule.CTYPES_ACCESS, node.lineno, name)
        if name == "__del__":
            yield Finding(Rule.BACKGROUND_WORK, node.lineno, "__del__ may run after the call")
        if name in _TELLING:
            yield Finding(ANY_OBJECT[name], node.lineno, f"something is named {name}", doubtful=True)
        if name in _INTERPRETER:
            yield Finding(Rule.INTROSPECTION, node.lineno, f"defines {name}")

    def _attribute_name(self, name: str, node: ast.expr | ast.pattern) -> Iterator[Finding]:
        """What a name means on whatever object it stands."""
        if name in ANY_OBJECT:
            yield Finding(ANY_OBJECT[name], node.lineno, f".{name}")
        yield from self._imports.attribute(name, node.lineno)

    def _attribute(self, node: ast.Attribute) -> Iterator[Finding]:
        bases = self._resolver.paths(node.value)
        modules = _real(bases)
        if not isinstance(node.ctx, ast.Load):
            yield from self._store(node, bases, f".{node.attr}")
            return
        for path in self._resolver.paths(node):
            yield from self._imports.path(path, node.lineno)
        if node.attr in _SETTERS and any(not base.startswith("builtins.") for base in modules):
            yield Finding(Rule.MODULE_PATCHING, node.lineno, f"{modules[0]}.{node.attr}")
        if node.attr in _SETTERS and not modules and self._escaped:
            yield Finding(Rule.MODULE_PATCHING, node.lineno, f".{node.attr} of something", doubtful=True)
        if not modules:
            if node.attr in DOUBTFUL_ATTRIBUTES:
                yield Finding(DOUBTFUL_ATTRIBUTES[node.attr], node.lineno, f".{node.attr}", doubtful=True)
            yield from self._maybe_escaped(node.attr, node)

    def _maybe_escaped(self, name: str, node: ast.expr | ast.pattern) -> Iterator[Finding]:
        """An attribute of an unknown object, which may be a module that was handed around."""
        for module in self._escaped:
            if (rule := classify(join(module, name))) is not None:
                text = f".{name} of what may be the module {module}"
                yield Finding(rule, node.lineno, text, doubtful=True)

    def _subscript(self, node: ast.Subscript) -> Iterator[Finding]:
        bases = self._resolver.paths(node.value)
        if isinstance(node.ctx, ast.Load):
            for path in self._resolver.paths(node) - bases:
                yield from self._imports.path(path, node.lineno)
                yield from self._imports.module(path, node.lineno) if "sys.modules" in bases else ()
        elif spaces := [base for base in bases if namespace_of(base) or base == "sys.modules"]:
            yield Finding(Rule.MODULE_PATCHING, node.lineno, f"an entry of {spaces[0]}")

    def _store(self, node: ast.Attribute | ast.Call, bases: Paths, text: str) -> Iterator[Finding]:
        """Assignment to, or deletion of, an attribute."""
        target = node.value if isinstance(node, ast.Attribute) else node.args[0]
        modules = [base for base in _real(bases) if not _SETTINGS.fullmatch(base)]
        if modules:
            yield Finding(Rule.MODULE_PATCHING, node.lineno, f"{modules[0]}{text}")
        elif any(base.endswith(BACKENDS) for base in bases):
            yield Finding(Rule.MODULE_PATCHING, node.lineno, f"the framework's backend{text}")
        elif any(_SETTINGS.fullmatch(base) for base in bases):
            if _CACHE_OPTION.search(text):
                yield Finding(Rule.FILE_ACCESS, node.lineno, text.lstrip("."))
        elif not (isinstance(target, ast.Name) and target.id in ("self", "cls")):
            doubts = [f"the module {module}" for module in self._escaped]
            if _is_class_of_something(target):
                doubts.append("a class that the file did not define")
            if doubts:
                yield Finding(Rule.MODULE_PATCHING, node.lineno, f"{text} of what may be {doubts[0]}", doubtful=True)

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Iterator[Finding]:
        self._note_use([node.func])
        strings = self._resolver.strings(node.args[0]) if node.args else frozenset[str]()
        for function in self._resolver.paths(node.func):
            name = function.rpartition(".")[2]
            if function in _ACCESSORS or function == "builtins.hasattr":
                yield from self._access_by_name(node, function)
            elif function in ("builtins.vars", "builtins.locals", "builtins.dir"):
                yield from self._namespace_call(node, function)
            elif function in IMPORTERS:
                for module in strings:
                    yield from self._imports.module(module, node.lineno)
            elif function in ("operator.attrgetter", "operator.methodcaller"):
                yield from self._getter(node, function)
            elif function.endswith("config.update") and any(_CACHE_OPTION.search(text) for text in strings):
                yield Finding(Rule.FILE_ACCESS, node.lineno, f"{function}({min(strings)!r})")
            elif name == "device":
                for text in strings:
                    yield from self._imports.device(text, node.lineno)
            elif name in _MUTATORS and namespace_of(function.rpartition(".")[0]):
                yield Finding(Rule.MODULE_PATCHING, node.lineno, function)
            if name == "DataLoader" or function.startswith("scipy.optimize."):
                yield from self._workers(node, function)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SETTERS and node.args:
            modules = _real(self._resolver.paths(node.args[0]))
            if modules:
                yield Finding(Rule.MODULE_PATCHING, node.lineno, f"{modules[0]}, by {node.func.attr}")
        yield from self._call_result(node)

    def _workers(self, node: ast.Call, function: str) -> Iterator[Finding]:
        for keyword in node.keywords:
            values = self._resolver.constants(keyword.value)
            alone = isinstance(keyword.value, ast.Constant) and keyword.value.value in (None, 0, 1)
            if keyword.arg in ("num_workers", "workers") and not alone and not (values and values <= {0, 1}):
                yield Finding(Rule.CHILD_PROCESS, node.lineno, f"{function}({keyword.arg}=...)", doubtful=True)

    def _call_result(self, node: ast.Call) -> Iterator[Finding]:
        """What a call is known to return: `getattr(os, "system")` is `os.system`."""
        if not self._resolver.paths(node.func) & {"builtins.vars", "builtins.locals", "builtins.dir"}:
            for path in self._resolver.paths(node):
                yield from self._imports.path(path, node.lineno)

    def _access_by_name(self, node: ast.Call, function: str) -> Iterator[Finding]:
        if len(node.args) < 2:
            yield Finding(Rule.COMPUTED_NAME, node.lineno, f"{function} with unpacked arguments")
            return
        target, key = node.args[:2]
        bases, names = self._resolver.paths(target), self._resolver.strings(key)
        modules = _real(bases)
        for name in names:
            yield from self._attribute_name(name, node)
            if not modules:
                yield from self._maybe_escaped(name, node)
        if function in ("builtins.setattr", "builtins.delattr"):
            text = f".{min(names)}" if names else ", an attribute computed at run time"
            yield from self._store(node, bases, text)
        elif function == "builtins.hasattr":
            return  # it only says yes or no
        elif not names and modules and not is_harmless_pattern(key, self._resolver):
            mixed = next((MIXED[base] for base in modules if base in MIXED), None)
            rule = mixed.otherwise if mixed is not None else Rule.COMPUTED_NAME
            yield Finding(rule, node.lineno, f"{function} of the module {modules[0]}")
        elif not names and is_built(key, self._scopes):
            yield Finding(Rule.COMPUTED_NAME, node.lineno, f"{function} by a name that is put together")

    def _getter(self, node: ast.Call, function: str) -> Iterator[Finding]:
        arguments = node.args if function.endswith("attrgetter") else node.args[:1]
        for argument in arguments:
            names = self._resolver.strings(argument)
            if not names:
                yield Finding(Rule.COMPUTED_NAME, node.lineno, function)
            for name in (part for dotted in names for part in dotted.split(".")):
                yield from self._attribute_name(name, node)
                yield from self._maybe_escaped(name, node)

    def _namespace_call(self, node: ast.Call, function: str) -> Iterator[Finding]:
        inside = not self._scopes.of[node].is_module
        of_module = bool(node.args and _real(self._resolver.paths(node.args[0])))
        doubtful = function.endswith("dir") or (inside and not node.args) or (bool(node.args) and not of_module)
        yield Finding(Rule.INTROSPECTION, node.lineno, function, doubtful=doubtful)

    # --- strings --------------------------------------------------------------------------------------------------

    def _text(self, node: ast.expr) -> Iterator[Finding]:
        """Strings that name what only a judge has, or what only an intruder asks for."""
        if id(node) in self._docstrings or isinstance(self._scopes.parents.get(node), _STRING_PARTS):
            return
        for value in self._resolver.constants(node):
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            if not isinstance(text, str):
                continue
            if _JUDGE_PATH.search(text):
                yield Finding(Rule.TESTS_ACCESS, node.lineno, f"the path {text!r}")
            if _SYSTEM_PATH.search(text):
                yield Finding(Rule.FILE_ACCESS, node.lineno, f"the path {text!r}")
            for name in _TELLING:
                if name in text:
                    yield Finding(ANY_OBJECT[name], node.lineno, f"the text {name!r}")

    def _annotation(self, annotation: ast.expr) -> Iterator[Finding]:
        """Annotations in quotes are evaluated by whoever asks for type hints."""
        for part in ast.walk(annotation):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and "(" in part.value:
                text = "code inside an annotation in quotes"
                yield Finding(Rule.DYNAMIC_IMPORT, part.lineno, text, doubtful=part is not annotation)


_TELLING = sorted(name for name in ANY_OBJECT if name.startswith("__"))


def _real(paths: Paths) -> list[str]:
    """Paths of modules, classes and functions, not of what calls return."""
    return sorted(path for path in paths if "()" not in path)


def _is_class_of_something(node: ast.expr) -> bool:
    """`type(x)` or `x.__class__`, unless x is the method's own object."""
    match node:
        case ast.Call(func=ast.Name(id="type"), args=[inner]) | ast.Attribute(value=inner, attr="__class__"):
            return not (isinstance(inner, ast.Name) and inner.id in ("self", "cls"))
        case _:
            return False
