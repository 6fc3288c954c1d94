"""How fast the links between ranks are, compared with others that move the same kind of data."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.numbering import numbered
from stepscope.analysis.methods.step_windows import count_steps

LINK = ["rank_a", "rank_b", "transport"]
_DIRECTED = ["source", "destination", "transport"]
_KIND = ["transport", "operation", "size_class"]
"""Transfers of a kind, which typical links move at one rate."""


def timed_links(rows: pl.DataFrame, enough: int) -> pl.DataFrame:
    """What links moved, with the time that typical links take for it.

    There may be as many rows as pairs of ranks, in every step, so links are told apart by one number and compared once.

    Args:
        rows: Rows of `links`: totals between different ranks.
        enough: Number of links that make a kind of data comparable; kinds of fewer links are compared with all.

    Returns:
        `link` (a number), `source`, `destination`, `transport`, `step`, `size_bytes`, `duration_ns`, `typical_ns`, row
        by row.
    """
    link = numbered(rows, _DIRECTED)
    each = rows.select(*_DIRECTED, "step", "size_bytes", "duration_ns", "operation", "group", link=link)
    use = numbered(each, ["link", "operation", "group"])
    each = each.drop("group").with_columns(use=use)
    size = pl.col("size_bytes")
    uses = each.group_by("use").agg(
        pl.col(*_DIRECTED, "operation").first(),
        size.sum(),
        pl.col("duration_ns").sum(),
        # the power of two next to the bytes that a link moves for a group in a step
        size_class=size.mean().log(2).round().cast(pl.Int32),
    )
    typical = _typical(_summed(uses, [*_DIRECTED, "operation", "size_class"]), _KIND, enough)
    of_all = _typical(_summed(uses, _DIRECTED), ["transport"], enough).rename({"typical": "typical_of_all"})
    known = uses.join(typical, on=_KIND, how="left", nulls_equal=True).join(of_all, on="transport", how="left")
    rates = known.select("use", rate=pl.coalesce("typical", "typical_of_all"))
    timed = each.drop("operation").join(rates, on="use", how="left", maintain_order="left")
    return timed.with_columns(typical_ns=size / pl.col("rate")).drop("use", "rate")


def pairs_of(timed: pl.DataFrame, enough: int, *, by_step: bool = False) -> pl.DataFrame:
    """Each pair of ranks that a transport links, with the figures of its slower direction.

    Args:
        timed: Result of `timed_links`.
        enough: As there.
        by_step: Whether to tell the steps apart (`step`); what is typical is that of all steps.

    Returns:
        `rank_a`, `rank_b` (also as `first` and `second`), `transport`, `size_bytes`, `duration_ns`, `typical_ns` (the
        time that typical links take), `speed` (that over its own), `steps`, `links` (of the transport), `busy_ratio`
        (its bytes over those of the only other link).
    """
    part = ["step"] if by_step else []
    directed = (
        timed.group_by("link", *part)
        .agg(
            pl.col(_DIRECTED).first(),
            pl.col("size_bytes", "duration_ns").sum(),
            steps=count_steps().fill_null(1),
            typical_ns=pl.col("typical_ns").sum(),
        )
        .with_columns(rate=pl.col("size_bytes") / pl.col("duration_ns"), **_ends())
        .with_columns(speed=pl.col("typical_ns") / pl.col("duration_ns"))
        .select(*_DIRECTED, *part, pl.exclude("link", *_DIRECTED, *part))
    )
    slower = directed.sort(*LINK, *part, "speed", "source", nulls_last=True)
    slower = slower.group_by(*LINK, *part, maintain_order=True).first()
    return _of_few(slower, enough, ["transport", *part]).with_columns(first="rank_a", second="rank_b")


def _summed(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Totals over these columns, with their rate and ends."""
    totals = rows.group_by(keys).agg(pl.col("size_bytes", "duration_ns").sum())
    return totals.with_columns(rate=pl.col("size_bytes") / pl.col("duration_ns"), **_ends())


def _ends() -> dict[str, pl.Expr]:
    return {"rank_a": pl.min_horizontal("source", "destination"), "rank_b": pl.max_horizontal("source", "destination")}


def _typical(directed: pl.DataFrame, kind: list[str], enough: int) -> pl.DataFrame:
    """The rate of typical links of each kind (`typical`); null if there are too few links.

    It is the median, over ranks, of a rank's good links: of four ranks with one slow interface, half of the links are
    slow, but most ranks have a good one.
    """
    pairs = directed.group_by(*dict.fromkeys([*kind, *LINK])).agg(pl.col("rate").min())
    ends = pl.concat([pairs.select(*kind, rank=end, rate="rate") for end in ("rank_a", "rank_b")])
    good = ends.group_by(*kind, "rank").agg(pl.col("rate").quantile(0.75, "higher"))
    typical = good.group_by(kind).agg(typical=pl.col("rate").quantile(0.5, "higher"))
    counts = pairs.group_by(kind).agg(links=pl.len())
    known = typical.join(counts, on=kind, nulls_equal=True)
    return known.select(*kind, typical=pl.when(pl.col("links") >= enough).then("typical"))


def _of_few(pairs: pl.DataFrame, enough: int, over: list[str]) -> pl.DataFrame:
    """Pairs with `links` and `busy_ratio`; of two links, the other is typical; a single one is compared with itself."""
    size, rate = pl.col("size_bytes"), pl.col("rate")
    # Of two links, the other's value is the sum minus one's own.
    other_size, other_rate = (value.sum().over(over) - value for value in (size, rate))
    is_few = pl.col("links") < enough
    typical_rate = pl.when(pl.col("links") == 2).then(other_rate).otherwise(rate)
    return (
        pairs.with_columns(links=pl.len().over(over))
        .with_columns(
            typical_ns=pl.when(is_few).then(size / typical_rate).otherwise("typical_ns"), busy_ratio=size / other_size
        )
        .with_columns(speed=pl.col("typical_ns") / pl.col("duration_ns"))
    )
