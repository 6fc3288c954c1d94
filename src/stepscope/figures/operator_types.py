"""The types of operators of a rank that take most time, as a pie or as bars, in the order of their table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.figures.axes import ROOM, labels, named_ticks, short, shortened, unit_of
from stepscope.figures.base import Data, Figure, Note, Rows, Spec, column, one_rank
from stepscope.figures.style import GREY, MANY, ink_on
from stepscope.figures.words import word
from stepscope.present import Language, duration
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 19
"""Types that have a slice or bar of their own; all others share one."""

FORMS = ("pie", "bar")

_COLUMNS = (
    column("unit", "list", "List of operators, e.g. `AI_CORE`."),
    column("type", "type", "Operator type; null for all others together."),
    column("total_ns", "total", "Total time.", "int64"),
    column("share_ratio", "share", "Share of the list's time.", "float64"),
    column("count", "calls", "Number of calls.", "int64"),
    column("mean_ns", "mean", "Mean time of a call.", "int64"),
)


def data(run: Run, *, rank: int | None = None, unit: str | None = None, form: Literal["pie", "bar"] = "pie") -> Data:
    """The types of a list with most time, as `operator_types` has them, and the sum of all others.

    Args:
        unit: The list, e.g. `HOST_CPU`. Default: the first one.
        form: What is drawn.

    Raises:
        StepscopeError: If there is no such list or form.
    """
    if form not in FORMS:
        raise StepscopeError(f"operator types are drawn as pie or bar, not {form!r}")
    _, found, notes = one_rank(run, "operator_types", rank)
    known = found.filter(pl.col("total_ns").is_not_null())
    if known.is_empty():
        raise Unavailable("the time of operators was not recorded")
    units = known["unit"].unique(maintain_order=True).to_list()
    if unit is not None and unit not in units:
        raise StepscopeError(f"there is no list {unit!r} of operators. {close_matches(unit, units)}")
    chosen = unit or units[0]
    own = known.filter(pl.col("unit") == chosen)
    shown, left = own.head(MOST), own.slice(MOST)
    if len(units) > 1:
        rest = [each for each in units if each != chosen]
        names = {"chosen": shortened(chosen), "rest": shortened(", ".join(rest), 160)}
        notes.append(Note(Text("List {chosen}; others: {rest}.", "列表 {chosen}；其他列表：{rest}。"), names))
    if left.height:
        others = left.select(
            *(pl.lit(None, shown.schema[name]).alias(name) for name in ("type", "mean_ns")),
            *(pl.lit(chosen).alias("unit"), *(pl.col(name).sum() for name in ("total_ns", "share_ratio", "count"))),
        ).head(1)
        shown = pl.concat([shown, others], how="diagonal_relaxed")
        notes.append(
            Text(
                f"{MOST} of {own.height} types, those with most time; the others stand together.",
                f"共 {own.height} 种类型，这里是耗时最多的 {MOST} 种，其余合并显示。",
            )
        )
    return Data([Rows(shown, _COLUMNS)], notes, {"form": form})


def draw(data: Data, language: Language) -> Spec:
    """Slices clockwise from the top, or bars from the top, in the order of the table."""
    rows = data.main
    names = labels(word("others", language) if name is None else name for name in rows["type"])
    colours = [GREY if name is None else MANY[place % len(MANY)] for place, name in enumerate(rows["type"])]
    shares = [0.0 if share is None else share for share in rows["share_ratio"]]
    common: Spec = {
        "customdata": [
            [type_, own, duration(total), count, "" if mean is None else duration(mean), *short([share], 4)]
            for own, type_, total, share, count, mean in rows.select(
                "unit", "type", "total_ns", "share_ratio", "count", "mean_ns"
            ).iter_rows()
        ],
        "hovertemplate": "%{label}<br>" if data.facts["form"] == "pie" else "%{y}<br>",
    }
    calls = "calls" if language == "en" else "次调用"
    mean = "mean" if language == "en" else "均值"
    hover = f"%{{customdata[2]}} (%{{customdata[5]:.1%}})<br>%{{customdata[3]:,}} {calls}, {mean} %{{customdata[4]}}"
    if data.facts["form"] == "pie":
        return _pie(rows, names, colours, {**common, "hovertemplate": f"%{{label}}<br>{hover}<extra></extra>"})
    unit = unit_of("total_ns", rows["total_ns"])
    times = unit.of(rows["total_ns"])
    bar = {
        **common,
        "type": "bar",
        "orientation": "h",
        "x": times,
        "y": list(range(len(names))),
        "text": [f"{duration(total)} · {share:.1%}" for total, share in zip(rows["total_ns"], shares, strict=True)],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": colours},
        "hovertemplate": f"{hover}<extra></extra>",
    }
    widest = max(each or 0 for each in times)
    return {
        "data": [bar],
        "layout": {
            "height": 90 + 26 * len(names),
            "showlegend": False,
            "xaxis": {"title": {"text": f"{word('time', language)} ({unit.name})"}, "range": [0, widest * ROOM]},
            "yaxis": {**named_ticks(names), "range": [len(names) - 0.4, -0.6], "showgrid": False},
        },
    }


def _pie(rows: pl.DataFrame, names: list[str], colours: list[str], common: Spec) -> Spec:
    listed = [f"{name}  {duration(total)}" for name, total in zip(names, rows["total_ns"], strict=True)]
    pie = {
        **common,
        "type": "pie",
        "labels": listed,
        "values": short(rows["total_ns"]),
        "sort": False,
        "direction": "clockwise",
        "textinfo": "percent",
        "textposition": "inside",
        "insidetextorientation": "horizontal",
        "insidetextfont": {"color": [ink_on(colour) for colour in colours]},
        "marker": {"colors": colours},
        "domain": {"x": [0, 0.5]},
        "hole": 0.35,
    }
    return {
        "data": [pie],
        "layout": {
            "height": max(340, 50 + 24 * len(names)),
            "showlegend": True,
            "uniformtext": {"mode": "hide", "minsize": 11},
            "legend": {"orientation": "v", "x": 0.54, "xanchor": "left", "y": 0.5, "yanchor": "middle"},
        },
    }


FIGURE = Figure(
    "operator-types",
    Text("Operators by type", "按类型的算子"),
    Text(
        "The total time of each type of operator of a rank, in one list: a device's kernels, or operators of the host. "
        "Slices or bars have the order and values of the table.",
        "某个 rank 上一个列表（设备 kernel 或主机算子）中各类型算子的总耗时；扇区或条的顺序和数值与表一致。",
    ),
    ("operator_types",),
    data,
    draw,
    of_rank=True,
)
