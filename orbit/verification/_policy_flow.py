"""What the result of `run_solution` rests on: which parts of a file can run for it, and whose values reach it.

Both answers err on the side of too much: a name stands for everything that is ever bound to it, and whatever is done
with an object may change it. So a call that is left out has no part in the result, short of tricks.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from orbit.verification._policy_names import BACKENDS, Resolver
from orbit.verification._policy_scopes import Assigned, FunctionNode, Scope, Scopes

ENTRY = "run_solution"
_NAMED_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_NAMED_FUNCTIONS, ast.ClassDef)
_FUNCTIONS = (*_NAMED_FUNCTIONS, ast.Lambda)
_RESULTS = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Match)
_COMPOUND = (*_BRANCHES, ast.Try, ast.TryStar)
_PLAIN = frozenset({"int", "float", "len", "bool", "str"})
_ASKING = frozenset(f"builtins.{name}" for name in ("print", "len", "isinstance", "repr", "str", "type"))

_Key = tuple[Scope, str]


class Flow:
    """Follows names from the result of `run_solution` back to where they come from.

    Attributes:
        reached: nodes of everything that can run because `run_solution` is called.
        used: nodes among them whose values may reach what it returns.
    """

    def __init__(self, tree: ast.Module, scopes: Scopes, resolver: Resolver) -> None:
        self._scopes = scopes
        self._resolver = resolver
        self._entries = _entries(tree, scopes)
        self._plain: dict[_Key, bool] = {}
        self._sources: dict[_Key, list[ast.stmt]] = defaultdict(list)
        self._members: dict[str, list[ast.stmt]] = defaultdict(list)
        for node in ast.walk(tree):
            self._index(node)
        roots: list[ast.AST] = [*self._entries] or [tree]
        self.reached = self._follow(roots, None)
        self.used = self._follow(roots, self.reached) if self._entries else self.reached

    # --- what a name rests on -------------------------------------------------------------------------------------

    def _index(self, node: ast.AST) -> None:
        """Note which statements bind, or may change, which names."""
        match node:
            case ast.Name(id=name):
                statement = _statement(node, self._scopes)
                if statement is not None and (not isinstance(node.ctx, ast.Load) or self._may_change(node, statement)):
                    self._note(node, name, [statement])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self._note(node, name, [node])
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                statement = _statement(node, self._scopes)
                self._note(node, name, [statement] if statement is not None else [])
            case ast.ExceptHandler(name=str(name)):
                parent = self._scopes.parents[node]
                self._note(node, name, parent.body if isinstance(parent, (ast.Try, ast.TryStar)) else [])
            case ast.Attribute(attr=name, ctx=ast.Store()):
                statement = _statement(node, self._scopes)
                self._members[name].extend([statement] if statement is not None else [])
            case _:
                pass

    def _note(self, node: ast.AST, name: str, statements: Iterable[ast.stmt]) -> None:
        home = _home(self._scopes.of[node], name)
        if home is not None:
            self._sources[home, name].extend(statements)

    def _may_change(self, node: ast.Name, statement: ast.stmt) -> bool:
        """Whether what a name stands for may be changed where it is read: as target, receiver or argument."""
        if self._is_plain(node):
            return False
        current: ast.AST = node
        while current is not statement:
            parent = self._scopes.parents[current]
            if isinstance(parent, ast.Call):
                return parent.func is current or not self._takes_copies(parent)
            if isinstance(parent, (ast.Attribute, ast.Subscript)) and not isinstance(parent.ctx, ast.Load):
                return parent.value is current
            current = parent
        return isinstance(statement, ast.Expr)

    def _is_plain(self, node: ast.Name) -> bool:
        """Whether a name stands for a module, a number, an entry of the configuration or the configuration itself."""
        key = self._scopes.of[node], node.id
        if key not in self._plain:
            self._plain[key] = self._find_plain(node)
        return self._plain[key]

    def _find_plain(self, node: ast.Name) -> bool:
        paths = self._resolver.paths(node)
        if paths and all("()" not in path or path.endswith(BACKENDS) for path in paths):
            return True
        home = _home(self._scopes.of[node], node.id)
        bindings = home.bindings[node.id] if home is not None else []
        of_entry = home is not None and self._is_entry(home.node)
        return all(
            self._is_plain_value(binding.value) if isinstance(binding, Assigned) else of_entry for binding in bindings
        )

    def _is_plain_value(self, value: ast.expr) -> bool:
        match value:
            case ast.Constant():
                return True
            case ast.Call(func=ast.Name(id=name)) if name in _PLAIN:
                return True
            case (
                ast.Subscript(value=ast.Name() as owner)
                | ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr="get"))
            ):
                home = _home(self._scopes.of[owner], owner.id)
                return home is not None and self._is_entry(home.node)
            case _:
                return False

    def _is_entry(self, node: ast.AST) -> bool:
        return any(node is entry for entry in self._entries)

    def _takes_copies(self, call: ast.Call) -> bool:
        """Whether a call makes an object of a library, or is a method of one just made: its arguments stay as are."""
        paths = self._resolver.paths(call.func)
        return bool(paths) and all(
            path in _ASKING or "()." in path or path.rpartition(".")[2][:1].isupper() for path in paths
        )

    # --- following ------------------------------------------------------------------------------------------------

    def _follow(self, roots: Iterable[ast.AST], within: set[ast.AST] | None) -> set[ast.AST]:
        """Nodes that the roots rest on; of a function only what its results need if `within` says what can run."""
        found: set[ast.AST] = set()
        names: set[_Key] = set()
        members: set[str] = set()
        pending: list[ast.AST] = list(roots)
        while pending:
            node = pending.pop()
            if node in found or (within is not None and node not in within):
                continue
            found.add(node)
            pending.extend(self._parts(node, whole=within is None))
            if isinstance(node, ast.stmt):
                pending.extend(self._around(node))
            for key in self._names(node):
                if key not in names:
                    names.add(key)
                    pending.extend(self._sources.get(key, ()))
            if isinstance(node, ast.Attribute) and node.attr not in members:
                members.add(node.attr)
                pending.extend(self._members.get(node.attr, ()))
        return found

    def _parts(self, node: ast.AST, *, whole: bool) -> Iterator[ast.AST]:
        """Children that matter when a node does."""
        whole = whole or self._is_in_class(node)
        if isinstance(node, _NAMED_FUNCTIONS) and not whole:
            yield from (*node.decorator_list, node.args)
            yield from _results(node)
        elif isinstance(node, _COMPOUND) and not whole:
            yield from (child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.withitem)))
            for case in node.cases if isinstance(node, ast.Match) else []:
                yield from filter(None, (case.pattern, case.guard))
        else:
            yield from ast.iter_child_nodes(node)

    def _is_in_class(self, node: ast.AST) -> bool:
        """Whether a node belongs to a class, all of which is taken to matter when the class does."""
        if not isinstance(node, (*_NAMED_FUNCTIONS, *_COMPOUND)):
            return False
        parent = self._scopes.parents.get(node)
        while parent is not None and not isinstance(parent, ast.ClassDef):
            parent = self._scopes.parents.get(parent)
        return parent is not None

    def _around(self, node: ast.stmt) -> Iterator[ast.AST]:
        """Conditions, loops and contexts that a statement stands in."""
        parent = self._scopes.parents.get(node)
        while parent is not None and not isinstance(parent, (*_DEFINITIONS, ast.Module)):
            if isinstance(parent, _BRANCHES):
                yield parent
            parent = self._scopes.parents.get(parent)

    def _names(self, node: ast.AST) -> Iterator[_Key]:
        if isinstance(node, ast.Name):
            home = _home(self._scopes.of[node], node.id)
            if home is not None:
                yield home, node.id
        elif isinstance(node, ast.arg):
            function = self._scopes.parents[self._scopes.parents[node]]
            if isinstance(function, _FUNCTIONS) and not self._is_entry(function):
                yield from self._parameter(function, node.arg)

    def _parameter(self, function: FunctionNode, name: str) -> Iterator[_Key]:
        body = function.body[0] if isinstance(function.body, list) else function.body
        scope = self._scopes.of[body]
        yield scope, name


def _entries(tree: ast.Module, scopes: Scopes) -> list[ast.stmt]:
    """Statements that define the entry function in the module's own namespace."""
    module = scopes.of[tree]
    found: list[ast.stmt] = []
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS) and node.name == ENTRY and _home(scopes.of[node], ENTRY) is module:
            found.append(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((alias.asname or alias.name) == ENTRY for alias in node.names) and scopes.of[node] is module:
                found.append(node)
        elif isinstance(node, ast.Name) and node.id == ENTRY and not isinstance(node.ctx, ast.Load):
            statement = _statement(node, scopes)
            if statement is not None and _home(scopes.of[node], ENTRY) is module:
                found.append(statement)
    return found


def _statement(node: ast.AST, scopes: Scopes) -> ast.stmt | None:
    """The innermost statement that a node is part of."""
    current: ast.AST | None = node
    while current is not None and not isinstance(current, ast.stmt):
        current = scopes.parents.get(current)
    return current


def _home(scope: Scope, name: str) -> Scope | None:
    """The scope whose variable a name is where `scope` mentions it."""
    current: Scope | None = scope
    while current is not None:
        target = current.outer.get(name, current)
        if (current is scope or not target.is_class) and target.bindings.get(name):
            return target
        current = target.parent
    return None


def _results(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """What a function hands out, not what functions inside it do."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, _RESULTS):
            yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
