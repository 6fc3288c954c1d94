"""The events of one rank in order of time, in pieces that fit memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from stepscope.sources.spool import Spool, quantiles, share_out

PIECE_ROWS = 64_000
"""About as many events make a piece; a recording of less than two is one piece."""
MEMORY_BYTES = 64 << 20
"""What a rank's events may take before they go to files."""

Kind = Literal["host", "compute", "details", "tasks", "communication"]
"""`compute` and `communication` are kernels and calls in the trace, `details` those in a file of kernels."""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Piece:
    """The events that start in one chunk of time, by kind; those of each kind in their order."""

    frames: dict[Kind, pl.DataFrame]
    end_ns: int | None
    """Where the next piece begins; None for the last one."""

    def of(self, kind: Kind) -> pl.DataFrame | None:
        """The events of a kind; None if there are none."""
        return self.frames.get(kind)


class Timeline(Spool[Kind]):
    """Events (frames with `start_ns`) by kind."""

    def __init__(self, scratch: Callable[[], Path]) -> None:
        super().__init__(scratch, MEMORY_BYTES)

    def add(self, key: Kind, frame: pl.DataFrame) -> None:
        """Take some events of a kind; a kind without events is no key."""
        if frame.height:
            super().add(key, frame)

    def pieces(self) -> Iterator[Piece]:
        """The events in order of time; they are used up."""
        kinds = self.keys()
        count = sum(map(self.rows, kinds)) // PIECE_ROWS
        cuts = quantiles((frame for kind in kinds for frame in self.frames(kind, ["start_ns"])), "start_ns", count)
        if cuts.is_empty():
            yield Piece({kind: pl.concat(self.taken(kind), rechunk=True) for kind in kinds}, None)
            return
        spool: Spool[tuple[int, Kind]] = Spool(self._make_scratch)
        for kind in kinds:
            for frame in self.taken(kind):
                share_out(frame, cuts.search_sorted(frame["start_ns"], side="right"), kind, spool)
        for number, end in enumerate([*cuts.to_list(), None]):
            held = {kind: list(spool.taken((number, kind))) for kind in kinds}
            yield Piece({kind: pl.concat(frames) for kind, frames in held.items() if frames}, end)
