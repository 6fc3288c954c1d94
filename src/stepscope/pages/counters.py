"""What hardware counters say of a rank's operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.instead import KERNELS, OPERATORS, recorded_by

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def _above_zero(run: Run, counters: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Counters that counted anything."""
    return Derived(counters.filter((counters["min"] != 0) | (counters["max"] != 0)))


def _zeros(counters: pl.DataFrame) -> Iterator[str]:
    if zeros := counters.filter((counters["min"] == 0) & (counters["max"] == 0)).height:
        yield f"{zeros} of {counters.height} counters are always 0 and left out here; «--json» has them."


_OUTER = {"outer": "outer"}

PAGE = Page(
    "counters",
    "Show what hardware counters say of a rank's operators: totals, means, and operations for each byte moved.",
    [
        Section("roofline", "Operations and bytes, by operator and kernel", takes=_OUTER),
        Section(
            "operator_counters",
            "Counters by operator and kernel",
            takes=_OUTER,
            derived=_above_zero,
            named_by="counter",
            sentences=_zeros,
        ),
    ],
    options=[Option("outer", "flag", "Count kernels to the outermost operator around their launch.", "", False)],
    more="Counters are recorded on request: aic_metrics on Ascend, profiler_metrics of PyTorch (CUPTI) on NVIDIA. "
    "CUPTI records no kernel times with them. To see one counter: «--table operator_counters --search» NAME.",
    instead=recorded_by(
        "Times, and operations by shapes, need no counters",
        KERNELS,
        OPERATORS,
    ),
)
