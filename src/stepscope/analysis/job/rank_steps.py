"""The steps of all ranks side by side: how each splits at its points, and into computing, communication and receiving;
the means of ranks and of pipeline stages."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.counted_steps import LEFT_OUT as LEFT_OUT_STEPS
from stepscope.analysis.methods.counted_steps import steps_left_out
from stepscope.analysis.methods.places import PLACE, of_stages, placed
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.rank_lists import as_rank_list
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.selection import Choice, parse_selection
from stepscope.tables import RANK_FIGURES, STEP_TOTALS
from stepscope.tables.base import Column

POINTS = ("interval_ns", "forward_backward_ns", "tail_ns")
"""What the points of a step cut it into."""

PIPELINE = ("stage_ns", "receiving_ns", "communication_not_overlapped_exclude_receive_ns")
"""Parts that only a job with a pipeline has."""

PARTS = ("computing_ns", "free_ns", "computing_and_free_ns", "communication_not_overlapped_ns", *PIPELINE)
"""Parts of a step by what the rank does."""

TIMES = ("step_ns", *POINTS, *PARTS)

STEPS, STATED = "steps", "stated"
"""Means of the recorded steps, and those that the source states of more steps than it holds."""

AVERAGE = "average_"
"""What the names of stated means begin with in `rank_figures`."""

_SOURCE_NAMES = {"receiving_ns": "bubble_ns"}
"""Times that tables have under another name."""

_TIMES = (
    Column("step_ns", "int64", "Length of the step's window.", title="{step} time"),
    meaning("interval_ns", "From the start of the step to the start of forward."),
    Column(
        "forward_backward_ns", "int64", "From the start of forward to the end of backward.", title="forward, backward"
    ),
    Column("tail_ns", "int64", "From the end of backward to the end of the step."),
    meaning("computing_ns", "Time spent computing; null if the source does not tell it from idle time."),
    Column(
        "free_ns",
        "int64",
        "Neither computing nor communicating, copies included; null as `computing_ns`.",
        title="idle or copying",
    ),
    Column(
        "computing_and_free_ns",
        "int64",
        "The step less exposed communication; a step table of MindSpore leaves the interval out as well.",
        title="computing and idle",
    ),
    meaning("communication_not_overlapped_ns", "Communication that no computing hides."),
    Column("stage_ns", "int64", "The step less `receiving_ns`: what the rank's own stage takes.", title="stage"),
    Column(
        "receiving_ns",
        "int64",
        "Receiving from another stage: alone if a step table states it, else all receive calls; null if no rank of the "
        "job receives.",
        title="receive alone",
    ),
    Column(
        "communication_not_overlapped_exclude_receive_ns",
        "int64",
        "Exposed communication other than receiving; null as `receiving_ns`.",
        title="collective alone",
    ),
)

TABLE, TIMELINE = "stated", "timeline"

_BY = (
    Column(
        "points_by",
        "string",
        "Where the points of the step come from: `stated` by the source, or its `timeline`; null if unknown, or both.",
        values=(TABLE, TIMELINE),
    ),
    Column(
        "parts_by",
        "string",
        "Where the parts come from: `stated` in the source's step table, or its `timeline`; null likewise.",
        values=(TABLE, TIMELINE),
    ),
)

COLUMNS = columns(
    "rank",
    *PLACE,
    "step window",
    *_TIMES,
    *_BY,
    keep="rank step step_ns interval_ns computing_ns computing_and_free_ns communication_not_overlapped_ns "
    "receiving_ns",
)

_SPLIT = Column(
    "split",
    "string",
    "`steps`: the mean of the recorded steps. `stated`: of a profile that states means of more steps than it holds, "
    "these.",
    values=(STEPS, STATED),
)

MEANS = columns(
    "rank",
    *PLACE,
    _SPLIT,
    meaning("steps", "Number of steps in the mean; null if stated."),
    Column(
        "parts_steps",
        "int64",
        "Number of those of which the parts are known, which means of parts are of; null if stated.",
        importance=5,
    ),
    *_TIMES,
    *_BY,
    LEFT_OUT_STEPS,
    keep="rank stage step_ns interval_ns computing_ns computing_and_free_ns communication_not_overlapped_ns "
    "receiving_ns",
)

LONG, UNMEASURED = "long", "unmeasured"

LEFT_OUT = columns(
    "rank step",
    Column(
        "reason",
        "string",
        "`long`: it is far longer than the others; `unmeasured`: its interval is not known.",
        nullable=False,
        values=(LONG, UNMEASURED),
    ),
    nulls="",
)

STAGES = columns(
    Column("stage", "int32", "Pipeline stage, from 0."),
    Column("ranks", "string", "Its recorded ranks, e.g. `0, 1`."),
    _SPLIT,
    *_TIMES,
    *_BY,
    keep="stage ranks step_ns computing_ns computing_and_free_ns communication_not_overlapped_ns receiving_ns stage_ns",
)

HOSTS = columns(
    Column("host", "string", "Host, as recorded."),
    Column("ranks", "string", "Its recorded ranks, e.g. `0, 1`."),
    _SPLIT,
    *_TIMES,
    *_BY,
    keep="host ranks step_ns computing_ns computing_and_free_ns communication_not_overlapped_ns receiving_ns",
)


@analysis("job", COLUMNS, whole_job=True)
def rank_steps(
    step_trace: pl.DataFrame | None = None,
    breakdown: pl.DataFrame | None = None,
    step_totals: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    parallel_layout: pl.DataFrame | None = None,
    stage: Choice = None,
) -> pl.DataFrame:
    """Put the steps of all ranks side by side: one row per rank and step.

    The step table of a source is the device's own and complete, so what it states goes before what a timeline shows.

    Args:
        stage: Only ranks of these pipeline stages, e.g. `0` or `1-2`.

    Raises:
        Unavailable: If neither steps nor their parts are known of any rank.
    """
    parts = _parts(breakdown, step_totals)
    cut = _cut(step_trace)
    if cut.is_empty() and parts.is_empty():
        raise Unavailable("no steps were recorded, neither by a timeline nor in a step table")
    rows = cut.join(parts, on=["rank", "step"], how="full", coalesce=True, nulls_equal=True)
    points = [pl.coalesce(name, f"{name}_stated").alias(name) for name in POINTS]
    in_table = pl.any_horizontal(pl.col(f"{name}_stated").is_not_null() for name in POINTS)
    by = pl.coalesce("points_by", pl.when(in_table).then(pl.lit(TABLE)))
    rows = rows.with_columns(*points, step_ns=pl.coalesce("step_ns", "window_ns"), points_by=by)
    receives = bool((rows["receiving_ns"].fill_null(0) > 0).any())
    rows = rows.with_columns(pl.when(receives).then(pl.col(name)) for name in PIPELINE)
    found = of_stages(placed(rows, ranks, groups, parallel_layout), stage)
    return found.select(names(COLUMNS)).sort("rank", "step", nulls_last=True)


def _cut(step_trace: pl.DataFrame | None) -> pl.DataFrame:
    """Each step's window and the parts into which its points cut it."""
    names_ = ("rank", "step", "window", "step_ns", *POINTS)
    if step_trace is None:
        times = dict.fromkeys(("step_ns", *POINTS), pl.Int64)
        schema = {"rank": pl.Int32, "step": pl.Int32, "window": pl.String, **times, "points_by": pl.String}
        return pl.DataFrame(schema=schema)
    stated = pl.when(pl.col("forward_start_by") == "stated").then(pl.lit(TABLE)).otherwise(pl.lit(TIMELINE))
    known = pl.col("interval_ns").is_not_null()
    # graphs have steps of their own numbers: the parts of those are not known apart
    cut = step_trace.select(*names_, points_by=pl.when(known).then(stated))
    return cut.unique(["rank", "step"], keep="first", maintain_order=True)


def _parts(breakdown: pl.DataFrame | None, step_totals: pl.LazyFrame | None) -> pl.DataFrame:
    """Parts of each step by what the rank does; of ranks with a step table, as that states them."""
    stated = STEP_TOTALS.or_empty(step_totals).collect()
    own = stated.select(
        "rank",
        "step",
        window_ns=pl.lit(None, pl.Int64),
        computing_ns="computing_ns",
        free_ns="free_ns",
        computing_and_free_ns=pl.coalesce("computing_and_free_ns", pl.col("computing_ns") + pl.col("free_ns")),
        communication_not_overlapped_ns="communication_not_overlapped_ns",
        stage_ns="stage_ns",
        receiving_ns="bubble_ns",
        communication_not_overlapped_exclude_receive_ns="communication_not_overlapped_exclude_receive_ns",
        **{f"{name}_stated": pl.col(name) for name in POINTS},
        parts_by=pl.lit(TABLE),
    ).unique(["rank", "step"], keep="first", maintain_order=True)
    if breakdown is None:
        return own
    rest = pl.col("free_ns") + pl.col("memory_not_overlapped_ns")
    shown = breakdown.join(own.select("rank").unique(), on="rank", how="anti", maintain_order="left").select(
        "rank",
        "step",
        "window_ns",
        "computing_ns",
        "communication_not_overlapped_ns",
        "stage_ns",
        "communication_not_overlapped_exclude_receive_ns",
        receiving_ns="bubble_ns",
        free_ns=rest,
        computing_and_free_ns=pl.col("computing_ns") + rest,
        parts_by=pl.lit(TIMELINE),
    )
    return pl.concat([own, shown], how="diagonal_relaxed")


def _same(column: str) -> pl.Expr:
    """The value that a group of rows has, if all that are known are the same."""
    known = pl.col(column).drop_nulls().unique()
    return pl.when(known.len() == 1).then(known.first()).alias(column)


@analysis("job", MEANS, whole_job=True)
def rank_means(
    rank_steps: pl.DataFrame,
    left_out_steps: pl.DataFrame | None = None,
    rank_figures: pl.LazyFrame | None = None,
    chosen: Choice = None,
    stage: Choice = None,
) -> pl.DataFrame:
    """Average the steps of each rank: one row per rank, and another one if the source states means of more steps.

    First steps that do not count are left out (`left_out_steps`).

    Args:
        chosen: Only these steps, e.g. `1-3`, the first as well; stated means are of all steps and left out.
        stage: Only ranks of these pipeline stages, e.g. `0` or `1-2`.
    """
    wanted = parse_selection(chosen, "steps")
    kept = rank_steps.filter(wanted.expression("step")) if wanted else without_first(rank_steps, left_out_steps)
    stated = _stated(None if wanted else rank_figures, kept)
    sources = [_same(column.name) for column in _BY]
    of_steps = kept.group_by("rank").agg(
        pl.len().cast(pl.Int64).alias("steps"),
        pl.col("communication_not_overlapped_ns").count().cast(pl.Int64).alias("parts_steps"),
        rounded(pl.col(TIMES).mean()),
        *sources,
    )
    gone = steps_left_out(rank_steps, rank_steps if wanted else kept)
    of_steps = of_steps.join(gone, on="rank", how="left").with_columns(split=pl.lit(STEPS))
    rows = pl.concat([of_steps, stated], how="diagonal_relaxed")
    where = rank_steps.select("rank", *names(PLACE)).unique("rank", keep="first", maintain_order=True)
    known = of_stages(rows.join(where, on="rank", how="left"), stage)
    return known.select(names(MEANS)).sort(pl.col("split") == STATED, "rank")


@analysis("job", LEFT_OUT)
def left_out_steps(
    rank_steps: pl.DataFrame, outer_steps: pl.DataFrame | None = None, time_by_rank: pl.DataFrame | None = None
) -> pl.DataFrame:
    """List the first steps of recordings that means over steps leave out: one row per rank that has one.

    It is far longer than the others (`time_by_rank`), or its interval was not measured, as no step was before it.
    Ranks with one step keep it.
    """
    several = rank_steps.filter(pl.len().over("rank") > 1).select("rank", "step", "window", "interval_ns")
    found = [several.clear().select("rank", "step", reason=pl.lit(LONG))]
    if time_by_rank is not None:
        longer = time_by_rank.select("rank", step="left_out_step").drop_nulls()
        found.append(several.join(longer, on=["rank", "step"], how="semi").select("rank", "step", reason=pl.lit(LONG)))
    if outer_steps is not None:
        first = outer_steps.select("rank", step="first_step")
        unmeasured = several.filter((pl.col("window") == "stated") & (pl.col("interval_ns") == 0))
        found.append(
            unmeasured.join(first, on=["rank", "step"], how="semi").select("rank", "step", reason=pl.lit(UNMEASURED))
        )
    return pl.concat(found).unique("rank", keep="first", maintain_order=True).sort("rank")


def without_first(rows: pl.DataFrame, left_out_steps: pl.DataFrame | None) -> pl.DataFrame:
    """Rows (`rank`, `step`) without first steps that do not count."""
    return rows if left_out_steps is None else rows.join(left_out_steps, on=["rank", "step"], how="anti")


def without_start_up(rows: pl.DataFrame, left_out_steps: pl.DataFrame | None) -> pl.DataFrame:
    """Rows (`rank`, `step`) of ranks that wait for one another: without the steps that any rank leaves out, for all of
    them, unless nothing else is left of a rank."""
    if left_out_steps is None or left_out_steps.is_empty():
        return rows
    counts = ~pl.col("step").is_in(left_out_steps["step"].unique().sort().to_list()).fill_null(value=False)
    return rows.filter(counts | ~counts.any().over("rank"))


def _stated(rank_figures: pl.LazyFrame | None, rows: pl.DataFrame) -> pl.DataFrame:
    """Means that the source states of other steps than the recorded ones."""
    wanted = {f"{AVERAGE}{_SOURCE_NAMES.get(name, name)}": name for name in TIMES}
    figures = RANK_FIGURES.or_empty(rank_figures).filter(pl.col("name").is_in(list(wanted))).collect()
    schema = {"rank": pl.Int32, "split": pl.String, **dict.fromkeys(TIMES, pl.Int64)}
    found: dict[int, dict[str, object]] = {}
    for rank, name, value in figures.sort("rank", "name").select("rank", "name", "value").iter_rows():
        if value is not None:
            found.setdefault(rank, {"rank": rank, "split": STATED})[wanted[name]] = round(value)
    stated = pl.DataFrame([{**dict.fromkeys(schema), **row} for row in found.values()], schema=schema)
    stated = stated.with_columns(pl.lit(TABLE).alias(column.name) for column in _BY)
    return stated.join(rows.select("rank"), on="rank", how="semi")


@analysis("job", STAGES, whole_job=True, passes=("chosen",))
def stage_means(rank_means: pl.DataFrame, stage: Choice = None) -> pl.DataFrame:
    """Average the ranks of each pipeline stage: one row per stage.

    Args:
        stage: Only these pipeline stages, e.g. `0` or `1-2`.

    Raises:
        Unavailable: If no pipeline stages are known.
    """
    known = of_stages(rank_means.drop_nulls("stage"), stage)
    if known.is_empty():
        raise Unavailable("no pipeline stages are known")
    return _means_by(known, "stage").select(names(STAGES))


@analysis("job", HOSTS, whole_job=True, passes=("chosen",))
def host_means(rank_means: pl.DataFrame, stage: Choice = None) -> pl.DataFrame:
    """Average the ranks of each host: one row per host.

    Args:
        stage: Only ranks of these pipeline stages, e.g. `0` or `1-2`.

    Raises:
        Unavailable: If no hosts were recorded.
    """
    known = of_stages(rank_means.drop_nulls("host"), stage)
    if known.is_empty():
        raise Unavailable("no hosts were recorded")
    return (
        _means_by(known, "host")
        .select(names(HOSTS))
        .sort(pl.col("split") == STATED, pl.col("ranks").str.extract(r"^(\d+)").cast(pl.Int64))
    )


def _means_by(known: pl.DataFrame, place: str) -> pl.DataFrame:
    """Means of ranks at the same place."""
    return (
        known.group_by("split", place)
        .agg(
            as_rank_list(pl.col("rank")).alias("ranks"),
            rounded(pl.col(TIMES).mean()),
            *(_same(column.name) for column in _BY),
        )
        .sort(pl.col("split") == STATED, place)
    )
