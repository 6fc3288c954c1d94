"""What each operator did on a device's cores: how often, how long, on which shapes, over how many cores, and how busy
the pipes of these were."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.registry import analysis
from stepscope.tables import KERNEL_COUNTERS
from stepscope.tables.base import Column

PIPES: dict[str, tuple[str, ...]] = {
    "mac_ratio": ("mac_ratio", "aic_mac_ratio"),
    "vec_ratio": ("vec_ratio", "aiv_vec_ratio"),
    "scalar_ratio": ("scalar_ratio", "aic_scalar_ratio", "aiv_scalar_ratio"),
    "mte1_ratio": ("mte1_ratio", "aic_mte1_ratio"),
    "mte2_ratio": ("mte2_ratio", "aic_mte2_ratio", "aiv_mte2_ratio"),
    "mte3_ratio": ("mte3_ratio", "aiv_mte3_ratio"),
    "fixpipe_ratio": ("fixpipe_ratio", "aic_fixpipe_ratio"),
}
"""Pipes of a core to the counters of their busy share: of the older cores, of the cube cores, of the vector cores. A
kernel that runs on both kinds counts with the busier one."""

_DOCS = {
    "mac_ratio": "Share of the time in which the matrix unit is busy.",
    "vec_ratio": "The same of the vector unit.",
    "scalar_ratio": "The same of the scalar unit.",
    "mte1_ratio": "The same of moves inside the core (L1 to L0).",
    "mte2_ratio": "The same of moves into the core.",
    "mte3_ratio": "The same of moves out of the core.",
    "fixpipe_ratio": "The same of moves of matrix results.",
}

OPERATOR = ("rank", "name", "type", "core", "input_shapes", "input_types", "input_formats", "output_shapes")
"""What identifies an operator's work."""

_CORES = ("block_dim", "mix_block_dim", "state")
KEYS = [*OPERATOR, *_CORES]
"""Columns that identify a row."""

WORK_COLUMNS = columns(
    "rank name type core input_shapes",
    Column("input_types", "string", "Data types of the inputs, as recorded.", importance=25),
    Column("input_formats", "string", "Data formats of the inputs, as recorded.", importance=10),
    Column("output_shapes", "string", "Shapes of the outputs, as recorded.", importance=8),
    Column("block_dim", "int64", "Blocks, i.e. cores that its work is divided over.", title="blocks"),
    Column(
        "mix_block_dim", "int64", "The same of the vector cores of a kernel that runs on both kinds.", importance=20
    ),
    Column("state", "string", "`static` or `dynamic` shape; null if not recorded.", importance=22),
    "count total_ns mean_ns",
    nulls="type core input_shapes input_types input_formats output_shapes block_dim mix_block_dim state",
)
"""The columns that answers about operators on a device begin with."""

COLUMNS = (
    *WORK_COLUMNS,
    *columns(
        Column("counted", "int64", "Calls with counters of the pipes.", importance=5),
        *(Column(name, "float64", f"{doc} Mean by time; null if not counted.") for name, doc in _DOCS.items()),
        nulls=" ".join(PIPES),
    ),
)


@analysis("rank", COLUMNS, together=True)
def operator_work(kernels: pl.LazyFrame, kernel_counters: pl.LazyFrame | None = None) -> pl.DataFrame:
    """Sum up the compute kernels of each rank's steps by operator, shapes, blocks and state, the longest first."""
    rows = kernels.filter((pl.col("kind") == "compute") & pl.col("step").is_not_null())
    rows = rows.select(*KEYS, "kernel", "duration_ns")
    counted = KERNEL_COUNTERS.or_empty(kernel_counters)
    pipes = [
        pl.max_horizontal(*(pl.when(pl.col(one).is_finite()).then(one) for one in counters)).alias(name)
        for name, counters in PIPES.items()
    ]
    joined = rows.join(counted.select("rank", "kernel", *pipes), on=["rank", "kernel"], how="left")
    is_counted = pl.any_horizontal(pl.col([*PIPES]) > 0)
    weight = pl.col("duration_ns").cast(pl.Float64).clip(lower_bound=1.0)
    sums = joined.group_by(KEYS).agg(
        count=pl.len().cast(pl.Int64),
        total_ns=pl.col("duration_ns").sum(),
        counted=is_counted.sum().cast(pl.Int64),
        weight=weight.filter(is_counted).sum(),
        **{name: (pl.col(name) * weight).filter(is_counted).sum() for name in PIPES},
    )
    found = sums.collect(engine="streaming")
    has = pl.col("weight") > 0
    means = {name: pl.when(has).then(pl.col(name) / pl.col("weight")) for name in PIPES}
    mean = (pl.col("total_ns") / pl.col("count")).round().cast(pl.Int64)
    return (
        found.with_columns(mean_ns=mean, **means)
        .select(names(COLUMNS))
        .sort("rank", -pl.col("total_ns"), *KEYS[1:], nulls_last=True)
    )
