"""Replay of a graph of pieces of work; `analysis/methods/simulation.py` says what that is, and
`analysis/methods/plain_replay.py` does the same in Python."""

from __future__ import annotations

import weakref

import polars as pl

from stepscope.sources.native.library import GivenColumns, NewColumn, Refused, loaded, pointers

_NO_MEMORY = -2


class CompiledReplay:
    """A graph in order, ready to be replayed by several threads at once.

    All columns are Int64 without nulls, with one row for each node; those of edges are row numbers of nodes.

    Raises:
        Refused: If there is no compiled code, not enough memory, no node, or the columns are anything else.
    """

    def __init__(self, start_ns: pl.Series, end_ns: pl.Series, node: pl.Series, before: pl.Series) -> None:
        native = loaded()
        given = GivenColumns(start_ns, end_ns, node, before)
        self._replay = native.ss_replay(pointers(given.pointers), len(start_ns), len(node))
        if not self._replay:
            raise Refused
        weakref.finalize(self, native.ss_replay_free, self._replay)

    def left_out(self) -> pl.Series:
        """Rows of edges that are left out, in order."""
        return self._columns(1, "left_out")[0]

    def lags(self, start_ns: pl.Series, end_ns: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Times from the last end before each node to its start, and from its start to that end, neither below 0."""
        lag, early = self._columns(2, "lags", start_ns, end_ns)
        return lag, early

    def ends(self, duration_ns: pl.Series, lag_ns: pl.Series) -> pl.Series:
        """When each node ends."""
        return self._columns(1, "ends", duration_ns, lag_ns)[0]

    def last_ends(self, duration_ns: pl.Series, lag_ns: pl.Series, group: pl.Series, groups: int) -> pl.Series:
        """When the last node of each group ends; groups are numbered from 0 on, -1 is none."""
        return self._columns(1, "last_ends", duration_ns, lag_ns, group, number=groups)[0]

    def slack(
        self, duration_ns: pl.Series, lag_ns: pl.Series, group: pl.Series, groups: int
    ) -> tuple[pl.Series, pl.Series, pl.Series]:
        """When each node ends; how much later it may; the node that sets its start, or null."""
        end, slack, by = self._columns(3, "slack", duration_ns, lag_ns, group, number=groups)
        return end, slack, by

    def paths(
        self, duration_ns: pl.Series, lag_ns: pl.Series, node: pl.Series, since_ns: pl.Series
    ) -> tuple[pl.Series, pl.Series]:
        """The nodes that decide when each of some nodes ends, from it back, as far as they end after `since_ns`: the
        number of the path, and the node."""
        path, nodes = self._columns(2, "paths", duration_ns, lag_ns, node, since_ns, number=len(node))
        return path, nodes

    def _columns(self, count: int, name: str, *given: pl.Series, number: int | None = None) -> list[pl.Series]:
        """What a function of the library makes.

        Raises:
            OverflowError: If a time does not fit into 64 bits.
            MemoryError: If there is not enough memory.
        """
        made, columns = [NewColumn() for _ in range(count)], GivenColumns(*given)
        targets = made[0].pointers if count == 1 else _targets(made)
        arguments = [pointers(columns.pointers)] if given else []
        numbers = [] if number is None else [number]
        status = getattr(loaded(), f"ss_replay_{name}")(self._replay, *arguments, *numbers, *targets)
        if status < 0:
            raise MemoryError if status == _NO_MEMORY else OverflowError
        return [column.series() for column in made]


def _targets(columns: list[NewColumn]) -> tuple[object, object]:
    """Where the library puts several columns: their arrays and their schemas."""
    arrays, schemas = (pointers([column.addresses[part] for column in columns]) for part in (0, 1))
    return arrays, schemas
