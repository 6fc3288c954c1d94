"""The interface between decoders of trace events and the sources that use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

ArgKind = Literal["int", "small", "float", "text", "json"]
"""How an argument is kept: int64, int32 (null if it does not fit), float64, string, or the JSON text as it is written
(shapes, lists)."""

Place = tuple[str | None, str | None]
"""Process and thread."""


class NewPlaces(dict[Place, int]):
    """Numbers of places that a chunk has and the trace did not have before: -1, -2 and so on, as their numbers in the
    trace follow from the order of chunks.

    Args:
        known: The numbers of places so far; another thread may add to them.
    """

    def __init__(self, known: Mapping[Place, int]) -> None:
        super().__init__()
        self._known = known

    def number(self, place: Place) -> int:
        """The number of a place."""
        known = self._known.get(place)
        return self.setdefault(place, -1 - len(self)) if known is None else known


BASE = ("phase", "name", "category", "process", "thread", "start_ns", "duration_ns", "id")
"""The columns of a frame before those of arguments, unless its class has others."""


@dataclass(frozen=True)
class Arg:
    """One entry of an event's `args` that becomes a column. A value of another kind becomes null.

    Args:
        key: Its key.
        column: Name of the column.
        kind: How it is kept.
        rare: Frames in which no event has a value are without the column, so that what few traces have costs the others
            nothing.
    """

    key: str
    column: str
    kind: ArgKind
    rare: bool = False


@dataclass(frozen=True)
class EventClass:
    """Events that are kept together, in frames with the same columns.

    Each frame has `phase`, `name` ("" if absent), `category`, `process`, `thread` (strings, null if absent),
    `start_ns` (int64, exact, without the trace's base; null if absent), `duration_ns` (int64, null if absent), `id`
    (string: flow or async id), or those of them that its class wants, and a column for each `Arg` of its class. A class
    may also want `place` (int32): a number for process and thread, see `TraceEvents.places`. Complete events (phase X)
    without a usable start and duration are left out. Columns of rare arguments come last.

    Args:
        name: Key of its frames.
        phases: Values of `ph` that belong to it: `X` alone, or others.
        categories: Values of `cat` that belong to it, in lower case ("" if an event has none); None takes
            what no other class takes.
        args: Arguments that become columns. Two entries may share a column (spellings of one key).
        names: If given, only events of these names; such a class goes before one that takes every name.
        base: The columns before those of arguments; of complete events with at least name, start and duration.
    """

    name: str
    phases: frozenset[str]
    categories: frozenset[str] | None
    args: tuple[Arg, ...] = ()
    names: frozenset[str] | None = None
    base: tuple[str, ...] = BASE


@dataclass(frozen=True)
class Layout:
    """The event classes of a format; events of no class are left out."""

    classes: tuple[EventClass, ...]

    def route(self, phase: str, category: str | None) -> Route:
        """Where events of a phase and category go."""
        lowered = (category or "").lower()
        by_name: dict[str, int] = {}
        # the class of what no other one takes comes last
        for index, cls in sorted(enumerate(self.classes), key=lambda one: one[1].categories is None):
            if phase in cls.phases and (cls.categories is None or lowered in cls.categories):
                if cls.names is None:
                    return Route(by_name, index)
                by_name = dict.fromkeys(cls.names, index) | by_name
        return Route(by_name, -1)


class Route(NamedTuple):
    """Where events of one phase and category go: to a class by name, else to `any_name` (-1: to none)."""

    by_name: dict[str, int]
    any_name: int


@dataclass
class Problem:
    """One kind of damage: how many events were lost, and where the first one is."""

    count: int = 0
    place: str | None = None
