"""Rows on their way into tables, under keys: in memory while they are few, then packed, and in scratch files when they
are many.

`quantiles` and `share_out` cut a recording into chunks of time, so that memory holds one chunk and not the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import polars as pl

from stepscope.sources.native.library import Refused
from stepscope.sources.parts import FilePart, HeldPart, PackedPart, Part
from stepscope.sources.plausible import Times, is_near

MEMORY_BYTES = 8 << 20
"""Beyond that, rows are packed, unless a spool is given more."""
_PACKED_BYTES = 16 << 20
"""Beyond that, packed rows go to files."""

_PART_BYTES = 4 << 20
"""About as much is packed or goes into a file together, so that as much is read at a time."""

_SAMPLED = 64
"""Sample one in this many rows to find where to cut."""

Key = TypeVar("Key")
Name = TypeVar("Name")


class Spool(Generic[Key]):
    """Keeps frames under their keys, in the order in which they come.

    Args:
        scratch: Gives the directory for what does not fit memory; if it fails, memory is used all the same.
        memory_bytes: What may stay in memory.
    """

    def __init__(self, scratch: Callable[[], Path], memory_bytes: int | None = None) -> None:
        self._memory_bytes = MEMORY_BYTES if memory_bytes is None else memory_bytes
        self._make_scratch = scratch
        self._directory: Path | None = None
        self._stored: dict[Key, list[Part]] = {}
        self._in_memory: dict[Key, list[pl.DataFrame]] = {}
        self._held_bytes: dict[Key, int] = {}
        self._all_bytes = 0
        self._packed_bytes = 0
        self._rows: dict[Key, int] = {}
        self._files = 0
        self._has_room = True
        self._has_disk = True

    def add(self, key: Key, frame: pl.DataFrame) -> None:
        """Keep one more frame under a key; a column that some of its frames lack is null there."""
        self._in_memory.setdefault(key, []).append(frame)
        size = int(frame.estimated_size())
        self._held_bytes[key] = self._held_bytes.get(key, 0) + size
        self._all_bytes += size
        self._rows[key] = self.rows(key) + frame.height
        while self._has_room and self._all_bytes > self._memory_bytes:
            self._store(max(self._held_bytes, key=lambda k: self._held_bytes[k]))

    def _store(self, key: Key) -> None:
        """Pack what is in memory under a key, or move it into files."""
        held = self._in_memory[key]
        while held:
            count, size = 0, 0
            while count < len(held) and size < _PART_BYTES:
                size += int(held[count].estimated_size())
                count += 1
            part = self._packed(held[:count]) or self._written(held[:count])
            if part is None:
                self._has_room = False
                return
            self._stored.setdefault(key, []).append(part)
            self._held_bytes[key] -= size
            self._all_bytes -= size
            del held[:count]
        del self._in_memory[key], self._held_bytes[key]

    def _packed(self, frames: list[pl.DataFrame]) -> Part | None:
        """Some frames packed, in memory or in a file; None if they cannot be packed."""
        try:
            part = PackedPart(frames)
        except Refused:
            return None
        if self._has_disk and self._packed_bytes + part.bytes_held > _PACKED_BYTES:
            try:
                part.move(self._new_file())
            except OSError:
                self._has_disk = False
        self._packed_bytes += part.bytes_held
        return part

    def _written(self, frames: list[pl.DataFrame]) -> Part | None:
        """A file that holds some frames; None if the disk is full."""
        try:
            file = self._new_file()
            stacked(frames).write_ipc(file, compression="uncompressed")
        except (OSError, pl.exceptions.PolarsError):
            return None
        return FilePart(sum(frame.height for frame in frames), file)

    def _new_file(self) -> Path:
        if self._directory is None:
            self._directory = self._make_scratch()
        self._files += 1
        return self._directory / f"spool-{self._files}"

    def keys(self) -> list[Key]:
        """The keys that have rows, or had some."""
        return list(self._rows)

    def rows(self, key: Key) -> int:
        """How many rows a key has."""
        return self._rows.get(key, 0)

    def frames(self, key: Key, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
        """The frames of a key, in order."""
        for part in self.parts(key):
            yield part.frame(columns)

    def parts(self, key: Key) -> list[Part]:
        """The rows of a key, in order, to be read when they are needed."""
        parts = list(self._stored.get(key, ()))
        if held := self._in_memory.get(key):
            if len(held) > 1:  # queries cost by the frame
                held[:] = [stacked(held)]
            parts.append(HeldPart(held[0]))
        return parts

    def whole(self, key: Key) -> pl.DataFrame | None:
        """All rows of a key in one frame; None if there are none."""
        frames = list(self.frames(key))
        return stacked(frames, rechunk=True) if frames else None

    def taken(self, key: Key) -> Iterator[pl.DataFrame]:
        """The frames of a key, in order, each forgotten as soon as it is given."""
        for part in self.taken_parts(key):
            yield part.taken()

    def taken_parts(self, key: Key) -> list[Part]:
        """Like `parts`; the spool forgets them."""
        parts = self.parts(key)
        self._packed_bytes -= sum(part.bytes_held for part in parts if isinstance(part, PackedPart))
        self._rows.pop(key, None)
        self._all_bytes -= self._held_bytes.pop(key, 0)
        self._in_memory.pop(key, None)
        self._stored.pop(key, None)
        return parts

    def batches(self, key: Key) -> Iterator[pl.DataFrame]:
        """Like `taken`, with small frames put together."""
        held: list[pl.DataFrame] = []
        size = 0
        for frame in self.taken(key):
            held.append(frame)
            size += int(frame.estimated_size())
            if size >= MEMORY_BYTES:
                yield stacked(held, rechunk=True)
                held, size = [], 0
        if held:
            yield stacked(held, rechunk=True)

    def keep_only(self, wanted: pl.Expr) -> dict[Key, int]:
        """Forget the other rows; how many of each key that were."""
        dropped: dict[Key, int] = {}
        for key in self.keys():
            before = self.rows(key)
            for frame in self.taken(key):
                self.add(key, frame.filter(wanted))
            if lost := before - self.rows(key):
                dropped[key] = lost
        return dropped


class EventSpool(Spool[str]):
    """Events (frames with `start_ns`) by class, of which those at impossible times can be left out."""

    def __init__(self, scratch: Callable[[], Path], memory_bytes: int | None = None) -> None:
        super().__init__(scratch, memory_bytes)
        self._times = Times()

    def add(self, key: str, frame: pl.DataFrame) -> None:
        """Keep one more frame under a key."""
        self._times.add(frame["start_ns"])
        super().add(key, frame)

    def drop_strays(self) -> int:
        """Leave out what starts far from the rest of the recording; how many events that were."""
        if not self._times.has_strays:
            return 0
        return sum(self.keep_only(is_near(pl.col("start_ns"), self._times.middle_ns)).values())


def quantiles(frames: Iterable[pl.DataFrame], column: str, count: int) -> pl.Series:
    """Values of a column that cut its rows into about `count` parts of one size; fewer if many are equal."""
    if count < 2:
        return pl.Series([], dtype=pl.Int64)
    sample: pl.Series = pl.concat([frame[column].gather_every(_SAMPLED) for frame in frames]).drop_nulls().sort()
    places = [len(sample) * k // count for k in range(1, count)]
    cuts: pl.Series = sample.gather([p for p in places if 0 < p < len(sample)]).unique().sort()
    return cuts


def stacked(frames: Sequence[pl.DataFrame], *, rechunk: bool = False) -> pl.DataFrame:
    """Frames below each other; a column that some of them lack is null there."""
    columns = frames[0].columns
    same = all(frame.columns == columns for frame in frames)
    return pl.concat(frames, how="vertical" if same else "diagonal", rechunk=rechunk)


def share_out(frame: pl.DataFrame, number: pl.Series, name: Name, spool: Spool[tuple[int, Name]]) -> None:
    """Put the rows of each number, in their order, into a spool under the number and `name`; rows without one are
    left out."""
    numbers = number.drop_nulls().unique().sort().to_list()
    if len(numbers) == 1 and not number.null_count():
        spool.add((numbers[0], name), frame)
        return
    for one in numbers:
        rows = frame.filter(number == one)
        spool.add((one, name), compacted(rows) if 2 * rows.height <= frame.height else rows)


def compacted(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with texts of their own: those of a part of a frame keep the texts of the whole in memory."""
    texts = [column for column, kind in rows.schema.items() if kind == pl.String]
    return rows.with_columns(pl.concat_str([pl.col(text), pl.lit("")]).alias(text) for text in texts)
