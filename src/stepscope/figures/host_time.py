"""What the host of a rank spent its time on, by module, event and stage as the framework marks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope.figures.axes import ROOM, label, labels, named_ticks, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column, one_rank
from stepscope.figures.style import SERIES
from stepscope.figures.words import word
from stepscope.present import Language, duration
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 25
"""Events that have a bar."""

_COLUMNS = (
    column("module", "module", "Module of the framework."),
    column("event", "event", "Its event."),
    column("stage", "stage of the event", "Stage of the event."),
    column("self_ns", "time", "Time excluding the ranges directly inside, on the same thread.", "int64"),
    column("share_ratio", "share", "Share of the time of all events.", "float64"),
    column("total_ns", "total", "Total time.", "int64"),
    column("count", "calls", "Number of ranges.", "int64"),
    column("max_ns", "longest", "The longest range.", "int64"),
)


def data(run: Run, *, rank: int | None = None, steps: Any = None) -> Data:
    """The rows of `host_time` of a rank with most time of their own.

    Args:
        steps: Only ranges that begin in these steps, e.g. `1-3`.
    """
    options = {} if steps is None else {"chosen": steps}
    _, found, notes = one_rank(run, "host_time", rank, **options)
    timed = found.filter(found["count"] > 0)
    shown = timed.head(MOST)
    if left := timed.slice(MOST).height:
        share = f"{timed['share_ratio'].slice(MOST).sum():.1%}"
        notes.append(
            Text(
                f"{MOST} of {timed.height} events, those with most time; the other {left} take {share}.",
                f"共 {timed.height} 个事件，这里是耗时最多的 {MOST} 个，其余 {left} 个占 {share}。",
            )
        )
    return Data([Rows(shown, _COLUMNS)], notes)


def draw(data: Data, language: Language) -> Spec:
    """A bar for each event, the longest at the top, coloured by module."""
    rows = data.main
    unit = unit_of("self_ns", rows["self_ns"])
    names = labels(_named(row) for row in rows.iter_rows(named=True))
    calls, total, longest = ("calls", "total", "longest") if language == "en" else ("次", "总计", "最长")
    traces = []
    for number, module in enumerate(rows["module"].unique(maintain_order=True)):
        places = [place for place, of in enumerate(rows["module"]) if of == module]
        own = rows[places]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": label(module or "-"),
                "x": unit.of(own["self_ns"]),
                "y": places,
                "text": [
                    f"{duration(time)} · {share or 0:.1%}"
                    for time, share in own.select("self_ns", "share_ratio").rows()
                ],
                "textposition": "outside",
                "cliponaxis": False,
                "marker": {"color": SERIES[number % len(SERIES)]},
                "customdata": [
                    [*row[:3], duration(row[3]), row[4], "-" if row[5] is None else duration(row[5])]
                    for row in own.select("module", "event", "stage", "total_ns", "count", "max_ns").iter_rows()
                ],
                "hovertemplate": f"%{{text}}<br>{total} %{{customdata[3]}}, %{{customdata[4]:,}} {calls}"
                f"<br>{longest} %{{customdata[5]}}<extra></extra>",
            }
        )
    widest = max(rows["self_ns"].to_list()) / unit.factor or 1
    return {
        "data": traces,
        "layout": {
            "barmode": "overlay",
            "showlegend": True,
            "height": 110 + 26 * len(names),
            "xaxis": {"title": {"text": f"{word('time', language)} ({unit.name})"}, "range": [0, widest * ROOM]},
            "yaxis": {**named_ticks(names), "range": [len(names) - 0.4, -0.6], "showgrid": False},
        },
    }


def _named(row: dict[str, Any]) -> str:
    """Event and stage; the colour stands for the module."""
    return " / ".join(str(part) for part in (row["event"], row["stage"]) if part) or "-"


FIGURE = Figure(
    "host-time",
    Text("Time of the host", "主机耗时"),
    Text(
        "What the host spent its time on, by event and stage as the framework marks them; colours are modules. Time of "
        "an event does not include the events inside it.",
        "主机耗时，按框架标记的事件和阶段列出，颜色表示模块。事件耗时不含其内部的事件。",
    ),
    ("host_time",),
    data,
    draw,
    of_rank=True,
)
