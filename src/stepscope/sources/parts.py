"""Rows that wait to be read: as they are, packed, or in a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from stepscope.sources.native.library import Refused
from stepscope.sources.native.packing import Packed, pack, unpack


class Part(ABC):
    """Some rows of a spool.

    Args:
        rows: How many.
    """

    is_ready = False
    """Whether they can be had for nothing."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    @abstractmethod
    def frame(self, columns: list[str] | None = None) -> pl.DataFrame:
        """The rows."""

    @abstractmethod
    def forget(self) -> None:
        """Free the memory or the file; frames that were read stay as they are."""

    def taken(self) -> pl.DataFrame:
        """The rows, which are forgotten."""
        frame = self.frame()
        self.forget()
        return frame


class HeldPart(Part):
    """Rows as a frame."""

    is_ready = True

    def __init__(self, held: pl.DataFrame) -> None:
        super().__init__(held.height)
        self._held: pl.DataFrame | None = held

    def frame(self, columns: list[str] | None = None) -> pl.DataFrame:
        """See `Part`."""
        assert self._held is not None
        return self._held if columns is None else self._held.select(columns)

    def forget(self) -> None:
        """See `Part`."""
        self._held = None


class FilePart(Part):
    """Rows in an Arrow file, for what cannot be packed."""

    def __init__(self, rows: int, file: Path) -> None:
        super().__init__(rows)
        self._file = file

    def frame(self, columns: list[str] | None = None) -> pl.DataFrame:
        """See `Part`."""
        return pl.read_ipc(self._file, columns=columns)

    def forget(self) -> None:
        """See `Part`."""
        self._file.unlink(missing_ok=True)


class PackedPart(Part):
    """Packed rows, in memory until they are moved to a file.

    Args:
        frames: The rows; a column that some of them lack is null there.

    Raises:
        Refused: If they cannot be packed.
    """

    def __init__(self, frames: Sequence[pl.DataFrame]) -> None:
        super().__init__(sum(frame.height for frame in frames))
        self._schema: Mapping[str, pl.DataType] = {}
        for frame in frames:
            self._schema = {**frame.schema, **self._schema}
        if any(self._schema[name] != dtype for frame in frames for name, dtype in frame.schema.items()):
            raise Refused
        self._schema = {name: self._schema[name] for frame in frames for name in frame.columns}
        self._packs = [pack(frame) for frame in frames]
        self._file: Path | None = None

    @property
    def bytes_held(self) -> int:
        """Memory that the rows need."""
        return sum(len(one.data) for one in self._packs)

    def move(self, file: Path) -> None:
        """Move the rows to a file.

        Raises:
            OSError: If it cannot be written; the rows stay in memory.
        """
        file.write_bytes(b"".join(one.data for one in self._packs))
        self._file, start = file, 0
        for number, one in enumerate(self._packs):
            blocks = {name: start + place for name, place in one.blocks.items()}
            self._packs[number] = replace(one, blocks=blocks, data=b"")
            start += len(one.data)

    def frame(self, columns: list[str] | None = None) -> pl.DataFrame:
        """See `Part`."""
        schema = self._schema if columns is None else {name: self._schema[name] for name in columns}
        packs: list[Packed] = self._packs
        if self._file is not None:
            data = self._file.read_bytes()
            packs = [replace(one, data=data) for one in packs]
        return unpack(packs, schema)

    def forget(self) -> None:
        """See `Part`."""
        self._packs = []
        if self._file is not None:
            self._file.unlink(missing_ok=True)
