"""The events of one rank in order of time, in pieces that fit memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from stepscope.sources.chunks import quantiles, share_out
from stepscope.sources.spool import Spool

PIECE_ROWS = 64_000
"""About as many events make a piece; a recording of less than two is one piece."""
MEMORY_BYTES = 64 << 20
"""What a rank's events may take before they go to files."""

Kind = Literal["host", "compute", "details", "tasks", "communication"]
"""`compute` and `communication` are kernels and calls in the trace, `details` those in a file of kernels."""


@dataclass(frozen=True)
class Piece:
    """The events that start in one chunk of time, by kind; those of each kind in their order."""

    frames: dict[Kind, pl.DataFrame]
    end_ns: int | None
    """Where the next piece begins; None for the last one."""

    def of(self, kind: Kind) -> pl.DataFrame | None:
        """The events of a kind; None if there are none."""
        return self.frames.get(kind)


class Timeline:
    """Takes events by kind.

    Args:
        scratch: Gives the directory for what does not fit memory.
    """

    def __init__(self, scratch: Callable[[], Path]) -> None:
        self._scratch = scratch
        self._spool: Spool[Kind] = Spool(scratch, MEMORY_BYTES)

    def add(self, kind: Kind, frame: pl.DataFrame) -> None:
        """Take some events (with `start_ns`) of a kind."""
        if frame.height:
            self._spool.add(kind, frame)

    def rows(self, kind: Kind) -> int:
        """How many events of a kind there are."""
        return self._spool.rows(kind)

    def frames(self, kind: Kind, *columns: str) -> Iterator[pl.DataFrame]:
        """Columns of the events of a kind, in their order."""
        return self._spool.frames(kind, list(columns))

    def taken(self, kind: Kind) -> Iterator[pl.DataFrame]:
        """The events of a kind, in their order, each forgotten as soon as it is given."""
        return self._spool.taken(kind)

    def pieces(self) -> Iterator[Piece]:
        """The events in order of time; they are used up."""
        kinds: tuple[Kind, ...] = get_args(Kind)
        count = sum(self.rows(kind) for kind in kinds) // PIECE_ROWS
        cuts = quantiles((frame for kind in kinds for frame in self.frames(kind, "start_ns")), "start_ns", count)
        if cuts.is_empty():
            yield Piece({kind: pl.concat(self._spool.taken(kind)) for kind in kinds if self.rows(kind)}, None)
            return
        spool: Spool[tuple[int, Kind]] = Spool(self._scratch)
        for kind in kinds:
            for frame in self._spool.taken(kind):
                share_out(frame, cuts.search_sorted(frame["start_ns"], side="right"), kind, spool)
        for number, end in enumerate([*cuts.to_list(), None]):
            held = {kind: list(spool.taken((number, kind))) for kind in kinds}
            yield Piece({kind: pl.concat(frames) for kind, frames in held.items() if frames}, end)
