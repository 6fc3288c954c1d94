"""From the recorded step to what is left, one mended cause after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.job.improvements import GROUP, LEFT, LINK, RANK, RECORDED, WHAT
from stepscope.analysis.methods.saving_range import TRUSTED_RATIO
from stepscope.errors import Unavailable
from stepscope.figures.axes import ROOM, labels, named_ticks, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.on_cpu import kinds_as_called
from stepscope.figures.style import BLUE, GREEN, GREY
from stepscope.figures.words import WORDS, word
from stepscope.pages.replayed import own_step_ns
from stepscope.present import Language, duration
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

_COLUMNS = (
    column("what", "cause", "What the row is about.", values=WHAT),
    column("name", "name", "Ranks, ends of the link, members of the group."),
    column("kind", "kind", "Kind of work or time.", values=tuple(WORDS)),
    column("saving_ns", "saving", "What mending it makes the mean step shorter.", "int64"),
    column("step_ns", "{step}", "The mean step after it.", "int64"),
)


def data(run: Run) -> Data:
    """The rows of `improvements`."""
    rows = kinds_as_called(run, run.whole.analyse("improvements"))
    if rows.height == 2:
        raise Unavailable("no cause was found whose mending would make steps shorter")
    notes = []
    if abs(rows["error_ratio"][0]) > TRUSTED_RATIO:
        off = f"{abs(rows['error_ratio'][0]):.0%}"
        notes.append(
            Text(
                f"The replay is off by {off}, so these savings are not certain.",
                f"重放与记录相差 {off}，因此这些节省并不确定。",
            )
        )
    if (own := own_step_ns(run, recorded := rows["step_ns"][0])) is not None:
        notes.append(_measured(duration(recorded), duration(own)))
    return Data([Rows(rows, _COLUMNS)], notes)


def _measured(job: str, own: str) -> Text:
    """Why the recorded step differs from the mean step of the verdict."""
    return Text(
        f"A step here is that of the whole job, until the last work on any rank, with the work of hosts: {job} on "
        f"average. A rank's own step, as in the verdict and the tables, takes {own} on average. Findings count what is "
        "lost of that, so one may save less than its bar here.",
        f"这里的一步是整个作业的一步，到任一 rank 的最后一项工作为止，包括主机的工作：平均 {job}。结论和表格中是各 "
        f"rank 自身的一步，平均 {own}。问题按后者计算损失，因此其节省可能少于这里的柱。",
    )


def draw(data: Data, language: Language) -> Spec:
    """Bars from the top: the recorded step, what each cause takes off, what is left."""
    rows = data.main
    unit = unit_of("step_ns", rows["step_ns"])
    whole = rows["step_ns"][0]
    names, bases, lengths, colours, texts = [], [], [], [], []
    for what, name, kind, saving, after in rows.select(one.name for one in _COLUMNS).iter_rows():
        names.append(_named(what, name, kind, language))
        is_end = what in (RECORDED, LEFT)
        bases.append(0 if is_end else after)
        lengths.append(after if is_end else saving)
        colours.append(BLUE if what == RECORDED else GREY if what == LEFT else GREEN)
        share = f"{(after if is_end else saving) / whole:.1%}" if whole else ""
        texts.append(
            duration(after) if what == RECORDED else f"{'' if is_end else '-'}{duration(lengths[-1])} · {share}"
        )
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "base": unit.of(bases),
                "x": unit.of(lengths),
                "y": list(range(len(names))),
                "text": texts,
                "textposition": "outside",
                "cliponaxis": False,
                "marker": {"color": colours},
                "hovertemplate": "%{text}<extra></extra>",
            }
        ],
        "layout": {
            "margin": {"t": 16},
            "height": 90 + 36 * len(names),
            "showlegend": False,
            "xaxis": {
                "title": {"text": f"{word('time', language)} ({unit.name})"},
                "range": [0, whole / unit.factor * ROOM],
            },
            "yaxis": {**named_ticks(labels(names)), "autorange": "reversed", "showgrid": False},
        },
    }


def _named(what: str, name: str | None, kind: str | None, language: Language) -> str:
    """What a bar is about."""
    if what in (RECORDED, LEFT):
        return word(what, language)
    if what == RANK:
        return f"rank {name}: {word(kind or '', language, 'kind')}"
    if what == LINK:
        return f"{word('link', language)} {name}" + (f" ({kind})" if kind else "")
    if what == GROUP:
        return f"{word('group', language)} {name}"
    return word(kind or "", language, "kind")


FIGURE = Figure(
    "savings",
    Text("What mending the causes would save", "消除各原因可节省的时间"),
    Text(
        "From the mean step as recorded: what it would be shorter if slow ranks and links were like others, then "
        "without each kind of time. Each cause has its own part, so that no time is counted twice.",
        "从记录的平均一步开始：先让慢 rank 和慢链路与其他相同，再依次去掉各类时间，可以缩短多少。各原因互不重复计算。",
    ),
    ("improvements",),
    data,
    draw,
)
