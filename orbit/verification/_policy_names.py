"""What an expression may refer to: dotted paths of imported or built-in things, through aliases and known detours.

The answer errs on the side of too many paths. `P()` is whatever calling `P` returned.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable

from orbit.verification._policy_constants import Constant, Folder
from orbit.verification._policy_scopes import Assigned, Binding, Imported, Scopes
from orbit.verification._policy_tables import join

Paths = frozenset[str]

_NONE: Paths = frozenset()
_MAX_STEPS = 200_000
_MAX_CHAIN = 60
_MAX_PATHS = 32
_MAX_PARTS = 12
_BUILTINS = frozenset(dir(builtins)) | {
    *("__builtins__", "__file__", "__cached__", "__path__", "__loader__", "__spec__"),
    *("license", "copyright", "credits", "help", "exit", "quit"),
}
_HAND_ON = frozenset(
    f"builtins.{name}"
    for name in (
        "dict",
        "enumerate",
        "filter",
        "frozenset",
        "iter",
        "list",
        "next",
        "reversed",
        "set",
        "sorted",
        "tuple",
    )
) | {"builtins.zip", "builtins.map", "functools.partial", "copy.copy", "copy.deepcopy", "itertools.chain"}
"""Calls whose result holds, or is, what they were given."""
IMPORTERS = frozenset({"builtins.__import__", "importlib.import_module", "importlib.__import__"})
BACKENDS = ("set_backend()", "get_backend()", "runtime_backend()")
"""Ends of paths that name the array functions which a framework carries."""
NAMESPACES = ("__dict__", "builtins.globals()", "builtins.locals()", "builtins.vars()", "builtins.__builtins__")


class Resolver:
    """Resolves the expressions of one file.

    Attributes:
        exhausted: whether some name was handed on so often that it was given up; then the answers are not complete.
    """

    def __init__(self, scopes: Scopes) -> None:
        self.exhausted = False
        self._scopes = scopes
        self._known: dict[ast.AST, Paths] = {}
        self._constants: dict[ast.AST, frozenset[Constant]] = {}
        self._folder = Folder(self._values_of_name)
        self._active: set[ast.AST] = set()
        self._partial = False
        self._steps = 0

    def paths(self, node: ast.expr) -> Paths:
        """Dotted paths that `node` may refer to; empty for what the file itself makes."""
        known = self._known.get(node)
        if known is not None:
            return known
        if not self._active:
            self._partial = False
        self._steps += 1
        if node in self._active:
            self._partial = True
            return _NONE
        if len(self._active) > _MAX_CHAIN or self._steps > _MAX_STEPS:
            self.exhausted = self._partial = True
            return _NONE
        self._active.add(node)
        found = self._find(node)
        self._active.discard(node)
        if len(found) > _MAX_PATHS:
            self.exhausted = True
            found = frozenset(sorted(found)[:_MAX_PATHS])
        if not self._partial:
            self._known[node] = found
        return found

    def constants(self, node: ast.expr) -> frozenset[Constant]:
        """Constant values that `node` may have; empty when it is computed from something that is not one."""
        if node not in self._constants:
            self._constants[node] = self._folder.values(node)
        return self._constants[node]

    def strings(self, node: ast.expr) -> frozenset[str]:
        """The strings among `constants`."""
        return frozenset(value for value in self.constants(node) if isinstance(value, str))

    def attribute(self, bases: Iterable[str], name: str) -> Paths:
        """Paths of an attribute of any of `bases`."""
        found = set()
        for base in bases:
            if name == "__class__" and base.endswith("()"):
                found.add(base.removesuffix("()"))
            elif name == "__call__" or base.count(".") >= _MAX_PARTS:
                found.add(base)
            else:
                found.add(join(base, name))
        return frozenset(found)

    # --- by kind of expression ------------------------------------------------------------------------------------

    def _find(self, node: ast.expr) -> Paths:
        match node:
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute(value=value, attr=name):
                bases = self.paths(value)
                own = self._bound(self._scopes.attributes.get(name, ())) if _is_unknown(bases) else _NONE
                return self.attribute(bases, name) | own
            case ast.Call():
                return self._call(node)
            case ast.Subscript(value=value, slice=key):
                return self._item(self.paths(value), key)
            case ast.IfExp(body=first, orelse=second):
                return self.paths(first) | self.paths(second)
            case ast.NamedExpr(value=value) | ast.Await(value=value) | ast.Starred(value=value):
                return self.paths(value)
            case ast.BoolOp(values=items) | ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return self._all(items)
            case ast.BinOp(left=ast.List() | ast.Tuple() as left, right=right):
                return self.paths(left) | self.paths(right)
            case ast.Dict(keys=keys, values=items):
                return self._all([*(key for key in keys if key is not None), *items])
            case ast.ListComp(elt=item) | ast.SetComp(elt=item) | ast.GeneratorExp(elt=item):
                return self.paths(item)
            case ast.DictComp(value=item):
                return self.paths(item)
            case _:
                return _NONE

    def _all(self, items: Iterable[ast.expr]) -> Paths:
        return _NONE.union(*(self.paths(item) for item in items))

    def _name(self, node: ast.expr, name: str) -> Paths:
        bindings, maybe_builtin = self._scopes.of[node].lookup(name)
        found = self._bound(bindings)
        if maybe_builtin and name in _BUILTINS:
            found |= {f"builtins.{name}"}
        elif not bindings:
            found |= {join(module, name) for module in self._scopes.stars}
        return found

    def _bound(self, bindings: Iterable[Binding]) -> Paths:
        found: set[str] = set()
        for binding in bindings:
            if isinstance(binding, Imported):
                found.add(binding.path)
            elif isinstance(binding, Assigned):
                found |= self.paths(binding.value)
        return frozenset(found)

    def _values_of_name(self, node: ast.Name) -> list[ast.expr] | None:
        """Expressions that a name is bound to; None if it may be anything else."""
        bindings, maybe_builtin = self._scopes.of[node].lookup(node.id)
        if not bindings:
            return [] if maybe_builtin and node.id in _BUILTINS else None
        values = [binding.value for binding in bindings if isinstance(binding, Assigned)]
        return values if len(values) == len(bindings) else None

    def _item(self, bases: Paths, key: ast.expr) -> Paths:
        found: set[str] = set()
        for base in bases:
            if base == "sys.modules":
                found |= self.strings(key)
            elif (owner := namespace_of(base)) is not None:
                found |= {join(owner, name) for name in self.strings(key)} or {base}
            else:
                found.add(base)
        return frozenset(found)

    def _call(self, node: ast.Call) -> Paths:
        if isinstance(node.func, ast.Lambda):
            return self.paths(node.func.body)
        found: set[str] = set()
        for function in self.paths(node.func):
            special = _SPECIAL.get(function)
            if special is not None and node.args:
                found |= special(self, node)
            elif function in _HAND_ON:
                found |= self._all([*node.args, *(keyword.value for keyword in node.keywords)])
            elif (owner := namespace_of(function.rpartition(".")[0])) and function.endswith((".get", ".pop")):
                found |= {join(owner, name) for argument in node.args[:1] for name in self.strings(argument)}
            elif function.startswith("sys.modules."):
                found |= {name for argument in node.args[:1] for name in self.strings(argument)}
            else:
                found.add(f"{function}()" if not function.endswith("()") else function)
        return frozenset(found)

    def _getattr(self, node: ast.Call) -> Paths:
        bases = self.paths(node.args[0])
        found: set[str] = set()
        for argument in node.args[1:2]:
            for name in self.strings(argument):
                found |= self.attribute(bases, name)
                if _is_unknown(bases):
                    found |= self._bound(self._scopes.attributes.get(name, ()))
        return frozenset(found) | self._all(node.args[2:])

    def _namespace(self, node: ast.Call) -> Paths:
        return frozenset(join(base, "__dict__") for base in self.paths(node.args[0]))

    def _type(self, node: ast.Call) -> Paths:
        if len(node.args) > 1:
            return _NONE
        return frozenset(base.removesuffix("()") for base in self.paths(node.args[0]) if base.endswith("()"))

    def _import(self, node: ast.Call) -> Paths:
        names = self.strings(node.args[0])
        return names | {name.partition(".")[0] for name in names}

    def _attrgetter(self, node: ast.Call) -> Paths:
        """`attrgetter("a.b")(x)`: the inner call has no object yet, so it is followed from the outer one."""
        found: set[str] = set()
        if isinstance(node.func, ast.Call):
            for argument in node.func.args:
                for dotted in self.strings(argument):
                    bases = self._all(node.args)
                    for name in dotted.split("."):
                        bases = self.attribute(bases, name)
                    found |= bases
        return frozenset(found)


_SPECIAL: dict[str, Callable[[Resolver, ast.Call], Paths]] = {
    "builtins.getattr": Resolver._getattr,
    "builtins.vars": Resolver._namespace,
    "builtins.type": Resolver._type,
    "operator.attrgetter()": Resolver._attrgetter,
    "operator.methodcaller()": Resolver._attrgetter,
    **dict.fromkeys(IMPORTERS, Resolver._import),
}


def namespace_of(path: str) -> str | None:
    """The module whose names a mapping holds: `numpy` for `numpy.__dict__`, `builtins` for what `globals()` gives."""
    if path.endswith(".__dict__"):
        return path.removesuffix(".__dict__")
    return "builtins" if path in NAMESPACES else None


def _is_unknown(bases: Paths) -> bool:
    """Whether an object may be one that the file made, or that a call returned."""
    return not bases or any(base.endswith("()") for base in bases)
