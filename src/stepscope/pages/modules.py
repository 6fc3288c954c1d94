"""What each module of a model costs on a rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.flops import PEAK
from stepscope.pages.instead import OPERATORS, TOTALS, recorded_by
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_SHOWN_PARTS = 2
"""Modules of a path that a screen shows, the innermost ones."""


def _tree(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Modules by their own name, indented below the module around them."""
    import polars as pl

    name = pl.col("module").str.split("/").list.last()
    indent = pl.lit("  ").repeat_by(pl.col("depth")).list.join("")
    return Derived(found.with_columns(module=indent + name), columns=[Column("module", "string", "", importance=200)])


def _short(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Paths by their last modules."""
    import polars as pl

    parts = pl.col("module").str.split("/")
    more = pl.when(parts.list.len() > _SHOWN_PARTS).then(pl.lit(".../")).otherwise(pl.lit(""))
    return Derived(found.with_columns(module=more + parts.list.tail(_SHOWN_PARTS).list.join("/")))


PAGE = Page(
    "modules",
    "Show what each module of a model costs on a rank: kernels, time, FLOPs and the share of the device's peak.",
    [
        Section(
            "modules",
            "Modules, each with the modules in it",
            takes={"peak_tflops": "peak_flops_per_s"},
            derived=_tree,
            hidden=("depth",),
            rows=30,
        ),
        Section(
            "module_operators",
            "Operators and kernels by module",
            takes={"shown": "shown"},
            derived=_short,
            hidden=("parent",),
            rows=10,
        ),
    ],
    options=[
        PEAK,
        Option("shown", "integer", "Kernels of a sequence to write out; 0 for all. Default: 20.", "N", minimum=0),
    ],
    more="Needs ranges of modules: record with `stepscope record --stacks` (with_stack=True), or on Ascend mark "
    "modules as ranges of the mstx domain `Module`. Work of the backward pass counts for the module of its forward "
    "operator. JSON and CSV have the whole path of each module.",
    instead=recorded_by(
        "Times without modules need no ranges",
        OPERATORS,
        TOTALS,
    ),
)
