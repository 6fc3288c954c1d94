"""Chrome's trace events as JSON texts, one at a time: for our own timelines and all exports in that format.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import isfinite
from typing import Any

MOST_KEPT, LONGEST_KEPT = 100_000, 300
"""Texts whose JSON is remembered, and their most characters: some 60 MB at most."""
SEPARATOR = ",\n"

Place = tuple[int, int | str]
"""Process and thread."""


def us_text(ns: int) -> str:
    """Microseconds as decimal text, exact to the nanosecond; a float would lose those of times since the epoch.

    Examples:
        >>> us_text(1234567), us_text(-5)
        ('1234.567', '-0.005')
    """
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def json_text(text: str) -> str:
    """A text as JSON; that of short ones is remembered."""
    return _kept_json(text) if len(text) <= LONGEST_KEPT else json.dumps(text, ensure_ascii=False)


@lru_cache(MOST_KEPT)
def _kept_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def json_value(value: Any) -> str:
    """An argument as JSON; numbers that JSON does not know are texts."""
    if isinstance(value, str):
        return json_text(value)
    if isinstance(value, float) and not isfinite(value):
        return f'"{value}"'
    return json.dumps(value, separators=(",", ":"))


def arguments(known: Iterable[tuple[str, Any]]) -> str:
    """Arguments as a JSON object, without those that are null; empty if none is left."""
    told = ",".join(f"{json_text(name)}:{json_value(value)}" for name, value in known if value is not None)
    return f"{{{told}}}" if told else ""


def complete(
    name: str,
    place: Place,
    start_ns: int,
    duration_ns: int | None,
    *,
    category: str | None = None,
    args: str = "",
    more: str = "",
    scope: str = "t",
    as_text: bool = False,
) -> str:
    """A range, or a point in time.

    Args:
        name: Its name.
        place: Where it is drawn.
        start_ns: Start.
        duration_ns: Length; None for a point.
        category: Its category.
        args: Arguments as a JSON object; empty for none.
        more: Further fields as JSON, each after a comma.
        scope: Of a point: `t` for a mark on its thread, `g` for a line over all.
        as_text: Write times as texts, as Ascend's own files do.
    """
    quote = '"' if as_text else ""
    length = "" if duration_ns is None else f',"dur":{quote}{us_text(duration_ns)}{quote}'
    told = f',"args":{args}' if args else ""
    opening = beginning(name, place, category=category, is_point=duration_ns is None, scope=scope)
    return f'{opening},"ts":{quote}{us_text(start_ns)}{quote}{length}{more}{told}}}'


def beginning(name: str, place: Place, *, category: str | None, is_point: bool, scope: str = "t") -> str:
    """What ranges of one name and place have in common: all but times and arguments, and the brace at the end."""
    kind = "" if category is None else f',"cat":{json_text(category)}'
    reach = f',"s":"{scope}"' if is_point else ""
    return f'{{"ph":"{"i" if is_point else "X"}","name":{json_text(name)}{kind},{_place(*place)}{reach}'


def arrow_end(
    name: str, place: Place, at_ns: int, number: str, *, is_tail: bool, category: str, as_text: bool = False
) -> str:
    """The tail or the head of an arrow between two ranges.

    Args:
        number: What both ends have in common, as JSON.
    """
    quote = '"' if as_text else ""
    kind = '"ph":"s"' if is_tail else '"ph":"f","bp":"e"'
    return (
        f'{{{kind},"name":{json_text(name)},"cat":{json_text(category)},"id":{number},{_place(*place)},'
        f'"ts":{quote}{us_text(at_ns)}{quote}}}'
    )


def sample(name: str, place: Place, at_ns: int, value: float, *, key: str = "value", as_text: bool = False) -> str:
    """A sample of a counter; its value is the argument `key`."""
    quote = '"' if as_text else ""
    return (
        f'{{"ph":"C","name":{json_text(name)},{_place(*place)},"ts":{quote}{us_text(at_ns)}{quote},'
        f'"args":{{{json_text(key)}:{json_value(value)}}}}}'
    )


def names(what: str, place: Place, **facts: int | str) -> Iterator[str]:
    """What is known of a process or thread (`what`), an event a fact: `name`, `labels`, `sort_index`."""
    for key, value in facts.items():
        event = {"ph": "M", "name": f"{what}_{key}", "pid": place[0], "tid": place[1], "args": {key: value}}
        yield json.dumps(event, separators=(",", ":"), ensure_ascii=False)


@lru_cache(MOST_KEPT)
def _place(process: int, thread: int | str) -> str:
    return f'"pid":{process},"tid":{json.dumps(thread)}'


def capped(
    entries: Iterable[str], limit: int, note: Callable[[int, int], None], opening: str = "[", closing: str = "]"
) -> Iterator[str]:
    """The text of a JSON list that ends before it grows beyond a limit, and is valid JSON in any case.

    Args:
        entries: The entries, each as JSON.
        limit: Most bytes of the text; an empty list is always written.
        note: Called at the end if entries did not fit: how many were written, and how many were not.
        opening: What the list begins with.
        closing: What it ends with.
    """
    left = limit - len(opening) - len(closing)
    written = cut = 0
    for entry in entries:
        left -= 0 if cut else len(entry.encode("utf-8", "backslashreplace")) + len(SEPARATOR)
        if left < 0:
            cut += 1
            continue
        yield (SEPARATOR if written else opening) + entry
        written += 1
    yield closing if written else "[]"
    if cut:
        note(written, cut)
