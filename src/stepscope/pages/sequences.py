"""Which sequences of kernels the operators of a rank launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.instead import KERNELS, TOTALS, recorded_by
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_OWN = (
    Column("operator", "string", "", importance=99),
    Column("sequence", "string", "", importance=98),
    Column("count", "int64", "", importance=97),
    Column("kernels", "int64", "", importance=96),
    Column("kernel_ns", "int64", "", importance=95),
)


def operators_first(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Sequences with the operator as their most important column."""
    return Derived(found, columns=_OWN)


PAGE = Page(
    "sequences",
    "Show which sequences of kernels a rank's operators launch, with all that they call: how often and how long.",
    [
        Section(
            "kernel_sequences",
            "Sequences of kernels, by kernel time",
            takes={"operator": "operator", "shortest": "shortest", "shown": "shown"},
            derived=operators_first,
        )
    ],
    options=[
        Option("operator", "text", "Operator under which to look. Default: those that no other calls.", "NAME"),
        Option("shortest", "integer", "Leave out sequences of fewer kernels. Default: 1.", "N", minimum=1),
        Option("shown", "integer", "Kernels of a sequence to write out; 0 for all. Default: 20.", "N", minimum=0),
    ],
    more="Operators whose calls launch the same short kernels again and again can be fused or compiled: look for long "
    "sequences with a high count, e.g. with `--shortest 3 --sort -count`. A screen shows names without template "
    "arguments; «--json» has them whole.",
    instead=recorded_by(
        "Record a trace with PyTorch's or Ascend's profiler",
        TOTALS,
        KERNELS,
    ),
)
