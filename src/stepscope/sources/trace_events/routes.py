"""Which class of a layout an event belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.sources.trace_events.base import EventClass


@dataclass(frozen=True)
class Route:
    """Where events of one phase and category go: to a class by name, else to `any_name` (None: nowhere)."""

    by_name: dict[str, int]
    any_name: int | None


def route(classes: tuple[EventClass, ...], phase: str, category: str | None) -> Route:
    lowered = (category or "").lower()
    fitting = [
        index
        for index, cls in enumerate(classes)
        if phase in cls.phases and cls.categories is not None and lowered in cls.categories
    ]
    fitting += [index for index, cls in enumerate(classes) if phase in cls.phases and cls.categories is None]
    by_name: dict[str, int] = {}
    for index in fitting:
        names = classes[index].names
        if names is None:
            return Route(by_name, index)
        for name in names:
            by_name.setdefault(name, index)
    return Route(by_name, None)
