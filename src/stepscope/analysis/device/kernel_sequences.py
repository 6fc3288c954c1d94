"""Which sequences of kernels operators launch, with all that they call, how often and for how long."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.device.operator_launches import NO_OPERATORS, SEQUENCE
from stepscope.analysis.methods.kernel_lists import as_text, callers, numbered_kernels, sequences
from stepscope.analysis.methods.launch_owners import Parents, outermost, owners
from stepscope.analysis.registry import analysis, ranks_of, without_rows
from stepscope.errors import Unavailable, there_are
from stepscope.sources.ancestors import climb
from stepscope.tables.base import Column

_COLUMNS = columns(
    "rank",
    Column("operator", "string", "Operator under which they are launched."),
    Column("count", "int64", "Calls of the operator with this sequence.", importance=61),
    Column("count_ratio", "float64", "Share of its calls that launch anything.", title="of its calls", importance=50),
    Column("kernels", "int64", "Kernels of one call.", importance=54),
    Column("kernel_ns", "int64", "Time of the kernels of all these calls.", importance=58),
    Column("host_ns", "int64", "Time of these calls on the host.", importance=57),
    SEQUENCE,
    nulls="",
    keep="operator",
)


@analysis("rank", _COLUMNS, together=True)
def kernel_sequences(
    kernels: pl.LazyFrame,
    operators: pl.LazyFrame,
    slices: pl.LazyFrame,
    operator: str | None = None,
    shortest: int = 1,
    shown: int = 20,
) -> pl.DataFrame:
    """Find the sequences of kernels that operators launch, they and all that they call: one row per operator and
    sequence, the longest kernel time first.

    Args:
        kernels: Device work, with copies and fills.
        operators: Operators.
        slices: Ranges of the host, which say what encloses what.
        operator: Name of the operator. Default: the outermost operators, which no other one calls.
        shortest: Leave out sequences of fewer kernels.
        shown: Entries of a sequence to write out; 0 for all.

    Raises:
        Unavailable: If a rank has no operator of this name, or its work none at all.
    """
    wanted = operators.filter(pl.lit(value=True) if operator is None else pl.col("name") == operator)
    roots = wanted.select("rank", "slice").collect(engine="streaming")
    ranks = ranks_of(kernels)
    if operator is not None and (without := without_rows(ranks, roots)):
        raise Unavailable(_unknown(operator, operators, without[0]), of=without[:1])
    owned = owners(kernels, operators, slices)
    if unknown := without_rows(ranks, owned):
        raise Unavailable(NO_OPERATORS, of=unknown)
    parents = Parents(slices, owned["rank"])
    under = [_under(rank, part, roots, parents) for (rank,), part in _by_rank(owned)]
    rows, names = numbered_kernels(kernels, pl.concat([owned.clear(), *under]))
    called = callers(operators, sequences(rows), "name", "duration_ns")
    named = called.filter(pl.col("kernels") >= shortest)
    sums = named.group_by("rank", pl.col("name").alias("operator"), "sequence").agg(
        count=pl.len().cast(pl.Int64),
        kernels=pl.col("kernels").first(),
        kernel_ns=pl.col("kernel_ns").sum(),
        host_ns=pl.col("duration_ns").sum(),
    )
    calls = called.group_by("rank", operator="name").agg(calls=pl.len())
    shares = sums.join(calls, on=["rank", "operator"]).with_columns(count_ratio=pl.col("count") / pl.col("calls"))
    told = as_text(shares, names, shown).select(column.name for column in _COLUMNS)
    return told.sort("rank", -pl.col("kernel_ns"), -pl.col("count"), "operator", "sequence")


def _by_rank(rows: pl.DataFrame) -> list[tuple[tuple[object, ...], pl.DataFrame]]:
    return list(rows.partition_by("rank", as_dict=True, maintain_order=True).items())


def _under(rank: object, owned: pl.DataFrame, roots: pl.DataFrame, parents: Parents) -> pl.DataFrame:
    """The same work as that of the outermost wanted operators around it."""
    own = roots.filter(pl.col("rank") == rank)["slice"]
    parent = parents.of(rank, own, owned["slice"])
    return owned.with_columns(climb(owned["slice"], parent, outermost(own, parent)).alias("slice")).drop_nulls("slice")


def _unknown(operator: str, operators: pl.LazyFrame, rank: int) -> str:
    """Why there is no answer about an operator that a rank does not have."""
    names = operators.filter(pl.col("rank") == rank).select(pl.col("name").unique().sort()).collect()["name"]
    return f"no operator is called {operator}. {there_are(operator, names.to_list())}"
