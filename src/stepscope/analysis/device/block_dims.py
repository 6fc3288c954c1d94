"""Over how many of the device's cores operators divide their work, and how much of their time cores lie idle for it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.device.operator_work import WORK_COLUMNS
from stepscope.analysis.methods.statistics import share
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import RANKS
from stepscope.tables.base import Column

CUBE_CORES = ("AI_CORE", "MIX_AIC")
VECTOR_CORES = ("AI_VECTOR_CORE", "MIX_AIV")

NO_CORES = "the number of the device's cores, or over how many of them operators divide their work, was not recorded"


@dataclass(frozen=True)
class Limits:
    """Which operators leave so many cores idle that it matters."""

    mean_ns: int = limit(20_000, "ns of a call", "the Ascend advisor's limit for operators that it looks at")
    idle_ratio: float = limit(0.1, "of the cores, idle", "chosen by us: work rarely divides evenly")


LIMITS = Limits()

COLUMNS = (
    *WORK_COLUMNS,
    *columns(
        Column("cores", "int32", "Cores of this kind that the device has.", importance=70),
        Column(
            "idle_ratio",
            "float64",
            "Share of these cores that have nothing to do, mean over its rounds: blocks beyond the number of cores run "
            "in further rounds.",
            title="idle cores",
            importance=72,
        ),
        Column("idle_ns", "int64", "This share of its time: what even work on all cores could save at most."),
        Column("uneven", "bool", "True if calls take long and many cores are idle."),
        Column("share_ratio", "float64", "Share of the rank's time in such operators.", title="share", importance=60),
        nulls="",
    ),
)


@analysis("rank", COLUMNS, together=True, nothing=NO_CORES)
def block_dims(operator_work: pl.DataFrame, ranks: pl.LazyFrame | None = None, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare the blocks of each operator with the cores of its device: one row per operator, the longest first.

    Of a kernel that runs on both kinds of cores, the kind counts on which more cores are idle.

    Ranks of which the number of cores or that of blocks is unknown have no answer.
    """
    has = RANKS.or_empty(ranks).select("rank", "ai_cores", "vector_cores").collect()
    devices = has.filter(pl.col("ai_cores") > 0).unique("rank", keep="first", maintain_order=True)
    core, block, mixed = pl.col("core"), pl.col("block_dim"), pl.col("mix_block_dim")
    rows = operator_work.join(devices, on="rank", how="left", maintain_order="left")
    cube = pl.when(core.is_in(CUBE_CORES)).then(_idle(block, pl.col("ai_cores")))
    vector = (
        pl.when(core.is_in(VECTOR_CORES))
        .then(_idle(block, pl.col("vector_cores")))
        .when(core == "MIX_AIC")
        .then(_idle(mixed, pl.col("vector_cores")))
    )
    found = (
        rows.with_columns(cube=cube, vector=vector)
        .with_columns(idle_ratio=pl.max_horizontal("cube", "vector"))
        .filter(pl.col("idle_ratio").is_not_null())
        .with_columns(
            cores=pl.when(pl.col("cube").fill_null(-1.0) >= pl.col("vector").fill_null(-1.0))
            .then("ai_cores")
            .otherwise("vector_cores")
        )
    )
    idle_ns = (pl.col("total_ns") * pl.col("idle_ratio")).round().cast(pl.Int64)
    uneven = (pl.col("mean_ns") >= limits.mean_ns) & (pl.col("idle_ratio") >= limits.idle_ratio)
    return found.with_columns(share(), idle_ns=idle_ns, uneven=uneven).select(names(COLUMNS))


def _idle(blocks: pl.Expr, cores: pl.Expr) -> pl.Expr:
    """Share of the cores that are idle while so many blocks run; null if either is unknown."""
    rounds = (blocks / cores).ceil()
    return pl.when((blocks > 0) & (cores > 0)).then(1 - blocks / (rounds * cores))
