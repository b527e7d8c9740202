"""Modules that a file hands around as values, where their names can no longer be followed."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from orbit.verification._policy_names import Paths, Resolver
from orbit.verification._policy_rules import Finding, Rule
from orbit.verification._policy_scopes import Scopes
from orbit.verification._policy_tables import HARMLESS_STDLIB, MIXED, STDLIB

_STREAMS = frozenset({"sys.stdout", "sys.stderr"})
_FOLLOWED = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.IfExp, ast.BoolOp, ast.Compare, ast.arguments, ast.Expr)
_ASKING = frozenset(
    f"builtins.{name}"
    for name in (
        "getattr",
        "hasattr",
        "setattr",
        "delattr",
        "vars",
        "dir",
        "print",
        "repr",
        "str",
        "type",
        "isinstance",
    )
)
_SUBMODULES = frozenset(
    {"jax.lax", "jax.nn", "jax.numpy", "jax.random", "jax.scipy", "numpy.fft", "numpy.linalg", "numpy.random"}
    | {"pennylane.numpy", "scipy.linalg", "scipy.sparse", "tensorcircuit.backend", "torch.nn", "torch.nn.functional"}
)


def escaping_modules(nodes: Iterable[ast.AST], scopes: Scopes, resolver: Resolver) -> tuple[list[str], list[Finding]]:
    """Modules that are passed, returned or stored as values, and what is wrong with that as such.

    A module that is dangerous in part may not be handed on at all. Any other may, but a foreign function that is
    given one can change it, which is a flag.
    """
    imported = _imported_modules(nodes)
    escaped: set[str] = set()
    findings: list[Finding] = []
    for node in nodes:
        parent = scopes.parents.get(node)
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            continue
        modules = {path for path in resolver.paths(node) if _is_module(path, imported)}
        if not modules or isinstance(parent, (ast.Attribute, *_FOLLOWED)):
            continue
        callee = _callee(parent, scopes, resolver)
        if callee & _ASKING and not (modules & _STREAMS):
            continue
        escaped |= modules - _STREAMS
        for module in sorted(modules):
            text = f"the module {module} is handed around"
            if module in _STREAMS:
                if callee != {"builtins.print"}:
                    findings.append(Finding(Rule.FILE_ACCESS, node.lineno, f"the stream {module} is handed around"))
            elif module in MIXED:
                findings.append(Finding(MIXED[module].otherwise, node.lineno, text))
            elif callee and not _may_be_given_a_module(callee):
                findings.append(Finding(Rule.MODULE_PATCHING, node.lineno, f"{text} to {min(callee)}", doubtful=True))
    return sorted(escaped), findings


def _imported_modules(nodes: Iterable[ast.AST]) -> frozenset[str]:
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return frozenset(".".join(name.split(".")[:length]) for name in names for length in range(1, name.count(".") + 2))


def _is_module(path: str, imported: frozenset[str]) -> bool:
    return (
        path in imported
        or path in _SUBMODULES
        or path in MIXED
        or path in _STREAMS
        or path in HARMLESS_STDLIB
        or path in STDLIB
    )


def _callee(parent: ast.AST | None, scopes: Scopes, resolver: Resolver) -> Paths:
    """What the call is that a node is an argument of."""
    while isinstance(parent, (ast.keyword, ast.Starred, ast.List, ast.Tuple, ast.Dict)):
        parent = scopes.parents.get(parent)
    return resolver.paths(parent.func) if isinstance(parent, ast.Call) else frozenset()


def _may_be_given_a_module(callee: Paths) -> bool:
    """Pure containers, and `partial`, which only stores what it is given."""
    return all(
        (path.startswith("builtins.") and path != "builtins.super") or path == "functools.partial" for path in callee
    )
