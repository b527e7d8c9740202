"""Names that are put together at run time: which of them are harmless, and which look like hiding."""

from __future__ import annotations

import ast

from orbit.verification._policy_names import Resolver
from orbit.verification._policy_scopes import Assigned, Binding, Scopes
from orbit.verification._policy_tables import DANGEROUS_NAMES

_CAPITALS = frozenset({"upper", "capitalize", "title"})
_TOOLS = frozenset({"chr", "bytes", "bytearray", "reversed"})
_METHODS = frozenset({"join", "decode", "fromhex", "translate", "swapcase", "removeprefix", "removesuffix", "to_bytes"})
_MAX_NAMES = 200


def is_harmless_pattern(node: ast.expr, resolver: Resolver) -> bool:
    """Whether no dangerous name can come out: a capitalized one, or one that starts as none of them does.

    `getattr(qml, name.upper())` and `getattr(qml, f"Pauli{axis}")` are ordinary ways to choose a gate.
    """
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=[]) if name in _CAPITALS:
            return True
        case ast.JoinedStr(values=[ast.Constant(value=str(prefix)), *_]):
            return _starts_no_name(prefix)
        case ast.BinOp(left=left, op=ast.Add()):
            prefixes = resolver.strings(left)
            return is_harmless_pattern(left, resolver) or (bool(prefixes) and all(map(_starts_no_name, prefixes)))
        case _:
            return False


def _starts_no_name(prefix: str) -> bool:
    return bool(prefix) and not any(name.startswith(prefix) for name in DANGEROUS_NAMES)


def is_built(node: ast.expr, scopes: Scopes) -> bool:
    """Whether a name is composed from characters, bytes or reversed text, here or where its parts are bound."""
    pending, seen = [node], set[ast.AST]()
    while pending and len(seen) < _MAX_NAMES:
        for part in ast.walk(pending.pop()):
            if part in seen:
                continue
            seen.add(part)
            if _is_tool(part):
                return True
            bindings: list[Binding] = []
            if isinstance(part, ast.Name):
                bindings = scopes.of[part].lookup(part.id)[0]
                pending.extend(_arguments_of_callers(part, scopes))
            elif isinstance(part, ast.Attribute):
                bindings = scopes.attributes.get(part.attr, [])
            pending.extend(binding.value for binding in bindings if isinstance(binding, Assigned))
    return False


def _arguments_of_callers(node: ast.Name, scopes: Scopes) -> list[ast.expr]:
    """What the function that has this name as a parameter is called with, wherever its own name is called."""
    function = scopes.of[node].node
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    calls = scopes.calls.get(function.name, [])
    return [argument for call in calls for argument in (*call.args, *(keyword.value for keyword in call.keywords))]


def _is_tool(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _TOOLS:
            return True
        case ast.Name(id="chr"):
            return True
        case ast.Call(func=ast.Attribute(attr=name)) if name in _METHODS:
            return True
        case ast.Slice(step=ast.expr()):
            return True
        case _:
            return False
