"""Replay of a job: when each piece of work would start and end if some took another time.

A job is a plain graph of pieces of work (nodes). A node starts when the last of those before it has ended, and as much
later as in the trace: its lag. Nodes without predecessors start when they did. With the durations of the trace this
gives the times of the trace, except where those contradict an edge: there a node waits although it did not in the
trace, and `violated_ns` states for how long.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.methods.plain_replay import PlainReplay
from stepscope.sources.native.library import Refused
from stepscope.sources.native.replay import CompiledReplay

_LEAST = -(2**63)
_PATH = {"node": pl.Int64}
_ORDERED_BYTES = 4
"""Of each place in the order of nodes: the node, where those before it begin, and each of these."""


@dataclass(frozen=True)
class Groups:
    """Nodes in groups, e.g. by step and rank, as `Simulation.grouped` makes them.

    Args:
        keys: What the nodes of each group have in common, in order.
        numbers: The row in `keys` of each node; -1 for nodes of no group.
    """

    keys: pl.DataFrame
    numbers: pl.Series


class Simulation:
    """A graph that is replayed with the durations and lags of the trace, or with others.

    Preparing it costs as much as a few replays. Several threads may use it at once. It is compiled code if there is
    any, else Python, with the same results.

    Args:
        nodes: `start_ns` and `end_ns` in the trace; the row number is the node.
        edges: `node` and `before` (row numbers of nodes): `node` starts after `before` has ended.

    Raises:
        ValueError: If a time is null or does not fit into 64 bits, a node ends before it starts, or an edge has no such
            node.

    Examples:
        >>> nodes = pl.DataFrame({"start_ns": [0, 0, 12], "end_ns": [10, 4, 20]})
        >>> edges = pl.DataFrame({"node": [2, 2], "before": [0, 1]})
        >>> simulation = Simulation(nodes, edges)
        >>> simulation.run(pl.Series([3, 4, 8])).rows()
        [(0, 3), (0, 4), (6, 14)]
    """

    def __init__(self, nodes: pl.DataFrame, edges: pl.DataFrame) -> None:
        start, end = (_checked(nodes[name], nodes.height, f"nodes: {name}") for name in ("start_ns", "end_ns"))
        self.start_ns, self.end_ns = start, end
        """The times of the trace."""
        self.duration_ns = _not_negative((end - start).alias("duration_ns"), "nodes: end_ns - start_ns")
        """Durations in the trace."""
        later, earlier = (_nodes(edges[name], nodes.height, f"edges: {name}") for name in ("node", "before"))
        self.edges = edges
        self._replay = _prepared(start, end, later, earlier)
        self.left_out = edges[self._replay.left_out()]
        """Edges that are left out because they lie on a cycle and go against the traced starts; on cycles of equal
        starts, against the ends; on those of equal ends, against the row numbers."""
        self.lag_ns = self._lags()[0].alias("lag_ns")
        """Time from the last end before each node to its start in the trace; at least 0, and 0 for nodes without
        predecessors."""

    def __sizeof__(self) -> int:
        """Bytes of all that it holds, for what keeps it in memory."""
        columns = (self.start_ns, self.end_ns, self.duration_ns, self.lag_ns)
        held = sum(int(each.estimated_size()) for each in (*columns, self.edges, self.left_out))
        return held + _ORDERED_BYTES * (2 * len(self.duration_ns) + self.edges.height)

    @property
    def times(self) -> pl.DataFrame:
        """`start_ns` and `end_ns` of the nodes, for a simulation of the same nodes with other edges, which shares
        them."""
        return pl.DataFrame([self.start_ns, self.end_ns])

    @property
    def violated_ns(self) -> pl.Series:
        """Time from the start of each node in the trace to the last end before it; 0 if the trace agrees with the
        edges. The replay differs from the trace where this is above 0, and after it."""
        return self._lags()[1].alias("violated_ns")

    def _lags(self) -> tuple[pl.Series, pl.Series]:
        try:
            return self._replay.lags(self.start_ns, self.end_ns)
        except OverflowError:
            raise _too_large() from None

    def ends(self, duration_ns: pl.Series | None = None, lag_ns: pl.Series | None = None) -> pl.Series:
        """When each node ends.

        Args:
            duration_ns: Duration of each node; those of the trace if it is not given.
            lag_ns: Lag of each node; those of the trace if it is not given.

        Raises:
            ValueError: If one of them is null or negative, or a time does not fit into 64 bits.
        """
        try:
            return self._replay.ends(*self._lengths(duration_ns, lag_ns)).alias("end_ns")
        except OverflowError:
            raise _too_large() from None

    def run(self, duration_ns: pl.Series | None = None, lag_ns: pl.Series | None = None) -> pl.DataFrame:
        """`start_ns` and `end_ns` of each node. Arguments are those of `ends`."""
        durations, lags = self._lengths(duration_ns, lag_ns)
        ends = self.ends(durations, lags)
        return pl.DataFrame([(ends - durations).alias("start_ns"), ends])

    def grouped(self, by: pl.Series | pl.DataFrame) -> Groups:
        """Groups of nodes for `last_ends` and `slack`.

        Args:
            by: What the nodes of a group have in common, a row for each node; rows with a null belong to no group.
        """
        frame = by.to_frame() if isinstance(by, pl.Series) else by
        if frame.height != len(self.duration_ns):
            raise ValueError(f"groups: {frame.height} rows for {len(self.duration_ns)} nodes")
        keys = frame.drop_nulls().unique().sort(frame.columns)
        numbered = keys.with_row_index("_group")
        numbers = frame.join(numbered, on=frame.columns, how="left", maintain_order="left")["_group"]
        return Groups(keys, numbers.cast(pl.Int64).fill_null(-1))

    def last_ends(
        self, groups: Groups, duration_ns: pl.Series | None = None, lag_ns: pl.Series | None = None
    ) -> pl.Series:
        """When the last node of each group ends, in the order of `groups.keys`: all that most questions need.

        Arguments are those of `grouped` and `ends`.
        """
        durations, lags = self._lengths(duration_ns, lag_ns)
        try:
            found = self._replay.last_ends(durations, lags, self._numbers(groups), groups.keys.height)
        except OverflowError:
            raise _too_large() from None
        return found.alias("end_ns")

    def slack(
        self, groups: Groups | None = None, duration_ns: pl.Series | None = None, lag_ns: pl.Series | None = None
    ) -> pl.DataFrame:
        """How much later each node may end without making the end of any group later.

        Args:
            groups: Groups whose last ends are to stay. Nodes of no group may end when the last of all nodes does, and
                so may all nodes if no groups are given.
            duration_ns: As for `ends`.
            lag_ns: As for `ends`.

        Returns:
            `start_ns`, `end_ns`, `slack_ns`, `critical` (whether the slack is 0) and `by`, the node that sets its
            start: of its predecessors the one that ends last, the lowest of several; null if it has none.
        """
        durations, lags = self._lengths(duration_ns, lag_ns)
        numbers = pl.repeat(-1, len(durations), dtype=pl.Int64, eager=True) if groups is None else self._numbers(groups)
        try:
            end, slack, by = self._replay.slack(durations, lags, numbers, 0 if groups is None else groups.keys.height)
        except OverflowError:
            raise _too_large() from None
        columns = {"start_ns": end - durations, "end_ns": end, "slack_ns": slack, "critical": slack == 0, "by": by}
        return pl.DataFrame(columns)

    def critical_path(
        self, node: int | None = None, duration_ns: pl.Series | None = None, lag_ns: pl.Series | None = None
    ) -> pl.DataFrame:
        """The chain of nodes that decides when a node ends.

        Args:
            node: Which; if it is not given, the one that ends last (the lowest of several).
            duration_ns: As for `ends`.
            lag_ns: As for `ends`.

        Returns:
            `node`, `start_ns`, `end_ns` and `via`, the row of the edge that set its start (the first of several, null
            for the first node), in order of time.
        """
        if node is not None and not 0 <= node < len(self.duration_ns):
            raise ValueError(f"node {node}: there are {len(self.duration_ns)} nodes")
        durations, lags = self._lengths(duration_ns, lag_ns)
        ends = self.ends(durations, lags)
        last = ends.arg_max() if node is None else node
        known = pl.DataFrame({"node": [] if last is None else [last]}, schema=_PATH)
        return self._paths(known.with_columns(since_ns=_LEAST), ends, durations, lags).drop("path")

    def critical_paths(
        self, groups: Groups, duration_ns: pl.Series | None = None, lag_ns: pl.Series | None = None
    ) -> pl.DataFrame:
        """The chain of nodes that decides when each group ends, e.g. each step, from the end of the group before on.

        Groups are taken in order of their last ends. A chain goes back from the node of its group that ends last (the
        lowest of several), over nodes of any group, as long as they end after the group before did.

        Returns:
            The columns of `groups.keys` and those of `critical_path`, in order of the groups' ends and of time.
        """
        durations, lags = self._lengths(duration_ns, lag_ns)
        ends = self.ends(durations, lags)
        nodes = pl.DataFrame({"group": self._numbers(groups), "end_ns": ends}).with_row_index("node")
        known = nodes.filter(pl.col("group") >= 0).group_by("group")
        last = known.agg(pl.col("end_ns").max(), node=pl.col("node").get(pl.col("end_ns").arg_max()))
        begins = last.sort("end_ns", "group").with_columns(
            pl.col("node").cast(pl.Int64), since_ns=pl.col("end_ns").shift(1).fill_null(_LEAST)
        )
        found = self._paths(begins, ends, durations, lags)
        keys = groups.keys[begins["group"].gather(found["path"])]
        return pl.concat([keys, found.drop("path")], how="horizontal")

    def _paths(self, begins: pl.DataFrame, ends: pl.Series, durations: pl.Series, lags: pl.Series) -> pl.DataFrame:
        """Paths back from nodes (`node`, `since_ns`), in order of time: `path`, `node`, `start_ns`, `end_ns`, `via`."""
        if begins.is_empty():
            return pl.DataFrame(
                schema={"path": pl.Int64, **_PATH, "start_ns": pl.Int64, "end_ns": pl.Int64, "via": pl.Int64}
            )
        number, back = self._replay.paths(durations, lags, begins["node"], begins["since_ns"])
        steps = pl.DataFrame({"path": number, "node": back})
        steps = steps.reverse().sort("path", maintain_order=True)
        end, length = ends.gather(steps["node"]), durations.gather(steps["node"])
        steps = steps.with_columns(
            (end - length).alias("start_ns"), end.alias("end_ns"), before=pl.col("node").shift(1).over("path")
        )
        on_path = self.edges["node"].is_in(steps["node"].cast(self.edges.schema["node"]).implode()).arg_true()
        edges = self.edges.select(pl.col("node", "before").gather(on_path).cast(pl.Int64), on_path.alias("via"))
        via = edges.unique(["node", "before"], keep="first", maintain_order=True)
        joined = steps.join(via, on=["node", "before"], how="left", maintain_order="left")
        return joined.select("path", "node", "start_ns", "end_ns", pl.col("via").cast(pl.Int64))

    def _lengths(self, duration_ns: pl.Series | None, lag_ns: pl.Series | None) -> tuple[pl.Series, pl.Series]:
        """Durations and lags, checked if they are not those of the trace."""
        count = len(self.duration_ns)
        if duration_ns is None:
            duration_ns = self.duration_ns
        elif duration_ns is not self.duration_ns:
            duration_ns = _not_negative(_checked(duration_ns, count, "duration_ns"), "duration_ns")
        if lag_ns is None:
            lag_ns = self.lag_ns
        elif lag_ns is not self.lag_ns:
            lag_ns = _not_negative(_checked(lag_ns, count, "lag_ns"), "lag_ns")
        return duration_ns, lag_ns

    def _numbers(self, groups: Groups) -> pl.Series:
        if len(groups.numbers) != len(self.duration_ns):
            raise ValueError(f"groups: {len(groups.numbers)} rows for {len(self.duration_ns)} nodes")
        return groups.numbers


def _prepared(
    start_ns: pl.Series, end_ns: pl.Series, node: pl.Series, before: pl.Series
) -> CompiledReplay | PlainReplay:
    try:
        return CompiledReplay(start_ns, end_ns, node, before)
    except Refused:
        return PlainReplay(start_ns, end_ns, node, before)


def _checked(column: pl.Series, rows: int, place: str) -> pl.Series:
    """A column of whole numbers as Int64.

    Raises:
        ValueError: If it has another length or type, or a null.
    """
    if len(column) != rows:
        raise ValueError(f"{place}: {len(column)} values for {rows} rows")
    if not column.dtype.is_integer() and len(column):
        raise ValueError(f"{place}: whole numbers are needed, not {column.dtype}")
    try:
        numbers: pl.Series = column.cast(pl.Int64).rechunk()
    except pl.exceptions.InvalidOperationError:
        raise ValueError(f"{place}: a number does not fit into 64 bits") from None
    if numbers.null_count():
        raise ValueError(f"{place} is null in row {numbers.is_null().arg_true()[0]}")
    return numbers


def _not_negative(column: pl.Series, place: str) -> pl.Series:
    least = column.min()
    if isinstance(least, int) and least < 0:
        row = (column < 0).arg_true()[0]
        raise ValueError(f"{place} is negative or too large in row {row}: {column[row]}")
    return column


def _nodes(column: pl.Series, nodes: int, place: str) -> pl.Series:
    """Row numbers of nodes.

    Raises:
        ValueError: If one is null or there is no such node.
    """
    numbers = _checked(column, len(column), place)
    least, most = numbers.min(), numbers.max()
    if isinstance(least, int) and isinstance(most, int) and (least < 0 or most >= nodes):
        row = ((numbers < 0) | (numbers >= nodes)).arg_true()[0]
        raise ValueError(f"{place} is {numbers[row]} in row {row}; there are {nodes} nodes")
    return numbers


def _too_large() -> ValueError:
    return ValueError("a time of the replay does not fit into 64 bits")
