"""`flops`: floating point operations of one call of each operator, in millions, and their rate, in 1e9 a second.

Older files do not separate the cube and vector units; then the cube's column has all. `flops_scope` has the operations
of the model's scopes, in millions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import as_amount, object_of
from stepscope.sources.base import Sink
from stepscope.sources.classic.figures import write_figures
from stepscope.sources.csv_files.heading import header_of
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.side_files import read_object
from stepscope.tables import FLOP_SCOPES

_MEGA, _GIGA = 1e6, 1e9
_LAYOUT = FileLayout(
    fields=(
        Field("full_name", "text", ("full_kernel_name", "op_full_name", "full_op_name"), required=True),
        Field("cube_m", "float", ("mflops(10^6_cube)", "mflops(10^6)", "mflops", "flops"), required=True),
        Field("vector_m", "float", ("mflops(10^6_vector)",)),
        Field("cube_rate", "float", ("gflops(10^9_cube)", "gflops(10^9)", "gflops")),
        Field("vector_rate", "float", ("gflops(10^9_vector)",)),
    ),
    # The oldest files call both columns the same, but for the case of a letter; the first one is the operations.
    ignored=frozenset({"flops", "flops_utilization(cube)", "flops_utilization(vec)", "flops_utilization(vector)"}),
    report_cells=True,
    report_empty=True,
    may_end_open=True,
    orders=(
        order("full_kernel_name,mflops(10^6_cube),gflops(10^9_cube),mflops(10^6_vector),gflops(10^9_vector)"),
        order("op_full_name,mflops(10^6),gflops(10^9),flops_utilization"),
    ),
)
_AGREES = 0.01


def read_flops(path: Path | None, sink: Sink) -> pl.DataFrame | None:
    """Operations by operator.

    Returns:
        `full_name`, `cube_flops`, `vector_flops` (of one call), and the stated `cube_rate` and `vector_rate` (1e9 a
        second), each operator once; null if the file does not have it. None if there is nothing to read.
    """
    rows = read_csv(path, _LAYOUT, sink)
    if rows is None or path is None:
        return None
    if not any("10^6" in header for header in header_of(path, _LAYOUT)):
        problem = "does not give the unit of its operations; they are read as millions, as in later files"
        sink.issue("note", path, problem, "Nothing to do.", place="line 1")
    return rows.unique("full_name", keep="first", maintain_order=True).select(
        "full_name",
        "cube_rate",
        "vector_rate",
        cube_flops=pl.col("cube_m") * _MEGA,
        vector_flops=pl.col("vector_m") * _MEGA,
    )


def check_rates(path: Path, rows: pl.DataFrame, sink: Sink) -> None:
    """Note stated rates that are not operations over time, of operators with `total_ns` and `count`."""
    seconds = pl.col("total_ns") / pl.col("count") / 1e9
    off = []
    for unit in ("cube", "vector"):
        own = pl.col(f"{unit}_flops") / seconds
        off.append(((pl.col(f"{unit}_rate") * _GIGA - own).abs() > _AGREES * own).fill_null(False))
    known = rows.filter(pl.col("cube_flops").is_not_null() & (pl.col("total_ns") > 0))
    if differing := known.filter(pl.any_horizontal(off)).height:
        problem = f"the rate of {differing} of {known.height} operators does not match their operations and time"
        sink.issue("note", path, problem, "Nothing to do.")


def write_flop_scopes(path: Path, sink: Sink) -> None:
    """Write the tree of scopes and their operations, from `flops_scope`."""
    content = read_object(path, sink)
    if not content:
        return
    if (levels := as_amount(content.get("max_scope_num"))) is not None:
        write_figures({"flop_scope_levels": levels}, sink)
    links = object_of(content, "data").get("links")
    if not isinstance(links, list):
        sink.issue("error", path, "has no list of links", "Copy the file again; everything else is read.", place="data")
        return
    edges = [edge for link in links if isinstance(link, dict) and (edge := _edge(link)) is not None]
    if lost := len(links) - len(edges):
        sink.issue("error", path, f"{lost} of {len(links)} links cannot be read", "Copy the file again.", lost=lost)
    if edges:
        parents, scopes, flops = zip(*edges, strict=True)
        sink.write(FLOP_SCOPES, FLOP_SCOPES.unchecked(parent=parents, scope=scopes, flops=flops))


def _edge(link: Mapping[str, Any]) -> tuple[str, str, float] | None:
    parent, scope, value = link.get("source"), link.get("target"), as_amount(link.get("value"))
    if not isinstance(parent, str) or not isinstance(scope, str) or value is None:
        return None
    return parent, scope, value * _MEGA
