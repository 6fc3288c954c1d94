"""How fast memory is copied to, from and on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Page, Section
from stepscope.pages.instead import KERNELS, recorded_by
from stepscope.pages.over_time import BLOCKS, drawn
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def _uncertain(copies: pl.DataFrame) -> Iterator[str]:
    """Where rates are not certain, or not known."""
    if coarse := copies.filter(copies["tick_ns"] > 1).height:
        of = "" if coarse == copies.height else f"In {coarse} of {copies.height} rows, "
        text = "times are whole microseconds: rates are uncertain, and lie between `least` and the one shown."
        yield of + (text if of else text.capitalize())
    if without := int(copies["without_size"].sum()):
        yield f"Of {without} of {int(copies['count'].sum())} copies and fills the size is not recorded."


def _rates(run: Run, rates: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """One row a direction: how fast it copies over time."""
    import polars as pl

    keys = ["rank", "direction"]
    rows = drawn(rates, keys, "mean_bytes_per_s")
    most = rates.group_by(keys).agg(highest_bytes_per_s=pl.col("max_bytes_per_s").max())
    own = (
        Column("over_time", "string", "", title="rate over time"),
        Column("highest_bytes_per_s", "float64", "", title="highest", importance=90),
    )
    return Derived(rows.join(most, on=keys, maintain_order="left"), columns=own)


def _legend(rates: pl.DataFrame) -> Iterator[str]:  # noqa: ARG001 - one signature for all
    yield f"{BLOCKS[0]} nothing is copied, {BLOCKS[-1]} as fast as the rank ever does, as the mean of a cell."


PAGE = Page(
    "copies",
    "Show how fast each rank copies and fills memory: bytes, time and bandwidth by direction, and over time.",
    [
        Section("copies", "Copies and fills by direction", sentences=_uncertain),
        Section("copy_rates", "Rate of copies over time", derived=_rates, drawn="over_time", sentences=_legend),
    ],
    scope="job",
    instead=recorded_by(
        "Copies are in traces of the device: PyTorch's, and trace_view.json or the databases of Ascend's profiler",
        KERNELS,
    ),
)
