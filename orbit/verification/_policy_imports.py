"""The static policy's rules on imports: the required framework, the others, and modules that break a rule as such."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Protocol

from orbit.verification._policy_rules import Finding, Rule
from orbit.verification._policy_tables import KNOWN_PACKAGES, MIXED, classify, is_listed, is_within, join

_CONFIGURATION = frozenset(
    {"about", "backend", "config", "cons", "get_backend", "get_dtype", "numpy", "random", "typing"}
)


class StaticPolicyLists(Protocol):
    """What the static policy needs to know of a framework; `orbit.frameworks.Framework` provides it."""

    @property
    def name(self) -> str:
        """Name users type."""
        ...

    @property
    def required_imports(self) -> tuple[str, ...]:
        """An artifact must import one of these modules and call it."""
        ...

    @property
    def companions(self) -> tuple[str, ...]:
        """Packages that belong to the framework although they could look like another one."""
        ...

    @property
    def bare_imports(self) -> tuple[str, ...]:
        """The framework, its numerical backend and the optimizer library."""
        ...

    @property
    def forbidden_imports(self) -> frozenset[str]:
        """Other quantum packages, as import names, top level or dotted."""
        ...

    @property
    def tensor_network_libraries(self) -> frozenset[str]:
        """General libraries whose import is a note."""
        ...


class ImportRules:
    """Judges import statements and what is known of a framework by name."""

    def __init__(self, framework: StaticPolicyLists) -> None:
        self._framework = framework
        self._own = (*framework.required_imports, *framework.companions)
        self._known = {
            name.partition(".")[0]
            for name in (*self._own, *framework.bare_imports, *framework.tensor_network_libraries)
        }
        self._others = {name for name in framework.forbidden_imports if "." not in name}
        self._converters = {f"{verb}_{name}" for verb in ("to", "from") for name in self._others}

    def is_required(self, module: str) -> bool:
        """Whether importing this module imports the required framework."""
        return is_within(module, self._framework.required_imports) is not None

    def is_use(self, path: str) -> bool:
        """Whether calling `path` makes the framework work; its configuration and its array functions do not count."""
        root = is_within(path.replace("()", ""), self._framework.required_imports)
        if root is None:
            return False
        first = path.removeprefix(root).lstrip(".").partition(".")[0].removesuffix("()")
        return bool(first) and first not in _CONFIGURATION and not first.startswith("set_")

    def statement(self, node: ast.Import | ast.ImportFrom) -> Iterator[Finding]:
        """Findings on one import statement."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self.module(alias.name, node.lineno)
            return
        if node.level:
            yield Finding(Rule.UNLISTED_IMPORT, node.lineno, "relative import; a submission is one file")
            return
        source = node.module or ""
        yield from self.module(source, node.lineno)
        for alias in node.names:
            if alias.name == "*":
                mixed = MIXED.get(source.partition(".")[0])
                if mixed is not None:
                    yield Finding(mixed.otherwise, node.lineno, f"from {source} import *")
            else:
                yield from self.path(join(source, alias.name), node.lineno)

    def module(self, module: str, line: int) -> Iterator[Finding]:
        """Findings on importing a module, in whatever way."""
        lists = self._framework
        if is_within(module, self._own) is None:
            if is_within(module, tuple(lists.forbidden_imports)) is not None:
                yield Finding(Rule.OTHER_FRAMEWORK_IMPORT, line, module)
                return
            if is_within(module, tuple(lists.tensor_network_libraries)) is not None:
                yield Finding(Rule.TENSOR_NETWORK_LIBRARY, line, module)
        root = module.partition(".")[0]
        if (rule := classify(module)) is not None:
            yield Finding(rule, line, module)
        elif root not in self._known and not is_listed(root):
            yield Finding(Rule.UNLISTED_IMPORT, line, module)
        else:
            yield from self.path(module, line)

    def path(self, path: str, line: int) -> Iterator[Finding]:
        """Findings on using what a dotted path names; what a call returned was found with the call."""
        if "()" in path:
            return
        parts = path.split(".")
        is_private = len(parts) > 1 and parts[1].startswith("_") and not parts[1].endswith("_")
        carried = next((part for part in parts[1:] if part in self._others), None)
        if carried is not None or is_within(path, tuple(self._framework.forbidden_imports)) is not None:
            yield Finding(Rule.OTHER_FRAMEWORK_IMPORT, line, path)
        elif path.startswith("numpy.") and parts[-1] == "as_strided":
            yield Finding(Rule.CTYPES_ACCESS, line, f"{path} can reach memory outside its array", doubtful=True)
        elif (rule := classify(path)) is not None:
            yield Finding(rule, line, path)
        elif is_private and parts[0] in self._known | KNOWN_PACKAGES and not self.is_required(parts[0]):
            yield Finding(Rule.UNLISTED_IMPORT, line, f"private module {'.'.join(parts[:2])}")

    def attribute(self, name: str, line: int) -> Iterator[Finding]:
        """Findings on an attribute name that converts to or from another framework, on any object."""
        if name in self._converters:
            yield Finding(Rule.OTHER_FRAMEWORK_IMPORT, line, name)

    def device(self, name: str, line: int) -> Iterator[Finding]:
        """Findings on the name of a simulator that a plugin of another framework provides (`qiskit.aer`)."""
        root, dot, _ = name.partition(".")
        if dot and root in self._others:
            yield Finding(Rule.OTHER_FRAMEWORK_IMPORT, line, f"device {name!r}")
