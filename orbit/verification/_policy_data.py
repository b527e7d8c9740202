"""The static policy's view of a file as data: literals, long lists and names in bulk, whatever they are made of."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from orbit.verification._policy_rules import Finding, Rule
from orbit.verification._policy_text import Source, docstrings

MAX_NUMBERS = 64
MAX_PLAIN_NUMBERS = 500
MAX_ARGUMENTS = 8
MAX_CHARACTERS = 500
MAX_KEY_CHARACTERS = 2000
MAX_KEY_LENGTH = 40
MAX_ITEMS = 64
MAX_ALL_ITEMS = 500
MAX_NAMES = 300
MAX_UNREAD_NAMES = 50
MAX_JOINED = 20
_LONG_INTEGER_BITS = 66
_BITS_PER_PART = 16
_LONG_DIGITS = 20
_DIGITS_PER_PART = 5
_SMALL = range(5)
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
_DIGITS = re.compile(r"\d+")


def data_findings(source: Source) -> Iterator[Finding]:
    """Data in bulk, and statements joined by semicolons."""
    constants = list(_constants(source.tree))
    aside = {id(node) for node in docstrings(source.tree)}
    texts = {node.value for node, _ in constants if isinstance(node.value, (str, bytes)) and id(node) not in aside}
    numbers = sum(_weight(node, parent) for node, parent in constants) + sum(map(_numbers_in_text, texts))
    yield from _beyond(numbers, MAX_NUMBERS, "numeric literals (small integers in indices and arithmetic aside)")
    plain = sum(1 for node, _ in constants if isinstance(node.value, (int, float, complex)))
    yield from _beyond(plain, MAX_PLAIN_NUMBERS, "numeric literals, small integers included")
    bound, read = _identifiers(source.tree)
    keys, characters = set(), 0
    for node, parent in constants:
        if _is_key(node, parent):
            keys.add(str(node.value))
        elif isinstance(node.value, (str, bytes)) and id(node) not in aside:
            characters += len(node.value)
    characters += max(0, sum(map(len, keys)) - MAX_KEY_CHARACTERS)
    characters += sum(len(name) for name in bound | read if len(name) > MAX_KEY_LENGTH)
    text = "characters in string and bytes literals (names of configuration and result keys aside)"
    yield from _beyond(characters, MAX_CHARACTERS, text)
    yield from _beyond(len(bound | read), MAX_NAMES, "different names")
    yield from _beyond(len(bound - read), MAX_UNREAD_NAMES, "names that are given and never read")
    yield from _item_findings(source.tree)
    joined = _joined_statements(source.tree)
    if joined > MAX_JOINED:
        yield Finding(Rule.JOINED_STATEMENTS, 0, f"{joined} statements share a line", value=joined, limit=MAX_JOINED)


def _beyond(value: int, limit: int, what: str, line: int = 0) -> Iterator[Finding]:
    if value > limit:
        yield Finding(Rule.BULK_DATA, line, f"{value} {what}", value=value, limit=limit)


def _constants(tree: ast.Module) -> Iterator[tuple[ast.Constant, ast.AST]]:
    """Literals with where they stand; a sign belongs to its number, an index tuple to its subscript."""
    subscripts: dict[ast.AST, ast.AST] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            subscripts[node.slice] = node
        if isinstance(node, ast.UnaryOp):
            continue
        parent = subscripts.get(node, node)
        for child in ast.iter_child_nodes(node):
            while isinstance(child, ast.UnaryOp):
                child = child.operand
            if isinstance(child, ast.Constant):
                yield child, parent


def _weight(node: ast.Constant, parent: ast.AST) -> int:
    """How many numbers a literal is worth.

    0 for the small integers that every program has in indices, ranges and arithmetic; in a list, tuple, set,
    dictionary or long argument list they count, and so do booleans, which carry data as well. An integer of more than
    20 digits counts once more per five digits.
    """
    value = node.value
    stored = isinstance(parent, _DISPLAYS) or (isinstance(parent, ast.Call) and len(parent.args) > MAX_ARGUMENTS)
    if isinstance(value, bool):
        return int(stored)
    if isinstance(value, int):
        extra = max(0, value.bit_length() - _LONG_INTEGER_BITS)
        return 0 if value in _SMALL and not stored else 1 + extra // _BITS_PER_PART
    return int(isinstance(value, (float, complex)))


def _numbers_in_text(text: str | bytes) -> int:
    """How many numbers a string is worth: its runs of digits, a long one counted like a long integer."""
    runs = _DIGITS.findall(text if isinstance(text, str) else text.decode("latin-1"))
    return sum(1 + max(0, len(run) - _LONG_DIGITS) // _DIGITS_PER_PART for run in runs)


def _identifiers(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Names that the file gives to something (variables, fields, parameters, keywords), and names that it reads."""
    bound: set[str] = set()
    read: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=context) | ast.Attribute(attr=name, ctx=context):
                (read if isinstance(context, ast.Load) else bound).add(name)
            case ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.alias(name=name, asname=asname):
                bound.add(asname or name)
            case _:
                pass
    return bound, read


def _item_findings(tree: ast.Module) -> Iterator[Finding]:
    """Long lists of any kind inside one expression or statement, and many items in displays taken together."""
    total = 0
    for node in ast.walk(tree):
        lists = [items for _, items in ast.iter_fields(node) if isinstance(items, list)]
        lists = [items for items in lists if items and not isinstance(items[0], _BLOCKS)]
        longest = max(map(len, lists), default=0)
        if isinstance(node, _DISPLAYS) or (isinstance(node, ast.Call) and len(node.args) > MAX_ARGUMENTS):
            total += longest
        line = getattr(node, "lineno", 0)
        yield from _beyond(longest, MAX_ITEMS, f"items in one {type(node).__name__.lower()}", line)
    yield from _beyond(total, MAX_ALL_ITEMS, "items in lists, tuples, sets, dictionaries and long argument lists")


def _is_key(node: ast.Constant, parent: ast.AST) -> bool:
    """Whether a literal is an identifier that names an entry of a dictionary, as in `config["n_qubits"]`."""
    if not isinstance(node.value, str) or not node.value.isidentifier() or len(node.value) > MAX_KEY_LENGTH:
        return False
    if isinstance(parent, ast.Dict):
        return any(node is key for key in parent.keys)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr == "get"
    return isinstance(parent, ast.Subscript) and parent.slice is node


def _joined_statements(tree: ast.Module) -> int:
    """Simple statements that begin on the line on which the one before them ended."""
    joined = 0
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                pairs = itertools.pairwise(block)
                joined += sum(1 for before, after in pairs if before.end_lineno == after.lineno)
    return joined
