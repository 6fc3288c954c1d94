"""What a step consists of on two sides that are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepscope.compare.noise import VERDICTS
from stepscope.figures.axes import label, named_ticks, short, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.compared import side_name, sides, signed, times
from stepscope.figures.style import BLUE, GREY
from stepscope.figures.words import WORDS, word
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.compare import Pair

PARTS = tuple(name.removeprefix("compared:") for name in WORDS if name.startswith("compared:"))
"""Parts with words of their own."""

_COLUMNS = (
    column("compared", "part", "The step, its parts, and parts of these.", values=PARTS),
    column("base_ns", "base", "Its mean time on the base side.", "int64"),
    column("new_ns", "new", "Its mean time on the new side.", "int64"),
    column("difference_ns", "difference", "New less base.", "int64"),
    column("change_factor", "factor", "New over base.", "float64"),
    column("verdict", "verdict", "Whether that is more than noise.", values=VERDICTS),
)


def data(pair: Pair) -> Data:
    """The rows of `time_differences`, each part before its own parts."""
    rows = pair.analyse("time_differences")
    shown = rows.with_columns(compared="part")
    return Data([Rows(shown, _COLUMNS)], [], {"sides": sides(pair)})


def draw(data: Data, language: Language) -> Spec:
    """Two bars for each part; `customdata` is the part, the difference in words and what to think of it."""
    rows = data.main
    unit = unit_of("_ns", [*rows["base_ns"], *rows["new_ns"]])
    names = [
        f"{'- ' * max(level - 1, 0)}{label(word(part, language, 'compared').replace('_', ' '))}"
        for part, level in rows.select("part", "level").iter_rows()
    ]
    said = [
        [
            part,
            signed(difference),
            times(factor),
            word(verdict, language, "verdict"),
        ]
        for part, difference, factor, verdict in rows.select(
            "part", "difference_ns", "change_factor", "verdict"
        ).iter_rows()
    ]
    traces: list[dict[str, Any]] = []
    for name, side, colour in (("base_ns", 0, GREY), ("new_ns", 1, BLUE)):
        called = side_name(data.facts["sides"][side], language)
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": called,
                "x": unit.of(rows[name]),
                "y": list(range(rows.height)),
                "customdata": said,
                "marker": {"color": colour},
                "hovertemplate": f"%{{y}}<br>{called}: %{{x:.4~g}}{unit.after}<br>%{{customdata[1]}} "
                "%{customdata[2]}<br>%{customdata[3]}<extra></extra>",
                **({"text": [row[1] for row in said], "textposition": "outside", "cliponaxis": False} if side else {}),
            }
        )
    widest = max((value for value in (*traces[0]["x"], *traces[1]["x"]) if value is not None), default=0)
    return {
        "data": traces,
        "layout": {
            "barmode": "group",
            "bargap": 0.3,
            "height": 110 + 34 * rows.height,
            "showlegend": True,
            "xaxis": {
                "title": {"text": f"{word('time', language)} ({unit.name})"},
                "range": [0, *short([widest * 1.15 or 1], 4)],
            },
            "yaxis": {**named_ticks(names), "autorange": "reversed", "showgrid": False},
        },
    }


FIGURE = Figure(
    "compared-parts",
    Text("What one {per} consists of on both sides", "两侧一{per:noun}的组成"),
    Text(
        "The mean {per}, its parts, and parts of these, on both sides; beside the bars stands what the new side takes "
        "longer. Point at a bar to see whether that is more than noise.",
        "两侧平均一{per:noun}、其各部分以及各部分的细分；柱旁是新的一侧多用的时间。指向柱可查看差异是否超出噪声。",
    ),
    ("time_differences",),
    data,
    draw,
    of_pair=True,
    for_pages=True,
)
