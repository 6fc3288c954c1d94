"""The events of one trace, class by class in file order, without what their class implies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Protocol

import polars as pl

from stepscope.sources.kineto.layout import COLUMNS, LABELS
from stepscope.sources.parts import Part
from stepscope.sources.spool import EventSpool, Spool
from stepscope.sources.stacks import OWN_FRAME, OWN_THREAD
from stepscope.sources.trace_events.base import BASE, Place
from stepscope.tables.base import frame_of


class Framed(Protocol):
    """What has events, class by class."""

    def frames(self, name: str, columns: list[str] | None = None) -> Iterator[pl.DataFrame]:
        """The frames of a class, in order, with times since the epoch."""
        ...


class Events:
    """Takes decoded frames, and gives them back with one number (`place`) for process and thread."""

    def __init__(self, scratch: Callable[[], Path]) -> None:
        self._spool = EventSpool(scratch)
        self._labels: Spool[str] = Spool(scratch)
        self.places: dict[Place, int] = {}
        """Process and thread of each number in `place`."""
        self.base_ns = 0
        """Added to every `start_ns` that is read back."""

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Keep one more frame of a class, with `place` or with `process` and `thread`."""
        if "place" not in frame.columns:
            frame = frame.hstack([self._placed(frame)])
        wanted = COLUMNS[name]
        more = [column for column in frame.columns if column not in {*wanted, *BASE}]
        if frame.columns != [*wanted, *more]:
            frame = frame[[*wanted, *more]]
        (self._labels if name == LABELS else self._spool).add(name, frame)

    def _placed(self, frame: pl.DataFrame) -> pl.Series:
        """The place of each row."""
        rows = frame.select("process", "thread").iter_rows()
        return pl.Series("place", [self.places.setdefault(row, len(self.places)) for row in rows], dtype=pl.Int32)

    def located(self, frame: pl.DataFrame) -> pl.DataFrame:
        """`frame` with `process` and `thread` for its `place`."""
        processes = pl.Series("process", [process for process, _ in self.places], dtype=pl.String)
        threads = pl.Series("thread", [thread for _, thread in self.places], dtype=pl.String)
        columns = {column.name: column for column in frame.get_columns() if column.name != "place"}
        columns |= {labels.name: labels.gather(frame["place"]) for labels in (processes, threads)}
        return frame_of(list(columns.values()))

    def labels(self) -> pl.DataFrame | None:
        """What the trace calls its processes and threads; None if nothing."""
        whole = self._labels.whole(LABELS)
        return None if whole is None else self.located(whole)

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
        threads = {place for (_, thread), place in self.places.items() if thread in own_threads}
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
        return map(self.dated, self._spool.frames(name, columns))

    def taken(self, name: str) -> Iterator[pl.DataFrame]:
        """Like `frames`, each forgotten as soon as it is given."""
        return map(self.dated, self._spool.taken(name))

    def taken_parts(self, name: str) -> list[Part]:
        """The rows of a class, in order and to be `dated`, when they are needed; they are forgotten here."""
        return self._spool.taken_parts(name)

    def dated(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A frame with times since the epoch."""
        return frame.with_columns(frame["start_ns"] + self.base_ns) if self.base_ns else frame
