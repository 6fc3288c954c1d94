"""What each part of a step takes on both sides, parts that sum to the whole; and the steps rank by rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.operators.kernel_steps import COPIES
from stepscope.compare.differences import KEPT, MEASURED, differences
from stepscope.compare.noise import LIMITS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.compare.sides import PARTS
from stepscope.errors import Unavailable
from stepscope.tables.base import Column, schema_of

STEP, REST = "step", "not told apart"
NAMES = {
    "computing_ns": "computing",
    "communication_ns": "exposed communication",
    "memory_ns": "exposed memory operations",
    "free_ns": "idle",
}
"""Parts of a step by name."""

WAIT, TRANSMIT, UNSPLIT = "waiting for others", "transmission", "waiting or transmission"

COLUMNS = columns(
    Column("part", "string", "Part of the step."),
    Column("of", "string", "What it is a part of; null for the step.", importance=34),
    Column("level", "int32", "0 for the step, 1 for its parts, 2 for parts of these.", importance=5),
    *(column for column in MEASURED if not column.name.endswith("_calls")),
    keep="part " + KEPT,
)


@comparison(COLUMNS)
def time_differences(
    side_steps: Sides,
    kernel_steps: Sides | None,
    exposed_calls: Sides | None,
    idle: Sides | None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Compare the step and its parts, each level of which sums to the one above.

    Computing is divided by class of work in proportion to the time of its kernels, so kernels that run at once share
    the time; exposed communication by what its calls do while nothing computes; idle time by its cause.

    Returns:
        One row per part, the step first, the parts of each part behind it, largest difference first.
    """
    known = [name for name in PARTS if all(side[name].count() for side in side_steps)]
    tops = Sides(*(_tops(side, known) for side in side_steps))
    calls = exposed_calls if exposed_calls is not None and all(map(_is_split, exposed_calls)) else None
    given = [(None, None) if each is None else each for each in (kernel_steps, calls, idle)]
    inner = Sides(*(pl.concat(_inner(*of_side)) for of_side in zip(side_steps, *given, strict=True)))
    whole = Sides(*(side.select("rank", "step", part=pl.lit(STEP), total_ns="step_ns") for side in side_steps))
    step = differences(whole, side_steps, ["part"], calls=None, limits=limits, are_parts=True)
    parts = differences(tops, side_steps, ["part"], calls=None, limits=limits, are_parts=True)
    details = differences(inner, side_steps, ["part", "of"], calls=None, limits=limits, are_parts=True)
    shown = [step.with_columns(of=pl.lit(None, pl.String), level=0)]
    step_row = step.row(0, named=True)
    parts = _summing(parts, step_row)
    for part in parts.iter_rows(named=True):
        shown.append(parts.filter(pl.col("part") == part["part"]).with_columns(of=pl.lit(STEP), level=1))
        if (own := details.filter(pl.col("of") == part["part"])).height > 1 or (
            own.height and part["part"] == NAMES["communication_ns"]
        ):
            shown.append(_summing(own, part).with_columns(level=2))
    order = names(COLUMNS)
    return pl.concat([part.with_columns(pl.col("level").cast(pl.Int32)).select(order) for part in shown])


def _is_split(calls: pl.DataFrame) -> bool:
    """Whether waiting is known of most exposed communication."""
    wait, transmit, unsplit = (int(calls[name].sum()) for name in ("wait_ns", "transmit_ns", "unsplit_ns"))
    return unsplit <= wait + transmit


def _tops(steps: pl.DataFrame, known: Sequence[str]) -> pl.DataFrame:
    """The parts of each step that both sides know, and what is left of it."""
    told = pl.sum_horizontal([pl.lit(0, pl.Int64), *(pl.col(name).fill_null(0) for name in known)])
    rest = steps.select("rank", "step", part=pl.lit(REST), total_ns=pl.col("step_ns") - told)
    parts = [steps.select("rank", "step", part=pl.lit(NAMES[name]), total_ns=name) for name in known]
    return pl.concat([*parts, rest]).filter(pl.col("total_ns").fill_null(0) != 0)


def _inner(
    steps: pl.DataFrame, kernels: pl.DataFrame | None, calls: pl.DataFrame | None, idle: pl.DataFrame | None
) -> Iterator[pl.DataFrame]:
    """Parts of parts: `rank`, `step`, `part`, `of`, `total_ns`."""
    keys = ["rank", "step"]
    yield pl.DataFrame(
        schema={"rank": pl.Int32, "step": pl.Int32, "part": pl.String, "of": pl.String, "total_ns": pl.Float64}
    )
    if kernels is not None:
        classes = kernels.filter(pl.col("work") != COPIES).group_by(*keys, part="work").agg(pl.col("total_ns").sum())
        yield _divided(classes, steps, "computing_ns")
    if calls is not None:
        kinds = {WAIT: "wait_ns", TRANSMIT: "transmit_ns", UNSPLIT: "unsplit_ns"}
        sums = calls.group_by(keys).agg(pl.col(list(kinds.values())).sum())
        parts = [sums.select(*keys, part=pl.lit(part), total_ns=name) for part, name in kinds.items()]
        yield _divided(pl.concat(parts), steps, "communication_ns")
    if idle is not None:
        causes = idle.group_by(*keys, part=pl.col("cause")).agg(total_ns=pl.col("idle_ns").sum())
        yield _divided(causes, steps, "free_ns")


def _divided(parts: pl.DataFrame, steps: pl.DataFrame, whole: str) -> pl.DataFrame:
    """The time of a part of the step, divided in proportion."""
    keys = ["rank", "step"]
    share = pl.col("total_ns") / pl.col("total_ns").sum().over(keys)
    return (
        parts.filter(pl.col("total_ns") > 0)
        .join(steps.select(*keys, whole_ns=whole), on=keys)
        .select(*keys, "part", of=pl.lit(NAMES[whole]), total_ns=share * pl.col("whole_ns"))
        .filter(pl.col("total_ns") > 0)
    )


def _summing(parts: pl.DataFrame, whole: dict[str, object]) -> pl.DataFrame:
    """The parts with rounding put right, so that they sum to the whole if they all but do."""
    fixed = []
    for name in ("base_ns", "new_ns"):
        gap = pl.lit(whole[name]) - pl.col(name).sum()
        largest = pl.int_range(pl.len()) == pl.col(name).arg_max()
        fixed.append(pl.when(largest & (gap.abs() <= pl.len())).then(pl.col(name) + gap).otherwise(name).alias(name))
    return parts.with_columns(fixed).with_columns(difference_ns=pl.col("new_ns") - pl.col("base_ns"))


OWN_WORK = "own work"

OWN = columns(
    Column("part", "string", "What is compared: the step less exposed communication.", values=(OWN_WORK,)),
    *(column for column in MEASURED if not column.name.endswith("_calls")),
    keep="part " + KEPT,
)


@comparison(OWN)
def own_work_difference(side_steps: Sides, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare what ranks do themselves in a step, the step less exposed communication: one row.

    Ranks that wait for another one take as long as it does, but their own work is shorter.

    Raises:
        Unavailable: If exposed communication is not known of all steps that count.
    """
    own = []
    for side in side_steps:
        counted = side.filter(pl.col("left_out").is_null())
        if counted["communication_ns"].null_count():
            raise Unavailable("it is not known how long communication is exposed in each step")
        time = pl.col("step_ns") - pl.col("communication_ns")
        own.append(counted.select("rank", "step", part=pl.lit(OWN_WORK), total_ns=time))
    found = differences(Sides(*own), side_steps, ["part"], calls=None, limits=limits, are_parts=True)
    return found.select(names(OWN))


RANKS = columns(
    "rank",
    Column("base_own_ns", "int64", "Own time of the base: its step less exposed communication.", title="base own"),
    Column("new_own_ns", "int64", "The same of the new side.", title="new own"),
    Column("own_difference_ns", "int64", "`new_own_ns` less `base_own_ns`.", title="own diff."),
    *(column for column in MEASURED if not column.name.endswith("_calls")),
    nulls="base_own_ns new_own_ns own_difference_ns change_factor of_step_ratio share_ratio probability_ratio",
    keep="rank own_difference_ns " + KEPT,
)


@comparison(RANKS)
def rank_differences(side_steps: Sides, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare the steps of ranks that both sides have, rank by rank: one row each, largest own difference first."""
    common = set(side_steps.base["rank"]) & set(side_steps.new["rank"])
    parts = []
    for rank in sorted(common):
        mine = Sides(*(side.filter(pl.col("rank") == rank) for side in side_steps))
        rows = Sides(*(side.select("rank", "step", total_ns="step_ns", key="rank") for side in mine))
        own = [
            _mean(side.filter(pl.col("left_out").is_null()), pl.col("step_ns") - pl.col("communication_ns"))
            for side in mine
        ]
        of_rank = differences(rows, mine, ["key"], calls=None, limits=limits)
        parts.append(
            of_rank.rename({"key": "rank"}).with_columns(
                base_own_ns=pl.lit(own[0], pl.Int64), new_own_ns=pl.lit(own[1], pl.Int64)
            )
        )
    if not parts:
        return pl.DataFrame(schema=schema_of(RANKS))
    found = pl.concat(parts).with_columns(own_difference_ns=pl.col("new_own_ns") - pl.col("base_own_ns"))
    return found.select(names(RANKS)).sort(
        -pl.col("own_difference_ns").abs(), -pl.col("difference_ns").abs(), "rank", nulls_last=True
    )


def _mean(rows: pl.DataFrame, value: pl.Expr) -> int | None:
    found = rows.select(value.mean()).item()
    return None if found is None else round(found)
