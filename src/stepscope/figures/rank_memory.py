"""Peak memory of each rank over what its device has, as a grid of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.rank_grid import Said, draw_grid, placed
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

_COLUMNS = (
    column("rank", "rank"),
    column("host", "host", "Its host."),
    column("stage", "stage", "Its pipeline stage, from 0.", "int32"),
    column("share_ratio", "share", "Of what its device has; if unknown, of the rank that uses most.", "float64"),
    column("peak_bytes", "peak", "Greatest amount allocated.", "int64"),
    column("reserved_peak_bytes", "reserved", "Greatest amount reserved.", "int64"),
    column("capacity_bytes", "capacity", "What the device has.", "int64"),
)

_SAID = (
    Said("host", Text("host", "主机")),
    Said("stage", Text("pipeline stage", "流水线阶段")),
    Said("peak_bytes", Text("peak", "峰值")),
    Said("stated_peak_bytes", Text("peak as stated", "记录声明的峰值")),
    Said("reserved_peak_bytes", Text("reserved at most", "最多保留")),
    Said("capacity_bytes", Text("capacity", "容量")),
)


def data(run: Run) -> Data:
    """The ranks of `rank_memory`."""
    found = run.analyse("rank_memory")
    of_capacity = bool(found["used_ratio"].count())
    name = "used_ratio" if of_capacity else "of_most_ratio"
    known = found.drop_nulls(name).with_columns(share_ratio=pl.col(name))
    if known.is_empty():
        raise Unavailable("how much memory ranks use is not known", question="rank_memory")
    rows, names, notes = placed(known, "share_ratio", lowest=False)
    if not of_capacity:
        notes.append(
            Text(
                "What devices have was not recorded, so shares are of the rank that uses most.",
                "未记录设备容量，因此占比是与用得最多的 rank 之比。",
            )
        )
    shown = rows.sort(-pl.col("share_ratio"), "rank")
    return Data([Rows(shown, _COLUMNS)], notes, {"names": names, "of_capacity": of_capacity})


def draw(data: Data, language: Language) -> Spec:
    """A cell for each rank."""
    titles = {True: Text("of capacity", "占容量"), False: Text("of the most", "与最多者之比")}
    of_capacity = data.facts["of_capacity"]
    title = titles[of_capacity].of(language)
    return draw_grid(data.main, data.facts["names"], "share_ratio", title, _SAID, language, is_limited=of_capacity)


FIGURE = Figure(
    "rank-memory",
    Text("Peak memory of each rank", "各 rank 的内存峰值"),
    Text(
        "A cell is a rank, a row a host where hosts are known; colour shows how much of its device's memory it uses "
        "at its peak.",
        "每格是一个 rank，已知主机时每行是一台主机；颜色表示其峰值占设备内存的比例。",
    ),
    ("rank_memory",),
    data,
    draw,
    for_pages=True,
)
