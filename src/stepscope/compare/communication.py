"""Which communication takes more or less time than on the base: waiting, transmission, bandwidth."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.statistics import rounded
from stepscope.compare.differences import KEPT, MEASURED, Side, differences
from stepscope.compare.kernels import common_ratio
from stepscope.compare.noise import LIMITS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

SAME_SIZES = 0.8
"""Share of the time in sizes that both sides have, from which on sizes are told apart; else those within about a factor
of two are one."""

SAME_GROUPS = 0.5
"""Share of the time in groups that both sides name alike, from which on groups are told apart."""

_PARTS = ("wait", "transmit")

COLUMNS = columns(
    Column("operation", "string", "Operation of the calls, e.g. `all_reduce`."),
    Column("group", "string", "Name of their group; null if the sides do not name groups alike.", importance=39),
    Column(
        "size_bytes",
        "int64",
        "Payload of one call, of different ones about alike their mean; null if not recorded.",
        title="size",
    ),
    *MEASURED,
    *(
        Column(f"{side}_{part}_ns", "int64", f"Part of `{side}_ns`; null if unknown.", title=f"{side} {part}")
        for part in _PARTS
        for side in ("base", "new")
    ),
    *(
        Column(
            f"{side}_bandwidth_bytes_per_s",
            "float64",
            "Payload over transmission; null if unknown.",
            title=f"{side} rate",
            importance=34,
        )
        for side in ("base", "new")
    ),
    keep="operation size_bytes " + KEPT,
)

_KEYS = ["operation", "group", "size_bytes"]


@comparison(COLUMNS)
def communication_differences(side_steps: Sides, side_calls: Sides, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare communication by operation, group and size: one row each, largest difference first.

    Raises:
        Unavailable: If calls of no step are known on a side.
    """
    sides = Sides(*(_keyed(side) for side in side_calls))
    if any(side.is_empty() for side in sides):
        raise Unavailable("the steps of communication calls are not known")
    if common_ratio(Sides(*(side.with_columns(name="group") for side in sides))) < SAME_GROUPS:
        sides = Sides(*(side.with_columns(group=pl.lit(None, pl.String)) for side in sides))
    sides = _sized(sides)
    found = differences(sides, side_steps, _KEYS, calls="calls", limits=limits)
    for name, rows, steps in zip(("base", "new"), sides, side_steps, strict=True):
        found = found.join(_parts(rows, Side.of(steps), name), on=_KEYS, how="left", nulls_equal=True)
    return found.select(names(COLUMNS)).sort(-pl.col("difference_ns").abs(), *_KEYS, nulls_last=True)


def _keyed(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.filter(pl.col("step").is_not_null()).select(
        *("rank", "step", "size_bytes", "calls", "total_ns", "wait_ns", "transmit_ns"),
        operation=pl.coalesce("operation", "name"),
        group=pl.coalesce("group_name", "group"),
        moved_bytes=pl.col("size_bytes") * pl.col("calls"),
    )


def _sized(sides: Sides) -> Sides:
    """The calls with sizes of which both sides have most."""
    keys = ["operation", "group", "size_bytes"]
    text = pl.concat_str(pl.col(keys).cast(pl.String), separator=" ", ignore_nulls=True)
    if common_ratio(Sides(*(side.with_columns(name=text) for side in sides))) >= SAME_SIZES:
        return sides
    octave = (pl.col("size_bytes").clip(1) * 1.0).log(2).round()
    both = pl.concat([side.with_columns(octave=octave, side=pl.lit(place)) for place, side in enumerate(sides)])
    of_octave = pl.col("size_bytes").mean().over("operation", "group", "octave").round().cast(pl.Int64)
    alike = both.with_columns(size_bytes=of_octave)
    return Sides(*(alike.filter(pl.col("side") == place).drop("side", "octave") for place in range(2)))


def _parts(rows: pl.DataFrame, side: Side, name: str) -> pl.DataFrame:
    """Waiting, transmission and bandwidth of a side, in a step."""
    counted = rows.join(side.rows.select("rank", "step", "ranks"), on=["rank", "step"])
    known = pl.col("transmit_ns").is_not_null()
    each = [
        pl.when(pl.col(f"{part}_ns").count() > 0)
        .then(rounded((pl.col(f"{part}_ns") / pl.col("ranks")).sum() / max(side.steps, 1)))
        .alias(f"{name}_{part}_ns")
        for part in _PARTS
    ]
    moved = pl.col("moved_bytes").filter(known).sum()
    sent = pl.col("transmit_ns").sum()
    rate = pl.when((sent > 0) & (moved > 0)).then(moved / sent * 1e9)
    return counted.group_by(_KEYS).agg(*each, rate.alias(f"{name}_bandwidth_bytes_per_s"))
