"""How fast each rank communicates in each step, over links inside of a host and between hosts."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.step_windows import without_unmarked
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import LINKS, TRANSPORTS
from stepscope.tables.base import Column

INSIDE = ("HCCS", "PCIE", "SIO")
"""Links inside of a host, which Ascend's profilers sum up as `SDMA`."""

SUMS = ("SDMA", "RDMA")
NO_TRANSPORTS = "what went over which transport is not recorded"


def _of(transport: str, title: str) -> tuple[Column, ...]:
    name = transport.lower()
    return (
        Column(
            f"{name}_bytes_per_s",
            "float64",
            f"Bytes over time, {title}; null if nothing was moved.",
            title=f"{transport} rate",
        ),
        Column(f"{name}_bytes", "int64", f"Bytes that its calls moved {title}.", title=f"{transport} size"),
        Column(f"{name}_ns", "int64", "Time of that.", title=f"{transport} time"),
        Column(
            f"{name}_of_median_ratio",
            "float64",
            "Its rate over that of the step's median rank; null as the rate.",
            title="of median",
        ),
    )


COLUMNS = columns(
    "rank",
    meaning("step", "Number of the step; null where no step is known."),
    *_of("SDMA", "inside of its host"),
    *_of("RDMA", "between hosts"),
    nulls="step sdma_bytes_per_s sdma_of_median_ratio rdma_bytes_per_s rdma_of_median_ratio",
    keep="rank step sdma_bytes_per_s rdma_bytes_per_s sdma_bytes rdma_bytes sdma_ns rdma_ns",
)


@analysis("job", COLUMNS, whole_job=True)
def rank_bandwidths(transports: pl.LazyFrame | None, links: pl.LazyFrame | None = None) -> pl.DataFrame:
    """Sum up what each rank moved in each step over links inside of its host (SDMA) and between hosts (RDMA).

    Each transfer counts once: totals are left out, and so are the kinds of links (HCCS, PCIe, SIO) if a rank states
    their sum. Of a rank without `transports`, what it sends over `links` counts.

    Returns:
        One row per rank and step.

    Raises:
        Unavailable: If neither was recorded.
    """
    sums = ["rank", "step", "transport"]
    moved = [pl.col("size_bytes", "duration_ns").sum()]
    of_calls = TRANSPORTS.or_empty(transports).group_by(sums).agg(moved).collect(engine="streaming")
    ends = pl.col("source") != pl.col("destination")
    totals = LINKS.or_empty(links).filter(pl.col("name").is_null() & (pl.col("source") == pl.col("rank")) & ends)
    of_links = totals.group_by(sums).agg(moved).collect(engine="streaming")
    others = of_links.join(of_calls.select("rank"), on="rank", how="anti")
    rows = without_unmarked(pl.concat([of_calls, others]))
    is_sum = pl.col("transport") == SUMS[0]
    is_part = pl.col("transport").is_in(INSIDE) & ~is_sum.any().over("rank")
    kind = pl.when(is_part).then(pl.lit(SUMS[0])).otherwise("transport")
    known = rows.with_columns(transport=kind).filter(pl.col("transport").is_in(SUMS))
    if known.is_empty():
        raise Unavailable(NO_TRANSPORTS)
    of_step = known.group_by("rank", "step").agg(
        value.alias(f"{name.lower()}_{unit}")
        for name in SUMS
        for unit, value in (
            ("bytes", pl.col("size_bytes").filter(pl.col("transport") == name).sum()),
            ("ns", pl.col("duration_ns").filter(pl.col("transport") == name).sum()),
        )
    )
    lower = [name.lower() for name in SUMS]
    rates = [
        pl.when(pl.col(f"{name}_ns") > 0, pl.col(f"{name}_bytes") > 0)
        .then(pl.col(f"{name}_bytes") / pl.col(f"{name}_ns") * 1e9)
        .alias(f"{name}_bytes_per_s")
        for name in lower
    ]
    rate = {name: pl.col(f"{name}_bytes_per_s") for name in lower}
    medians = {f"{name}_of_median_ratio": rate[name] / rate[name].median().over("step") for name in lower}
    return (
        of_step.with_columns(rates).with_columns(**medians).sort("step", "rank", nulls_last=True).select(names(COLUMNS))
    )
