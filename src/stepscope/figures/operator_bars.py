"""The operators that take most time, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.figures.axes import ROOM, labels, named_ticks, short, unit_of
from stepscope.figures.base import Data, Figure, Spec
from stepscope.figures.operator_groups import most, names_of
from stepscope.figures.style import COLOURS
from stepscope.figures.words import word
from stepscope.present import Language, duration
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 20
"""Operators that have a bar."""


def data(run: Run) -> Data:
    """The rows of `operator_shares` with most time."""
    return most(run.analyse("operator_shares"), MOST, rest=False)


def draw(data: Data, language: Language) -> Spec:
    """A bar for each operator, coloured by kind."""
    rows = data.main
    unit = unit_of("total_ns", rows["total_ns"])
    names = labels(names_of(rows))
    traces = []
    for kind in rows["kind"].unique(maintain_order=True):
        own = [place for place, of in enumerate(rows["kind"]) if of == kind]
        some = rows[own]
        shares = zip(some["total_ns"], some["share_ratio"], strict=True)
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": word(kind, language, "kind"),
                "x": unit.of(some["total_ns"]),
                "y": own,
                "text": [f"{duration(total)} · {share:.1%}" for total, share in shares],
                "textposition": "outside",
                "cliponaxis": False,
                "marker": {"color": COLOURS[kind]},
                "customdata": [
                    [count, rank, *short([longest / unit.factor])]
                    for count, rank, longest in some.select("count", "max_rank", "max_ns").iter_rows()
                ],
                "hovertemplate": "%{text}<br>"
                + ("%{customdata[0]:,} calls" if language == "en" else "%{customdata[0]:,} 次调用")
                + f"<br>max: %{{customdata[2]:.4~g}}{unit.after} (rank %{{customdata[1]}})<extra></extra>",
            }
        )
    widest = max(rows["total_ns"].to_list()) / unit.factor
    return {
        "data": traces,
        "layout": {
            "barmode": "overlay",
            "showlegend": True,
            "height": 120 + 26 * len(names),
            "xaxis": {"title": {"text": f"{word('time', language)} ({unit.name})"}, "range": [0, widest * ROOM]},
            "yaxis": {**named_ticks(names), "range": [len(names) - 0.4, -0.6], "showgrid": False},
        },
    }


FIGURE = Figure(
    "operator-bars",
    Text("Operators that take most time", "耗时最多的算子"),
    Text(
        "Total time of kernels on all ranks; without a device, of operators without those that they call.",
        "kernel 在所有 rank 上的总耗时；没有设备时为算子自身的耗时。",
    ),
    ("operator_shares",),
    data,
    draw,
)
