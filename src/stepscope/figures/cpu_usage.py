"""How busy the processors were over time: the whole host, the training process, and dataset operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.analysis.host.cpu_utilization import ALL_OPERATORS
from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.figures.axes import Unit, labels, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column, one_rank
from stepscope.figures.style import BLUE, GREEN, GREY, ORANGE, SERIES
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 400
"""Points of a curve; of more samples, several share one, which shows the busiest."""

MOST_CURVES = len(SERIES)
"""Operators or workers that have a curve: the busiest."""

OF = ("all", "host", "process", "operators", "workers")
"""What the figure may be about."""

_SHOWN = {"all": ("host", "process", ALL_OPERATORS), "host": ("host",), "process": ("process",)}
"""Scopes of which user, system, waiting and idle time are shown."""

_EACH = {"operators": "operator", "workers": "worker"}
"""Scopes with a curve for each operator or worker."""

_COLUMNS = (
    column("scope", "of", "Whose CPU use it is.", values=("host", "process", "worker", "operators", "operator")),
    column("name", "name", "Worker or dataset operator."),
    column("since_ns", "time", "Since the first sample.", "int64"),
    column("step", "{step}", "Number of the step.", "int32"),
    column("busy_processors", "processors busy", "Processors in user code or the kernel.", "float64"),
    column("user_ratio", "user", "Share of all processors in user code.", "float64"),
    column("system_ratio", "system", "Share in the kernel.", "float64"),
    column("io_ratio", "I/O", "Share waiting for input and output.", "float64"),
    column("idle_ratio", "not used", "Share idle.", "float64"),
)


def data(run: Run, *, rank: int | None = None, of: str = "all", operator: str | None = None, steps: Any = None) -> Data:
    """The samples of a rank's host.

    Args:
        of: `host`, `process`, each of the dataset's `operators`, each of the `workers`, or `all`: host, process and
            the sum of operators.
        operator: Only this dataset operator.
        steps: Only samples in these steps, e.g. `1-3`.

    Raises:
        StepscopeError: If there is no such operator, or nothing else to show.
    """
    if of not in OF:
        raise StepscopeError(f"CPU usage is shown of {', '.join(OF)}, not of {of!r}")
    options = {} if steps is None else {"chosen": steps}
    _, found, notes = one_rank(run, "cpu_utilization", rank, **options)
    if found.is_empty():
        raise Unavailable("CPU usage was not sampled")
    name = pl.col("name")
    if operator is not None:
        own = found.filter((pl.col("scope") == "operator") & (name == operator))
        if own.is_empty():
            there = found.filter(pl.col("scope") == "operator")["name"].unique().drop_nulls().sort().to_list()
            raise StepscopeError(f"no CPU usage of {operator!r} was sampled. {close_matches(operator, there)}")
        by_name = False
    else:
        by_name = of in _EACH
        own = found.filter(pl.col("scope") == _EACH[of] if by_name else pl.col("scope").is_in(list(_SHOWN[of])))
    known = own.filter(pl.col("user_ratio").is_not_null() & pl.col("system_ratio").is_not_null())
    if left := own.height - known.height:
        notes.append(
            Text(
                f"Samples without the time in user code or the kernel are left out: {left}.",
                f"{left} 个没有用户态或内核态时间的采样未显示。",
            )
        )
    own = known
    if own.is_empty():
        raise Unavailable(f"CPU usage of {of} was not sampled")
    first = own["time_ns"].min()
    own = own.with_columns(since_ns=pl.col("time_ns") - first)
    if by_name:
        own, fewer = _busiest(own)
        notes += fewer
    own, each = _thinned(own)
    if each > 1:
        notes.append(Text(f"Of every {each} samples, the busiest is shown.", f"每 {each} 个采样显示其中最忙的。"))
    if len(processors := found.filter(pl.col("scope") == "host")["processors"].drop_nulls()):
        notes.append(Text(f"The host has {processors[0]} processors.", f"主机有 {processors[0]} 个处理器。"))
    return Data([Rows(own, _COLUMNS)], notes, {"by_name": by_name})


_CURVE = ["scope", "name"]


def _busiest(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Text]]:
    mean = pl.col("busy_processors").mean()
    order = rows.group_by("name").agg(mean).sort(-pl.col("busy_processors"), "name", nulls_last=True)["name"].to_list()
    shown = order[:MOST_CURVES]
    ordered = pl.concat([rows.filter(pl.col("name").eq_missing(pl.lit(name, pl.String))) for name in shown])
    if len(order) == len(shown):
        return ordered, []
    return ordered, [
        Text(f"{len(shown)} of {len(order)}, the busiest.", f"共 {len(order)} 个，这里是最忙的 {len(shown)} 个。")
    ]


def _thinned(rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The busiest of each few samples that follow one another."""
    most = rows.group_by(_CURVE).len()["len"].max()
    each = -(-int(str(most or 1)) // MOST)
    if each == 1:
        return rows, 1
    placed = rows.with_columns(place=pl.int_range(pl.len()).over(_CURVE) // each).with_row_index("row")
    busiest = placed.sort(*_CURVE, "place", -pl.col("busy_processors"), "row", nulls_last=True)
    return busiest.unique([*_CURVE, "place"], keep="first", maintain_order=True).sort("row").drop("row", "place"), each


def draw(data: Data, language: Language) -> Spec:
    """Parts of the processors' time as areas, one chart below the other; or a line for each operator or worker."""
    rows = data.main
    unit = unit_of("since_ns", rows["since_ns"])
    x_title = f"{'time' if language == 'en' else '时间'} ({unit.name})"
    if data.facts["by_name"]:
        return _lines(rows, unit, x_title, language)
    charts = list(rows.select(_CURVE).unique(maintain_order=True).iter_rows())
    charts.sort(key=lambda one: ("host", "process", ALL_OPERATORS, "operator", "worker").index(one[0]))
    traces: list[Spec] = []
    layout: Spec = {"showlegend": True, "annotations": [], "hovermode": "closest"}
    room = 1 / len(charts)
    for number, (scope, name) in enumerate(charts):
        own = rows.filter((pl.col("scope") == scope) & pl.col("name").eq_missing(pl.lit(name, pl.String)))
        axis = "" if number == 0 else str(number + 1)
        top = 1 - number * room
        domain = [0 if number == len(charts) - 1 else top - room * 0.8, top - room * 0.12]
        traces += _areas(own, f"y{axis}", unit, language, in_legend=number == 0, whole=scope == "host")
        title = f"<b>{_SCOPES[scope].of(language)}</b>" + (f" {labels([name])[0]}" if name else "")
        place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": domain[1], "yanchor": "bottom"}
        layout["annotations"].append({"text": title, "showarrow": False, **place})
        what = "%" if scope == "host" else ("processors" if language == "en" else "处理器")
        limits = {"range": [0, 100]} if scope == "host" else {"rangemode": "tozero"}
        layout[f"yaxis{axis}"] = {"title": {"text": what}, "domain": domain, "nticks": 6, **limits}
    last = "" if len(charts) == 1 else str(len(charts))
    layout["xaxis"] = {"title": {"text": x_title}, "anchor": f"y{last}", "zeroline": False}
    layout["height"] = 60 + 200 * len(charts)
    return {"data": traces, "layout": layout}


_SCOPES = {
    "host": Text("host", "主机"),
    "process": Text("training process", "训练进程"),
    "operators": Text("all dataset operators", "全部数据集算子"),
    "operator": Text("dataset operator", "数据集算子"),
    "worker": Text("worker", "工作进程"),
}
_PARTS = (
    ("user_ratio", Text("user code", "用户态"), BLUE),
    ("system_ratio", Text("system", "内核态"), ORANGE),
    ("io_ratio", Text("waiting for I/O", "等待 I/O"), GREEN),
    ("idle_ratio", Text("not used", "空闲"), GREY),
)


def _areas(own: pl.DataFrame, axis: str, unit: Unit, language: Language, *, in_legend: bool, whole: bool) -> list[Spec]:
    """User, system, waiting and idle time one above the other: shares of the host, or processors that are busy."""
    traces: list[Spec] = []
    xs = unit.of(own["since_ns"])
    after = " %" if whole else (" processors" if language == "en" else " 个处理器")
    for part, name, colour in _PARTS:
        if not own[part].count():
            continue
        amount = own[part] * (100 if whole else own["processors"])
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name.of(language),
                "legendgroup": part,
                "showlegend": in_legend,
                "x": xs,
                "y": short(amount, 4),
                "yaxis": axis,
                "stackgroup": axis,
                "line": {"color": colour, "width": 1},
                "fillcolor": _pale(colour),
                "customdata": [[*row] for row in own.select("scope", "name", "step").iter_rows()],
                "hovertemplate": f"{name.of(language)}: %{{y:.3~g}}{after}{_step(own, language)}<extra></extra>",
            }
        )
    return traces


def _pale(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{0.2 if colour == GREY else 0.5})"


def _step(own: pl.DataFrame, language: Language) -> str:
    if not own["step"].count():
        return ""
    return f"<br>{'step' if language == 'en' else '步'} %{{customdata[2]}}"


def _lines(rows: pl.DataFrame, unit: Unit, x_title: str, language: Language) -> Spec:
    names = rows["name"].unique(maintain_order=True).to_list()
    busy = "processors busy" if language == "en" else "繁忙的处理器"
    traces = []
    for number, (name, shown) in enumerate(zip(names, labels(names), strict=True)):
        own = rows.filter(pl.col("name").eq_missing(pl.lit(name, pl.String)))
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if own.height <= 80 else "lines",
                "name": shown,
                "x": unit.of(own["since_ns"]),
                "y": short(own["busy_processors"], 4),
                "line": {"color": SERIES[number % len(SERIES)], "width": 1.8},
                "customdata": [[*row] for row in own.select("scope", "name", "step").iter_rows()],
                "hovertemplate": f"{busy}: %{{y:.3~g}}{_step(own, language)}<extra></extra>",
            }
        )
    layout: Spec = {"height": 340, "showlegend": True, "xaxis": {"title": {"text": x_title}, "zeroline": False}}
    layout["yaxis"] = {"title": {"text": busy}, "rangemode": "tozero"}
    return {"data": traces, "layout": layout}


FIGURE = Figure(
    "cpu-usage",
    Text("CPU usage over time", "CPU 使用率"),
    Text(
        "What the processors did from sample to sample: shares of the whole host; of the training process and of "
        "dataset operators, how many processors they kept busy.",
        "各采样时刻处理器的使用：主机为占比；训练进程和数据集算子为占用的处理器数。",
    ),
    ("cpu_utilization",),
    data,
    draw,
    of_rank=True,
)
