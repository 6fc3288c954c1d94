"""A list of JSON events that is complete, however small it must stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

SEPARATOR = ",\n"


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
        left -= 0 if cut else len(entry.encode()) + len(SEPARATOR)
        if left < 0:
            cut += 1
            continue
        yield (SEPARATOR if written else opening) + entry
        written += 1
    yield closing if written else "[]"
    if cut:
        note(written, cut)
