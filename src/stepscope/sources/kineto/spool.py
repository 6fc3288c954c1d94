"""The events of one trace, by class: in memory while they are few, in scratch files when they are many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from stepscope.sources.plausible import Times, is_near

_SMALL = ("device", "stream", "comm_group_size", "comm_source", "comm_destination")
_MEMORY_BYTES = 64 << 20


class Spool:
    """Keeps frames in the order in which they come.

    Args:
        scratch: Gives the directory for what does not fit memory; if it fails, memory is used all the same.
    """

    def __init__(self, scratch: Callable[[], Path]) -> None:
        self._make_scratch = scratch
        self._directory: Path | None = None
        self._parts: dict[str, list[pl.DataFrame | Path]] = {}
        self._rows: dict[str, int] = {}
        self._bytes = 0
        self._files = 0
        self._times = Times()
        self.base_ns = 0
        """Added to every `start_ns` that is read back."""

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Keep one more frame of a class. Small numbers that are not small are damage and become null."""
        small = [c for c in _SMALL if c in frame.columns]
        frame = frame.with_columns(pl.col(small).cast(pl.Int32, strict=False))
        self._bytes += int(frame.estimated_size())
        self._rows[name] = self._rows.get(name, 0) + frame.height
        self._times.add(frame["start_ns"])
        kept = frame if self._bytes <= _MEMORY_BYTES else self._stored(frame)
        self._parts.setdefault(name, []).append(kept)

    def _stored(self, frame: pl.DataFrame) -> pl.DataFrame | Path:
        try:
            if self._directory is None:
                self._directory = self._make_scratch()
            file = self._directory / f"spool-{self._files}.arrow"
            frame.write_ipc(file, compression="uncompressed")
        except (OSError, pl.exceptions.PolarsError):
            return frame
        self._files += 1
        return file

    def drop_strays(self) -> dict[str, int]:
        """Leave out what starts far from the rest of the recording; how many of each class that were."""
        if not self._times.has_strays:
            return {}
        near = is_near(pl.col("start_ns"), self._times.middle_ns)
        dropped: dict[str, int] = {}
        for name, parts in self._parts.items():
            for number, part in enumerate(parts):
                frame = pl.read_ipc(part) if isinstance(part, Path) else part
                kept = frame.filter(near)
                if lost := frame.height - kept.height:
                    parts[number] = self._stored(kept) if isinstance(part, Path) else kept
                    dropped[name] = dropped.get(name, 0) + lost
                    self._rows[name] -= lost
        return dropped

    def rows(self, name: str) -> int:
        """How many rows a class has."""
        return self._rows.get(name, 0)

    def frames(self, name: str, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
        """The frames of a class, in order, with times since the epoch."""
        for part in self._parts.get(name, ()):
            frame = pl.read_ipc(part, columns=columns) if isinstance(part, Path) else part
            frame = frame if columns is None else frame.select(columns)
            yield frame.with_columns(pl.col("start_ns") + self.base_ns)

    def whole(self, name: str, columns: list[str] | None = None) -> pl.DataFrame | None:
        """All rows of a class in one frame; None if there are none."""
        frames = list(self.frames(name, columns))
        return pl.concat(frames) if frames else None
