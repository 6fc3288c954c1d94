"""How many operations each operator makes for a byte, at which rate, and what the device allows."""

from __future__ import annotations

import re
from functools import cache

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.flop_formulas import COUNTED
from stepscope.analysis.methods.least_bytes import least_bytes
from stepscope.analysis.methods.shapes import tensors
from stepscope.analysis.registry import analysis, without_rows
from stepscope.errors import Unavailable
from stepscope.tables import RANKS
from stepscope.tables.base import Column, schema_of
from stepscope.tables.operators import INSTANCE

MEMORY_PEAKS: dict[str, float] = {
    r"V100": 900e9,
    r"\bT4\b": 320e9,
    r"A100.*80GB.*PCIe|A100.*PCIe.*80GB": 1935e9,
    r"(A100|A800).*80GB": 2039e9,
    r"A100|A800": 1555e9,
    r"\bA10\b": 600e9,
    r"\bL40S\b": 864e9,
    r"H200": 4800e9,
    r"H100.*PCIe": 2000e9,
    r"H100|H800": 3350e9,
    r"\bB200\b": 8000e9,
    r"MI300X": 5300e9,
    r"MI250X": 1638e9,
}
"""Device name to the peak rate of its main memory, from the makers' data sheets; the first match counts. A device of an
MI250X is one of its two dies."""


def memory_peak_of(device: str) -> float | None:
    """Peak rate of a device's main memory; None if it is unknown.

    Examples:
        >>> memory_peak_of("NVIDIA H100 80GB HBM3") == 3.35e12, memory_peak_of("unknown")
        (True, None)
    """
    return next((peak for words, peak in MEMORY_PEAKS.items() if re.search(words, device)), None)


COUNTERS, SHAPES = "counters", "shapes"

_COLUMNS = columns(
    "rank",
    Column("name", "string", "Type of the operator, else its name."),
    Column("input_shapes", "string", "Shapes of the inputs; null where kernels were counted together."),
    "data_type count",
    Column("total_ns", "int64", "Total time on the device (on the host if there is no device)."),
    Column("flops", "float64", "Operations of all calls."),
    Column("moved_bytes", "float64", "Bytes moved by all calls; from shapes, the least that they can move."),
    Column("flops_per_byte", "float64", "Operations for each byte: low means bound by memory.", importance=60),
    "flops_per_s",
    Column("moved_bytes_per_s", "float64", "Bytes over time."),
    Column("bytes_by", "string", "Where bytes come from: hardware `counters`, or `shapes` and data types.",
           values=(COUNTERS, SHAPES)),
    Column("peak_flops_per_s", "float64", "Peak of the device for this data type; null if unknown."),
    Column("peak_bytes_per_s", "float64", "Peak of the device's main memory; null if unknown."),
    Column("roof_flops_per_s", "float64", "The rate that both peaks allow at this intensity; null if one is unknown."),
    Column("roof_ratio", "float64", "`flops_per_s` over it."),
    nulls="input_shapes data_type peak_flops_per_s peak_bytes_per_s roof_flops_per_s roof_ratio",
    keep="name flops_per_byte flops_per_s roof_ratio",
)  # fmt: skip

UNKNOWN = (
    "neither hardware counters nor shapes and data types of operators with known operations show how many bytes they "
    "move"
)


@analysis("rank", _COLUMNS, together=True)
def operator_intensity(
    roofline: pl.DataFrame | None,
    operator_flops: pl.DataFrame | None,
    operator_utilization: pl.DataFrame | None,
    ranks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Divide operations by bytes and time: by hardware counters (`roofline`) if a rank has them, else by shapes.

    Raises:
        Unavailable: If operations or bytes of a rank are unknown.
    """
    about = RANKS.or_empty(ranks).select("rank", "device_name").collect()
    parts = [pl.DataFrame(schema=_RAW)]
    if roofline is not None:
        parts.append(_counted(roofline))
    if operator_flops is not None:
        counted = parts[-1]["rank"].unique()
        parts.append(_from_shapes(operator_flops.filter(~pl.col("rank").is_in(counted.implode()))))
    rows = pl.concat(parts)
    everyone = about["rank"] if about.height else rows["rank"]
    if lacking := without_rows(everyone.unique().sort().to_list(), rows):
        raise Unavailable(UNKNOWN, of=lacking)
    return _with_roofs(rows, operator_utilization, about)


_RAW = {
    **schema_of(columns("rank name input_shapes data_type count total_ns")),
    **{"flops": pl.Float64(), "moved_bytes": pl.Float64(), "bytes_by": pl.String()},
}


def _counted(roofline: pl.DataFrame) -> pl.DataFrame:
    """Kernels with counters, by name."""
    known = roofline.filter((pl.col("counted_flops") > 0) & (pl.col("moved_bytes") > 0) & (pl.col("kernel_ns") > 0))
    sums = known.group_by("rank", pl.coalesce("name", "operator").alias("name"), maintain_order=True).agg(
        pl.col("count").sum(),
        total_ns=pl.col("kernel_ns").sum(),
        flops=pl.col("counted_flops").sum(),
        moved_bytes=pl.col("moved_bytes").sum(),
    )
    unknown = pl.lit(None, pl.String)
    return sums.with_columns(input_shapes=unknown, data_type=unknown, bytes_by=pl.lit(COUNTERS)).select(
        pl.col(name).cast(dtype) for name, dtype in _RAW.items()
    )


def _from_shapes(flops: pl.DataFrame) -> pl.DataFrame:
    """Operators with known operations and shapes."""
    known = flops.filter((pl.col("flops") > 0) & pl.col("input_shapes").is_not_null() & (pl.col("total_ns") > 0))
    parsed = cache(tensors)
    moved = [
        least_bytes(_kind(type_, name), parsed(shapes), kind, each)
        for type_, name, shapes, kind, each in known.select(
            "type", "name", "input_shapes", "data_type", "flops"
        ).iter_rows()
    ]
    rows = known.with_columns(pl.Series("each_bytes", moved, pl.Float64)).filter(pl.col("each_bytes") > 0)
    sums = rows.group_by(
        "rank", pl.coalesce("type", "name").alias("name"), "input_shapes", "data_type", maintain_order=True
    ).agg(
        flops=(pl.col("flops") * pl.col("count")).sum(),
        moved_bytes=(pl.col("each_bytes") * pl.col("count")).sum(),
        total_ns=pl.col("total_ns").sum(),
        count=pl.col("count").sum(),
    )
    return sums.with_columns(bytes_by=pl.lit(SHAPES)).select(pl.col(name).cast(dtype) for name, dtype in _RAW.items())


def _kind(type_: str | None, name: str | None) -> str:
    """The name by which the formulas know an operator."""
    if type_ in COUNTED:
        return str(type_)
    return re.sub(INSTANCE, "", (name or "").split("/")[-1])


def _with_roofs(rows: pl.DataFrame, utilization: pl.DataFrame | None, about: pl.DataFrame) -> pl.DataFrame:
    """The rows with rates, and the peaks of their devices."""
    devices = about["device_name"].unique().drop_nulls().to_list()
    memory = {
        name: next((peak for words, peak in MEMORY_PEAKS.items() if re.search(words, name)), None) for name in devices
    }
    peaks = about.select(
        "rank",
        peak_bytes_per_s=pl.col("device_name").replace_strict(
            list(memory), list(memory.values()), default=None, return_dtype=pl.Float64
        ),
    )
    place = ["rank", "data_type"]
    known = pl.DataFrame(schema={"rank": pl.Int32, "data_type": pl.String, "peak_flops_per_s": pl.Float64})
    if utilization is not None:
        known = utilization.select(*place, "peak_flops_per_s").unique(place, keep="first", maintain_order=True)
    per_s = 1e9 / pl.col("total_ns")
    found = (
        rows.join(known, on=place, how="left", maintain_order="left")
        .join(peaks, on="rank", how="left", maintain_order="left")
        .with_columns(
            flops_per_byte=pl.col("flops") / pl.col("moved_bytes"),
            flops_per_s=pl.col("flops") * per_s,
            moved_bytes_per_s=pl.col("moved_bytes") * per_s,
        )
    )
    roof = pl.min_horizontal("peak_flops_per_s", pl.col("flops_per_byte") * pl.col("peak_bytes_per_s"))
    both = pl.col("peak_flops_per_s").is_not_null() & pl.col("peak_bytes_per_s").is_not_null()
    return (
        found.with_columns(roof_flops_per_s=pl.when(both).then(roof))
        .with_columns(roof_ratio=pl.col("flops_per_s") / pl.col("roof_flops_per_s"))
        .select(names(_COLUMNS))
        .sort("rank", -pl.col("total_ns"), "name", "input_shapes", "data_type", nulls_last=True)
    )
