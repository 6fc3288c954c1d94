"""Which operators take more or less time than on the base, at which place of the tree of calls."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.operators.operator_paths import BETWEEN
from stepscope.compare.call_kinds import KIND, kinds_of
from stepscope.compare.differences import KEPT, MEASURED, Side, differences
from stepscope.compare.matching import EXACT, HOW, Key, Place, matches
from stepscope.compare.measured import DEVICE, MEASURED_BY, measured_by
from stepscope.compare.noise import LIMITS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.errors import StepscopeError
from stepscope.tables.base import Column

BY = ("path", "name")
"""What tells operators apart: their place in the tree of calls, or their name alone."""

OPERATORS = columns(
    Column("path", "string", "The operators around it, outermost first, and itself; or its name."),
    Column("backward", "bool", "Whether the outermost operator belongs to a backward pass.", importance=33),
    KIND,
    Column(
        "matched",
        "string",
        "How it was found on both sides: by its whole `path`, or by the `inner` part of it where one side has other "
        "operators around it; null if it is on one side only.",
        values=HOW,
        importance=6,
    ),
    Column("new_path", "string", "Its path on the new side, if that is another one.", importance=7),
    MEASURED_BY,
    *MEASURED,
    Column("base_self_ns", "int64", "Own host time of the base in a step.", title="base host", importance=32),
    Column("new_self_ns", "int64", "Own host time of the new side.", title="new host", importance=31),
    nulls="matched new_path change_factor of_step_ratio share_ratio base_calls new_calls probability_ratio",
    keep="path " + KEPT,
)


@comparison(OPERATORS)
def operator_differences(
    side_steps: Sides,
    operator_paths: Sides,
    time_differences: pl.DataFrame | None = None,
    by: str = "path",
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Compare operators at the same place of the tree of calls: one row each, largest difference first.

    Forward and backward are apart. Places are the same if their paths are, or if these differ only by operators around
    them (`matching.py`). What has no partner is added or removed. The times of all rows sum to all that is measured, as
    none contains that of another.

    Args:
        by: `path`, or `name` for operators of one name together.

    Raises:
        StepscopeError: If `by` is neither.
    """
    if by not in BY:
        raise StepscopeError(f"operators are compared by {' or '.join(BY)}, not by {by}")
    measured = measured_by(operator_paths, "device_ns", time_differences)
    places = _places(operator_paths, side_steps, by)
    rows = Sides(*(_measured(side, of, by, measured) for side, of in zip(operator_paths, places, strict=True)))
    known = rows.base.select("place", "value_ns").vstack(rows.new.select("place", "value_ns"))
    timed = known.filter(pl.col("value_ns") > 0)["place"].unique()
    rows = Sides(*(side.filter(pl.col("place").is_in(timed.implode())) for side in rows))
    found = differences(rows, side_steps, ["place"], value="value_ns", limits=limits)
    host = differences(rows, side_steps, ["place"], value="self_ns", limits=limits)
    own = host.select("place", base_self_ns="base_ns", new_self_ns="new_ns")
    return (
        found.join(own, on="place", how="left")
        .join(_described(places), on="place", how="left")
        .join(kinds_of(rows, ["place"], time="self_ns", wait="waited_ns"), on="place", how="left")
        .with_columns(measured=pl.lit(measured))
        .sort(-pl.col("difference_ns").abs(), "path", "backward", "place")
        .select(names(OPERATORS))
    )


def _places(paths: Sides, steps: Sides, by: str) -> Sides:
    """The places of each side: `path`, `backward`, the number of the match that they are in (`place`), and `how`."""
    keys = [by, "backward"]
    if by == "name":
        found = [side.select(keys).unique() for side in paths]
        both = pl.concat(found).group_by(keys).agg(how=pl.when(pl.len() > 1).then(pl.lit(EXACT)))
        return Sides(*(side.join(both.sort(keys).with_row_index("place"), on=keys) for side in found))
    sides = [_known_places(rows, of) for rows, of in zip(paths, steps, strict=True)]
    rows: tuple[list[Any], list[Any]] = ([], [])
    for number, match in enumerate(matches(*sides)):
        for side, of in enumerate((match.base, match.new)):
            rows[side].extend((BETWEEN.join(path), backward, number, match.how) for path, backward in of)
    schema = {"path": pl.String, "backward": pl.Boolean, "place": pl.UInt32, "how": pl.String}
    return Sides(*(pl.DataFrame(side, schema=schema, orient="row") for side in rows))


def _known_places(rows: pl.DataFrame, steps: pl.DataFrame) -> dict[Key, Place]:
    """The places of a side with their calls in a step, by shapes."""
    side = Side.of(steps)
    counted = rows.join(side.rows.select("rank", "step", "ranks"), on=["rank", "step"])
    share = pl.col("count") / pl.col("ranks") / max(side.steps, 1)
    sums = counted.group_by("path", "backward", "input_shapes").agg(calls=share.sum())
    found: dict[Key, Place] = {}
    for (path, backward), own in (
        sums.sort("path", "backward", "input_shapes")
        .partition_by("path", "backward", as_dict=True, maintain_order=True)
        .items()
    ):
        shapes = dict(own.drop_nulls().select("input_shapes", "calls").iter_rows())
        found[tuple(str(path).split(BETWEEN)), backward] = Place(float(own["calls"].sum()), shapes)
    return found


def _measured(rows: pl.DataFrame, places: pl.DataFrame, by: str, measured: str) -> pl.DataFrame:
    """Rows with the place of each, and what is compared."""
    value, wait = ("device_ns", pl.lit(0, pl.Int64)) if measured == DEVICE else ("self_ns", pl.col("own_wait_ns"))
    return rows.join(places.select(by, "backward", "place"), on=[by, "backward"]).select(
        *("rank", "step", "place", "name", "count", "self_ns"), value_ns=pl.col(value).fill_null(0), waited_ns=wait
    )


def _described(places: Sides) -> pl.DataFrame:
    """What each place is called: the path of the base, and that of the new side if it is another one."""
    by = places.base.columns[0]
    texts = []
    for side in places:
        more = pl.concat_str(pl.lit(" (and "), pl.len() - 1, pl.lit(" more)"))
        text = pl.col(by).first() + pl.when(pl.len() > 1).then(more).otherwise(pl.lit(""))
        texts.append(side.sort(by).group_by("place", "backward", "how").agg(text=text))
    both = texts[0].join(texts[1], on=["place", "backward", "how"], how="full", coalesce=True, nulls_equal=True)
    other = pl.when(pl.col("text").is_not_null() & (pl.col("text") != pl.col("text_right"))).then("text_right")
    return both.select("place", "backward", matched="how", path=pl.coalesce("text", "text_right"), new_path=other)
