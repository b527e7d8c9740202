"""Evaluates expressions of constants, so that a name spelt `"".join(("o", "s"))` is seen for what it is.

Nothing of the file is executed: only the operations listed here are carried out, on values of bounded size.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Constant = str | bytes | int | tuple["Constant", ...]
ValuesOfName = Callable[[ast.Name], list[ast.expr] | None]

_METHODS = frozenset(
    {"capitalize", "casefold", "decode", "encode", "join", "lower", "lstrip", "removeprefix", "removesuffix", "replace"}
    | {"rstrip", "split", "strip", "swapcase", "title", "upper"}
)
_MAX_VALUES = 16
_MAX_LENGTH = 400
_MAX_STEPS = 2000
_MAX_TOTAL = 400_000
_MAX_DEPTH = 30


class Folder:
    """Evaluates the constant expressions of one file, with a bounded number of steps for each and for all of them."""

    def __init__(self, values_of_name: ValuesOfName) -> None:
        self._values_of_name = values_of_name
        self._steps = 0
        self._total = 0

    def values(self, node: ast.expr) -> frozenset[Constant]:
        """Every value that a constant expression may have; empty if it is not constant, or has too many."""
        self._steps = 0
        found = frozenset(self._fold(node, {}, 0)) if self._total < _MAX_TOTAL else frozenset[Constant]()
        self._total += self._steps
        return found

    def _fold(self, node: ast.expr, local: dict[str, Constant], depth: int) -> set[Constant]:
        self._steps += 1
        if self._steps > _MAX_STEPS or depth > _MAX_DEPTH:
            return set()

        def inner(child: ast.expr) -> set[Constant]:
            return self._fold(child, local, depth + 1)

        match node:
            case ast.Constant(value=str() | bytes() | int() as value):
                return _small([value])
            case ast.Name(id=name) if name in local:
                return {local[name]}
            case ast.Name():
                return self._name(node, depth)
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                return _small(itertools.islice(itertools.product(*(inner(item) for item in items)), _MAX_VALUES + 1))
            case ast.JoinedStr(values=parts):
                return _combine(_concatenate, [inner(part) for part in parts])
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return {str(item) for item in inner(value) if isinstance(item, (str, int))}
            case ast.BinOp(left=left, op=operator, right=right):
                return _combine(_OPERATORS.get(type(operator), _refuse), [inner(left), inner(right)])
            case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=step)):
                bounds: list[set[Constant] | set[None]] = [
                    inner(bound) if bound else {None} for bound in (lower, upper, step)
                ]
                return _combine(_slice, [inner(value), *bounds])
            case ast.Subscript(value=value, slice=index):
                tables = [item for item in inner(value) if isinstance(item, tuple)]
                # Which entry of a table is meant hardly matters: all of them must be harmless.
                entries = {leaf for table in tables for leaf in _leaves(table) if leaf is not table}
                return _small(entries) | _combine(_item, [inner(value), inner(index)])
            case ast.Dict(values=items):
                return inner(ast.Tuple(elts=items, ctx=ast.Load()))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return {-item for item in inner(operand) if isinstance(item, int)}
            case ast.IfExp(body=first, orelse=second):
                return inner(first) | inner(second)
            case ast.ListComp(elt=item, generators=[generator]) | ast.GeneratorExp(elt=item, generators=[generator]):
                return self._comprehension(item, generator, local, depth)
            case ast.Call():
                return self._call(node, inner)
            case _:
                return set()

    def _name(self, node: ast.Name, depth: int) -> set[Constant]:
        expressions = self._values_of_name(node)
        found: set[Constant] = set()
        for expression in expressions or ():
            values = self._fold(expression, {}, depth + 1)
            # A loop variable is bound to the iterable: any of its items will do.
            for value in values:
                found.update(_leaves(value))
            if not values:
                return set()
        return found

    def _comprehension(
        self, item: ast.expr, generator: ast.comprehension, local: dict[str, Constant], depth: int
    ) -> set[Constant]:
        if not isinstance(generator.target, ast.Name) or generator.ifs:
            return set()
        found: list[Constant] = []
        for sequence in self._fold(generator.iter, local, depth + 1):
            if isinstance(sequence, int):
                continue
            results = [self._fold(item, {**local, generator.target.id: value}, depth + 1) for value in sequence]
            if all(len(result) == 1 for result in results):
                found.append(tuple(next(iter(result)) for result in results))
        return _small(found)

    def _call(self, node: ast.Call, inner: Callable[[ast.expr], set[Constant]]) -> set[Constant]:
        if node.keywords:
            return set()
        match node.func:
            case ast.Name(id="map") if len(node.args) == 2 and isinstance(node.args[0], ast.Name):
                function = _FUNCTIONS.get(node.args[0].id, _refuse)
                return _combine(lambda items: tuple(function(item) for item in items), [inner(node.args[1])])
            case ast.Name(id=name):
                return _combine(_FUNCTIONS.get(name, _refuse), [inner(argument) for argument in node.args])
            case ast.Attribute(value=ast.Name(id="bytes"), attr="fromhex"):
                return _combine(bytes.fromhex, [inner(argument) for argument in node.args])
            case ast.Attribute(value=value, attr=name) if name in _METHODS:
                method = _method(name)
                return _combine(method, [inner(value), *(inner(argument) for argument in node.args)])
            case ast.Attribute(value=value, attr="format"):
                return _combine(_format, [inner(value), *(inner(argument) for argument in node.args)])
            case _:
                return set()


def _combine(function: Callable[..., object], arguments: Sequence[set[Constant] | set[None]]) -> set[Constant]:
    """Apply a function to every combination of arguments; what it refuses is left out."""
    found: list[object] = []
    for chosen in itertools.islice(itertools.product(*arguments), _MAX_VALUES + 1):
        try:
            found.append(function(*chosen))
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError, ArithmeticError):
            continue
    return _small(found)


def _small(values: Iterable[object]) -> set[Constant]:
    found: set[Constant] = set()
    for value in values:
        size = value.bit_length() if isinstance(value, int) else _MAX_LENGTH + 1
        size = len(value) if isinstance(value, (str, bytes, tuple)) else size
        if isinstance(value, (str, bytes, tuple, int)) and size <= _MAX_LENGTH:
            found.add(value)
    return found if len(found) <= _MAX_VALUES else set()


def _leaves(value: Constant) -> Iterator[Constant]:
    yield value
    for item in value if isinstance(value, tuple) else ():
        yield from _leaves(item)


def _refuse(*_: object) -> object:
    raise TypeError


def _concatenate(*parts: object) -> str:
    return "".join(str(part) for part in parts)


def _multiply(left: object, right: object) -> object:
    if isinstance(left, int):
        left, right = right, left
    if isinstance(left, (str, bytes, tuple)) and isinstance(right, int) and len(left) * right <= _MAX_LENGTH:
        return left * right
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    raise TypeError


def _percent(left: object, right: object) -> object:
    # Widths are refused: `"%999999999s"` would fill the memory.
    if isinstance(left, str) and set(left.replace("%s", "").replace("%c", "")).isdisjoint("%"):
        return left % right
    raise TypeError


def _slice(value: object, *bounds: Any) -> object:
    if isinstance(value, (str, bytes, tuple)):
        return value[slice(*bounds)]
    raise TypeError


def _item(value: object, index: object) -> object:
    if isinstance(value, (str, bytes)) and isinstance(index, int):
        return value[index]
    raise TypeError


def _method(name: str) -> Callable[..., object]:
    def call(value: object, *arguments: object) -> object:
        if not isinstance(value, (str, bytes)) or (name == "decode" and arguments not in ((), ("utf-8",), ("ascii",))):
            raise TypeError
        result = getattr(value, name)(*arguments)
        return tuple(result) if isinstance(result, list) else result

    return call


def _format(value: object, *arguments: object) -> object:
    # Attributes, items and widths inside the braces are refused.
    if isinstance(value, str) and set(value).isdisjoint(".[:!"):
        return value.format(*arguments)
    raise TypeError


def _add(left: object, right: object) -> object:
    if isinstance(left, (str, bytes, int, tuple)):
        return left + right  # type: ignore[operator]
    raise TypeError


def _chr(value: object) -> str:
    if isinstance(value, int):
        return chr(value)
    raise TypeError


def _reversed(value: object) -> object:
    return value[::-1] if isinstance(value, (str, bytes, tuple)) else _refuse()


def _bytes(value: object) -> bytes:
    if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
        return bytes(value)
    raise TypeError


_OPERATORS: dict[type[ast.operator], Callable[..., object]] = {
    ast.Add: _add,
    ast.Mult: _multiply,
    ast.Mod: _percent,
    ast.Sub: lambda left, right: left - right,
    ast.BitXor: lambda left, right: left ^ right,
}

_FUNCTIONS: dict[str, Callable[..., object]] = {
    "bytes": _bytes,
    "bytearray": _bytes,
    "chr": _chr,
    "list": lambda value: tuple(value),
    "ord": lambda value: ord(value),
    "reversed": _reversed,
    "str": lambda value: value if isinstance(value, str) else str(value) if isinstance(value, int) else _refuse(),
    "tuple": lambda value: tuple(value),
}
