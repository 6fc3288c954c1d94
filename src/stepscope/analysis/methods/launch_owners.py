"""Which operator launched each piece of device work, whichever way a format tells it: by an id that both share, or by
the host call that launched it and what runs around that."""

from __future__ import annotations

import polars as pl

from stepscope.sources.ancestors import climb
from stepscope.tables import SLICES

_CALLS = ("queue", "runtime", "operator")
"""Host ranges that share a correlation with device work."""


def owners(kernels: pl.LazyFrame, operators: pl.LazyFrame, slices: pl.LazyFrame | None) -> pl.DataFrame:
    """The innermost operator that launched each piece of device work.

    Returns:
        `rank`, `kernel` and the operator's `slice`; only those of which it is known.
    """
    work = kernels.select("rank", "kernel", "external_id", "correlation").collect(engine="streaming")
    by_id = work.filter(pl.col("external_id").is_not_null()).select("rank", "kernel", "external_id")
    known = operators.filter(pl.col("external_id").is_not_null()).select("rank", "external_id", "slice")
    keys = ["rank", "external_id"]
    ids = known.join(by_id.lazy().select(keys).unique(), on=keys, how="semi").collect(engine="streaming")
    firsts = ids.sort("slice").unique(keys, keep="first", maintain_order=True)
    found = by_id.join(firsts, on=keys, maintain_order="left").select("rank", "kernel", "slice")
    rest = work.filter(pl.col("correlation").is_not_null()).join(found, on=["rank", "kernel"], how="anti")
    if rest.is_empty() or slices is None:
        return found
    return pl.concat([found, launched_in(rest, operators, slices)])


def launched_in(work: pl.DataFrame, ranges: pl.LazyFrame, slices: pl.LazyFrame) -> pl.DataFrame:
    """The innermost of some ranges around the call that launched each piece of work.

    Args:
        work: `rank`, `kernel` and `correlation`, which it shares with the call.
        ranges: `rank` and `slice` of those to find.
        slices: All ranges.

    Returns:
        `rank`, `kernel` and the range's `slice`; only those of which it is known.
    """
    keys = ["rank", "correlation"]
    calls = (
        slices.filter(pl.col("category").is_in(_CALLS) & pl.col("correlation").is_not_null())
        .select(*keys, "slice")
        .join(work.lazy().select(keys).unique(), on=keys, how="semi")
        .collect(engine="streaming")
    )
    found = innermost(calls, ranges, slices).drop_nulls("slice").sort("slice")
    around = found.unique(keys, keep="first", maintain_order=True)
    return work.join(around, on=keys, maintain_order="left").select("rank", "kernel", "slice")


def innermost(rows: pl.DataFrame, ranges: pl.LazyFrame, slices: pl.LazyFrame) -> pl.DataFrame:
    """Rows with a `rank` and a `slice`, rank by rank, with the innermost of some ranges around it as `slice`: itself,
    or what it is inside of; null if there is none.

    Args:
        rows: The rows.
        ranges: `rank` and `slice` of those to find.
        slices: All ranges.
    """
    by_rank = _by_rank(ranges.select("rank", "slice").collect(engine="streaming"))
    parents = Parents(slices, rows["rank"])
    parts = [rows.clear()]
    for (rank,), own in rows.partition_by("rank", as_dict=True, maintain_order=True).items():
        wanted = by_rank[rank]["slice"] if rank in by_rank else own["slice"].clear()
        parent = parents.of(rank, own["slice"], wanted)
        parts.append(own.with_columns(climb(own["slice"], parent, wanted).alias("slice")))
    return pl.concat(parts)


class Parents:
    """The parents of the slices of some ranks. They are read once: to ask for those of one rank costs as much as for
    those of all ranks whose rows are read together."""

    def __init__(self, slices: pl.LazyFrame, ranks: pl.Series) -> None:
        inside = SLICES.or_empty(slices).filter(
            pl.col("rank").is_in(ranks.unique().implode()), pl.col("parent").is_not_null()
        )
        self._known = _by_rank(inside.select("rank", "slice", "parent").collect(engine="streaming"))

    def of(self, rank: object, *others: pl.Series) -> pl.Series:
        """The parent of each slice of a rank by number, for `climb`; long enough for some others, too."""
        known = self._known.get(rank)
        numbers = [*others] if known is None else [known["slice"], known["parent"], *others]
        highest = pl.concat(numbers).max()
        length = int(highest) + 1 if isinstance(highest, int) else 1
        nobody: pl.Series = pl.repeat(None, length, dtype=pl.Int64, eager=True)
        return nobody if known is None else nobody.scatter(known["slice"], known["parent"])


def _by_rank(rows: pl.DataFrame) -> dict[object, pl.DataFrame]:
    return {rank: own for (rank,), own in rows.partition_by("rank", as_dict=True).items()}


def outermost(wanted: pl.Series, parent: pl.Series) -> pl.Series:
    """Those of some slices that are inside none of the others."""
    outer: pl.Series = wanted.filter(climb(parent.gather(wanted), parent, wanted).is_null())
    return outer
