"""Who binds which name where: the scopes of a file, as far as the static policy needs them.

A function's names are its own, a name bound in a class or at module level may still mean the builtin before it is
bound, and whatever is assigned to an attribute anywhere may be read back from an attribute of that name.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from orbit.verification._policy_tables import join

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NAMED_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WRAPPERS = frozenset(
    {"cache", "checkpoint", "classmethod", "compile", "grad", "jit", "lru_cache", "partial", "property", "qnode"}
    | {"staticmethod", "value_and_grad", "vmap"}
)


@dataclass(frozen=True)
class Imported:
    """A name bound by an import, to a dotted path."""

    path: str


@dataclass(frozen=True)
class Assigned:
    """A name bound to the value of an expression, or to one of its items."""

    value: ast.expr
    scope: Scope


Binding = Imported | Assigned | None
"""None: bound to something that is not followed (a parameter, an own function or class)."""


@dataclass(eq=False)
class Scope:
    """One namespace. `bindings` lists everything a name is bound to in it."""

    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=lambda: defaultdict(list))
    outer: dict[str, Scope] = field(default_factory=dict)
    hiding: set[str] = field(default_factory=set)

    @property
    def is_class(self) -> bool:
        """Whether this is the body of a class."""
        return isinstance(self.node, ast.ClassDef)

    @property
    def is_module(self) -> bool:
        """Whether this is the file."""
        return self.parent is None

    def lookup(self, name: str) -> tuple[list[Binding], bool]:
        """Everything a name may be bound to where this scope reads it, and whether it may be a builtin as well."""
        found: list[Binding] = []
        scope: Scope | None = self
        first = True
        while scope is not None:
            target = scope.outer.get(name, scope)
            if first or not target.is_class:
                bound = target.bindings.get(name)
                if bound:
                    found.extend(bound)
                    if target.is_module:
                        return found, name not in target.hiding
                    if not target.is_class:
                        return found, False
            if target.is_module:
                break
            scope, first = target.parent, False
        return found, True


@dataclass(frozen=True)
class Scopes:
    """The scopes of a file.

    Attributes:
        of: the scope in which each expression is evaluated.
        attributes: attribute name to whatever is assigned to it on any object, or bound in a class body.
        parents: the syntactic parent of each node.
        stars: modules of which every name was imported.
        calls: name of a function or method to every call by that name.
    """

    of: dict[ast.AST, Scope]
    attributes: dict[str, list[Binding]]
    parents: dict[ast.AST, ast.AST]
    stars: list[str]
    calls: dict[str, list[ast.Call]]


def build(tree: ast.Module) -> Scopes:
    """Walk a file once and note every binding."""
    return _Builder(tree).scopes


class _Builder:
    def __init__(self, tree: ast.Module) -> None:
        module = Scope(tree, None)
        self.scopes = Scopes({}, defaultdict(list), {}, [], defaultdict(list))
        stack: list[tuple[ast.AST, Scope]] = [(tree, module)]
        declared: list[tuple[ast.AST, Scope]] = []
        while stack:
            node, scope = stack.pop()
            self.scopes.of[node] = scope
            declared.append((node, scope))
            for child, inner in self._children(node, scope):
                self.scopes.parents[child] = node
                stack.append((child, inner))
        # `global` may stand after a scope was opened, so it is settled before anything is bound.
        for node, scope in declared:
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                self._declare(node, scope, module)
        for node, scope in declared:
            self._bind(node, scope)
        for node, scope in declared:
            if isinstance(node, ast.Assign):
                self._bind_items(node, scope)
        module.hiding = _hidden_builtins(tree)

    # --- which scope a child is evaluated in ----------------------------------------------------------------------

    def _children(self, node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            inner = Scope(node, scope)
            body = node.body if isinstance(node.body, list) else [node.body]
            inside = {id(child) for child in body}
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.arguments):
                    # Defaults and annotations are evaluated outside; the names are bound inside.
                    self._bind_parameters(child, inner, scope)
                yield child, inner if id(child) in inside else scope
        elif isinstance(node, _COMPREHENSIONS):
            inner = Scope(node, scope)
            for child in ast.iter_child_nodes(node):
                yield child, inner
        elif isinstance(node, ast.comprehension) and self._is_first(node) and scope.parent is not None:
            # The first iterable of a comprehension is evaluated outside it.
            for child in ast.iter_child_nodes(node):
                yield child, scope.parent if child is node.iter else scope
        else:
            for child in ast.iter_child_nodes(node):
                yield child, scope

    def _is_first(self, node: ast.comprehension) -> bool:
        parent = self.scopes.parents[node]
        return isinstance(parent, _COMPREHENSIONS) and parent.generators[0] is node

    def _bind_parameters(self, arguments: ast.arguments, inner: Scope, outer: Scope) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        for argument in (*positional, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if argument is not None:
                inner.bindings[argument.arg].append(None)
        late = positional[len(positional) - len(arguments.defaults) :]
        for argument, default in (
            *zip(late, arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ):
            if default is not None:
                inner.bindings[argument.arg].append(Assigned(default, outer))

    # --- what a node binds ----------------------------------------------------------------------------------------

    @staticmethod
    def _declare(node: ast.Global | ast.Nonlocal, scope: Scope, module: Scope) -> None:
        for name in node.names:
            target: Scope | None = module
            if isinstance(node, ast.Nonlocal):
                target = scope.parent
                while target is not None and (target.is_class or not _binds(target, name)) and target.parent:
                    target = target.parent
            scope.outer[name] = target or module

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                self.scopes.calls[name].append(node)
            case ast.Import(names=names):
                for alias in names:
                    root = alias.name.partition(".")[0]
                    self._name(alias.asname or root, Imported(alias.name if alias.asname else root), scope)
            case ast.ImportFrom(module=source, names=names, level=0):
                for alias in names:
                    if alias.name == "*":
                        self.scopes.stars.append(source or "")
                    else:
                        self._name(alias.asname or alias.name, Imported(join(source or "", alias.name)), scope)
            case ast.ImportFrom(names=names):
                for alias in names:
                    self._name(alias.asname or alias.name, None, scope)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self._name(name, None, scope)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._target(target, value, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._target(target, value, scope)
            case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                self._target(target, value, _function_scope(scope) if isinstance(node, ast.NamedExpr) else scope)
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                self._target(target, value, scope)
            case ast.comprehension(target=target, iter=value):
                self._target(target, value, scope)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self._target(target, value, scope)
            case ast.ExceptHandler(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                self._name(name, None, scope)
            case ast.MatchAs(name=str(name)):
                subject = self._match_subject(node)
                self._name(name, Assigned(subject, self.scopes.of[subject]) if subject is not None else None, scope)
            case _:
                pass

    def _name(self, name: str, binding: Binding, scope: Scope) -> None:
        scope = scope.outer.get(name, scope)
        scope.bindings[name].append(binding)
        if scope.is_class:
            self.scopes.attributes[name].append(binding)

    def _target(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                self._name(name, Assigned(value, self.scopes.of[value]), scope)
            case ast.Attribute(attr=name):
                self.scopes.attributes[name].append(Assigned(value, self.scopes.of[value]))
            case ast.Starred(value=inner):
                self._target(inner, value, scope)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
                paired = len(values) == len(targets) and not any(isinstance(item, ast.Starred) for item in targets)
                for index, item in enumerate(targets):
                    self._target(item, values[index] if paired else value, scope)
            case _:
                pass

    def _bind_items(self, node: ast.Assign, scope: Scope) -> None:
        """`d[key] = value`: what is put into a container may be had back from it."""
        for target in node.targets:
            if not isinstance(target, ast.Subscript):
                continue
            binding = Assigned(node.value, self.scopes.of[node.value])
            match target.value:
                case ast.Name(id=name):
                    owner: Scope | None = scope.outer.get(name, scope)
                    while owner is not None and name not in owner.bindings:
                        owner = owner.parent
                    if owner is not None:
                        owner.bindings[name].append(binding)
                case ast.Attribute(attr=name):
                    self.scopes.attributes[name].append(binding)
                case _:
                    pass

    def _match_subject(self, node: ast.AST) -> ast.expr | None:
        parent: ast.AST | None = node
        while parent is not None and not isinstance(parent, ast.Match):
            parent = self.scopes.parents.get(parent)
        return parent.subject if parent is not None else None


def _function_scope(scope: Scope) -> Scope:
    """Where a walrus inside a comprehension binds."""
    while isinstance(scope.node, _COMPREHENSIONS) and scope.parent is not None:
        scope = scope.parent
    return scope


def _binds(scope: Scope, name: str) -> bool:
    """Whether a function holds the variable that an inner `nonlocal` means; bindings may not be known yet."""
    if name in scope.bindings:
        return True
    own = (node for node in ast.walk(scope.node) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return any(node.id == name for node in own)


def _hidden_builtins(tree: ast.Module) -> set[str]:
    """Names bound at the top of the file before anything could have used the builtin of that name.

    Statements count up to the first that could run a function of the file; nothing counts that is deleted anywhere.
    """
    definitions = (node for node in ast.walk(tree) if isinstance(node, (*_NAMED_FUNCTIONS, ast.ClassDef)))
    own = {node.name for node in definitions}
    hidden: set[str] = set()
    for node in tree.body:
        if not _runs_nothing(node, own):
            break
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            hidden.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, (*_NAMED_FUNCTIONS, ast.ClassDef)):
            hidden.add(node.name)
        elif isinstance(node, ast.Assign):
            hidden.update(target.id for target in node.targets if isinstance(target, ast.Name))
    deleted = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del))
    return hidden - set(deleted)


def _runs_nothing(node: ast.AST, own: set[str]) -> bool:
    """Whether a statement cannot call a function of the file: it neither names one nor defines one on the spot."""
    if isinstance(node, _NAMED_FUNCTIONS):
        decorators = all(_is_wrapper(decorator) for decorator in node.decorator_list)
        return decorators and _runs_nothing(node.args, own)
    if isinstance(node, ast.ClassDef):
        evaluated = (*node.decorator_list, *node.bases, *node.keywords, *node.body)
        return all(_runs_nothing(child, own) for child in evaluated)
    if isinstance(node, ast.Lambda) or (isinstance(node, ast.Name) and node.id in own):
        return False
    return all(_runs_nothing(child, own) for child in ast.iter_child_nodes(node))


def _is_wrapper(decorator: ast.expr) -> bool:
    """A decorator that is known to wrap a function without calling it."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(decorator, ast.Call) and decorator.args and isinstance(node, ast.Name) and node.id == "partial":
        node = decorator.args[0]
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in _WRAPPERS
