"""When the largest tensors of a compiled graph, or the largest blocks of an allocator, live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.figures.axes import Unit, label, labels, named_ticks, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column, one_rank
from stepscope.figures.memory_marks import PLACE, marks_of, peak_of, with_marks
from stepscope.figures.operator_groups import names_of
from stepscope.figures.style import SERIES
from stepscope.present import Language, duration
from stepscope.present import size as in_words
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 40
"""Tensors or blocks that have a bar: the largest."""

_COLUMNS = (
    column("name", "name", "Tensor, or operator that allocated the block."),
    column("type", "type", "Kind of tensor as stated."),
    column("size_bytes", "size", "Size.", "int64"),
    column("from_ns", "allocated", "When, since the first change of memory; null if before.", "int64"),
    column("to_ns", "released", "When; null if that is not in the recording.", "int64"),
    column("first_node", "first node", "First node at which it is alive; null if from the start.", "int32"),
    column("last_node", "last node", "Last node at which it is alive; null if to the end.", "int32"),
)


def data(
    run: Run,
    *,
    rank: int | None = None,
    graph: int | None = None,
    component: str | None = None,
    device: int | None = None,
) -> Data:
    """The largest tensors or blocks of the memory that is used most.

    Args:
        graph, component, device: Only of this compiled graph, allocator or device.
    """
    one, found, notes = one_rank(run, "memory_lifetimes", rank)
    of = {"graph": graph, "component": component, "device": device}
    for name, wanted in of.items():
        if wanted is not None:
            found = found.filter(pl.col(name) == wanted)
    if found.is_empty():
        raise Unavailable("no tensors or blocks are known there")
    usage, peak, first = _curve(one, of)
    own = found
    if peak is not None:
        own = found.filter(pl.all_horizontal(pl.col(name).eq_missing(pl.lit(peak[name])) for name in PLACE))
        if own.is_empty():  # blocks of a device may be recorded without the name of their allocator
            own = found.filter(pl.all_horizontal(pl.col(name).eq_missing(pl.lit(peak[name])) for name in PLACE[::2]))
    if own.is_empty() or peak is None:
        largest = found.sort(-pl.col("size_bytes"), *PLACE, nulls_last=True).row(0, named=True)
        own = found.filter(pl.all_horizontal(pl.col(name).eq_missing(pl.lit(largest[name])) for name in PLACE))
    by_time = own["allocation_ns"].count() > 0
    if by_time and first is None:
        first = own["allocation_ns"].min()
    longest = -pl.col("life_ns").fill_null(2**62)  # what is not released in the recording lives longest
    order = [-pl.col("size_bytes"), longest, pl.col("name"), pl.col("tensor"), pl.col("allocation_ns")]
    shown = own.sort(order, nulls_last=True).head(MOST)
    if left := own.height - shown.height + int(own["others"][0] or 0):
        notes.append(
            Text(
                f"{shown.height} of {shown.height + left}, the largest.",
                f"共 {shown.height + left} 个，这里是最大的 {shown.height} 个。",
            )
        )
    start = pl.lit(first, pl.Int64) if by_time else pl.lit(None, pl.Int64)
    shown = shown.with_columns(from_ns=pl.col("allocation_ns") - start, to_ns=pl.col("release_ns") - start)
    marks = [] if peak is None else marks_of(usage, peak, first if by_time else None)
    columns = [each for each in _COLUMNS if shown[each.name].count()]
    return Data([Rows(shown, columns)], notes, {"by_time": by_time, "span": _span(usage, shown, first), "marks": marks})


def _curve(run: Run, of: dict[str, Any]) -> tuple[pl.DataFrame, dict[str, Any] | None, Any]:
    """The curve with the highest peak, its peak, and its first time (null for a graph)."""
    try:
        peak, _ = peak_of(run, None, of)
        usage = run.analyse("memory_usage")
    except Unavailable:
        return pl.DataFrame(), None, None
    own = usage.filter(pl.all_horizontal(pl.col(name).eq_missing(pl.lit(peak[name])) for name in PLACE))
    return own, peak, own["time_ns"].min()


def _span(usage: pl.DataFrame, shown: pl.DataFrame, first: Any) -> tuple[int, int]:
    """From where to where the axis goes: the whole curve, and all that is known of lifetimes."""
    ends = [0]
    for rows, names in (
        (usage, ("node", "time_ns")),
        (shown, ("last_node", "first_node", "release_ns", "allocation_ns")),
    ):
        for name in names:
            if name in rows.columns and rows[name].count():
                last = int(rows[name].max())  # type: ignore[arg-type]
                ends.append(last - int(first) if name.endswith("_ns") and first is not None else last)
    return 0, max(ends)


def draw(data: Data, language: Language) -> Spec:
    """A bar for each life, in order of its beginning, coloured by kind."""
    facts = data.facts
    by_time = facts["by_time"]
    begin, end = ("from_ns", "to_ns") if by_time else ("first_node", "last_node")
    start, last = facts["span"]
    rows = data.main.with_columns(
        begin=pl.col(begin).fill_null(start).clip(lower_bound=start).cast(pl.Int64),
        end=pl.col(end).fill_null(last).cast(pl.Int64) + (0 if by_time else 1),  # to the end of its last node
    ).sort("begin", -pl.col("size_bytes"), "name", nulls_last=True)
    unit = unit_of("from_ns", [last]) if by_time else Unit(1.0, "")
    names = labels(names_of(rows), 40)
    traces: list[Spec] = []
    for number, kind in enumerate(rows["type"].unique(maintain_order=True)):
        places = [place for place, of in enumerate(rows["type"]) if of == kind]
        own = rows[places]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": label(kind or ("blocks" if language == "en" else "内存块")),
                "base": unit.of(own["begin"]),
                "x": unit.of((own["end"] - own["begin"]).cast(pl.Float64)),
                "y": places,
                "text": [in_words(size) for size in own["size_bytes"]],
                "textposition": "outside",
                "cliponaxis": False,
                "marker": {"color": SERIES[number % len(SERIES)]},
                "customdata": [_custom(row, language) for row in own.iter_rows(named=True)],
                "hovertemplate": "%{customdata[3]}<extra></extra>",
            }
        )
    axis = ("time", "时间") if by_time else ("node", "节点")
    title = f"{axis[language == 'zh']}{f' ({unit.name})' if unit.name else ''}"
    edge = last / unit.factor * 1.12 or 1
    layout = {
        "barmode": "overlay",
        "showlegend": True,
        "height": 120 + 22 * len(names),
        "xaxis": {"title": {"text": title}, "range": [0, edge], "zeroline": False},
        "yaxis": {**named_ticks(names), "range": [len(names) - 0.4, -0.6], "showgrid": False},
    }
    return {"data": traces, "layout": with_marks(layout, facts["marks"], unit, language)}


def _custom(row: dict[str, Any], language: Language) -> list[Any]:
    """What a click gets: graph, first node, allocation in ns since the epoch (a text); then the text to show."""
    at = None if row["allocation_ns"] is None else str(row["allocation_ns"])
    said = [f"{label(row['name'] or '-', 120)}: {in_words(row['size_bytes'])}"]
    described = " ".join(str(row[name]) for name in ("data_type", "shape") if row[name])
    if described:
        said.append(label(described, 80))
    if row["made_by"]:
        said.append(label(row["made_by"], 120))
    if row["life_ns"] is not None:
        said.append(f"{'lives' if language == 'en' else '存活'} {duration(row['life_ns'])}")
    return [row["graph"], row["first_node"], at, "<br>".join(said)]


FIGURE = Figure(
    "memory-lifetimes",
    Text("Life of the largest tensors and blocks", "最大的张量和内存块的存活时间"),
    Text(
        "When the largest tensors of a compiled graph (by node), or blocks of an allocator (by time), live. What lives "
        "long without need is a candidate for recomputing or releasing earlier.",
        "编译图中最大的张量（按节点）或分配器中最大的内存块（按时间）何时存活。无需长期存活的部分可重计算或提早释放。",
    ),
    ("memory_lifetimes", "memory_peak", "memory_usage"),
    data,
    draw,
    of_rank=True,
)
