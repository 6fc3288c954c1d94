"""Which calls of the host take more or less time than on the base, and which of them only wait for the device."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.compare.call_kinds import KIND, kinds_of
from stepscope.compare.differences import KEPT, MEASURED, differences
from stepscope.compare.noise import LIMITS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

FRAMEWORK = "framework"

APIS = columns(
    Column("name", "string", "Name of the operator or call."),
    Column(
        "layer",
        "string",
        "`framework` for operators; else the layer of the runtime as recorded, e.g. `AscendCL`, or null.",
        importance=39,
    ),
    KIND,
    *MEASURED,
    Column("base_wait_ns", "int64", "Part of the base's time in which calls wait for the device.", title="base wait"),
    Column("new_wait_ns", "int64", "The same of the new side.", title="new wait"),
    Column("base_self_ns", "int64", "Of the base's time, outside of other calls within.", title="base self"),
    Column("new_self_ns", "int64", "The same of the new side.", title="new self"),
    nulls="layer change_factor of_step_ratio share_ratio base_calls new_calls probability_ratio",
    keep="name " + KEPT,
)


@comparison(APIS)
def api_differences(
    side_steps: Sides,
    operator_paths: Sides | None,
    api_steps: Sides | None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Compare calls on the host by name: framework operators, and calls of the runtime; one row each, largest first.

    Times are total: they contain those of calls within. Where an operator calls itself, the time counts twice.

    Raises:
        Unavailable: If neither was recorded on both sides.
    """
    if operator_paths is None and api_steps is None:
        raise Unavailable("no calls on the host were recorded by step on both sides")
    parts = []
    for place in range(2):
        found = [_NO_CALLS]
        if operator_paths is not None:
            found.append(operator_paths[place].with_columns(layer=pl.lit(FRAMEWORK)))
        if api_steps is not None:
            found.append(api_steps[place])
        parts.append(pl.concat(map(_named, found)))
    rows, keys = Sides(*parts), ["name", "layer"]
    of_calls = differences(rows, side_steps, keys, limits=limits)
    for value in ("self", "wait"):
        part = differences(rows, side_steps, keys, value=f"{value}_ns", limits=limits)
        part = part.select(*keys, pl.col("base_ns", "new_ns").name.replace("_ns", f"_{value}_ns"))
        of_calls = of_calls.join(part, on=keys, how="left", nulls_equal=True, maintain_order="left")
    kinds = kinds_of(rows, keys, time="total_ns", wait="wait_ns")
    return of_calls.join(kinds, on=keys, how="left", nulls_equal=True, maintain_order="left").select(names(APIS))


_NO_CALLS = pl.DataFrame(
    schema={
        **{"rank": pl.Int32, "step": pl.Int32, "layer": pl.String, "name": pl.String},
        **dict.fromkeys(("count", "total_ns", "self_ns", "wait_ns"), pl.Int64),
    }
)


def _named(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.select(_NO_CALLS.columns)
