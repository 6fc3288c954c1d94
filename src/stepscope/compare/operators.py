"""Which operators, modules and calls of the host take more or less time than on the base."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.compare.differences import KEPT, MEASURED, differences, untested
from stepscope.compare.noise import LIMITS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.errors import StepscopeError, Unavailable
from stepscope.tables.base import Column

DEVICE, HOST = "device", "host"

BY = ("path", "name")
"""What tells operators apart: their place in the tree of calls, or their name alone."""

OPERATORS = columns(
    Column("path", "string", "The operators around it, outermost first, and itself; or its name."),
    Column("backward", "bool", "Whether the outermost operator belongs to a backward pass.", importance=33),
    Column(
        "measured",
        "string",
        "What is compared: time of the kernels that it launched itself, or without any on a side its own host time.",
        values=(DEVICE, HOST),
        importance=4,
    ),
    *MEASURED,
    Column("base_self_ns", "int64", "Own host time of the base in a step.", title="base host", importance=32),
    Column("new_self_ns", "int64", "Own host time of the new side.", title="new host", importance=31),
    keep="path " + KEPT,
)


@comparison(OPERATORS)
def operator_differences(
    side_steps: Sides, operator_paths: Sides, by: str = "path", limits: Limits = LIMITS
) -> pl.DataFrame:
    """Compare operators at the same place of the tree of calls: one row each, largest difference first.

    Forward and backward are apart. What has no partner is added or removed. The times of all rows sum to all that is
    measured, as none contains that of another.

    Args:
        by: `path`, or `name` for operators of one name together.

    Raises:
        StepscopeError: If `by` is neither.
    """
    if by not in BY:
        raise StepscopeError(f"operators are compared by {' or '.join(BY)}, not by {by}")
    on_device = all(side["device_ns"].fill_null(0).sum() > 0 for side in operator_paths)
    value = "device_ns" if on_device else "self_ns"
    keys = ["path", "backward"]
    rows = Sides(
        *(
            side.select("rank", "step", "backward", "count", "self_ns", value_ns=value, path=by).filter(
                pl.col("value_ns").fill_null(0) > 0
            )
            for side in operator_paths
        )
    )
    found = differences(rows, side_steps, keys, value="value_ns", limits=limits)
    host = differences(rows, side_steps, keys, value="self_ns", limits=limits)
    own = host.select(*keys, base_self_ns="base_ns", new_self_ns="new_ns")
    return (
        found.join(own, on=keys, how="left", maintain_order="left")
        .with_columns(measured=pl.lit(DEVICE if on_device else HOST))
        .select(names(OPERATORS))
    )


FRAMEWORK = "framework"

APIS = columns(
    Column("name", "string", "Name of the operator or call."),
    Column(
        "layer",
        "string",
        "`framework` for operators; else the layer of the runtime as recorded, e.g. `AscendCL`, or null.",
        importance=39,
    ),
    *MEASURED,
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
    own = differences(rows, side_steps, keys, value="self_ns", limits=limits)
    own = own.select(*keys, base_self_ns="base_ns", new_self_ns="new_ns")
    return of_calls.join(own, on=keys, how="left", nulls_equal=True, maintain_order="left").select(names(APIS))


_NO_CALLS = pl.DataFrame(
    schema={
        **{"rank": pl.Int32, "step": pl.Int32, "layer": pl.String, "name": pl.String},
        **dict.fromkeys(("count", "total_ns", "self_ns"), pl.Int64),
    }
)


def _named(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.select(_NO_CALLS.columns)


MODULES = columns(
    Column("module", "string", "Module, with the modules around it."),
    *MEASURED,
    Column("base_own_ns", "int64", "Of the base's time, outside of modules within.", title="base own"),
    Column("new_own_ns", "int64", "The same of the new side.", title="new own"),
    keep="module " + KEPT,
)


@comparison(MODULES)
def module_differences(side_steps: Sides, modules: Sides, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare the device time of modules at the same place of the model: one row each, largest difference first.

    Modules are summed over the recording, so the differences are not tested.
    """
    keys = ["module"]
    found = untested(modules, side_steps, keys, value="kernel_ns", calls="calls", limits=limits)
    own = untested(modules, side_steps, keys, value="own_ns", calls=None, limits=limits)
    own = own.select(*keys, base_own_ns="base_ns", new_own_ns="new_ns")
    return found.join(own, on=keys, how="left", maintain_order="left").select(names(MODULES))
