"""Which modules of a model take more or less time than on the base."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.compare.differences import KEPT, MEASURED, differences
from stepscope.compare.measured import DEVICE, MEASURED_BY, measured_by
from stepscope.compare.module_places import HOW, ModulePlace, module_places
from stepscope.compare.noise import LIMITS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.tables.base import Column

MODULES = columns(
    Column("module", "string", "Module, with the modules around it; a `*` stands for all numbers of a class."),
    Column(
        "matched",
        "string",
        "How it was found on both sides: by its `path`; by the `inner` part of it, as it is wrapped or numbered "
        "otherwise on one side; with `several` of its class, as one side has more of them; null if it is on one side "
        "only.",
        values=HOW,
        importance=6,
    ),
    MEASURED_BY,
    *MEASURED,
    Column("base_own_ns", "int64", "Of the base's time, outside of modules within.", title="base own"),
    Column("new_own_ns", "int64", "The same of the new side.", title="new own"),
    nulls="matched change_factor of_step_ratio share_ratio base_calls new_calls probability_ratio",
    keep="module " + KEPT,
)

_KEYS = ["module", "matched"]


@comparison(MODULES)
def module_differences(
    side_steps: Sides, module_steps: Sides, time_differences: pl.DataFrame | None = None, limits: Limits = LIMITS
) -> pl.DataFrame:
    """Compare modules at the same place of the model: one row each, largest difference first.

    Compared is device time with forward and backward, or where that is unknown or the host decides, time on the host.
    """
    measured = measured_by(module_steps, "kernel_ns", time_differences)
    value, own = ("kernel_ns", "own_ns") if measured == DEVICE else ("host_ns", "own_host_ns")
    parents = [dict(side.select("module", "parent").unique().sort("module").iter_rows()) for side in module_steps]
    places = module_places(*parents)
    rows = Sides(*(_placed(side, of, value, own) for side, of in zip(module_steps, places, strict=True)))
    found = differences(rows, side_steps, _KEYS, value="value_ns", calls="calls", limits=limits)
    owned = differences(rows, side_steps, _KEYS, value="own_value_ns", calls=None, limits=limits)
    owned = owned.select(*_KEYS, base_own_ns="base_ns", new_own_ns="new_ns")
    return (
        found.join(owned, on=_KEYS, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(measured=pl.lit(measured))
        .select(names(MODULES))
    )


def _placed(rows: pl.DataFrame, places: Mapping[str, ModulePlace], value: str, own: str) -> pl.DataFrame:
    """The rows with the place of each module."""
    of_path = pl.DataFrame(
        [(path, place.text, place.how) for path, place in places.items()],
        schema={"module": pl.String, "text": pl.String, "matched": pl.String},
        orient="row",
    )
    return rows.join(of_path, on="module").select(
        "rank", "step", "calls", "matched", module="text", value_ns=value, own_value_ns=own
    )
