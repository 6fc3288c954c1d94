"""Small changes to a module, one at a time, that good tests notice."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import changes

CONTEXT = 24
"""Characters of unchanged text, about, that are shown on either side of a change."""

LONGEST = 100
"""Characters of a changed text that are shown."""

TOKEN = re.compile(r"""'[^'\n]*'|"[^"\n]*"|[<>=!]=|//|\*\*|\d+\.\d+|\w+|\s+|.""")
"""Pieces of a line that are not torn apart."""


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Args:
        function: Where the change is: `Class.function`, or `module` for the top level.
        line: Line of the changed statement in the original file.
        change: The change, e.g. `trials {> => >=} 500`; with `function` it is the mutant's name, which stays the same
            while the code around it is edited. A second change of the same name gets ` (2)`.
        source: The mutated module.
    """

    function: str
    line: int
    change: str
    source: str


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    tree = ast.parse(source)
    found: list[Mutant] = []
    names: Counter[tuple[str, str]] = Counter()
    seen = {ast.unparse(tree)}
    for function, holder, key, statement in _statements(tree, "module"):
        before = _text(statement)
        for undo in _changed(holder, key, statement):
            mutated, after = ast.unparse(tree), _text(_at(holder, key))
            undo()
            if mutated in seen:
                continue
            seen.add(mutated)
            change = difference(before, after)
            names[function, change] += 1
            count = names[function, change]
            change = change if count == 1 else f"{change} ({count})"
            found.append(Mutant(function, statement.lineno, change, mutated))
    return found


def difference(before: str, after: str) -> str:
    """What differs between two texts, with a little of what surrounds it: `trials {> => >=} 500`."""
    old, new = TOKEN.findall(before), TOKEN.findall(after)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = "", ""
    for token in reversed(old[:start]):
        if len(left) + len(token) > CONTEXT:
            break
        left = token + left
    for token in old[len(old) - end :]:
        if len(right) + len(token) > CONTEXT:
            break
        right += token
    changed = " => ".join(_shortened("".join(part[start : len(part) - end])) for part in (old, new))
    return f"{left}{{{changed}}}{right}".strip()


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST * 2 // 3]}...{text[-LONGEST // 3 :]}"


def _statements(tree: ast.AST, function: str) -> Iterator[tuple[str, Any, int, ast.stmt]]:
    """Every statement that does something, with its function and its place: a list and the index there."""
    for body in (getattr(tree, name, []) for name in ("body", "orelse", "finalbody")):
        for number, statement in enumerate(body):
            inner = function
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = statement.name if function == "module" else f"{function}.{statement.name}"
            if not _is_declaration(statement):
                yield inner, body, number, statement
            yield from _statements(statement, inner)
    for handler in getattr(tree, "handlers", []):
        yield from _statements(handler, function)


def _is_declaration(statement: ast.stmt) -> bool:
    """Whether a statement only says something to readers or type checkers, or brings in other modules."""
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Global, ast.Nonlocal)):
        return True
    if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _text(statement: ast.stmt) -> str:
    """A statement's own text: of one with a body, its first line."""
    lines = ast.unparse(statement).split("\n")
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return next(line for line in lines if line.lstrip().startswith(("def ", "async def ")))
    return lines[0]


def _at(holder: Any, key: int | str) -> Any:
    return holder[key] if isinstance(key, int) else getattr(holder, key)


def _put(holder: Any, key: int | str, value: Any) -> None:
    if isinstance(key, int):
        holder[key] = value
    else:
        setattr(holder, key, value)


def _changed(holder: Any, key: int | str, node: ast.AST) -> Iterator[Callable[[], None]]:
    """Change a node, then each below it, one at a time; what is yielded takes the change back."""
    for new in changes.of(node):
        _put(holder, key, new)
        yield lambda: _put(holder, key, node)
    for inner, place in _below(node):
        if isinstance(part := _at(inner, place), ast.AST):
            yield from _changed(inner, place, part)


DECLARED = {"limit": 1, "Column": 2, "meaning": 1}
"""Arguments of a declaration that code goes by; those behind are documentation."""

DISPLAYED = ("title", "titles", "importance", "keep")
"""What a declaration of columns says about displays alone."""


def _below(node: ast.AST) -> Iterator[tuple[Any, int | str]]:
    """The places below a node where changes count: no types, decorators, statements, and no words about a limit."""
    skipped = {"annotation", "returns", "decorator_list", "body", "orelse", "finalbody", "handlers", "bases", "ctx"}
    if isinstance(node, (ast.Lambda, ast.IfExp)):
        skipped -= {"body", "orelse"}
    if isinstance(node, ast.Assign):
        skipped.add("targets")
    if isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.comprehension)):
        skipped.add("target")
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        if isinstance(value, list):
            counted = DECLARED.get(called, len(value)) if name == "args" else len(value)
            shown = called in ("Column", "columns", "meaning") and name == "keywords"
            yield from ((value, n) for n, part in enumerate(value[:counted]) if not (shown and part.arg in DISPLAYED))
        else:
            yield node, name
