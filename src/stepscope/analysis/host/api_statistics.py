"""How long the host's calls of the device's runtime and driver take (CANN, CUDA, HIP), by name: on each rank, and over
all ranks."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.distributions import OVER_RANKS, STATISTICS, distributions, distributions_over_ranks
from stepscope.analysis.methods.host_waits import waiting_calls
from stepscope.analysis.methods.statistics import share_of
from stepscope.analysis.registry import analysis, ranks_of, without_rows
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

_LAYER = Column(
    "layer",
    "string",
    "Layer of the interface as recorded, e.g. `AscendCL`, `Node`, `Runtime`; null if names state none. Calls of a "
    "layer contain those of lower layers.",
)
_NAME = meaning("name", "Name of the call.")

BY_RANK = columns(
    "rank",
    _LAYER,
    _NAME,
    *STATISTICS,
    meaning("share_ratio", "Share of the time of all calls of its layer on the rank."),
    nulls="layer std_ns",
    keep="name layer total_ns share_ratio count mean_ns max_ns",
)
ALL = columns(
    _LAYER,
    _NAME,
    *STATISTICS,
    *OVER_RANKS,
    meaning("share_ratio", "Share of the time of all calls of its layer on all ranks."),
    nulls="layer std_ns",
    keep="name layer total_ns share_ratio count mean_ns max_ns max_rank",
)

BY_STEP = columns(
    "rank step",
    _LAYER,
    _NAME,
    meaning("count", "Number of calls in the step."),
    meaning("total_ns", "Their time in the step."),
    meaning("self_ns", "Their time outside of other recorded calls within them."),
    Column("wait_ns", "int64", "Part of their time in which they wait for the device, as `cudaStreamSynchronize`."),
    nulls="layer",
)

NO_CALLS = "no calls of a runtime or driver were recorded"


@analysis("rank", BY_RANK, together=True)
def api_totals(slices: pl.LazyFrame) -> pl.DataFrame:
    """Sum up each rank's calls of the runtime by name, longest total first.

    Raises:
        Unavailable: If no calls of a rank were recorded.
    """
    calls = _calls(slices)
    if without := sorted(set(ranks_of(slices)) - set(ranks_of(calls))):
        raise Unavailable(NO_CALLS, of=without)
    found = _named(distributions(calls, ["rank", "name"]))
    shares = found.with_columns(share_ratio=share_of(pl.col("total_ns"), "rank", "layer"))
    return shares.select(names(BY_RANK)).sort("rank", -pl.col("total_ns"), "layer", "name", nulls_last=True)


@analysis("job", ALL)
def api_statistics(slices: pl.LazyFrame) -> pl.DataFrame:
    """Sum up the calls of the runtime of all ranks by name, longest total first.

    Raises:
        Unavailable: If no calls were recorded.
    """
    found = _named(distributions_over_ranks(_calls(slices), ["name"]))
    if found.is_empty():
        raise Unavailable(NO_CALLS)
    shares = found.with_columns(share_ratio=share_of(pl.col("total_ns"), "layer"))
    return shares.select(names(ALL)).sort(-pl.col("total_ns"), "layer", "name", nulls_last=True)


@analysis("rank", BY_STEP, together=True)
def api_steps(slices: pl.LazyFrame, kernels: pl.LazyFrame | None = None) -> pl.DataFrame:
    """Sum up each rank's calls of the runtime by step and name, in order.

    Raises:
        Unavailable: If no calls of a rank were recorded in its steps.
    """
    calls = slices.filter((pl.col("category") == "runtime") & pl.col("step").is_not_null())
    found = calls.group_by("rank", "step", "name").agg(
        count=pl.len().cast(pl.Int64),
        total_ns=pl.col("duration_ns").sum(),
        self_ns=pl.coalesce("self_ns", "duration_ns").sum(),
    )
    keys = ["rank", "step", "name"]
    waits = waiting_calls(slices, kernels)[0].group_by(keys).agg(wait_ns=pl.col("duration_ns").sum())
    sums = (
        found.collect(engine="streaming").join(waits, on=keys, how="left").with_columns(pl.col("wait_ns").fill_null(0))
    )
    if without := without_rows(ranks_of(slices), sums):
        raise Unavailable(NO_CALLS, of=without)
    return _named(sums).select(names(BY_STEP)).sort("rank", "step", "layer", "name", nulls_last=True)


def _calls(slices: pl.LazyFrame) -> pl.LazyFrame:
    return slices.filter(pl.col("category") == "runtime").select("rank", "name", "duration_ns")


def _named(found: pl.DataFrame) -> pl.DataFrame:
    """Calls such as `AscendCL@aclnnAdd` with their layer apart; calls of two layers never have one name."""
    parts = pl.col("name").str.split_exact("@", 1)
    has_layer = pl.col("name").str.contains(r"^\w+@.")
    return found.with_columns(
        layer=pl.when(has_layer).then(parts.struct.field("field_0")),
        name=pl.when(has_layer).then(pl.col("name").str.replace(r"^\w+@", "")).otherwise("name"),
    )
