"""Which ranks take longer for their own work than noise explains, in which steps, and which unit of the job they
form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.job.late_ranks import compared_excess
from stepscope.analysis.job.segments import WORK
from stepscope.analysis.methods.memberships import memberships
from stepscope.analysis.methods.sudden import MARKED
from stepscope.analysis.methods.timing import ONCE, ROTATING, SOMETIMES
from stepscope.analysis.methods.units import JOB, RANK, RANKS, units
from stepscope.analysis.rank_lists import accused
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.uneven_work import REPLICA, SEQUENCE, WORKER
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of

COLUMNS = columns(
    Column("suspect", "int32", "Its number, from 0: those that lose most first."),
    meaning("kind", "What it is slow at.", values=WORK),
    Column("unit_kind", "string", "What its ranks are: `rank`, or e.g. `host`, `stage`, `tensor parallel`."),
    Column("unit", "string", "Which of them."),
    Column("ranks", "list[int32]", "Its ranks."),
    Column("pattern", "string", "When it is slow, as in `late_ranks`."),
    Column("slow_steps", "list[int32]", "The steps in which it is slow."),
    Column("period", "int64", "Steps between recurrences; null if irregular."),
    "score",
    Column("is_stall", "bool", "True if it is a long stall of a rank, or a few, which may strike any."),
    nulls="period unit",
)

SINGLE = 3
"""Up to so many ranks that form no unit are suspects of their own, chosen by us: more are hardly slow by chance."""


@dataclass(frozen=True)
class Limits:
    """How many suspects there can be."""

    most: int = limit(24, "suspects that are replayed", "those with the greatest excess; each costs two dozen replays")


@analysis("job", COLUMNS, whole_job=True)
def suspects(
    late_ranks: pl.DataFrame,
    excess: pl.DataFrame,
    arrival: pl.DataFrame | None,
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None,
    steps: pl.LazyFrame,
    parallel_layout: pl.DataFrame,
    slowdown_causes: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find the ranks whose own work takes longer than noise explains (`late_ranks`), as the units that they make up.

    Ranks that form a unit, e.g. all ranks of a host, are one suspect. Long stalls of a rank are one as well, so that
    their cost is known, though they do not show that the rank is slow (`is_stall`). If micro-batches are of uneven
    length (`slowdown_causes`), only those ranks are suspected of computing slowly that this does not explain. What
    suspects cost is `suspect_costs`.

    Returns:
        One row per unit, kind of work and pattern, those that lose most first.

    Raises:
        Unavailable: If there are fewer than two ranks, or the ranks do not belong together.
    """
    compared = compared_excess(excess, arrival, ranks, steps)
    listed = None if groups is None else groups.collect()
    found = units_of(late_ranks, compared, ranks.collect(), listed, parallel_layout)
    if slowdown_causes is not None:
        found = _of_ranks(found, slowdown_causes)
    return found.head(limits.most)


def _of_ranks(found: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """The suspects that uneven micro-batches do not explain."""
    if SEQUENCE not in causes["cause"]:
        return found
    ranks = set(accused(causes.filter(pl.col("cause").is_in([WORKER, REPLICA]))))
    kept = [kind != "computing" or ranks.issuperset(who) for kind, who in found.select("kind", "ranks").rows()]
    return found.filter(pl.Series(kept, dtype=pl.Boolean)).with_columns(suspect=pl.int_range(pl.len(), dtype=pl.Int32))


def units_of(
    late_ranks: pl.DataFrame,
    excess: pl.DataFrame,
    ranks: pl.DataFrame,
    groups: pl.DataFrame | None,
    layout: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Ranks that are slower than noise explains, as the units that they make up."""
    typical = pl.max_horizontal(pl.col("typical_ns").fill_null(1), pl.lit(1))
    # Steps that are long for all ranks are no excess of any of them.
    of_ranks = pl.col("rank").is_not_null() | (pl.col("pattern") == ROTATING)
    slow = late_ranks.filter(of_ranks, ~pl.col("is_stall")).with_columns(
        factor=(typical + pl.col("excess_ns")) / typical,
        # what is marked has one cause in whichever step it falls, e.g. that each rank collects garbage by itself
        once=pl.when(pl.col("pattern") == ONCE, ~pl.col("kind").is_in(MARKED)).then(pl.col("slow_steps").list.first()),
    )
    everyone = excess["rank"].unique().sort().to_list()
    found = units(slow, memberships(ranks, groups, layout), everyone)
    rows = [row for unit in found.iter_rows(named=True) for row in _suspected(unit, slow, len(everyone))]
    rows += [_stall(row) for row in late_ranks.filter("is_stall").iter_rows(named=True)]
    ordered = sorted(rows, key=lambda row: (-row["loss"], row["kind"], row["ranks"]))
    listed = [{**row, "suspect": number} for number, row in enumerate(ordered)]
    return pl.DataFrame(listed, schema={**schema_of(COLUMNS), "loss": pl.Float64}).drop("loss")


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


def _stall(row: dict[str, Any]) -> dict[str, Any]:
    """Long stalls of a rank, which share no cause with anything."""
    alone = {"unit_kind": RANK, "unit": str(row["rank"]), "ranks": [row["rank"]], "is_stall": True}
    same = {name: row[name] for name in ("kind", "pattern", "slow_steps", "period")}
    return {**alone, **same, "score": row["score"] or 0.0, "loss": float(row["loss_ns"])}


def _suspect(unit: dict[str, Any], rows: pl.DataFrame, ranks: Sequence[int]) -> dict[str, Any]:
    single, steps = len(ranks) == 1, rows["slow_steps"].explode().unique().sort().to_list()
    return {
        "kind": unit["kind"],
        "unit_kind": RANK if single else unit["unit_kind"],
        "unit": str(ranks[0]) if single else unit["unit"],
        "ranks": list(ranks),
        "pattern": SOMETIMES if unit["pattern"] == ONCE and len(steps) > 1 else unit["pattern"],
        "slow_steps": steps,
        "period": unit["period"],
        "score": max((score for score in rows["score"] if score is not None), default=0.0),
        "is_stall": False,
        "loss": float(sum(rows["loss_ns"])),
    }
