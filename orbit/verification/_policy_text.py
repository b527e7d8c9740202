"""The static policy's view of a file as text: reading it the way Python would, counting lines."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from orbit.verification.verdict import Contract

MAX_BYTES = 1 << 20
MAX_DEPTH = 200
MAX_NODES = 50_000
LINE_WIDTH = 120
_BOM = b"\xef\xbb\xbf"
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.DOTALL)
_UTF8_NAMES = frozenset({b"utf-8", b"utf8", b"utf-8-sig", b"ascii", b"us-ascii"})
_LINE_END = re.compile(r"\r\n|\r|\n")
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
