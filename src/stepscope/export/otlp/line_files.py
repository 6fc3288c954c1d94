"""Files of lines that are split at a size, as receivers and editors take only so much at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

LINE_BYTES = 500_000
"""Bytes of items in a line, chosen by us: the collector's receiver takes lines of up to 1 MiB by default."""


class LineFiles:
    """`<stem>.jsonl`, and `<stem>-2.jsonl` and so on where that would grow beyond a size.

    Args:
        directory: Where they are.
        stem: Their name.
        line: Makes a line of items.
        limit_bytes: Size of a file; one line always fits.
    """

    def __init__(self, directory: Path, stem: str, line: Callable[[Iterable[bytes]], bytes], limit_bytes: int) -> None:
        self._directory = directory
        self._stem = stem
        self._line = line
        self._limit = limit_bytes
        self._items: list[bytes] = []
        self._held = 0
        self._file: IO[bytes] | None = None
        self._size = 0
        self.names: list[str] = []
        """The files so far."""

    def __enter__(self) -> LineFiles:
        """Begin; a file is made with its first line."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is held, unless something failed."""
        try:
            if kind is None:
                self._flush()
        finally:
            if self._file is not None:
                self._file.close()

    def add(self, items: Iterable[bytes]) -> None:
        """Add items, in order.

        Raises:
            OSError: If they cannot be written.
        """
        for item in items:
            if self._items and self._held + len(item) > LINE_BYTES:
                self._flush()
            self._items.append(item)
            self._held += len(item) + 1

    def _flush(self) -> None:
        if not self._items:
            return
        line = self._line(self._items)
        self._items, self._held = [], 0
        if self._file is None or self._size + len(line) > self._limit:
            self._open_next()
        assert self._file is not None
        self._file.write(line)
        self._size += len(line)

    def _open_next(self) -> None:
        if self._file is not None:
            self._file.close()
        number = len(self.names) + 1
        name = f"{self._stem}.jsonl" if number == 1 else f"{self._stem}-{number}.jsonl"
        self._file = (self._directory / name).open("xb")
        self._size = 0
        self.names.append(name)
