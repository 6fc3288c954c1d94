"""How long the job would take if some work took another time: causes to tick, changes to type, the answer first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from stepscope.pages.base import Section
from stepscope.texts import Text
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control, controls_of, form
from stepscope.web.ui.figures import FigurePlace, figure_panel
from stepscope.web.ui.html import paragraph, raw, rendered
from stepscope.web.ui.site_map import WebPage, declared
from stepscope.web.ui.state import State
from stepscope.web.ui.tables import Loaded, load_section, show_section

if TYPE_CHECKING:
    import polars as pl

NAME = "what-if"
CHANGES = ("without", "scale", "bandwidth", "ideal")
"""Options of the declared page that change the job."""

JOINED = ";"
"""What stands between several changes of one kind."""

_READS = (*CHANGES, "layout", "steps")

WORDS = {
    "causes": Text("What could be mended", "可以改进之处"),
    "tick": Text("Take it away", "去除它"),
    "untick": Text("Put it back", "恢复它"),
    "what": Text("Cause", "原因"),
    "kind": Text("Kind", "类型"),
    "cost": Text("Costs a step", "每步代价"),
    "range": Text("Between", "介于"),
    "alone": Text("Alone saves", "单独可省"),
    "ideal": Text("All differences between ranks", "各 rank 之间的所有差异"),
    "faster": Text("Communication twice as fast", "通信速度加倍"),
    "no_name": Text("another one each time, so nothing names it", "每次不同，因此无法指定"),
    "choose": Text(
        "Tick causes, or name changes below: the job is replayed with them, and its time stands here.",
        "勾选原因，或在下方指定更改：将据此重放作业，并在此显示其耗时。",
    ),
    "none": Text("No rank or link is clearly slower than its peers.", "没有明显慢于同类的 rank 或链路。"),
    "reset": Text("Take back all changes", "撤销所有更改"),
    "without": Text("Take away (several: ;)", "去除（多个用 ; 分隔）"),
    "scale": Text("Work that takes another time (several: ;)", "改变耗时的工作（多个用 ; 分隔）"),
    "bandwidth": Text("Faster communication (several: ;)", "更快的通信（多个用 ; 分隔）"),
    "how": Text(
        "Name work by one or several, separated by commas, of `rank=0,3-5` `host=NAME` `group=NAME` `stage=N` "
        "`step=10-12` `kind=KIND` `op=PART-OF-A-NAME`, and of communication `link=0-4` (two ranks or hosts), `nic=3` "
        "(a rank or host), `transport=RDMA` and `size=1MB-64MB`. Work that takes another time ends with a factor: "
        "`op=FlashAttention,0.7`. All changes are made together. What can be named in this job stands below.",
        "可用以下一项或多项（以逗号分隔）指定工作：`rank=0,3-5`、`host=名称`、`group=名称`、`stage=N`、`step=10-12`、`kind=类型`、"
        "`op=名称的一部分`；通信还可用 `link=0-4`（两个 rank 或主机）、`nic=3`（rank 或主机）、`transport=RDMA` 和 "
        "`size=1MB-64MB`。改变耗时的工作以系数结尾：`op=FlashAttention,0.7`。所有更改同时生效。此作业中可指定的内容列于下方。",
    ),
    "own_changes": Text("Changes of your own", "自定义更改"),
}


@dataclass(frozen=True)
class Tick:
    """A cause that can be taken away.

    Args:
        label: What it is.
        url: The page with it taken away, or put back; empty if nothing names it.
        is_on: Whether it is taken away.
        cells: What is known of it, as texts: kind, cost, range, saving of it alone.
    """

    label: str
    url: str
    is_on: bool
    cells: Sequence[str] = ()


async def build(context: Context, page: WebPage) -> None:
    """Build the page."""
    of = declared()[NAME]
    steps, names = of.section_named("what_if"), of.section_named("work_names")

    async def answer(state: State) -> Loaded | None:
        if not changes_of(state):
            return None
        return await load_section(context, of, steps, state)

    def job(found: Loaded | None, state: State) -> None:
        _job(context, found, state)

    async def causes(state: State) -> pl.DataFrame:  # noqa: ARG001 - they are those of the job as it is
        from stepscope.pages.what_if import causes as of_run

        return await context.asking.about(context.run, "what-if causes", of_run)

    async def nothing(state: State) -> State:
        return state

    context.panels.add("job-time", answer, job, _READS)
    context.panels.add("causes", causes, lambda found, state: _causes(context, found, state), _READS)
    for place in page.figures:
        figure_panel(context, place)
    context.panels.add("changes", nothing, lambda _, state: _fields(context, state), _READS)
    reads = [*_READS, f"{steps.key}."]
    context.panels.add("steps-with-changes", answer, lambda found, state: _steps(context, steps, found, state), reads)

    async def all_names(state: State) -> Loaded:
        return await load_section(context, of, names, state.changed(dict.fromkeys(CHANGES)))

    context.panels.add(names.key, all_names, lambda found, state: show_section(context, of, names, found, state))


def changes_of(state: State) -> dict[str, str]:
    """The changes that a state makes."""
    return {name: state.get(name) for name in CHANGES if state.get(name)}


def options_of(state: State) -> Mapping[str, Any]:
    """The changes as options of the figure."""
    given: dict[str, Any] = dict(changes_of(state))
    return {**given, "ideal": True} if "ideal" in given else given


def toggled(state: State, words: str) -> str:
    """The URL with a cause taken away, or put back if it is taken away already."""
    return state.changed(without=JOINED.join(_toggled(chosen(state), words))).url


def chosen(state: State) -> list[str]:
    """The causes that a state takes away."""
    return [part.strip() for part in state.get("without").split(JOINED) if part.strip()]


def _toggled(parts: Sequence[str], words: str) -> list[str]:
    return [part for part in parts if part != words] if words in parts else [*parts, words]


def ticks(found: pl.DataFrame, state: State, language: Any) -> list[Tick]:
    """The causes that can be ticked: those that were found, and changes that fit every job."""
    from stepscope.pages.coded_values import in_words
    from stepscope.pages.words import sentence
    from stepscope.present import cell, duration
    from stepscope.tables.base import Column

    taken = chosen(state)
    made = []
    for row in in_words(found, [Column("kind", "string", "")], language).iter_rows(named=True):
        low, high = row["saving_low_ns"], row["saving_high_ns"]
        between = f"{duration(low)} / {duration(high)}" if low is not None and high is not None else "-"
        cells = [str(row["kind"] or "-"), cell("cost_ns", row["cost_ns"]), between, cell("alone_ns", row["alone_ns"])]
        words = row["words"]
        url = toggled(state, words) if words else ""
        made.append(Tick(sentence(row["what"], language), url, bool(words) and words in taken, cells))
    is_ideal = bool(state.get("ideal"))
    made.append(Tick(WORDS["ideal"].of(language), state.changed(ideal=not is_ideal).url, is_ideal))
    faster = state.get("bandwidth") == "2x"
    url = state.changed(bandwidth=None if faster else "2x").url
    made.append(Tick(WORDS["faster"].of(language), url, faster))
    return made


def _job(context: Context, found: Loaded | None, state: State) -> None:
    """What the job takes with the changes, in a sentence."""
    if found is None:
        paragraph(WORDS["choose"].of(context.language), "empty")
        return
    for place, text in enumerate(found.sentences):
        paragraph(text, "note" if place else "job-time")
    if found.reason:
        paragraph(found.reason, "empty")
    url = state.changed(dict.fromkeys(CHANGES)).url
    raw(Markup('<p><a href="{}" data-go>{}</a></p>').format(url, WORDS["reset"].of(context.language)))


def _steps(context: Context, section: Section, found: Loaded | None, state: State) -> None:
    """Each step with the changes; the sentence about them stands above."""
    if found is not None and not found.reason:
        show_section(context, declared()[NAME], section, replace(found, sentences=()), state)


def _causes(context: Context, found: pl.DataFrame, state: State) -> None:
    said = {key: text.of(context.language) for key, text in WORDS.items()}
    made = ticks(found, state, context.language)
    raw(rendered(context, "what_if.html.j2", "causes", said=said, ticks=made, is_empty=found.is_empty()))


def _fields(context: Context, state: State) -> None:
    of = declared()[NAME]
    labels = {name: WORDS[name].of(context.language) for name in ("without", "scale", "bandwidth")}
    controls = [
        Control(each.name, labels.get(each.name, each.label), each.kind, each.choices, each.help, each.placeholder)
        for each in controls_of(of, context)
        if each.name != "ideal"
    ]
    raw(Markup("<h2>{}</h2>").format(WORDS["own_changes"].of(context.language)))
    raw(form(context, state, controls))
    paragraph(WORDS["how"].of(context.language), "note")


PAGES_HERE: tuple[WebPage, ...] = (
    WebPage(
        NAME,
        Text("What if", "假设分析"),
        "run",
        about=Text(
            "The time of the job if some work took another time, from a replay of the recording with all dependencies "
            "between its ranks.",
            "若某些工作的耗时改变，作业的耗时会是多少：根据各 rank 之间的依赖重放记录得出。",
        ),
        figures=(FigurePlace("what-if", options=options_of, reads=CHANGES),),
        build=build,
    ),
)
