"""The work of all ranks as one graph for `Simulation`: calls wait for all members, and times are on one clock."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from stepscope.analysis.methods.late_records import ended_calls
from stepscope.analysis.methods.simulation import Groups, Simulation
from stepscope.errors import Unavailable

LOOSE = (
    "most calls cannot have been the same on all ranks: clocks disagree by more than any call explains, or the "
    "recordings are of different times. So who waited for whom is unknown"
)

CALL = "call"
"""Why members of a call wait for one another, and hosts without a device for their calls."""

OPERATION, MICRO_BATCH, STEP = "operation", "micro_batch", "step"
"""Reasons in recordings of operations alone: the operation before it; data of its micro-batch; the end of the step
before."""

SYNCHRONISATION = "synchronisation"
"""Why hosts wait for their devices."""

LANE, LAUNCH, STREAM_WAIT, ORDER, TIME = "lane", "launch", "stream_wait", "order", "time"
"""Further reasons, within a rank; `dependencies` says what they are."""

WHOLE, ENTRY, HUB, TRANSMISSION = "whole", "entry", "hub", "transmission"
"""Parts of work: a piece as it is; that a member enters a call; that all members have entered; what follows."""

_PART = pl.Enum([WHOLE, ENTRY, HUB, TRANSMISSION])
_WHY = pl.Enum([LANE, LAUNCH, SYNCHRONISATION, STREAM_WAIT, ORDER, TIME, OPERATION, MICRO_BATCH, STEP, CALL])
_GROUP_BYTES = 8
"""Of the number of each node's group."""
_NODE = pl.UInt32()
# There are more edges than nodes, so millions: 9 bytes each instead of 32.
_EDGE = pl.Schema({"node": _NODE, "before": _NODE, "why": _WHY})


@dataclass(frozen=True)
class JobGraph:
    """A job ready to be replayed.

    Args:
        nodes: The nodes in the order of the simulation: `rank` (null for hubs), `work`, `step`, `kind`, `name`, `lane`,
            `kernel`, `collective`, `part`, `call` (number of the matched call; null if none), `start_ns`, `end_ns`
            (common clock), `own_start_ns` and `launch_ns` (the rank's own clock). What is not changed shares the memory
            of `work`.
        simulation: The simulation of these nodes; its `edges` say why (as `dependencies`, or `call`).
    """

    nodes: pl.DataFrame
    simulation: Simulation

    def __sizeof__(self) -> int:
        """Bytes of all that it holds, the numbers of groups too."""
        return int(self.nodes.estimated_size()) + sys.getsizeof(self.simulation) + _GROUP_BYTES * self.nodes.height

    @cached_property
    def _groups(self) -> Groups:
        return self.simulation.grouped(self.nodes["step"])

    @cached_property
    def _order(self) -> pl.Series:
        """Places of the steps in order of their recorded ends."""
        return self._recorded["end_ns"].arg_sort()

    @cached_property
    def _first_ns(self) -> int:
        return int(self._recorded["start_ns"][self._order[0]]) if self.steps else 0

    @cached_property
    def steps(self) -> list[int]:
        """The steps, in order of their ends."""
        return self._groups.keys["step"].gather(self._order).to_list()

    def step_times(self, duration_ns: pl.Series | None = None, lag_ns: pl.Series | None = None) -> pl.Series:
        """How long each step takes if the nodes take these times: from the end of the step before, or from the first
        start, to its own end on the rank that ends last (Int64, ns, in the order of `steps`).

        Args:
            duration_ns: A duration for each node. Default: as recorded.
            lag_ns: What each node waits for after its predecessors. Default: as recorded.
        """
        if duration_ns is None and lag_ns is None:
            return self._replayed
        return self._lengths(self.simulation.last_ends(self._groups, duration_ns, lag_ns))

    @cached_property
    def _replayed(self) -> pl.Series:
        return self._lengths(self.simulation.last_ends(self._groups))

    def with_simulation(self, simulation: Simulation) -> JobGraph:
        """The same nodes with other edges: what follows from the nodes alone is not computed again."""
        other = JobGraph(self.nodes, simulation)
        other.__dict__.update({**self.__dict__, "simulation": simulation})
        other.__dict__.pop("_replayed", None)
        return other

    def only(self, **columns: pl.Expr) -> JobGraph:
        """The same job with these columns of its nodes alone, to take less memory; what was asked of it needs no
        others."""
        self.recorded_step_times(), self.step_times()
        other = JobGraph(self.nodes.select(**columns), self.simulation)
        other.__dict__.update({**self.__dict__, "nodes": other.nodes})
        return other

    def recorded_step_times(self) -> pl.Series:
        """As `step_times`, from the recorded times."""
        return self._lengths(self._recorded["end_ns"])

    def step_starts(self, *, replayed: bool = False) -> pl.DataFrame:
        """When each step begins by this measure: `step`, `begin_ns` (common clock), as recorded or in a replay."""
        last = self.simulation.last_ends(self._groups) if replayed else self._recorded["end_ns"]
        ends = last.gather(self._order).cum_max()
        begins = ends.shift(1).fill_null(self._first_ns) + self._between
        return pl.DataFrame({"step": pl.Series(self.steps, dtype=pl.Int32), "begin_ns": begins})

    @cached_property
    def _recorded(self) -> pl.DataFrame:
        """Recorded first start and last end of each step."""
        rows = self.nodes.select("start_ns", "end_ns").with_columns(self._groups.numbers.alias("group"))
        found = rows.group_by("group").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
        return found.filter(pl.col("group") >= 0).sort("group")

    def _lengths(self, ends: pl.Series) -> pl.Series:
        last = ends.gather(self._order).cum_max()
        lengths: pl.Series = last - last.shift(1).fill_null(self._first_ns) - self._between
        return lengths.alias("step_ns")

    @cached_property
    def _between(self) -> pl.Series:
        """Time between the end of the step before and the first start of each step, e.g. of steps that were left
        out."""
        starts = self._recorded["start_ns"]
        before = self._recorded["end_ns"].gather(self._order).cum_max().shift(1)
        between: pl.Series = (starts.gather(self._order) - before).fill_null(0).clip(lower_bound=0)
        return between


def job_graph(
    work: pl.DataFrame, dependencies: pl.DataFrame, arrival: pl.DataFrame | None, clocks: pl.DataFrame | None
) -> JobGraph:
    """Put the work of all ranks into one graph.

    A member of a matched call enters it when it is ready; the last one to enter sets all others free, unless the
    recording shows that a member left before (a buffered send), which then waits for nobody. Ranks of which only
    operations are recorded (`OPERATION`) begin each step together, and go on without delay: what delays them is not
    recorded, and often it is another rank. A rank most of whose calls match none of its groups' others, e.g. of a file
    that was cut off, is left out: what it waited for is unknown.

    Args:
        work: The analysis of that name, of all ranks.
        dependencies: The analysis of that name.
        arrival: Matched calls; None if there are none.
        clocks: Offsets of the ranks' clocks; None if they agree.

    Raises:
        Unavailable: If the calls of all ranks contradict one another.
    """
    tied = _on_one_clock(_tied(work, arrival), clocks)
    nodes = tied.with_row_index("node").with_columns(pl.col("node").cast(pl.Int64))
    edges = _between_nodes(nodes, dependencies)
    members = _members(nodes, arrival)
    nodes, more = ended_calls(nodes, members)
    edges = pl.concat([edges, _edges(more, CALL)])
    nodes, edges = _joined(nodes, edges, members)
    undelayed = dependencies.filter(pl.col("why").is_in([OPERATION, MICRO_BATCH]))["rank"].unique().implode()
    by_step = nodes.filter(pl.col("rank").is_in(undelayed) & pl.col("step").is_not_null())
    if by_step.is_empty():
        return _simulated(nodes, edges)
    begins, before = _begun(nodes, edges, by_step["step"].unique())
    graph = _simulated(pl.concat([nodes, begins], how="diagonal_relaxed"), pl.concat([edges, before]))
    lag = pl.when(pl.col("rank").is_in(undelayed)).then(0).otherwise(pl.lit(graph.simulation.lag_ns))
    graph.simulation.lag_ns = graph.nodes.select(lag_ns=lag)["lag_ns"]
    return graph


def _simulated(nodes: pl.DataFrame, edges: pl.DataFrame) -> JobGraph:
    return JobGraph(nodes, Simulation(nodes.select("start_ns", "end_ns"), edges))


def _edges(rows: pl.DataFrame, why: str) -> pl.DataFrame:
    """Edges (`node`, `before`) for one reason."""
    return rows.select("node", "before", why=pl.lit(why)).cast(_EDGE)


def _on_one_clock(work: pl.DataFrame, clocks: pl.DataFrame | None) -> pl.DataFrame:
    """Pieces of work with `start_ns` and `end_ns` on the common clock, and `own_start_ns` on the rank's own."""
    own = work.with_columns(own_start_ns="start_ns")
    if clocks is None or clocks.is_empty():
        return own
    shift = pl.col("rank").replace_strict(clocks["rank"], clocks["offset_ns"], default=None).fill_null(0)
    return own.with_columns(pl.col("start_ns", "end_ns") - shift)


def _between_nodes(nodes: pl.DataFrame, dependencies: pl.DataFrame) -> pl.DataFrame:
    """The dependencies of these nodes as `node`, `before` and `why`.

    Pieces of a rank are usually numbered without gaps and in order. Then their nodes follow from the rank's first one;
    joining millions of dependencies by rank and number takes ten times as long.
    """
    of_rank = (
        nodes.group_by("rank")
        .agg(
            shift=pl.col("node").first() - pl.col("work").first(),
            is_plain=((pl.col("node") - pl.col("work")) == (pl.col("node").first() - pl.col("work").first())).all(),
        )
        .sort("rank")
    )
    if of_rank["is_plain"].all():
        known = of_ranks(dependencies, of_rank["rank"])
        shift = of_rank["shift"].gather(of_rank["rank"].search_sorted(known["rank"]))
        return known.select(node=pl.col("work") + shift, before=pl.col("before") + shift, why="why").cast(_EDGE)
    places = nodes.select("rank", "work", "node")
    return (
        dependencies.join(places, on=["rank", "work"])
        .join(places.rename({"work": "before", "node": "before_node"}), on=["rank", "before"])
        .select("node", before="before_node", why="why")
        .cast(_EDGE)
    )


def of_ranks(rows: pl.DataFrame, ranks: pl.Series) -> pl.DataFrame:
    """Rows of these ranks: the same memory if they are of no others."""
    known = rows["rank"].is_in(ranks.implode())
    return rows if known.all() else rows.filter(known)


def _begun(nodes: pl.DataFrame, edges: pl.DataFrame, steps: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A node for the begin of each of these steps, which waits for all of the step before, and edges to what begins."""
    rows = nodes.select("step", "start_ns").with_row_index("node").filter(pl.col("step").is_in(steps.implode()))
    rows = rows.with_columns(pl.col("node").cast(pl.Int64))
    order = rows.group_by("step").agg(pl.col("start_ns").min()).sort("start_ns", "step")
    order = order.with_columns(
        begin=pl.int_range(pl.len(), dtype=pl.Int64) + nodes.height, earlier=pl.col("step").shift(1)
    )
    known = edges.select(pl.col("node", "before").cast(pl.Int64))
    first = rows.join(known, on="node", how="anti").join(order, on="step").select("node", before="begin")
    last = rows.join(known.select(node="before"), on="node", how="anti").select("node", earlier="step")
    ended = last.join(order.drop_nulls("earlier"), on="earlier").select(node="begin", before="node")
    begins = order.select("start_ns", end_ns="start_ns", part=pl.lit(HUB, _PART))
    return begins, _edges(pl.concat([first, ended]), STEP)


def without_waits(graph: JobGraph, nodes: pl.Series | None = None) -> JobGraph:
    """The job if hosts do not wait for their devices. Its own lags are as long as the waits were: replay it with those
    of `graph`.

    Args:
        graph: The job.
        nodes: What does not wait. Default: all hosts.
    """
    waits = pl.col("why") == SYNCHRONISATION
    if nodes is not None:
        waits &= pl.col("node").is_in(nodes.cast(_NODE).implode())
    simulation = graph.simulation
    return graph.with_simulation(Simulation(simulation.times, simulation.edges.filter(~waits)))


def _tied(work: pl.DataFrame, arrival: pl.DataFrame | None) -> pl.DataFrame:
    """The work of ranks that most of their calls tie to the others in their groups; all of it if no calls match.

    Raises:
        Unavailable: If there are none.
    """
    if arrival is None:
        return work
    matched = arrival.filter(pl.col("members") > 1)["rank"].unique()
    # a rank beside them without calls, e.g. of a file that was cut, waited for nobody knows whom
    among = matched if matched.len() else work["rank"].unique()
    tied = of_ranks(work, among.filter(~among.is_in(loose_ranks(arrival))))
    if tied.is_empty() and not work.is_empty():
        raise Unavailable(LOOSE)
    return tied


def loose_ranks(arrival: pl.DataFrame) -> list[int]:
    """Ranks of whose calls most match none of the others in their groups, in order: a replay leaves them out."""
    shared = arrival.filter(~pl.col("point_to_point") & (pl.col("rank").n_unique().over("group") > 1))
    matched = shared.group_by("rank").agg(matched=(pl.col("members") > 1).mean())
    found: list[int] = matched.filter(pl.col("matched") < 0.5)["rank"].sort().to_list()
    return found


def _members(nodes: pl.DataFrame, arrival: pl.DataFrame | None) -> pl.DataFrame:
    """The nodes of matched calls: `node`, `call`, `entered_ns` (when the last member had entered)."""
    if arrival is None:
        return pl.DataFrame(schema={"node": pl.Int64, "call": pl.Int64, "entered_ns": pl.Int64})
    calls = arrival.filter(pl.col("members") > 1).select(
        "rank", "collective", call=pl.struct("group", "sequence").rank("dense").cast(pl.Int64) - 1
    )
    found = nodes.filter(pl.col("collective").is_not_null()).join(calls, on=["rank", "collective"])
    return (
        found.filter(pl.len().over("call") > 1)
        .with_columns(entered_ns=pl.col("start_ns").max().over("call"))
        .sort("node")
        .select("node", "call", "entered_ns")
    )


def _joined(nodes: pl.DataFrame, edges: pl.DataFrame, members: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Nodes and edges with the calls split into entries, hubs and transmissions."""
    count = nodes.height
    hubs = members.group_by("call", maintain_order=True).agg(pl.col("entered_ns").first()).with_row_index("hub")
    hubs = hubs.with_columns(hub=pl.col("hub").cast(pl.Int64) + count)
    split = (
        members.join(hubs.select("call", "hub"), on="call", maintain_order="left")
        .with_columns(transmission=pl.int_range(pl.len(), dtype=pl.Int64) + count + hubs.height)
        .join(nodes, on="node", maintain_order="left")
        .with_columns(waits=pl.col("entered_ns") <= pl.col("end_ns"))
    )
    call = pl.repeat(None, count, dtype=pl.Int64, eager=True).scatter(split["node"], split["call"])
    is_whole = pl.lit(call).is_null()
    entries = nodes.with_columns(
        call=call,
        part=pl.when(is_whole).then(pl.lit(WHOLE, _PART)).otherwise(pl.lit(ENTRY, _PART)),
        end_ns=pl.when(is_whole).then("end_ns").otherwise("start_ns"),
    )
    hub_nodes = hubs.select(
        node="hub", start_ns="entered_ns", end_ns="entered_ns", call="call", part=pl.lit(HUB, _PART)
    )
    transmissions = split.with_columns(
        node="transmission",
        start_ns=pl.when("waits").then("entered_ns").otherwise("start_ns"),
        part=pl.lit(TRANSMISSION, _PART),
    ).select(entries.columns)
    all_nodes = pl.concat([entries, hub_nodes, transmissions], how="diagonal_relaxed").select(entries.columns)
    # What waited for the call waits for its transmission.
    ends = pl.int_range(count, dtype=pl.Int64, eager=True).scatter(split["node"], split["transmission"])
    inner = edges.with_columns(ends.gather(edges["before"]).cast(_NODE).alias("before"))
    joins = [
        split.select(node="hub", before="node"),
        split.filter("waits").select(node="transmission", before="hub"),
        split.select(node="transmission", before="node"),
    ]
    return all_nodes.drop("node"), pl.concat([inner, *(_edges(one, CALL) for one in joins)])
