"""The columns by which the list of runs is sorted, and what a search finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.web.catalogue import Entry

STATES = ("failed", "gone", "waiting", "reading", "analysing", "ready")
"""States in the order of sorting: what needs attention first."""

SEVERITIES = ("high", "medium", "low")


@dataclass(frozen=True)
class Column:
    """A column of the list.

    Args:
        key: Its name in URLs; a dash in front sorts the other way.
        title: Its heading.
        value: What it is sorted by; None is last either way.
        is_number: Whether it holds numbers: the largest come first at the first click.
    """

    key: str
    title: Text
    value: Callable[[Entry], Any]
    is_number: bool = False

    def following(self, given: str) -> str | None:
        """The order after a click on its heading: the usual one, the other one, then none."""
        first, second = (f"-{self.key}", self.key) if self.is_number else (self.key, f"-{self.key}")
        return {first: second, second: None}.get(given, first)


def _findings(entry: Entry) -> tuple[int, ...] | None:
    return tuple(entry.findings.get(severity, 0) for severity in SEVERITIES) if entry.findings else None


COLUMNS: Sequence[Sequence[Column]] = (
    (Column("name", Text("Run", "运行"), lambda entry: (entry.name.lower(), entry.relative)),),
    (
        Column(
            "start", Text("Recorded (UTC)", "记录时间（UTC）"), lambda entry: entry.start_ns or None, is_number=True
        ),
        Column("changed", Text("Changed", "修改时间"), lambda entry: entry.changed_ns or None, is_number=True),
    ),
    (Column("ranks", Text("Ranks", "rank 数"), lambda entry: entry.ranks or None, is_number=True),),
    (Column("steps", Text("Steps", "步数"), lambda entry: entry.steps, is_number=True),),
    (Column("size", Text("Size", "大小"), lambda entry: entry.input_bytes, is_number=True),),
    (Column("state", Text("State", "状态"), lambda entry: (STATES.index(entry.state), -entry.progress)),),
    (Column("findings", Text("Findings", "发现"), _findings, is_number=True),),
)
"""The columns from left to right; of those that share one, the first stands above."""


def direction(given: str, column: Column) -> str:
    """How the list is sorted by a column, as `aria-sort` says it; empty if it is not."""
    if given.removeprefix("-") != column.key:
        return ""
    return "descending" if given.startswith("-") else "ascending"


def by_column(entries: Sequence[Entry], given: str) -> Sequence[Entry]:
    """Runs sorted as a URL asks; as they are if it names no column."""
    column = next((column for columns in COLUMNS for column in columns if column.key == given.removeprefix("-")), None)
    if column is None:
        return entries
    known = [entry for entry in entries if column.value(entry) is not None]
    unknown = [entry for entry in entries if column.value(entry) is None]
    return [*sorted(known, key=column.value, reverse=given.startswith("-")), *unknown]


def found_by(entries: Sequence[Entry], search: str) -> Sequence[Entry]:
    """Runs that have all words of a search in their name, path, format, framework, device or state."""
    words = search.lower().split()
    return [entry for entry in entries if all(word in _text(entry) for word in words)] if words else entries


def _text(entry: Entry) -> str:
    texts = (entry.name, entry.relative, entry.id, entry.state, *entry.formats, *entry.frameworks, *entry.devices)
    return "\n".join(texts).lower()
