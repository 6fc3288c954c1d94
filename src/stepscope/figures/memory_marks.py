"""What figures of memory share: which curve they are about, and where forward starts and backward ends on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import Unit, shortened
from stepscope.figures.base import Note, Spec
from stepscope.figures.style import PURPLE, SKY
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

PLACE = ("graph", "component", "device")
"""What tells the curves of a rank apart."""

MOST_MARKS = 12
"""Points at which forward starts or backward ends; of more, those of the step of the peak are shown."""

NAMED_MARKS = 4
"""Points up to which each has a name; more names would overlap."""

ROW = 30
"""Height of a row of text, in pixels: names of marks stand between the legend and the curve."""


def peak_of(run: Run, rank: int | None, of: Mapping[str, Any]) -> tuple[dict[str, Any], list[Text | Note]]:
    """The highest peak, as `memory_peak` has it, and whose it is.

    Raises:
        Unavailable: If there is none.
    """
    peaks = run.analyse("memory_peak").filter(pl.col("peak_bytes").is_not_null())
    for name, wanted in {"rank": rank, **of}.items():
        if wanted is not None:
            peaks = peaks.filter(pl.col(name) == wanted)
    if peaks.is_empty():
        raise Unavailable("no curve of memory in use was recorded")
    peak = peaks.sort(-pl.col("peak_bytes"), "rank", *PLACE, nulls_last=True).row(0, named=True)
    number = peak["rank"]
    if peaks["rank"].n_unique() > 1:
        return peak, [Text(f"Rank {number}; no rank has a higher peak.", f"rank {number}，没有峰值更高的 rank。")]
    notes: list[Text | Note] = [Text(f"Rank {number}.", f"rank {number}。")]
    if peaks.height > 1:
        text = Text("The highest of {count} curves: {curve}.", "{count} 条曲线中最高的一条：{curve}。")
        notes.append(Note(text, {"count": str(peaks.height), "curve": _curve_named(peak)}))
    return peak, notes


def _curve_named(peak: Mapping[str, Any]) -> str:
    known = [f"{name} {shortened(peak[name])}" for name in PLACE if peak[name] is not None]
    return ", ".join(known) or "host"


def marks_of(usage: pl.DataFrame, peak: Mapping[str, Any], first: Any) -> list[tuple[str, int, str | None]]:
    """Where forward starts and backward ends on a curve: mark, place (ns since the first change, or node), name."""
    marked = usage.filter(pl.col("mark").is_not_null())
    if marked.height > MOST_MARKS:
        marked = marked.filter(pl.col("step").eq_missing(pl.lit(peak["step"], pl.Int32))).head(MOST_MARKS)
    return [
        (row["mark"], row["node"] if first is None else row["time_ns"] - first, row["name"])
        for row in marked.select("mark", "node", "time_ns", "name").iter_rows(named=True)
    ]


def with_marks(
    layout: Spec, marks: list[tuple[str, int, str | None]], unit: Unit, language: Language, bottom: float = 0
) -> Spec:
    """A layout with dotted lines at the marks, from `bottom` (a share of the height) up, named at the top."""
    shapes, names = [], []
    for mark, at, _ in marks:
        x = unit.of([at])[0]
        line = {"color": PURPLE if mark == "forward_start" else SKY, "width": 1.5, "dash": "dot"}
        shapes.append({"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": bottom, "y1": 1, "line": line})
        place = {"x": x, "xanchor": "left", "yref": "paper", "y": 1, "yanchor": "bottom", "showarrow": False}
        names.append({"text": word(mark, language), **place})
    if len(marks) > NAMED_MARKS:
        names = []
    room = {"legend": {"y": 1 + ROW / max(layout["height"] - 2 * ROW, ROW)}} if names else {}
    return {**layout, "shapes": shapes, "annotations": names, **room}
