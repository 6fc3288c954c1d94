"""How long steps would take if some work took another time, beside how long they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.analysis.methods.saving_range import TRUSTED_RATIO
from stepscope.figures.axes import short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.style import BLUE, GREEN, GREY
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 400
"""Steps; of more, one of several that follow one another is shown: the one of which most is saved, or lost."""

BARS = 40
"""Steps up to which each has bars; more are lines."""

_COLUMNS = (
    column("step", "{step}", "Number of the step.", "int32"),
    column("recorded_ns", "as recorded", "What it takes.", "int64"),
    column("replayed_ns", "replayed", "What a replay of the recording gives without changes.", "int64"),
    column("changed_ns", "with changes", "What it gives with them.", "int64"),
    column("saving_ns", "saving", "What they make the step shorter; negative: longer.", "int64"),
    column("saving_ratio", "saving %", "The same over the step.", "float64"),
)


def data(
    run: Run,
    *,
    without: str | None = None,
    scale: str | None = None,
    bandwidth: str | None = None,
    ideal: bool | None = None,
) -> Data:
    """The steps of `what_if`, with its changes; its options are those of the page.

    Args:
        without: What takes no longer than usual, e.g. `rank=6` or `link=0-4`.
        scale: Work that takes another time, e.g. `op=FlashAttention,0.7`.
        bandwidth: Communication that moves data faster, e.g. `2x`.
        ideal: No rank takes longer than its peers for its own work.
    """
    given: dict[str, Any] = {"without": without, "scale": scale, "bandwidth": bandwidth, "ideal": ideal}
    changes = {name: value for name, value in given.items() if value}
    rows = run.whole.analyse("what_if", **changes).sort("step")
    notes = []
    if rows.height and (worst := max(abs(value) for value in rows["error_ratio"])) > TRUSTED_RATIO:
        notes.append(
            Text(
                f"The replay is off by up to {worst:.0%}, so these times are not certain.",
                f"重放与记录最多相差 {worst:.0%}，因此这些时间并不确定。",
            )
        )
    if rows.height > MOST:
        each = -(-rows.height // MOST)
        at = rows.with_row_index("at").with_columns(pl.col("at") // each)
        most = at.sort("at", -pl.col("saving_ns").abs(), "step").unique("at", keep="first", maintain_order=True)
        notes.append(
            Text(
                f"Of every {each} steps ({rows.height} in all) the one of which most is saved or lost is shown.",
                f"共 {rows.height} 步，每 {each} 步显示其中变化最大的一步。",
            )
        )
        rows = most.drop("at").sort("step")
    return Data([Rows(rows, _COLUMNS)], notes, {"changes": bool(changes)})


def draw(data: Data, language: Language) -> Spec:
    """Bars of steps side by side, or lines if there are many; a mark says what is saved."""
    rows, changed = data.main, data.facts["changes"]
    unit = unit_of("_ns", [*rows["replayed_ns"], *rows["changed_ns"], *rows["recorded_ns"]])
    step = "step" if language == "en" else "步"
    few = rows.height <= BARS
    shown = [("recorded_ns", "as_recorded", GREY), ("replayed_ns", "replayed", BLUE)]
    shown += [("changed_ns", "with_changes", GREEN)] if changed else []
    traces: list[dict[str, Any]] = []
    steps = rows["step"].to_list()
    savings = [
        [number, share, *unit.of([saved])]
        for number, share, saved in zip(steps, short(rows["saving_ratio"], 3), rows["saving_ns"], strict=True)
    ]
    for name, text, colour in shown:
        title = word(text, language)
        saving = f"<br>{word('saving', language)}: %{{customdata[2]:.4~g}}{unit.after} (%{{customdata[1]:.1%}})"
        traces.append(
            {
                "type": "bar" if few else "scatter",
                "name": title,
                "x": [str(one) for one in steps] if few else steps,
                "y": unit.of(rows[name]),
                "customdata": savings,
                **({"marker": {"color": colour}} if few else {"mode": "lines", "line": {"color": colour, "width": 2}}),
                "hovertemplate": f"{step} %{{x}}<br>{title}: %{{y:.4~g}}{unit.after}"
                f"{saving if name == 'changed_ns' else ''}<extra></extra>",
            }
        )
    return {
        "data": traces,
        "layout": {
            "barmode": "group",
            "bargap": 0.3,
            "height": 400,
            "showlegend": True,
            "xaxis": {"title": {"text": step}, **({"type": "category"} if few else {"tickformat": "d"})},
            "yaxis": {"title": {"text": f"{word('time', language)} ({unit.name})"}, "rangemode": "tozero"},
        },
    }


FIGURE = Figure(
    "what-if",
    Text("Length of each {per} with changes", "更改后每一{per:noun}的耗时"),
    Text(
        "Each {per} of the job as recorded, as a replay gives it, and with the changes. What the replay gives without "
        "changes is what savings are measured against.",
        "作业每{per:noun}的记录值、重放值以及更改后的值。节省以未更改的重放为准。",
    ),
    ("what_if",),
    data,
    draw,
    for_pages=True,
)
