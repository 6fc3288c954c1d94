"""The events of one trace, class by class in file order, without what their class implies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import polars as pl

from stepscope.sources.kineto.layout import SMALL
from stepscope.sources.spool import EventSpool
from stepscope.sources.stacks import OWN_FRAME, OWN_THREAD

_WITH_CATEGORY = ("device", "other")
_WITH_PHASE = ("flow",)


class Events:
    """Takes decoded frames, and gives them back with one number (`place`) for process and thread."""

    def __init__(self, scratch: Callable[[], Path]) -> None:
        self._spool = EventSpool(scratch)
        self._places: dict[tuple[str | None, str | None], int] = {}
        self.base_ns = 0
        """Added to every `start_ns` that is read back."""

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Keep one more frame of a class. Small numbers that are not small are damage and become null."""
        said = {"process", "thread"}
        said |= set() if name in _WITH_CATEGORY else {"category"}
        said |= set() if name in _WITH_PHASE else {"phase", "id"}
        columns = [column for column in frame if column.name not in said]
        columns = [c.cast(pl.Int32, strict=False) if c.name in SMALL else c for c in columns]
        self._spool.add(name, pl.DataFrame([*columns, self._placed(frame)]))

    def _placed(self, frame: pl.DataFrame) -> pl.Series:
        """The place of each row."""
        pair = ["process", "thread"]
        pairs = frame.select(pair).unique(maintain_order=True)
        codes = [self._places.setdefault(row, len(self._places)) for row in pairs.iter_rows()]
        if len(codes) == 1:
            return pl.repeat(codes[0], frame.height, dtype=pl.Int32, eager=True).alias("place")
        numbered = pairs.with_columns(place=pl.Series(codes, dtype=pl.Int32))
        return frame.select(pair).join(numbered, on=pair, how="left", nulls_equal=True, maintain_order="left")["place"]

    def located(self, frame: pl.DataFrame) -> pl.DataFrame:
        """`frame` with `process` and `thread` for its `place`."""
        processes = pl.Series("process", [process for process, _ in self._places], dtype=pl.String)
        threads = pl.Series("thread", [thread for _, thread in self._places], dtype=pl.String)
        return frame.drop("place").with_columns(processes.gather(frame["place"]), threads.gather(frame["place"]))

    def drop_strays(self) -> int:
        """Leave out what starts far from the rest of the recording; how many events that were."""
        return self._spool.drop_strays()

    def drop_own_frames(self, own_threads: Collection[str] = ()) -> None:
        """Leave out the Python functions of the recorder itself, and all of those that run on its threads.

        Args:
            own_threads: Threads that are known to be the recorder's. Others are known by the function that they run in,
                which is missing if a trace began later.
        """
        name = pl.col("name")
        threads = {place for (_, thread), place in self._places.items() if thread in own_threads}
        found = bool(threads)
        for frame in self._spool.frames("python", ["name", "place"]):
            own = frame.filter(name.str.contains(OWN_FRAME))
            found |= not own.is_empty()
            threads.update(own.filter(name.str.contains(OWN_THREAD))["place"])
        if found:
            is_own = name.str.contains(OWN_FRAME) | pl.col("place").is_in(sorted(threads))
            for frame in self._spool.taken("python"):
                self._spool.add("python", frame.filter(~is_own))

    def rows(self, name: str) -> int:
        """How many rows a class has."""
        return self._spool.rows(name)

    def frames(self, name: str, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
        """The frames of a class, in order, with times since the epoch (`columns` names `start_ns`, if given)."""
        for frame in self._spool.frames(name, columns):
            yield frame.with_columns(pl.col("start_ns") + self.base_ns)

    def taken(self, name: str) -> Iterator[pl.DataFrame]:
        """Like `frames`, each forgotten as soon as it is given."""
        for frame in self._spool.taken(name):
            yield frame.with_columns(pl.col("start_ns") + self.base_ns)
