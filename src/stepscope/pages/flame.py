"""What runs in what, and what that costs: the tree of a flame graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.instead import KERNELS, TOTALS, recorded_by
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

BY = Option(
    "by",
    "text",
    "What is above operators: python, module or operator (nothing). Default: Python functions if they were recorded.",
    "WAY",
)
TIME = Option("time", "text", "Whose time is drawn: host or device. Default: all that there is.", "TIME")

LEAST_RATIO = 0.005
"""The least share of the host's or of the device's time of a call that a screen shows."""


def _tree(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Calls indented below the call around them, without those that cost next to nothing or only pass on."""
    import polars as pl

    top = found.filter(pl.col("depth") == 0)
    least = {name: LEAST_RATIO * max(int(top[name].sum()), 1) for name in ("host_ns", "device_ns")}
    kept = found.filter(pl.any_horizontal(pl.col(name) >= ns for name, ns in least.items()))
    below = kept.group_by(node="parent").agg(inside=pl.len(), is_kernel=(pl.col("kind") == "kernel").any())
    known = kept.join(below.drop_nulls("node"), on="node", how="left", maintain_order="left")
    passes = (pl.col("inside") == 1) & ~pl.col("is_kernel") & (pl.col("host_self_ns") < least["host_ns"])
    known = known.with_columns(passes=passes.fill_null(value=False) & (pl.col("depth") > 0))
    depths: list[int] = []
    ends: list[int] = []  # the depth below each call around
    for depth, is_passing in known.select("depth", "passes").iter_rows():
        del ends[depth:]
        depths.append(ends[-1] if ends else 0)
        ends.append(depths[-1] + (not is_passing))
    rows = known.with_columns(indent=pl.Series(depths, dtype=pl.UInt32)).filter(~pl.col("passes"))
    name = pl.lit("  ").repeat_by("indent").list.join("") + pl.col("name")
    less = f" ({found.height - rows.height} calls that are short or only pass on are not shown)"
    columns = [Column("name", "string", "", importance=200, title="call")]
    shown = rows.with_columns(name=name).drop("inside", "is_kernel", "passes", "indent")
    return Derived(shown, less if found.height > rows.height else "", columns)


PAGE = Page(
    "flame",
    "Show what runs in what on a rank, and what it costs on host and device: the tree of a flame graph.",
    [
        Section(
            "call_tree",
            "Calls, each with the calls in it",
            takes={"by": "by"},
            derived=_tree,
            hidden=("node", "parent", "depth", "device_self_ns"),
            rows=60,
        )
    ],
    options=[BY, TIME],
    more="With -o FILE it draws a flame graph: .html (a page to zoom and search in), .svg, .json (for speedscope.app) "
    "or .folded (collapsed stacks, for flamegraph.pl and the like).",
    instead=recorded_by("Totals need no calls", KERNELS, TOTALS),
)
