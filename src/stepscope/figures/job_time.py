"""What the job's time goes to: bars by part, mean of all ranks and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.job.step_parts import PARTS
from stepscope.figures.axes import ROOM, named_ticks, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.style import COLOURS, PATTERNS
from stepscope.figures.words import word
from stepscope.present import Language, duration
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

_COLUMNS = (
    column("part", "part", "What the time goes to.", values=PARTS),
    column("mean_ns", "mean", "Its mean time in a step, mean of the ranks.", "int64"),
    column("share_ratio", "share", "Share of the mean step.", "float64"),
    column("max_rank", "most on", "Rank with most of it.", "int32"),
    column("max_ns", "most", "How much that is.", "int64"),
)


def data(run: Run) -> Data:
    """The rows of `job_parts`."""
    return Data([Rows(run.analyse("job_parts"), _COLUMNS)])


def draw(data: Data, language: Language) -> Spec:
    """A bar for each part, from the top."""
    rows = data.main
    unit = unit_of("mean_ns", rows["mean_ns"])
    columns = ("part", "mean_ns", "share_ratio", "max_rank", "max_ns")
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "x": unit.of([mean]),
            "y": [place],
            "text": [f"{duration(mean)} · {share:.1%}"],
            "textposition": "outside",
            "cliponaxis": False,
            "marker": {"color": COLOURS[part]} | ({"pattern": {"shape": PATTERNS[part]}} if part in PATTERNS else {}),
            "customdata": [[rank, *unit.of([most])]],
            "hovertemplate": f"%{{text}}<br>max: %{{customdata[1]:.4~g}}{unit.after} (rank %{{customdata[0]}})"
            "<extra></extra>",
        }
        for place, (part, mean, share, rank, most) in enumerate(rows.select(columns).iter_rows())
    ]
    names = [word(part, language) for part in rows["part"]]
    widest = max(rows["mean_ns"], default=1) / unit.factor
    return {
        "data": bars,
        "layout": {
            "margin": {"t": 16},
            "height": 80 + 34 * len(names),
            "barmode": "overlay",
            "showlegend": False,
            "xaxis": {"title": {"text": f"{word('time', language)} ({unit.name})"}, "range": [0, widest * ROOM]},
            "yaxis": {**named_ticks(names), "autorange": "reversed", "showgrid": False},
        },
    }


FIGURE = Figure(
    "job-time",
    Text("What the job's time goes to", "作业的时间用在哪里"),
    Text(
        "The mean step of all ranks by part. Parts add up to the step; communication counts only where no computing "
        "hides it.",
        "所有 rank 平均一步的时间构成，各部分之和等于整步；通信只计未被计算掩盖的部分。",
    ),
    ("job_parts",),
    data,
    draw,
)
