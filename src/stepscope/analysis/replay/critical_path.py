"""What decides how long a step takes: the chain of work over all ranks, hosts and devices, and who has time to
spare."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.job_graph import CALL, ENTRY, HUB, STEP, JobGraph, job_graph
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.dependencies import WHY
from stepscope.analysis.replay.replay import NO_STEPS
from stepscope.analysis.replay.work import KINDS
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank step",
    meaning("kind", "What it is.", values=KINDS),
    Column("lane", "string", "`host`, or the stream or group that ran it.", importance=48),
    Column(
        "name",
        "string",
        "Name of the kernel or call; of several alike in a row, the first; null for the host.",
        importance=59,
    ),
    Column("pieces", "int64", "Number of pieces in a row on this lane, of this kind and name.", importance=30),
    Column("start_ns", "int64", "Start of the first one, relative to the start of the step."),
    "duration_ns",
    Column("gap_ns", "int64", "Time between what they waited for and their starts.", importance=45),
    Column(
        "why",
        "string",
        "What the first one waited for; null for the first of all.",
        values=(*WHY, CALL, STEP),
        importance=42,
    ),
    nulls="name why",
    keep="rank kind name duration_ns step",
)


@analysis("job", COLUMNS, whole_job=True)
def critical_path(
    work: pl.DataFrame, dependencies: pl.DataFrame, arrival: pl.DataFrame | None, clocks: pl.DataFrame | None
) -> pl.DataFrame:
    """Walk back from the last work of the job to its first, always to what was waited for last: one row for pieces in a
    row that are alike, in order of time. Their durations and gaps sum to the time from the first piece to the last.

    Raises:
        Unavailable: If no work lies in a step.
    """
    graph = job_graph(work, dependencies, arrival, clocks)
    if not graph.steps:
        raise Unavailable(NO_STEPS)
    path = _path(graph)
    alike = pl.struct("step", "rank", "lane", "kind", "name").rle_id()
    rows = path.group_by(alike.alias("run"), maintain_order=True).agg(
        pl.col("rank", "step", "kind", "lane", "name", "start_ns", "why").first(),
        pieces=pl.len().cast(pl.Int64),
        duration_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(),
        gap_ns=pl.col("gap_ns").sum(),
    )
    begins = graph.step_starts()
    relative = pl.col("start_ns") - pl.col("begin_ns")
    return (
        rows.join(begins, on="step", how="left", maintain_order="left")
        .with_columns(start_ns=relative)
        .select(names(COLUMNS))
    )


def _path(graph: JobGraph) -> pl.DataFrame:
    """The nodes of the chain with what they are; entries and hubs have no length and are left out."""
    simulation = graph.simulation
    last = graph.nodes["end_ns"].to_frame().with_row_index("node").filter(graph.nodes["step"].is_not_null())
    end = int(last.sort("end_ns", "node", descending=[True, False])["node"][0])
    nodes = graph.nodes.select("rank", "step", "kind", "lane", "name", "part").with_row_index("node")
    edges = simulation.edges.select("why").with_row_index("via")
    return (
        simulation.critical_path(end)
        .with_columns(pl.col("node").cast(pl.UInt32), pl.col("via").cast(pl.UInt32))
        .join(nodes, on="node", how="left", maintain_order="left")
        .join(edges, on="via", how="left", maintain_order="left")
        .with_columns(gap_ns=(pl.col("start_ns") - pl.col("end_ns").shift(1)).fill_null(0).clip(lower_bound=0))
        .with_columns(gap_ns=pl.when(_short()).then(0).otherwise("gap_ns") + _gap_before())
        .filter(~_short() & pl.col("step").is_not_null())
    )


def _short() -> pl.Expr:
    return pl.col("part").is_in([ENTRY, HUB])


def _gap_before() -> pl.Expr:
    """The gap before an entry is that of the transmission after it."""
    before = pl.when(_short()).then("gap_ns").otherwise(0)
    return pl.when(~_short()).then(before.shift(1, fill_value=0) + before.shift(2, fill_value=0)).otherwise(0)


SLACK_COLUMNS = columns(
    "rank step",
    Column("path_ns", "int64", "Its part of the critical path in this step.", title="on the path", importance=57),
    Column("path_ratio", "float64", "`path_ns` over the length of the step.", title="share", importance=56),
    Column(
        "slack_ns",
        "int64",
        "By how much all of its own work could end later without making the step longer.",
        title="slack",
        importance=55,
    ),
    nulls="",
)


@analysis("job", SLACK_COLUMNS, whole_job=True)
def slack(
    work: pl.DataFrame, dependencies: pl.DataFrame, arrival: pl.DataFrame | None, clocks: pl.DataFrame | None
) -> pl.DataFrame:
    """How much of each step's critical path lies on each rank, and how much time the rank has to spare: one row per
    rank and step.

    The slack is the least of the rank's own work (no communication) that ends in the step; a rank on the path has none.

    Raises:
        Unavailable: If no work lies in a step.
    """
    graph = job_graph(work, dependencies, arrival, clocks)
    if not graph.steps:
        raise Unavailable(NO_STEPS)
    path = _path(graph)
    own = path.group_by("rank", "step").agg(path_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    spare = graph.simulation.slack(graph.simulation.grouped(graph.nodes["step"]))
    rows = graph.nodes.select("rank", "step", "kind").with_columns(spare["slack_ns"])
    mine = rows.filter(
        pl.col("rank").is_not_null()
        & pl.col("step").is_not_null()
        & ~pl.col("kind").is_in(["communication", "waiting"])
    )
    lengths = pl.DataFrame({"step": pl.Series(graph.steps, dtype=pl.Int32), "step_ns": graph.step_times()})
    ratio = pl.when(pl.col("step_ns") > 0).then(pl.col("path_ns") / pl.col("step_ns")).otherwise(0.0)
    return (
        mine.group_by("rank", "step")
        .agg(pl.col("slack_ns").min())
        .join(own, on=["rank", "step"], how="left")
        .join(lengths, on="step", how="left")
        .with_columns(pl.col("path_ns").fill_null(0))
        .with_columns(path_ratio=ratio)
        .select(names(SLACK_COLUMNS))
        .sort("rank", "step")
    )
