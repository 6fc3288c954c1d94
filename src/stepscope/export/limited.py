"""A list in JSON that never grows beyond a limit and is complete in any case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

BETWEEN = ",\n"


class Limited:
    """The text of a list: its first entries, as many as have room, and its end. To be iterated once.

    Args:
        entries: The entries, each as JSON.
        limit: Most bytes of the text; an empty list is written in any case.
        opening: What the list begins with.
        closing: What it ends with.
    """

    def __init__(self, entries: Iterable[str], limit: int, opening: str = "[", closing: str = "]") -> None:
        self.written = 0
        """Entries so far."""
        self.cut = 0
        """Entries that had no room."""
        self._entries, self._limit = entries, limit
        self._opening, self._closing = opening, closing

    def __iter__(self) -> Iterator[str]:
        left = self._limit - len(self._opening) - len(self._closing)
        for entry in self._entries:
            left -= 0 if self.cut else len(entry.encode()) + len(BETWEEN)
            if left < 0:
                self.cut += 1
                continue
            yield (BETWEEN if self.written else self._opening) + entry
            self.written += 1
        yield self._closing if self.written else "[]"
