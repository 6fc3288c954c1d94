"""Which classes of kernels take longer on a rank than on its peers, by which factor, and why."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.kernel_classes import CLASS, SIZES
from stepscope.analysis.methods.names import MATRIX
from stepscope.analysis.methods.peers import counts, peers, typical
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

MATRIX_CORES = ("AI_CORE", "MIX_AIC")
"""Cores of an NPU with a matrix unit. Older devices have one kind of core only, so the names decide as well."""

COLUMNS = columns(
    "rank",
    Column("kind", "string", "Kind of work.", values=("compute", "memory")),
    Column("name", "string", "Operator type of the kernels, else their name; on a CPU, of operators."),
    "core",
    Column("unit", "string", "What mostly decides how fast they are.", values=("matrix", "vector")),
    Column("peers", "int32", "Number of other ranks that run this class."),
    Column("calls", "float64", "Calls in a step."),
    Column("typical_calls", "float64", "Calls in a step on the median peer."),
    meaning("total_ns", "Time in a step."),
    Column("typical_ns", "int64", "Time in a step on the median peer."),
    Column("mean_ns", "int64", "Mean time of a call; null without calls."),
    Column("typical_mean_ns", "int64", "Mean time of a call on the median peer; null without peers."),
    Column(
        "factor", "float64", "How many times as long as on the peers calls of equal shapes take; null if there are few."
    ),
    Column("excess_ns", "int64", "Time in a step beyond the median peer's: the sum of the next three."),
    Column("slower_ns", "int64", "Part of it because calls of equal shapes take longer."),
    Column("calls_ns", "int64", "Part of it because there are more calls."),
    Column("shapes_ns", "int64", "Part of it because calls have other shapes or sizes."),
    Column("variants", "int64", "Number of different shapes on this rank; null if not recorded."),
    Column("sized_by", "string", "What tells the size of all its calls; null if nothing does.", values=SIZES),
    nulls="core mean_ns typical_mean_ns factor variants sized_by",
    keep="name excess_ns factor total_ns calls",
)


@analysis("job", COLUMNS, whole_job=True)
def rank_kernels(kernel_classes: pl.DataFrame) -> pl.DataFrame:
    """Compare the time that each rank spends on each class of kernels with the ranks that run the same class.

    Returns:
        One row per rank and class, rank by rank, largest excess first. Classes that most ranks run, but this one does
        not, have no calls.

    Raises:
        Unavailable: If only one rank was recorded.
    """
    if kernel_classes["rank"].n_unique() < 2:
        raise Unavailable("kernels of ranks can be compared with at least two ranks of one job")
    return compared(kernel_classes)


def compared(classes: pl.DataFrame, slow: Sequence[int] = ()) -> pl.DataFrame:
    """`rank_kernels` against the ranks that are not slow.

    Args:
        classes: As `kernel_classes`.
        slow: Ranks that are no example for others. Default: each rank is compared with the median rank.
    """
    each = classes.with_columns((pl.col(name) / pl.col("steps")).alias(name) for name in ("calls", "total_ns"))
    variant = [*CLASS, "variant"]
    of_variant = each.with_columns(mean=pl.col("total_ns") / pl.col("calls"), shares=peers(slow, variant) > 0)
    of_variant = of_variant.with_columns(usual=typical("mean", slow, variant))
    same, known = pl.col("calls") * pl.col("usual"), pl.col("usual").is_not_null()
    sums = of_variant.group_by("rank", *CLASS).agg(
        pl.col("calls", "total_ns").sum(),
        same=same.filter(known).sum(),
        equal=pl.col("total_ns").filter(known).sum(),
        variants=pl.col("variant").drop_nulls().n_unique().cast(pl.Int64),
        sized_by=least_known(),
    )
    rows = pl.concat([sums, _absent(sums, slow)])
    has = pl.col("calls") > 0
    rows = rows.with_columns(
        mean=pl.when(has).then(pl.col("total_ns") / pl.col("calls")), peers=peers(slow, CLASS)
    ).with_columns(
        typical_calls=typical("calls", slow, CLASS).fill_null(0.0),
        typical=typical("total_ns", slow, CLASS).fill_null(0.0),
        usual_mean=typical("mean", slow, CLASS),
    )
    excess, slower = pl.col("total_ns") - pl.col("typical"), pl.col("equal") - pl.col("same")
    more = (pl.col("calls") - pl.col("typical_calls")) * pl.coalesce("usual_mean", "mean")
    is_matrix = pl.col("core").is_in(MATRIX_CORES) & pl.col("core").is_not_null() | pl.col("name").str.contains(MATRIX)
    return (
        rows.with_columns(excess_ns=rounded(excess), slower_ns=rounded(slower), calls_ns=rounded(more.fill_null(0)))
        .with_columns(
            pl.col("peers").cast(pl.Int32),
            unit=pl.when(is_matrix).then(pl.lit("matrix")).otherwise(pl.lit("vector")),
            typical_ns=rounded(pl.col("typical")),
            total_ns=rounded(pl.col("total_ns")),
            mean_ns=rounded(pl.col("mean")),
            typical_mean_ns=rounded(pl.col("usual_mean")),
            factor=pl.when((pl.col("same") > 0) & (2 * pl.col("equal") >= pl.col("total_ns"))).then(
                pl.col("equal") / pl.col("same")
            ),
            shapes_ns=pl.col("excess_ns") - pl.col("slower_ns") - pl.col("calls_ns"),
            variants=pl.when(pl.col("variants") > 0).then("variants"),
        )
        .select(names(COLUMNS))
        .sort("rank", -pl.col("excess_ns"), *CLASS, nulls_last=True)
    )


def least_known() -> pl.Expr:
    """What tells the size of several calls: what is known of the least known of them."""
    sized_by = pl.col("sized_by")
    known = pl.when((sized_by == "shapes").all()).then(pl.lit("shapes")).otherwise(pl.lit("grid"))
    return pl.when(sized_by.is_not_null().all()).then(known).alias("sized_by")


def _absent(sums: pl.DataFrame, slow: Sequence[int]) -> pl.DataFrame:
    """Rows without calls: classes that most ranks run, on those that do not."""
    ranks = sums.select(pl.col("rank").unique().sort())
    usual = sums.filter(counts(slow)).group_by(CLASS).agg(n=pl.len())
    usual = usual.filter(2 * pl.col("n") > ranks.filter(~pl.col("rank").is_in(list(slow))).height).drop("n")
    lacking = ranks.join(usual, how="cross").join(sums, on=["rank", *CLASS], how="anti", nulls_equal=True)
    others = {name: dtype for name, dtype in sums.schema.items() if name not in lacking.columns}
    zeros = {name: pl.lit(None if dtype == pl.String else 0, dtype) for name, dtype in others.items()}
    return lacking.with_columns(**zeros).select(sums.columns)
