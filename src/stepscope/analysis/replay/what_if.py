"""How long steps would take if some work took another time."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.excess_places import cuts
from stepscope.analysis.methods.intervals import END, lengths, starting_in, union
from stepscope.analysis.methods.job_graph import TRANSMISSION, JobGraph, job_graph
from stepscope.analysis.methods.scenario import Change, factor_of, matching, scaled, without
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.replay import NO_STEPS
from stepscope.analysis.replay.work import HOST
from stepscope.errors import StepscopeError, Unavailable
from stepscope.tables import GROUPS, OPERATORS
from stepscope.tables.base import Column

COLUMNS = columns(
    "step",
    Column(
        "recorded_ns",
        "int64",
        "From the end of the step before (or the first start) to the end of its last work on any rank.",
    ),
    Column("replayed_ns", "int64", "The same in a replay with all durations as recorded."),
    Column("changed_ns", "int64", "The same in a replay with the changes."),
    Column("saving_ns", "int64", "`replayed_ns` minus `changed_ns`; negative if the step becomes longer."),
    Column("saving_ratio", "float64", "`saving_ns` over `replayed_ns`.", title="saved"),
    Column(
        "error_ratio",
        "float64",
        "`replayed_ns` over `recorded_ns`, minus 1: how far the replay is off without changes.",
    ),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def what_if(
    work: pl.DataFrame,
    dependencies: pl.DataFrame,
    excess: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
    clocks: pl.DataFrame | None,
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    without: str | None = None,
    scale: str | None = None,
    bandwidth: str | None = None,
    ideal: bool = False,
) -> pl.DataFrame:
    """Replay each step with changed durations: one row per step, in order. All changes are made together.

    Args:
        without: Whose excess over comparable ranks is taken away, e.g. `rank=6` or `host=node3,kind=dispatch`; several
            separated by `;`. What can be named is `scenario.WHERE`.
        scale: Which work takes another time, and how much, e.g. `op=FlashAttention,0.7`. `op` is a part of the name of
        a
            kernel, a call, or an operator that launched it (on a CPU: that ran).
        bandwidth: Factor by which all communication moves data faster, e.g. `2x`.
        ideal: Take away the excess of all ranks.

    Raises:
        Unavailable: If no work lies in a step, or there is nothing to compare with.
        StepscopeError: If a change is not understood, or nothing is meant by it.
    """
    graph = job_graph(work, dependencies, arrival, clocks)
    recorded, replayed = graph.recorded_step_times(), graph.step_times()
    if recorded.is_empty():
        raise Unavailable(NO_STEPS)
    names_ = _Names(graph, ranks, groups, operators)
    durations = graph.simulation.duration_ns
    if ideal or without:
        durations = _without(graph, excess, names_, without or "", ideal=ideal)
    for change in scaled(scale or ""):
        durations = names_.scaled(durations, change)
    if bandwidth:
        factor = factor_of(bandwidth, f"--bandwidth {bandwidth}: give a factor, e.g. 2x")
        moving = (graph.nodes["part"] == TRANSMISSION) | (
            graph.nodes["collective"].is_not_null() & (graph.nodes["part"] != "entry")
        )
        durations = (
            moving.fill_null(value=False)
            .to_frame("moving")
            .select(
                pl.when("moving").then((pl.lit(durations) / factor).round().cast(pl.Int64)).otherwise(pl.lit(durations))
            )
            .to_series()
        )
    found = pl.DataFrame(
        {
            "step": pl.Series(graph.steps, dtype=pl.Int32),
            "recorded_ns": recorded,
            "replayed_ns": replayed,
            "changed_ns": graph.step_times(durations),
        }
    ).with_columns(saving_ns=pl.col("replayed_ns") - pl.col("changed_ns"))
    return found.with_columns(
        saving_ratio=_over("saving_ns", "replayed_ns"), error_ratio=_over("replayed_ns", "recorded_ns", 1.0)
    ).select(names(COLUMNS))


def _over(one: str, other: str, less: float = 0.0) -> pl.Expr:
    return pl.when(pl.col(other) > 0).then(pl.col(one) / pl.col(other) - less).otherwise(0.0)


def _without(graph: JobGraph, excess: pl.DataFrame | None, named: _Names, text: str, *, ideal: bool) -> pl.Series:
    if excess is None or excess["excess_ns"].null_count() == excess.height:
        raise Unavailable("there is no other rank to compare with, so no excess is known; use --scale")
    cut = cuts(graph.nodes, excess)
    durations = graph.simulation.duration_ns
    left: pl.Series
    if ideal:
        left = durations - cut
        return left
    meant = pl.repeat(False, len(cut), dtype=pl.Boolean, eager=True)
    for change in without(text):
        meant |= named.meant(change, "--without")
    left = durations - pl.select(pl.when(meant).then(cut).otherwise(0)).to_series()
    return left


class _Names:
    """What work can be named by."""

    def __init__(
        self, graph: JobGraph, ranks: pl.LazyFrame, groups: pl.LazyFrame | None, operators: pl.LazyFrame | None
    ):
        self.graph = graph
        self.operators = OPERATORS.or_empty(operators)
        hosts = ranks.select("rank", "host").collect().unique("rank", keep="first")
        members = (
            GROUPS.or_empty(groups)
            .select("rank", pl.concat_list("group", "name"))
            .explode("group")
            .drop_nulls()
            .group_by("rank")
            .agg(groups=pl.col("group").unique().sort())
            .collect()
        )
        self.nodes = (
            graph.nodes.join(hosts, on="rank", how="left", maintain_order="left")
            .join(members, on="rank", how="left", maintain_order="left")
            .with_columns(op=pl.col("name"))
        )

    def meant(self, change: Change, option: str) -> pl.Series:
        """The nodes that a change names."""
        return matching(self.nodes, change.where, option)

    def scaled(self, durations: pl.Series, change: Change) -> pl.Series:
        """Durations after a change by a factor."""
        where = {name: value for name, value in change.where.items() if name != "op"}
        share = self.meant(Change(where), "--scale").cast(pl.Float64)
        if "op" in change.where:
            share *= self._shares(change.where["op"])
        factor = change.factor if change.factor is not None else 1.0
        changed: pl.Series = (durations * (1 + (factor - 1) * share)).round().cast(pl.Int64)
        return changed

    def _shares(self, name: str) -> pl.Series:
        """Which share of each node is work of this name."""
        own = self.nodes["op"].str.to_lowercase().str.contains(name.lower(), literal=True).fill_null(value=False)
        rows = self.nodes.with_row_index("node")
        ranges = (
            self.operators.filter(pl.col("name").str.to_lowercase().str.contains(name.lower(), literal=True))
            .select("rank", "start_ns", end_ns=END)
            .collect()
        )
        if ranges.is_empty():
            return _known(own.cast(pl.Float64), name)
        ranges = union(ranges, by=["rank"])
        # Nodes are on the common clock, operators on their rank's own one, as launches are.
        launched = starting_in(rows.filter(pl.col("launch_ns").is_not_null()), ranges, at="launch_ns")["node"]
        host = rows.filter((pl.col("lane") == HOST) & (pl.col("kind") == "computing"))
        windows = host.select(
            "rank",
            start_ns="own_start_ns",
            end_ns=pl.col("own_start_ns") + pl.col("end_ns") - pl.col("start_ns"),
            window=pl.col("node").cast(pl.Int64),
        ).sort("rank", "start_ns")
        inside = (
            lengths({"in": ranges}, windows, by=["rank"])
            .filter("in")
            .group_by("window")
            .agg(pl.col("duration_ns").sum())
        )
        part = rows.select("node", length=pl.col("end_ns") - pl.col("start_ns")).join(
            inside.select(node=pl.col("window").cast(pl.UInt32), inside="duration_ns"),
            on="node",
            how="left",
            maintain_order="left",
        )
        shares = part.select(
            pl.when(pl.col("length") > 0).then(pl.col("inside").fill_null(0) / pl.col("length")).otherwise(0.0)
        ).to_series()
        whole = own | rows["node"].is_in(launched.implode())
        return _known(pl.select(pl.when(whole).then(1.0).otherwise(shares)).to_series(), name)


def _known(shares: pl.Series, name: str) -> pl.Series:
    if not (shares > 0).any():
        raise StepscopeError(f"--scale op={name}: no kernel, call or operator has this in its name")
    return shares
