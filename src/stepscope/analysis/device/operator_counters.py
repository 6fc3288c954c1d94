"""What hardware counters say of the kernels that operators launch."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.launch_owners import Parents, innermost, outermost, owners
from stepscope.analysis.methods.names import names_of
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.errors import Unavailable
from stepscope.sources.ancestors import climb
from stepscope.tables import COUNTERS, KERNEL_COUNTERS, KERNELS, OPERATORS, SLICES
from stepscope.tables.base import Column

NO_COUNTERS = (
    "no hardware counters of kernels were recorded: record with aic_metrics (Ascend) or with CUPTI's range profiler "
    "(profiler_metrics of PyTorch)"
)

OF_KERNELS = r"^[a-z0-9]+__[a-z0-9_]+\."
"""Names of counters that CUPTI records for each kernel."""

IS_ADDED = r"_ns$|_bytes$|_cycles$|_fops$|_hit$|_miss_allocate$|\.sum$"
"""Counters of which a total makes sense; others are shares and rates."""

_COLUMNS = columns(
    "rank",
    Column("operator", "string", "Operator that launches the kernels; null if not known.", importance=62),
    Column("name", "string", "Name of the kernel; null if not recorded.", importance=61),
    Column("counter", "string", "Counter with its unit, as in `kernel_counters` or as the device names it."),
    Column("count", "int64", "Kernels with this counter.", importance=58),
    Column("total", "float64", "Sum over these kernels; null for shares and rates.", importance=60),
    Column("mean", "float64", "Mean of these kernels.", importance=59),
    Column("mean_by_time", "float64", "Mean weighted by the time of kernels; null if unknown.", importance=57),
    Column("min", "float64", "Lowest value."),
    Column("max", "float64", "Highest value."),
    Column("kernel_ns", "int64", "Time of these kernels; null if unknown.", importance=56),
    nulls="operator name total mean_by_time kernel_ns",
    keep="operator counter total mean_by_time mean count name",
)
_KEYS = ("rank", "operator", "name", "counter")


@analysis("rank", _COLUMNS, together=True)
def operator_counters(
    kernel_counters: pl.LazyFrame | None,
    counters: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    slices: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
    outer: bool = False,
) -> pl.DataFrame:
    """Sum up hardware counters by operator and kernel, the longest kernels first.

    Args:
        kernel_counters: Counters of kernels whose times are known.
        counters: Samples, among them counters at the launches of kernels.
        kernels: Device work.
        operators: Operators.
        slices: Ranges of the host.
        ranks: The ranks.
        outer: Count kernels to the outermost operator around their launch, instead of the one that launched them.

    Raises:
        Unavailable: If a rank has no counters of kernels.
    """
    given = {"operators": OPERATORS.or_empty(operators), "slices": SLICES.or_empty(slices)}
    own = _of_kernels(KERNEL_COUNTERS.or_empty(kernel_counters), KERNELS.or_empty(kernels), **given, outer=outer)
    at_launch = _at_launches(COUNTERS.or_empty(counters), **given, outer=outer)
    found = pl.concat([own, at_launch])
    every = [table for table in (ranks, kernels, counters) if table is not None]
    if lacking := sorted({rank for table in every for rank in ranks_of(table)} - {*found["rank"]}):
        raise Unavailable(NO_COUNTERS, of=lacking)
    return found.sort("rank", -pl.col("kernel_ns"), *_KEYS[1:], nulls_last=True)


def _of_kernels(
    counted: pl.LazyFrame, kernels: pl.LazyFrame, operators: pl.LazyFrame, slices: pl.LazyFrame, *, outer: bool
) -> pl.DataFrame:
    """Sums of the counters of kernels with times."""
    keys = ["rank", "kernel"]
    filled = counted.select(pl.exclude(keys).count()).collect(engine="streaming")
    known = [name for name, count in zip(filled.columns, filled.row(0), strict=True) if count]
    if not known:
        return _empty()
    owned = owners(kernels.join(counted.select(keys), on=keys, how="semi"), operators, slices)
    named = _named(owned, operators, slices, outer=outer).select(*keys, "operator")
    rows = counted.select(*keys, *known).join(kernels.select(*keys, "name", "duration_ns"), on=keys)
    by = ["rank", "operator", "name"]
    time = pl.col("duration_ns")
    sums = [
        aggregation.alias(f"{which} {name}")
        for name in known
        for which, aggregation in (
            ("count", pl.col(name).count().cast(pl.Int64)),
            ("total", pl.col(name).sum()),
            ("min", pl.col(name).min()),
            ("max", pl.col(name).max()),
            ("weighted", (pl.col(name) * time).sum()),
            ("time", time.filter(pl.col(name).is_not_null()).sum()),
        )
    ]
    wide = rows.join(named.lazy(), on=keys, how="left").group_by(by).agg(sums).collect(engine="streaming")
    parts = [
        wide.select(
            *by,
            counter=pl.lit(name),
            count=f"count {name}",
            sum=f"total {name}",
            weighted=f"weighted {name}",
            min=f"min {name}",
            max=f"max {name}",
            kernel_ns=f"time {name}",
        )
        for name in known
    ]
    return _finished(pl.concat(parts).filter(pl.col("count") > 0))


def _at_launches(counters: pl.LazyFrame, operators: pl.LazyFrame, slices: pl.LazyFrame, *, outer: bool) -> pl.DataFrame:
    """Sums of counters that stand at the launches of their kernels, whose times are unknown."""
    names = names_of(counters).filter(pl.col("name").str.contains(OF_KERNELS))["name"]
    if names.is_empty():
        return _empty()
    samples = (
        counters.filter(pl.col("name").is_in(names.implode())).select("rank", "time_ns", "name", "value").collect()
    )
    moments = samples.select("rank", "time_ns").unique(maintain_order=True)
    calls = slices.filter(pl.col("category") == "runtime").select("rank", "slice", time_ns="start_ns")
    keys = ["rank", "time_ns"]
    at = calls.join(moments.lazy(), on=keys, how="semi").collect().sort("slice")
    launches = at.unique(keys, keep="first", maintain_order=True)
    owned = innermost(launches, operators, slices).drop_nulls("slice")
    named = _named(owned, operators, slices, outer=outer)
    rows = samples.rename({"name": "counter"}).join(named.select(*keys, "operator"), on=keys, how="left")
    sums = rows.group_by("rank", "operator", "counter").agg(
        count=pl.len().cast(pl.Int64),
        sum=pl.col("value").sum(),
        min=pl.col("value").min(),
        max=pl.col("value").max(),
    )
    unknown = {"name": pl.lit(None, pl.String), "weighted": pl.lit(None, pl.Float64)}
    return _finished(sums.with_columns(kernel_ns=pl.lit(None, pl.Int64), **unknown))


def _named(owned: pl.DataFrame, operators: pl.LazyFrame, slices: pl.LazyFrame, *, outer: bool) -> pl.DataFrame:
    """Rows with a `slice` of an operator, with the name of it or of the outermost around it (`operator`)."""
    if outer:
        parents, parts = Parents(slices, owned["rank"]), [owned.clear()]
        for (rank,), own in owned.partition_by("rank", as_dict=True, maintain_order=True).items():
            every = operators.filter(pl.col("rank") == rank).select("slice").collect()["slice"]
            parent = parents.of(rank, own["slice"], every)
            parts.append(own.with_columns(climb(own["slice"], parent, outermost(every, parent)).alias("slice")))
        owned = pl.concat(parts)
    keys = ["rank", "slice"]
    names = operators.select(*keys, operator="name").join(owned.lazy().select(keys), on=keys, how="semi").collect()
    return owned.join(names, on=keys, how="left", maintain_order="left")


def _finished(sums: pl.DataFrame) -> pl.DataFrame:
    """The declared columns of sums."""
    is_added = pl.col("counter").str.contains(IS_ADDED)
    return sums.select(
        *_KEYS,
        "count",
        total=pl.when(is_added).then("sum"),
        mean=pl.col("sum") / pl.col("count"),
        mean_by_time=pl.when(pl.col("kernel_ns") > 0).then(pl.col("weighted") / pl.col("kernel_ns")),
        min="min",
        max="max",
        kernel_ns="kernel_ns",
    )


def _empty() -> pl.DataFrame:
    schema = {**dict.fromkeys(("operator", "name", "counter"), pl.String), "count": pl.Int64}
    numbers = dict.fromkeys(("total", "mean", "mean_by_time", "min", "max"), pl.Float64)
    return pl.DataFrame(schema={"rank": pl.Int32, **schema, **numbers, "kernel_ns": pl.Int64})
