"""What decides how long a step takes: the chain of work over all ranks, hosts and devices, and who has time to
spare."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.job_graph import ENTRY, HUB, STEP, TRANSMISSION, WHOLE, JobGraph
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.dependencies import WHY
from stepscope.analysis.replay.replay import NO_STEPS
from stepscope.analysis.replay.work import KINDS
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank step",
    meaning("kind", "What it is.", values=KINDS),
    Column("lane", "string", "`host`, or the stream or group that ran it.", importance=35),
    Column(
        "name",
        "string",
        "Name of the kernel or call; of several alike in a row, the first; null for the host.",
        importance=59,
    ),
    Column("pieces", "int64", "Number of pieces in a row on this lane, of this kind and name.", importance=30),
    Column("start_ns", "int64", "Start of the first one, relative to the start of the step."),
    "duration_ns",
    Column("gap_ns", "int64", "Time between what they waited for and their starts.", importance=46),
    Column(
        "why",
        "string",
        "What the first one waited for; null for the first of all.",
        values=(*WHY, STEP),
        importance=42,
    ),
    nulls="name why",
    keep="rank kind name duration_ns step",
)


@analysis("job", COLUMNS, whole_job=True, across_steps=True)
def critical_path(work_graph: Prepared[JobGraph]) -> pl.DataFrame:
    """Walk back from the last work of each step, always to what was waited for last, until the step begins: one row for
    pieces in a row that are alike, in order of time. Durations and gaps of a step sum to its length in the replay.

    Raises:
        Unavailable: If no work lies in a step.
    """
    graph = work_graph()
    if not graph.steps:
        raise Unavailable(NO_STEPS)
    rows = (
        _path(graph)
        .group_by(_ALIKE.alias("run"), maintain_order=True)
        .agg(
            pl.col("rank", "step", "kind", "lane", "name", "why").first(),
            start_ns=(pl.col("start_ns") - pl.col("begin_ns")).first(),
            pieces=pl.len().cast(pl.Int64),
            duration_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(),
            gap_ns=pl.col("gap_ns").sum(),
        )
    )
    return rows.select(names(COLUMNS))


def recorded_path(work_graph: Prepared[JobGraph]) -> pl.DataFrame:
    """The same chain where it was recorded, for a timeline: a function to be asked, not a question with a name.

    Returns:
        `rank`, `step`, `kind`, `lane`, `name`, `why`, `pieces`, `start_ns` and `end_ns` (common clock), in order.

    Raises:
        Unavailable: If no work lies in a step.
    """
    graph = work_graph()
    if not graph.steps:
        raise Unavailable(NO_STEPS)
    path = _path(graph)
    recorded = graph.nodes.select("start_ns", "end_ns")[path["node"].to_list()]
    return (
        path.with_columns(recorded)
        .group_by(_ALIKE.alias("run"), maintain_order=True)
        .agg(
            pl.col("rank", "step", "kind", "lane", "name", "why").first(),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            pieces=pl.len().cast(pl.Int64),
        )
        .drop("run")
    )


_ALIKE = pl.struct("step", "rank", "lane", "kind", "name").rle_id()


def _path(graph: JobGraph) -> pl.DataFrame:
    """The nodes of each step's chain with what they are, from the begin of the step (`begin_ns`) on; entries and hubs
    have no length and are left out."""
    simulation = graph.simulation
    before = pl.col("end_ns").shift(1).over("step")
    path = (
        simulation.critical_paths(simulation.grouped(graph.nodes["step"]))
        .join(graph.step_starts(replayed=True), on="step", how="left", maintain_order="left")
        # What began in the step before counts from when this one begins.
        .with_columns(pl.max_horizontal("start_ns", "begin_ns"), pl.max_horizontal("end_ns", "begin_ns"))
        .with_columns(gap_ns=(pl.col("start_ns") - pl.coalesce(before, "begin_ns")).clip(lower_bound=0))
    )
    # Of millions of nodes and edges, few are on a path.
    what = graph.nodes.select(pl.col("rank", "kind", "lane", "name", "part", "call").gather(path["node"]))
    why = simulation.edges.select(pl.col("why").gather(path["via"]).cast(pl.String))
    path = pl.concat([path, what, why], how="horizontal")
    # Pieces that take no time, such as a wait that ends at once, decide nothing.
    path = path.filter((pl.col("end_ns") > pl.col("start_ns")) | (pl.col("gap_ns") > 0) | (pl.col("part") != WHOLE))
    # The gap before an entry or hub is that of the transmission after it.
    short = pl.col("part").is_in([ENTRY, HUB])
    place = (~short).cast(pl.Int64).cum_sum().shift(1, fill_value=0).over("step")
    summed = path.with_columns(place=place).with_columns(gap_ns=pl.col("gap_ns").sum().over("step", "place"))
    return _of_the_last(summed, graph).filter(~short)


def _of_the_last(path: pl.DataFrame, graph: JobGraph) -> pl.DataFrame:
    """Paths that end with a call: of members that leave it at the same time, the one that entered last counts."""
    step = pl.col("step")
    ends = (step != step.shift(-1)).fill_null(value=True) & (pl.col("part") == TRANSMISSION)
    is_waited_for = (pl.col("part").shift(1) == HUB) & (step.shift(2) == step)
    entered = pl.when(ends & is_waited_for.fill_null(value=False)).then(pl.col("rank").shift(2))
    facts = {"rank": "other_rank", "lane": "other_lane", "name": "other_name"}
    others = graph.nodes.filter(pl.col("part") == TRANSMISSION).select(
        "call", entered="rank", length=pl.col("end_ns") - pl.col("start_ns"), **{new: old for old, new in facts.items()}
    )
    joined = path.with_columns(entered=entered, length=pl.col("end_ns") - pl.col("start_ns")).join(
        others, on=["call", "entered", "length"], how="left", maintain_order="left"
    )
    found = pl.col("other_rank").is_not_null()
    return joined.with_columns(pl.when(found).then(new).otherwise(old).alias(old) for old, new in facts.items())


SLACK_COLUMNS = columns(
    "rank step",
    Column(
        "path_ns",
        "int64",
        "Its part of the critical path in this step, with the gaps before its pieces.",
        title="on the path",
        importance=57,
    ),
    Column("path_ratio", "float64", "`path_ns` over the length of the step.", title="share", importance=56),
    Column(
        "slack_ns",
        "int64",
        "By how much all of its own work, communication apart, could end later without making the step longer.",
        title="slack",
        importance=55,
    ),
    Column(
        "error_ratio",
        "float64",
        "Length of the step in a replay without changes over its recorded length, minus 1.",
        importance=10,
    ),
    nulls="",
)


@analysis("job", SLACK_COLUMNS, whole_job=True, across_steps=True)
def slack(work_graph: Prepared[JobGraph]) -> pl.DataFrame:
    """How much of each step's critical path lies on each rank, and how much time the rank has to spare: one row per
    rank and step.

    The slack is the least of the rank's own work (no communication) that ends in the step; a rank has none if its own
    work is on the path.

    Raises:
        Unavailable: If no work lies in a step.
    """
    graph = work_graph()
    if not graph.steps:
        raise Unavailable(NO_STEPS)
    path = _path(graph)
    time = pl.col("end_ns") - pl.col("start_ns") + pl.col("gap_ns")
    own = path.group_by("rank", "step").agg(path_ns=time.sum())
    recorded_ns, step_ns = graph.recorded_step_times(), graph.step_times()
    spare = graph.simulation.slack(graph.simulation.grouped(graph.nodes["step"]))
    rows = graph.nodes.select("rank", "step", "kind").with_columns(spare["slack_ns"])
    mine = rows.filter(
        pl.col("rank").is_not_null()
        & pl.col("step").is_not_null()
        & ~pl.col("kind").is_in(["communication", "waiting"])
    )
    lengths = pl.DataFrame(
        {"step": pl.Series(graph.steps, dtype=pl.Int32), "step_ns": step_ns, "recorded_ns": recorded_ns}
    )
    error = pl.when(pl.col("recorded_ns") > 0).then(pl.col("step_ns") / pl.col("recorded_ns") - 1).otherwise(0.0)
    ratio = pl.when(pl.col("step_ns") > 0).then(pl.col("path_ns") / pl.col("step_ns")).otherwise(0.0)
    return (
        mine.group_by("rank", "step")
        .agg(pl.col("slack_ns").min())
        .join(own, on=["rank", "step"], how="left")
        .join(lengths, on="step", how="left")
        .with_columns(pl.col("path_ns").fill_null(0))
        .with_columns(path_ratio=ratio, error_ratio=error)
        .select(names(SLACK_COLUMNS))
        .sort("rank", "step")
    )
