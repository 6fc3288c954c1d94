"""What went over each link between ranks, how long it took, and how fast that is: by link, transport and operator."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.batches import batches_by_rank
from stepscope.analysis.methods.statistics import rounded, sum_known
from stepscope.analysis.methods.step_windows import without_unmarked
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.selection import Choice, parse_selection
from stepscope.tables.base import Column

_STEP = meaning("step", "Number of the step; null for the mean of the steps, and where no step is known.")
_STEPS = meaning("steps", "Number of steps in the mean; 1 for a step, and where no step is known.")
_ENDS = (
    Column("source", "int32", "Rank that sends.", importance=95),
    Column("destination", "int32", "Rank that receives.", importance=94),
    Column("transport", "string", "Kind of link, e.g. `HCCS`, `RDMA`, `SDMA`; `LOCAL` inside a rank."),
)
_MOVED = (
    meaning("size_bytes", "Bytes moved in a step."),
    Column("duration_ns", "int64", "Time on the link in a step.", title="time"),
    Column("wait_ns", "int64", "Part of it spent waiting for the other side; null if not recorded separately."),
    meaning("bandwidth_bytes_per_s", "Bytes over time; null if either is 0."),
)

COLUMNS = columns(
    _STEP,
    *_ENDS,
    _STEPS,
    *_MOVED,
    Column(
        "of_mean_ratio",
        "float64",
        "Bandwidth over the mean of all links of its transport between different ranks; null inside a rank.",
        title="of the mean",
    ),
    nulls="step transport wait_ns bandwidth_bytes_per_s of_mean_ratio",
    keep="source destination transport duration_ns size_bytes bandwidth_bytes_per_s of_mean_ratio step",
)

MATRIX = columns(
    Column("source", "int32", "Rank that sends."),
    Column("destinations", "list[int32]", "Ranks that receive, in order."),
    Column("sizes_bytes", "list[int64]", "Bytes moved to each in a step."),
    Column("durations_ns", "list[int64]", "Time of that."),
    nulls="",
)

TRANSPORTS = columns(
    Column("transport", "string", "Kind of link; null if not recorded."),
    Column("links", "int64", "Number of links between different ranks."),
    meaning("size_bytes", "Bytes that all of them move in a step."),
    Column("duration_ns", "int64", "Time of all of them in a step, one after the other.", title="time"),
    meaning("bandwidth_bytes_per_s", "Bytes over time."),
    Column("mean_bytes_per_s", "float64", "Mean of the links' bandwidths.", title="mean of links"),
    Column("slowest_bytes_per_s", "float64", "Lowest bandwidth of a link.", title="slowest"),
    Column("fastest_bytes_per_s", "float64", "Highest bandwidth of a link.", title="fastest"),
    nulls="transport bandwidth_bytes_per_s mean_bytes_per_s slowest_bytes_per_s fastest_bytes_per_s",
)

CALLS = columns(
    "rank",
    _STEP,
    meaning("name", "Name of the call."),
    meaning("operation", "Operation; null if not recorded."),
    *_ENDS,
    _STEPS,
    *_MOVED,
    nulls="step operation transport wait_ns bandwidth_bytes_per_s",
    keep="rank name source destination transport duration_ns size_bytes bandwidth_bytes_per_s step",
)

NO_LINKS = "no links were recorded"
_LINK = ["source", "destination", "transport"]


@analysis("job", COLUMNS, whole_job=True)
def link_totals(
    links: pl.LazyFrame,
    by_step: bool = False,
    source: Choice = None,
    destination: Choice = None,
    transport: str | None = None,
) -> pl.DataFrame:
    """Sum up what went over each link in a step: one row per link, its mean step, or per link and step.

    Bandwidth is bytes over time, never a sum or mean of rates. If both ends report a link, the one that reports more
    bytes counts.

    Args:
        by_step: A row for each step.
        source: Only links from these ranks, e.g. `0,2-3`.
        destination: Only links to these ranks.
        transport: Only links of this transport, in any case of letters.

    Raises:
        Unavailable: If no links were recorded.
    """
    columns_ = ("rank", "step", *_LINK, "size_bytes", "duration_ns", "wait_ns")
    totals = links.filter(pl.col("name").is_null()).select(columns_)
    every = pl.concat([_reported(rows, by_step=by_step) for rows in batches_by_rank(totals)])
    if every.is_empty():
        raise Unavailable(NO_LINKS)
    reported = every.select("rank", *_LINK, "most").sort("most", "rank", descending=[True, False])
    reporter = reported.unique(_LINK, keep="first", maintain_order=True).select("rank", *_LINK)
    once = every.join(reporter, on=["rank", *_LINK], how="semi", nulls_equal=True)
    # means of floats depend on the order of rows
    rows = once.sort("step", *_LINK, nulls_last=True)
    over = ["transport", "step"]
    apart = pl.col("source") != pl.col("destination")
    mean = pl.col("bandwidth_bytes_per_s").filter(apart).mean().over(over)
    rows = rows.with_columns(of_mean_ratio=pl.when(apart & (mean > 0)).then(pl.col("bandwidth_bytes_per_s") / mean))
    return _chosen(rows, source, destination, transport).select(names(COLUMNS))


@analysis("job", MATRIX)
def link_matrix(
    link_totals: pl.DataFrame, source: Choice = None, destination: Choice = None, transport: str | None = None
) -> pl.DataFrame:
    """Lay out what went from each rank to each other in the mean step, over all transports: one row per sender.

    Args:
        source: Only links from these ranks, e.g. `0,2-3`.
        destination: Only links to these ranks.
        transport: Only links of this transport, in any case of letters.
    """
    chosen = _chosen(link_totals, source, destination, transport)
    sums = chosen.group_by("source", "destination").agg(pl.col("size_bytes", "duration_ns").sum())
    return (
        sums.sort("source", "destination")
        .group_by("source", maintain_order=True)
        .agg(destinations="destination", sizes_bytes="size_bytes", durations_ns="duration_ns")
    )


@analysis("job", TRANSPORTS)
def transport_totals(
    link_totals: pl.DataFrame, source: Choice = None, destination: Choice = None, transport: str | None = None
) -> pl.DataFrame:
    """Sum up the links between different ranks by transport, fastest first.

    Args:
        source: Only links from these ranks, e.g. `0,2-3`.
        destination: Only links to these ranks.
        transport: Only links of this transport, in any case of letters.
    """
    rate = pl.col("bandwidth_bytes_per_s")
    length = pl.col("duration_ns").sum()
    return (
        _chosen(link_totals, source, destination, transport)
        .filter(pl.col("source") != pl.col("destination"))
        .sort("transport", "source", "destination", nulls_last=True)
        .group_by("transport", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("links"),
            pl.col("size_bytes").sum(),
            length,
            pl.when(length > 0).then(pl.col("size_bytes").sum() / length * 1e9).alias("bandwidth_bytes_per_s"),
            rate.mean().alias("mean_bytes_per_s"),
            rate.min().alias("slowest_bytes_per_s"),
            rate.max().alias("fastest_bytes_per_s"),
        )
        .sort("bandwidth_bytes_per_s", "transport", descending=[True, False], nulls_last=True)
    )


@analysis("rank", CALLS, together=True, nothing="no links of single calls were recorded")
def call_links(
    links: pl.LazyFrame,
    by_step: bool = False,
    source: Choice = None,
    destination: Choice = None,
    transport: str | None = None,
) -> pl.DataFrame:
    """Sum up what each call of a rank moved over each link: one row per call and link, its mean step, or each step;
    longest first.

    Args:
        by_step: A row for each step.
        source: Only links from these ranks, e.g. `0,2-3`.
        destination: Only links to these ranks.
        transport: Only links of this transport, in any case of letters.
    """
    keys = ["rank", "name", "operation", *_LINK]
    every = links.drop_nulls("name").group_by(*keys, "step").agg(*_sums()).collect(engine="streaming")
    rows = _averaged(without_unmarked(every), None, keys, by_step=by_step)
    return (
        _chosen(rows, source, destination, transport)
        .select(names(CALLS))
        .sort("rank", -pl.col("duration_ns"), "step", "name", "operation", *_LINK, nulls_last=True)
    )


def _reported(rows: pl.DataFrame, *, by_step: bool) -> pl.DataFrame:
    """What some ranks report of each link, in a mean step or each, with the bytes of all steps (`most`)."""
    every = without_unmarked(rows.group_by("rank", "step", *_LINK).agg(*_sums()))
    steps = every.group_by("rank").agg(of_steps=pl.col("step").n_unique().cast(pl.Int64))
    link = ["rank", *_LINK]
    most = every.group_by(link).agg(most=pl.col("size_bytes").sum())
    return _averaged(every, steps, link, by_step=by_step).join(most, on=link, nulls_equal=True, maintain_order="left")


def _sums() -> list[pl.Expr]:
    return [pl.col("size_bytes").sum(), pl.col("duration_ns").sum(), sum_known("wait_ns")]


def _averaged(rows: pl.DataFrame, steps: pl.DataFrame | None, keys: list[str], *, by_step: bool) -> pl.DataFrame:
    """Rows of steps, or what they are in the mean step of those that the reporting rank has links of, with the rate.

    Args:
        rows: With `rank`, `step`, and the sums.
        steps: How many steps each rank has links of (`of_steps`); None to average over the steps of each key.
        keys: What a row is about.
        by_step: Keep each step.
    """
    rate = pl.when((pl.col("duration_ns") > 0) & (pl.col("size_bytes") > 0)).then(
        pl.col("size_bytes") / pl.col("duration_ns") * 1e9
    )
    if by_step:
        return rows.with_columns(bandwidth_bytes_per_s=rate, steps=pl.lit(1, pl.Int64))
    known = (
        rows.with_columns(of_steps=pl.col("step").n_unique().over(keys))
        if steps is None
        else rows.join(steps, on="rank")
    )
    count = pl.col("of_steps")
    return (
        known.group_by(keys)
        .agg(
            pl.lit(None, pl.Int32).alias("step"),
            count.first().cast(pl.Int64).alias("steps"),
            *_sums(),
        )
        .with_columns(bandwidth_bytes_per_s=rate)
        .with_columns(rounded(pl.col(name) / pl.col("steps")) for name in ("size_bytes", "duration_ns", "wait_ns"))
    )


def _chosen(rows: pl.DataFrame, source: Choice, destination: Choice, transport: str | None) -> pl.DataFrame:
    """The rows of the chosen links."""
    for column, choice in (("source", source), ("destination", destination)):
        wanted = parse_selection(choice, "ranks")
        if wanted is not None:
            rows = rows.filter(wanted.expression(column))
    if transport is None:
        return rows
    return rows.filter(pl.col("transport").str.to_lowercase() == transport.strip().lower())
