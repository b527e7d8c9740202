"""Programs that look how large their task is: decisions by the step count, or by a large number of qubits.

The runs that judge a solution differ in `max_steps` and in size, so a literal that parts small from large may part
the timed run from the probes. Honest programs ask whether a number is odd, zero or tiny.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from orbit.verification._policy_names import Resolver
from orbit.verification._policy_rules import Finding, Rule
from orbit.verification._policy_scopes import Assigned, Scopes

STEP_KEYS = frozenset({"max_steps"})
SIZE_KEYS = frozenset({"grid_side", "n_data_qubits", "n_qubits", "n_sites", "side"})
MAX_STEPS_LITERAL = 2
MAX_SIZE_LITERAL = 12
_CHOICES = frozenset({"min", "max", "minimum", "maximum", "fmin", "fmax", "clip", "clamp", "where", "select"})
_COMPARING = frozenset({"eq", "ge", "gt", "le", "lt", "ne", "__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__"})
_SAME = frozenset({"abs", "array", "asarray", "float", "float32", "float64", "int", "int32", "int64", "round", "str"})
_READERS = frozenset({"get", "pop", "setdefault"})
_MAX_DEPTH = 20
_MAX_DIGITS = 20
_HUGE = 10**_MAX_DIGITS

_First = Callable[[Iterable[ast.expr]], str | None]


class SizeRules:
    """Finds comparisons of a size with a literal."""

    def __init__(self, scopes: Scopes, resolver: Resolver) -> None:
        self._scopes = scopes
        self._resolver = resolver
        self._known: dict[tuple[object, bool], str | None] = {}

    def findings(self, node: ast.AST) -> Iterator[Finding]:
        """Findings on one node."""
        match node:
            case ast.Compare(left=left, comparators=others):
                yield from self._decision(node.lineno, [left, *others], "compared with")
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                items = [*_flat(node.args), *(keyword.value for keyword in node.keywords)]
                if isinstance(node.func, ast.Attribute):
                    items.append(node.func.value)
                if name in _COMPARING:
                    yield from self._decision(node.lineno, items, "compared with")
                elif name in _CHOICES:
                    yield from self._decision(node.lineno, items, f"in {name}() with", sizes=False)
            case ast.Match(subject=subject, cases=cases):
                values = [part.value for case in cases for part in ast.walk(case) if isinstance(part, ast.MatchValue)]
                yield from self._decision(node.lineno, [*_flat([subject]), *values], "matched with")
            case _:
                pass

    def _decision(self, line: int, items: list[ast.expr], how: str, *, sizes: bool = True) -> Iterator[Finding]:
        rules = [(True, MAX_STEPS_LITERAL), *([(False, MAX_SIZE_LITERAL)] if sizes else [])]
        for steps, limit in rules:
            keys = [self._key(item, steps=steps) for item in items]
            # What the size itself may be by default is no literal that it meets.
            others = [item for item, key in zip(items, keys, strict=True) if key is None]
            largest = max((number for item in _flat(others) for number in self._numbers(item)), default=0.0)
            if any(keys) and largest > limit:
                yield Finding(Rule.SIZE_DECISION, line, f"{next(filter(None, keys))} {how} {largest:g}")
                return

    def _numbers(self, node: ast.expr) -> Iterator[float]:
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield node.value
        for value in self._resolver.constants(node):
            yield from _plain_numbers(value)

    def _key(self, node: ast.expr, *, steps: bool, depth: int = 0) -> str | None:
        """The configuration key whose value an expression is, if it is one of those that matter."""
        if depth > _MAX_DEPTH:
            return None
        # All mentions of a name in one scope mean the same.
        what = (self._scopes.of[node], node.id) if isinstance(node, ast.Name) else node
        if (what, steps) not in self._known:
            self._known[what, steps] = None  # what leads back to itself adds nothing
            self._known[what, steps] = self._find(node, steps, depth + 1)
        return self._known[what, steps]

    def _find(self, node: ast.expr, steps: bool, depth: int) -> str | None:
        keys = STEP_KEYS if steps else SIZE_KEYS

        def first(items: Iterable[ast.expr]) -> str | None:
            return next((key for item in items if (key := self._key(item, steps=steps, depth=depth))), None)

        match node:
            case ast.Subscript(slice=index):
                return min(self._resolver.strings(index) & keys, default=None)
            case ast.Call(func=ast.Attribute(attr=name), args=[argument, *_]) if name in _READERS:
                return min(self._resolver.strings(argument) & keys, default=None)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[argument, *_]) if name in _SAME:
                return first([argument])
            case ast.Attribute(attr=name) if name in keys:
                return name
            case ast.Attribute(attr=name):
                bound = self._scopes.attributes.get(name, [])
                return first(binding.value for binding in bound if isinstance(binding, Assigned))
            case ast.Name(id=name):
                return self._name(node, first) or (name if name in keys and self._is_parameter(node) else None)
            case ast.UnaryOp(operand=operand):
                return first([operand])
            case ast.BinOp(left=left, right=right) if steps and self._is_literal(left, right):
                return first([left, right])
            case ast.NamedExpr(value=value):
                return first([value])
            case ast.IfExp(body=body, orelse=other):
                return first([body, other])
            case _:
                return None

    def _is_literal(self, left: ast.expr, right: ast.expr) -> bool:
        return any(True for side in (left, right) for _ in self._numbers(side))

    def _name(self, node: ast.Name, first: _First) -> str | None:
        bindings, _ = self._scopes.of[node].lookup(node.id)
        values = [binding.value for binding in bindings if isinstance(binding, Assigned)]
        return first([*values, *self._arguments(node)])

    def _is_parameter(self, node: ast.Name) -> bool:
        bindings, _ = self._scopes.of[node].lookup(node.id)
        return None in bindings

    def _arguments(self, node: ast.Name) -> Iterator[ast.expr]:
        """What the parameter that a name may be is given where its function is called by name."""
        scope = self._scopes.of[node]
        while node.id not in scope.bindings and scope.parent is not None:
            scope = scope.parent
        function = scope.node
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        for call in self._scopes.calls.get(function.name, []):
            if node.id in names and (place := names.index(node.id)) < len(call.args):
                yield call.args[place]
            yield from (keyword.value for keyword in call.keywords if keyword.arg == node.id)


def _flat(items: Iterable[ast.expr]) -> list[ast.expr]:
    """Items, and those of displays among them."""
    found: list[ast.expr] = []
    for item in items:
        found.append(item)
        if isinstance(item, (ast.List, ast.Tuple, ast.Set)):
            found.extend(item.elts)
    return found


def _plain_numbers(value: object) -> Iterator[float]:
    if isinstance(value, int):
        yield float(min(value, _HUGE))
    elif isinstance(value, str) and value.isdecimal() and len(value) < _MAX_DIGITS:
        yield float(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _plain_numbers(item)
