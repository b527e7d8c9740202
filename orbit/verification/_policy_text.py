"""The static policy's view of a file as text: reading it the way Python would, counting lines, weighing data."""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from orbit.verification._policy_rules import Finding, Rule
from orbit.verification.verdict import Contract

MAX_BYTES = 1 << 20
MAX_DEPTH = 200
MAX_NODES = 50_000
LINE_WIDTH = 120
MAX_NUMBERS = 64
MAX_PLAIN_NUMBERS = 500
MAX_ARGUMENTS = 8
MAX_CHARACTERS = 500
MAX_KEY_CHARACTERS = 2000
MAX_KEY_LENGTH = 40
MAX_JOINED = 20
_BOM = b"\xef\xbb\xbf"
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.DOTALL)
_UTF8_NAMES = frozenset({b"utf-8", b"utf8", b"utf-8-sig", b"ascii", b"us-ascii"})
_LINE_END = re.compile(r"\r\n|\r|\n")
_SMALL = range(5)
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class UnreadableSourceError(ValueError):
    """The bytes are not a Python file that can be judged; the text says why."""


@dataclass(frozen=True)
class Source:
    """A file that parsed."""

    text: str
    tree: ast.Module


def read(source: bytes) -> Source:
    """Decode and parse.

    Only UTF-8 is taken: with another declared encoding the text that a person reviews would not be the text that runs.

    Raises:
        UnreadableSourceError: too large, not UTF-8, not Python, or nested too deeply to be looked at.
    """
    if len(source) > MAX_BYTES:
        raise UnreadableSourceError(f"the file has {len(source)} bytes, more than {MAX_BYTES}")
    body = source.removeprefix(_BOM)
    for line in {*body.split(b"\n")[:2], *re.split(rb"\r\n|\r|\n", body)[:2]}:
        cookie = _COOKIE.match(line)
        if cookie and cookie[1].lower().replace(b"_", b"-") not in _UTF8_NAMES:
            raise UnreadableSourceError(f"declares the encoding {cookie[1].decode(errors='replace')}; use UTF-8")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableSourceError(f"not UTF-8 ({error.reason} at byte {error.start})") from error
    if "\0" in text:
        raise UnreadableSourceError("contains null bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        raise UnreadableSourceError(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, OverflowError) as error:
        raise UnreadableSourceError(str(error)) from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableSourceError("nested too deeply to be parsed") from error
    if _depth(tree) > MAX_DEPTH:
        raise UnreadableSourceError(f"nested more than {MAX_DEPTH} levels deep")
    if (size := sum(1 for _ in ast.walk(tree))) > MAX_NODES:
        raise UnreadableSourceError(f"the syntax tree has {size} nodes, more than {MAX_NODES}")
    return Source(text, tree)


def _depth(tree: ast.Module) -> int:
    level: list[ast.AST] = [tree]
    depth = 0
    while level and depth <= MAX_DEPTH:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth


# --- lines --------------------------------------------------------------------------------------------------------


def count_lines(source: Source, contract: Contract) -> int:
    """Effective lines as the contract counts them (task book, section 1)."""
    if contract is Contract.ORBIT_Q_1:
        stripped = (line.strip() for line in source.text.splitlines())
        return sum(1 for line in stripped if line and not line.startswith("#"))
    lines = [line.encode() for line in _LINE_END.split(source.text)]
    comments = _comment_lines(source.text)
    for docstring in docstrings(source.tree):
        _blank(lines, docstring)
    total = 0
    for number, line in enumerate(lines, start=1):
        length = len(line.decode().rstrip())
        if length and line.strip() and number not in comments:
            total += -(-length // LINE_WIDTH)
    return total


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """String nodes that document a module, class or function."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and node.body:
            match node.body[0]:
                case ast.Expr(value=ast.Constant(value=str()) as docstring):
                    yield docstring
                case _:
                    pass


def _blank(lines: list[bytes], node: ast.Constant) -> None:
    """Cut a node out of the lines; columns of the tree count bytes."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    tail = lines[last][node.end_col_offset or 0 :]
    head = lines[first][: node.col_offset]
    for row in range(first, last + 1):
        lines[row] = b""
    lines[first] = head + tail if first == last else head
    if first != last:
        lines[last] = tail


def _comment_lines(text: str) -> set[int]:
    """Lines that hold a comment only; a `#` at the start of a line inside a string is not one."""
    unified = _LINE_END.sub("\n", text)
    found = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(unified).readline):
            if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
                found.add(token.start[0])
    except (tokenize.TokenError, SyntaxError):
        # What the tokenizer cannot follow counts in full; it parsed, so this is next to impossible.
        return found
    return found


# --- data ---------------------------------------------------------------------------------------------------------


def data_findings(source: Source) -> Iterator[Finding]:
    """Data in bulk, and statements joined by semicolons."""
    constants = list(_constants(source.tree))
    numbers = sum(_weight(node, parent) for node, parent in constants)
    if numbers > MAX_NUMBERS:
        text = f"{numbers} numeric literals (small integers in indices and arithmetic aside)"
        yield Finding(Rule.BULK_DATA, 0, text, value=numbers, limit=MAX_NUMBERS)
    plain = sum(1 for node, _ in constants if isinstance(node.value, (int, float, complex)))
    if plain > MAX_PLAIN_NUMBERS:
        text = f"{plain} numeric literals, small integers included"
        yield Finding(Rule.BULK_DATA, 0, text, value=plain, limit=MAX_PLAIN_NUMBERS)
    aside = {id(node) for node in docstrings(source.tree)}
    keys, characters = set(), 0
    for node, parent in constants:
        if _is_key(node, parent):
            keys.add(str(node.value))
        elif isinstance(node.value, (str, bytes)) and id(node) not in aside:
            characters += len(node.value)
    characters += max(0, sum(map(len, keys)) - MAX_KEY_CHARACTERS)
    if characters > MAX_CHARACTERS:
        text = f"{characters} characters in string and bytes literals (names of configuration and result keys aside)"
        yield Finding(Rule.BULK_DATA, 0, text, value=characters, limit=MAX_CHARACTERS)
    joined = _joined_statements(source.tree)
    if joined > MAX_JOINED:
        yield Finding(Rule.JOINED_STATEMENTS, 0, f"{joined} statements share a line", value=joined, limit=MAX_JOINED)


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
    dictionary or long argument list they count, and so do booleans, which carry data as well. A long integer counts
    per 64 bits.
    """
    value = node.value
    stored = isinstance(parent, _DISPLAYS) or (isinstance(parent, ast.Call) and len(parent.args) > MAX_ARGUMENTS)
    if isinstance(value, bool):
        return int(stored)
    if isinstance(value, int):
        return 0 if value in _SMALL and not stored else 1 + value.bit_length() // 64
    return int(isinstance(value, (float, complex)))


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
