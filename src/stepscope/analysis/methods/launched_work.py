"""Device work by the host operators and ranges that launched it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, starting_in
from stepscope.sources.matching import first_match
from stepscope.tables import KERNELS


def launched_directly(kernels: pl.LazyFrame) -> pl.LazyFrame:
    """The kernels that each operator launched itself: `rank`, `external_id`, `device_ns`, `activities` (number)."""
    launched = kernels.filter(pl.col("external_id").is_not_null()).group_by("rank", "external_id")
    return launched.agg(device_ns=pl.col("duration_ns").sum(), activities=pl.len().cast(pl.Int64))


def launching(operators: pl.LazyFrame, kernels: pl.LazyFrame | None, *columns: str) -> Iterator[pl.DataFrame]:
    """The operators that launched kernels themselves, which may be few of all, in batches: `rank`, `external_id`, some
    of their columns, `device_ns` and `activities`."""
    work = launched_directly(KERNELS.or_empty(kernels)).collect(engine="streaming")
    rows = operators.select("rank", "external_id", *columns)
    for batch in batches(rows if work.height else rows.head(0)):
        yield _joined(batch, _near(work, batch))


def _joined(operators: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """The operators with `work` (`launched_directly`)."""
    rows = _with_first(operators, work, "device_ns", "activities")
    return rows.filter(pl.col("activities").is_not_null())


def _with_first(rows: pl.DataFrame, others: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Rows with columns of the first of `others` with the same `rank` and `external_id`; null without one."""
    rank, keys = rows["rank"].min(), ["rank", "external_id"]
    if rank is None or rank != rows["rank"].max():
        firsts = others.select(*keys, *columns).unique(keys, keep="first", maintain_order=True)
        return rows.join(firsts, on=keys, how="left", maintain_order="left")
    own = others.filter(pl.col("rank") == rank)
    place = first_match(rows["external_id"], own["external_id"])
    return rows.with_columns_seq(own[name].gather(place) for name in columns)


def with_device_time(counted: pl.DataFrame, operators: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """Add `device_ns`, the time of all device work launched by an operator and its callees; null without any.

    Args:
        counted: `rank`, `slice`, `thread`, `start_ns`, `duration_ns` and more; they do not call each other.
        operators: All operators, to which kernels refer by external id.
        kernels: Device work.
    """
    launchers = pl.concat(launching(operators, kernels, "thread", "start_ns")).sort("start_ns")
    bounds = counted.select("rank", "thread", "start_ns", "slice", end_ns=END).sort("start_ns", "slice")
    owned = (
        launchers.join_asof(bounds, on="start_ns", by=["rank", "thread"], check_sortedness=False)
        .filter(pl.col("start_ns") <= pl.col("end_ns"))
        .group_by("rank", "slice")
        .agg(pl.col("device_ns").sum())
    )
    return counted.join(owned, on=["rank", "slice"], how="left")


def launch_times(kernels: pl.LazyFrame, operators: pl.LazyFrame | None) -> pl.DataFrame:
    """When the host requested each kernel: when its operator began, else when it was launched.

    A launch may come after its operator if another thread makes it (Ascend's task queue).

    Returns:
        `rank`, `at_ns`, `start_ns`, `end_ns` of each kernel with a known request, in order of `at_ns`.
    """
    began = None if operators is None else _launching(operators, kernels)
    parts = []
    for batch in batches(kernels.select("rank", "external_id", "start_ns", end_ns=END, at_ns="launch_start_ns")):
        asked = batch
        if began is not None:
            asked = _with_first(asked, _near(began, asked), "operator_ns")
            asked = asked.with_columns(at_ns=pl.coalesce("operator_ns", "at_ns"))
        parts.append(asked.select("rank", "at_ns", "start_ns", "end_ns").drop_nulls())
    return pl.concat(parts).sort("at_ns")


def _launching(operators: pl.LazyFrame, kernels: pl.LazyFrame) -> pl.DataFrame:
    """When the operators that launched kernels began, which may be few of all: `rank`, `external_id`, `operator_ns`, in
    order of time."""
    ids = kernels.select("rank", "external_id", launches=pl.lit(value=True)).drop_nulls().collect(engine="streaming")
    known = operators.filter(pl.col("external_id").is_not_null()).select("rank", "external_id", operator_ns="start_ns")
    parts = [_with_first(batch, _near(ids, batch), "launches").drop_nulls("launches") for batch in batches(known)]
    return pl.concat(parts).drop("launches").sort("operator_ns", maintain_order=True)


def _near(rows: pl.DataFrame, batch: pl.DataFrame) -> pl.DataFrame:
    """The rows that may have an external id of a batch; ids are given in about the order of time."""
    ids = batch["external_id"]
    return rows.filter(pl.col("external_id").is_between(ids.min(), ids.max()))


def launched_within(ranges: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """From the first start to the last end of the kernels (`launch_times`) requested in each of some disjoint host
    ranges: `rank`, `start_ns`, `end_ns` for each range that requested any."""
    return (
        starting_in(launches, ranges, at="at_ns")
        .group_by("rank", "until_ns")
        .agg(start_ns=pl.col("start_ns").min(), end_ns=pl.col("end_ns").max())
        .sort("rank", "start_ns")
        .select("rank", "start_ns", "end_ns")
    )
