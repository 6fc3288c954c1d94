"""References in sentences to what a reader can choose or open: options, tables and pages.

Sentences, reasons and errors are worded once, for all surfaces. What they name stands between « and » as it is typed on
a command line: `«--ranks»`, `«--table transfers»`, ``«`stepscope ops --step`»``. Terminal, reports and files show it as
it stands there, without the marks; web pages and the API put the names that it has there in its place. What stands
between no marks is the same for every reader, such as a command that records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

Kind = Literal["page", "table", "option"]

_REFERENCE = re.compile(r"stepscope (?P<page>[a-z][a-z-]*)|--table (?P<table>[a-z_]+)|--(?P<option>[a-z][a-z-]*)")
_ONE = re.sub(r"\?P<\w+>", "?:", _REFERENCE.pattern)
_MARKED = re.compile(rf"«(`?)((?:{_ONE})(?: (?:{_ONE}))*)\1»")


class Reference(NamedTuple):
    """Something that a sentence names.

    Args:
        kind: What it is.
        name: Its name on the command line, without dashes before it.
        typed: How it is typed there.
    """

    kind: Kind
    name: str
    typed: str


def as_typed(text: str) -> str:
    """A text with its references as they are typed on a command line.

    Examples:
        >>> as_typed("Choose «--ranks»; «`stepscope ops --step`» shows more, and « » stay")
        'Choose --ranks; `stepscope ops --step` shows more, and « » stay'
    """
    return _MARKED.sub(r"\1\2\1", text)


def as_named(text: str, name: Callable[[Reference], str], between: str = " ") -> str:
    """A text with the names that its references have for other readers.

    Args:
        name: The name of a reference.
        between: What stands between the names of references that are marked together.

    Examples:
        >>> as_named("See «`stepscope ops --step`»", lambda one: f"{one.kind} {one.name}", ", ")
        'See page ops, option step'
    """
    return _MARKED.sub(lambda found: between.join(map(name, _in(found[2]))), text)


def references_in(text: str) -> list[Reference]:
    """What a text refers to, in its order."""
    return [reference for found in _MARKED.finditer(text) for reference in _in(found[2])]


def _in(marked: str) -> Sequence[Reference]:
    return [
        Reference(kind, found[kind], found[0])
        for found in _REFERENCE.finditer(marked)
        for kind in ("page", "table", "option")
        if found[kind]
    ]
