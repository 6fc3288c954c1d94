"""Which ranks hold the job up, by how much, when and with what."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.comparable import last_arrivals, unrecorded
from stepscope.analysis.job.late_ranks import compared_excess
from stepscope.analysis.job.segments import WORK
from stepscope.analysis.methods.timing import ROTATING
from stepscope.analysis.methods.units import RANKS
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column, schema_of

COLUMNS = columns(
    Column("rank", "int32", "The slow rank; of several, the one that takes longest.", importance=66),
    Column("ranks", "string", "All ranks that are slow together, e.g. `4, 5, 6, 7`.", importance=61),
    Column(
        "unit_kind",
        "string",
        "What these ranks are: `rank`, or e.g. `host`, `stage`, `tensor parallel`.",
        importance=33,
    ),
    Column("unit", "string", "Which of them.", importance=34),
    meaning("kind", "What it is slow at.", values=WORK),
    "cost_ns",
    Column("cost_ratio", "float64", "`cost_ns` over the mean step.", importance=60),
    Column(
        "saving_low_ns",
        "int64",
        "What it may be at least: the lower quartile over the slow steps, averaged over all, or `alone_ns` if less; 0 "
        "if ranks are missing or the replay is far from the recording.",
        title="at least",
        importance=21,
    ),
    Column(
        "saving_high_ns",
        "int64",
        "What it may be at most: the upper quartile over the slow steps, averaged over all, or `alone_ns` if more.",
        title="at most",
        importance=22,
    ),
    Column("alone_ns", "int64", "What mending this alone would save: less, if another is as late.", importance=20),
    Column(
        "excess_ns",
        "int64",
        "Extra time of the rank compared with the typical rank, in the median of its slow steps; of ranks late in "
        "turn, of the latest one.",
        importance=58,
    ),
    Column("typical_ns", "int64", "Time that the typical rank needs for this kind of work in a step.", importance=51),
    Column(
        "pattern",
        "string",
        "When it is slow: `steady`, `since`, `until`, `periodic`, `sometimes`, `once`, `rotating`.",
        importance=40,
    ),
    meaning("steps", "Number of compared steps."),
    Column("steps_late", "int32", "Number of steps in which it is late.", importance=38),
    Column("slow_steps", "list[int32]", "These steps.", importance=12),
    Column("period", "int64", "Steps between recurrences; null if irregular.", importance=13),
    Column("times_last", "int32", "Number of collectives in which it arrived last.", importance=37),
    meaning("calls", "Number of collectives in which it took part."),
    "score",
    Column(
        "counted_steps", "int64", "Number of steps whose mean the savings are, as in `suspect_costs`.", importance=10
    ),
    Column(
        "error_ratio",
        "float64",
        "How far a replay of the recording without changes is from it; null if nothing was replayed.",
        importance=11,
    ),
    Column(
        "unrecorded_ranks",
        "int32",
        "Number of ranks of the job (at least) that were not recorded. All may be waiting for one of these instead.",
        importance=32,
    ),
    nulls="period unit error_ratio",
)


@analysis("job", COLUMNS, whole_job=True)
def slow_ranks(
    suspects: pl.DataFrame,
    suspect_costs: pl.DataFrame,
    excess: pl.DataFrame,
    arrival: pl.DataFrame | None,
    ranks: pl.LazyFrame,
    steps: pl.LazyFrame,
) -> pl.DataFrame:
    """Find the ranks that hold the job up, what each is slow at, when, and what it costs.

    A rank is suspected if its own work takes longer than that of comparable ranks, beyond noise and chance
    (`suspects`). What it costs is found by replaying the job without that excess (`suspect_costs`).

    Returns:
        One row per slow rank, or unit, and kind of work, most expensive first.

    Raises:
        Unavailable: If there are fewer than two ranks, or the ranks do not belong together.
    """
    missing = unrecorded(ranks, arrival)
    rows = []
    stalls = suspects.filter("is_stall")["suspect"].to_list()
    slow = pl.col("ranks").list.eval(~pl.element().is_in(stalls)).list.any()
    for row in suspect_costs.filter(slow).drop("links", "groups").iter_rows(named=True):
        who = _one(suspects.filter(pl.col("suspect").is_in(row.pop("ranks"))))
        # Others that were not recorded may be as late; but not in turn.
        unsure = {"saving_low_ns": 0} if missing and who["pattern"] != ROTATING else {}
        rows.append({**who, **row, **unsure})
    compared = compared_excess(excess, arrival, ranks, steps)
    return _described(rows, compared, last_arrivals(arrival), missing)


def _one(rows: pl.DataFrame) -> dict[str, object]:
    """Suspects as one."""
    first = rows.row(0, named=True)
    if rows.height == 1:
        return first
    both = {name: rows[name].explode().unique().sort().to_list() for name in ("ranks", "slow_steps")}
    unit = ", ".join(map(str, both["ranks"]))
    return {**first, **both, "unit_kind": RANKS, "unit": unit, "score": rows["score"].max()}


def _described(rows: list[dict[str, object]], excess: pl.DataFrame, last: pl.DataFrame, missing: int) -> pl.DataFrame:
    """The answer: what is known of each suspect's ranks."""
    if not rows:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    found = pl.DataFrame(rows, infer_schema_length=None)
    members = (
        found.select("suspect", "kind", "slow_steps", "pattern", rank="ranks")
        .explode("rank")
        .with_columns(pl.col("rank").cast(pl.Int32))
    )
    # of ranks that are late in turn, what counts is by how much the one whose turn it is, is late
    turn = pl.when(pl.col("pattern") == ROTATING).then(pl.col("excess_ns").max().over("suspect", "step"))
    own = members.join(excess, on=["rank", "kind"]).with_columns(excess_ns=turn.otherwise("excess_ns"))
    slow = pl.col("step").is_in(pl.col("slow_steps"))
    figures = own.group_by("suspect", "rank").agg(
        excess_ns=pl.col("excess_ns").filter(slow).median().round().cast(pl.Int64),
        typical_ns=pl.col("typical_ns").median().round().cast(pl.Int64),
        steps=pl.len().cast(pl.Int64),
        steps_late=slow.sum().cast(pl.Int32),
    )
    worst = figures.sort("suspect", -pl.col("excess_ns"), "rank").unique("suspect", keep="first", maintain_order=True)
    return (
        found.join(worst, on="suspect")
        .join(last, on="rank", how="left")
        .with_columns(
            pl.col("times_last", "calls").fill_null(0),
            pl.col("score").round(2),
            pl.col("slow_steps").cast(pl.List(pl.Int32)),
            pl.col("period").cast(pl.Int64),
            ranks=pl.col("ranks").list.sort().list.eval(pl.element().cast(pl.String)).list.join(", "),
            unrecorded_ranks=pl.lit(missing, pl.Int32),
        )
        .sort("cost_ns", "rank", "kind", descending=[True, False, False])
        .select(names(COLUMNS))
    )
