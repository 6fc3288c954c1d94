"""Whether calls transmit more slowly beside kernels that multiply matrices than calls of the same kind alone."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import OF_KIND, SAME, sized_calls, with_groups
from stepscope.analysis.communication.comparable_calls import Limits as SizeLimits
from stepscope.analysis.communication.transmission import awaited_parts
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.methods.step_windows import count_steps, without_unmarked
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables import TRANSPORTS
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits(SizeLimits):
    """Which calls run beside matrix products, and which are slower than alone."""

    beside_ratio: float = limit(0.5, "of the transmission, at least", "chosen by us: most of it is contended")
    alone_ratio: float = limit(0.05, "of the transmission, at most", "chosen by us: next to nothing is contended")
    calls: int = limit(3, "calls of each sort", "chosen by us: fewer show no typical time")
    slower_factor: float = limit(1.1, "times the time alone", "healthy calls of a kind agree within 10 %")


COLUMNS = columns(
    *OF_KIND,
    Column("members", "int32", "Number of ranks of the group seen in the calls.", importance=31),
    Column("beside", "int64", "Calls that transmit mostly while a rank multiplies matrices.", title="calls beside"),
    Column("alone", "int64", "Calls of the kind, in all groups, that transmit while none does.", title="calls alone"),
    meaning("transmit_ns", "Median transmission of the former."),
    Column("alone_ns", "int64", "Median transmission of the latter; null if there are few.", title="alone takes"),
    Column("slowdown_factor", "float64", "The former over the latter.", title="factor"),
    Column(
        "is_slower",
        "bool",
        "True if they are slower by `slower_factor`, and three quarters of them than three quarters of those alone.",
    ),
    Column(
        "sdma_bytes", "int64", "Bytes of the median call inside of a host; null if not recorded.", title="SDMA size"
    ),
    Column(
        "sdma_bytes_per_s",
        "float64",
        "Rate inside of a host beside matrix products, of the median call; null if not recorded.",
        title="SDMA rate",
    ),
    Column("alone_sdma_bytes_per_s", "float64", "The same alone; null as `alone_ns`.", title="SDMA alone"),
    Column("excess_ns", "int64", "What they take longer than alone, summed over the calls of a step; null if unknown."),
    Column("exposed_ns", "int64", "Part of it by which computing would go on sooner; null if unknown."),
    nulls="group_name size_bytes sent_bytes alone_ns slowdown_factor sdma_bytes sdma_bytes_per_s "
    "alone_sdma_bytes_per_s excess_ns exposed_ns",
)


@analysis("job", COLUMNS, whole_job=True)
def contended_calls(
    arrival: pl.DataFrame,
    matrix_overlap: pl.DataFrame,
    exposed_calls: pl.DataFrame,
    groups: pl.LazyFrame | None,
    links: pl.LazyFrame | None,
    transports: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Compare calls that transmit beside matrix products with calls of their kind that do not (kinds: `transmission`).

    A call counts as beside them if any of its ranks multiplies matrices for `beside_ratio` of its transmission.

    Returns:
        One row per group and kind that has such calls, those that computing awaits longest first.

    Raises:
        Unavailable: If no call of known size and transmission was recorded on a device.
    """
    several = pl.col("members") > 1 if arrival["rank"].n_unique() > 1 else pl.lit(value=True)
    known = pl.col("group").is_not_null() & pl.col("transmit_ns").is_not_null() & pl.col("on_device")
    rows = without_unmarked(arrival.filter(several & known & ~pl.col("point_to_point")))
    if rows.is_empty():
        raise Unavailable("no call of known size and transmission was recorded on a device")
    shares = (
        rows.join(matrix_overlap, on=["rank", "collective"])
        .join(
            _sdma(TRANSPORTS.or_empty(transports)), on=["rank", "step", "group", "name"], how="left", nulls_equal=True
        )
        .group_by(*CALL)
        .agg(
            share=(pl.col("matrix_ns") / pl.col("transmit_ns").clip(1)).max(),
            sdma_bytes=pl.col("sdma_bytes").median(),
            rate=pl.col("rate").median(),
        )
    )
    calls = sized_calls(rows, links, ranks, limits.alike_factor).join(shares, on=list(CALL))
    calls = calls.with_columns(
        beside=pl.col("share") >= limits.beside_ratio, alone=pl.col("share") <= limits.alone_ratio
    )
    time = pl.col("transmit_ns")
    alone = (
        calls.filter("alone")
        .group_by(SAME)
        .agg(
            alone=pl.len().cast(pl.Int64),
            alone_ns=rounded(time.median()),
            upper=time.quantile(0.75, "higher"),
            alone_sdma_bytes_per_s=pl.col("rate").median() * 1e9,
        )
    )
    few = pl.col("alone") < limits.calls
    alone = alone.with_columns(pl.when(~few).then(pl.col("alone_ns", "upper", "alone_sdma_bytes_per_s")))
    every = calls.drop("alone").join(alone, on=SAME, how="left", nulls_equal=True, maintain_order="left")
    every = every.with_columns(
        excess_ns=pl.when("beside").then((time - pl.col("alone_ns")).clip(lower_bound=0)).otherwise(0)
    )
    awaited = awaited_parts(every, exposed_calls)
    steps = count_steps().fill_null(1)
    kinds = (
        every.join(awaited, on=list(CALL), how="left", maintain_order="left")
        .with_columns(steps=steps)
        .filter("beside")
        .group_by("group", *SAME)
        .agg(
            beside=pl.len().cast(pl.Int64),
            alone=pl.col("alone").first().fill_null(0),
            transmit_ns=rounded(time.median()),
            lower=time.quantile(0.25, "lower"),
            sdma_bytes=rounded(pl.col("sdma_bytes").median()),
            sdma_bytes_per_s=pl.col("rate").median() * 1e9,
            sent_bytes=rounded(pl.col("sent_bytes").median()),
            excess_ns=rounded(pl.col("excess_ns").sum() / pl.col("steps").first()),
            exposed_ns=rounded(pl.col("awaited").sum() / pl.col("steps").first()),
            **{name: pl.col(name).first() for name in ("alone_ns", "upper", "alone_sdma_bytes_per_s")},
        )
    )
    factor = pl.col("transmit_ns") / pl.col("alone_ns").clip(1)
    apart = (pl.col("lower") > pl.col("upper")) & (pl.col("beside") >= limits.calls)
    return (
        with_groups(kinds, rows, groups)
        .with_columns(
            pl.when(pl.col("alone_ns").is_not_null()).then(pl.col("excess_ns", "exposed_ns")),
            slowdown_factor=factor,
            is_slower=(apart & (factor >= limits.slower_factor)).fill_null(value=False),
        )
        .select(names(COLUMNS))
        .sort(-pl.col("exposed_ns"), "group", "operation", "size_bytes", "sent_bytes", nulls_last=True)
    )


def _sdma(transports: pl.LazyFrame) -> pl.DataFrame:
    """Bytes of each call inside of its host, and their rate in bytes a ns (`sdma_bytes`, `rate`)."""
    call = ["rank", "step", "group", "name"]
    inside = transports.filter((pl.col("transport") == "SDMA") & (pl.col("duration_ns") > 0))
    moved = inside.group_by(call).agg(sdma_bytes=pl.col("size_bytes").sum(), taken=pl.col("duration_ns").sum())
    return moved.select(*call, "sdma_bytes", rate=pl.col("sdma_bytes") / pl.col("taken")).collect()
