"""Which ranks take longer for their own work than noise explains, in which steps, and which unit of the job they
form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from stepscope.analysis.methods.memberships import memberships
from stepscope.analysis.methods.timing import ONCE, ROTATING
from stepscope.analysis.methods.units import JOB, RANK, RANKS, units

SUSPECTS: dict[str, pl.DataType | type[pl.DataType]] = {
    "suspect": pl.Int64,
    "kind": pl.String,
    "unit_kind": pl.String,
    "unit": pl.String,
    "ranks": pl.List(pl.Int32),
    "pattern": pl.String,
    "slow_steps": pl.List(pl.Int32),
    "period": pl.Int64,
    "score": pl.Float64,
}

SINGLE = 3
"""Up to so many ranks that form no unit are suspects of their own, chosen by us: more are hardly slow by chance."""


def suspects(
    late_ranks: pl.DataFrame, excess: pl.DataFrame, ranks: pl.DataFrame, groups: pl.DataFrame | None
) -> pl.DataFrame:
    """Ranks that are slower than noise explains, as the units that they make up.

    Args:
        late_ranks: The analysis of that name.
        excess: The analysis of that name, of the same ranks.
        ranks: The table of that name.
        groups: The table of that name.

    Returns:
        One row per unit, kind of work and pattern with the columns of `SUSPECTS`, those that lose most first.
    """
    typical = pl.max_horizontal(pl.col("typical_ns").fill_null(1), pl.lit(1))
    # Steps that are long for all ranks are no excess of any of them, and one stall shows no slow rank.
    of_ranks = pl.col("rank").is_not_null() | (pl.col("pattern") == ROTATING)
    slow = late_ranks.filter(of_ranks, ~pl.col("is_stall")).with_columns(
        factor=(typical + pl.col("excess_ns")) / typical,
        once=pl.when(pl.col("pattern") == ONCE).then(pl.col("slow_steps").list.first()),
    )
    everyone = excess["rank"].unique().sort().to_list()
    found = units(slow, memberships(ranks, groups), everyone)
    rows = [row for unit in found.iter_rows(named=True) for row in _suspected(unit, slow, len(everyone))]
    ordered = sorted(rows, key=lambda row: (-row["loss"], row["kind"], row["ranks"]))
    listed = [{**row, "suspect": number} for number, row in enumerate(ordered)]
    return pl.DataFrame(listed, schema={**SUSPECTS, "loss": pl.Float64}).drop("loss")


def _suspected(unit: dict[str, Any], slow: pl.DataFrame, compared: int) -> Iterator[dict[str, Any]]:
    """A unit as one suspect; ranks that form none as one each, unless they are many or most of all: of many that are
    slow alike the share of each is small, however much they cost together."""
    alike = [pl.col(name).eq_missing(unit[name]) for name in ("kind", "pattern", "once")]
    same = slow.filter(*alike)
    if unit["unit_kind"] == JOB:
        rows = same.filter(pl.col("rank").is_null())
        yield _suspect(unit, rows, rows["late_ranks"].explode().unique().sort().to_list())
        return
    parts: Sequence[Sequence[int]] = [unit["ranks"]]
    if unit["unit_kind"] == RANKS and len(unit["ranks"]) <= SINGLE and 2 * len(unit["ranks"]) < compared:
        parts = [[rank] for rank in unit["ranks"]]
    for ranks in parts:
        yield _suspect(unit, same.filter(pl.col("rank").is_in(ranks)), ranks)


def _suspect(unit: dict[str, Any], rows: pl.DataFrame, ranks: Sequence[int]) -> dict[str, Any]:
    single = len(ranks) == 1
    return {
        "kind": unit["kind"],
        "unit_kind": RANK if single else unit["unit_kind"],
        "unit": str(ranks[0]) if single else unit["unit"],
        "ranks": list(ranks),
        "pattern": unit["pattern"],
        "slow_steps": rows["slow_steps"].explode().unique().sort().to_list(),
        "period": unit["period"],
        "score": max((score for score in rows["score"] if score is not None), default=0.0),
        "loss": float(sum(rows["loss_ns"])),
    }
