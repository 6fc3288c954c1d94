"""Two runs compared, or two ranks or parts of one: what got slower, by how much, and whether that is noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nicegui import ui

from stepscope.present import minute
from stepscope.texts import Text
from stepscope.web.addresses import run_path
from stepscope.web.asking import hashable
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Choice, Control, control_of, form, select
from stepscope.web.ui.figures import FigurePlace, Point, figure_panel
from stepscope.web.ui.frame import frame
from stepscope.web.ui.html import paragraph, raw, rendered
from stepscope.web.ui.state import State
from stepscope.web.ui.subjects import SIDES, OfPair
from stepscope.web.ui.tables import section_panel
from stepscope.web.ui.wording import worded

if TYPE_CHECKING:
    from stepscope.pages.answering import Answered
    from stepscope.web.catalogue import Entry

MOST_CHOICES = 500
"""Runs that a field lists, the newest ones; others are ticked in the list of runs."""

PATH = "/compare"

BASE, NEW = Text("Base: compare with", "基准：与其比对"), Text("New: what is judged", "新：被评判的一侧")
NO_RUN = Text("choose a run", "请选择运行")
SAME = Text("the same run", "同一运行")
HOW = Text(
    "Choose two runs: the new one is measured against the base. Or choose one run only, to compare its slowest rank "
    "with a typical one, or any ranks or steps of it: give those of the base and of the new side.",
    "请选择两个运行：新的一侧相对于基准进行度量。也可只选一个运行，比对其最慢的 rank 与典型 rank，或分别给出基准与新的"
    "一侧的 rank 或步。",
)
WAY, USUAL = Text("Compare kernels by", "比对 kernel 的依据"), Text("what they have in common", "两侧的共同之处")
SWAP = Text("Swap sides", "互换两侧")

LISTS = (
    ("kernels", "kernel_differences", Text("kernels", "kernel")),
    ("operators", "operator_differences", Text("operators", "算子")),
    ("modules", "module_differences", Text("modules", "模块")),
    ("communication", "communication_differences", Text("communication", "通信")),
    ("apis", "api_differences", Text("calls on the host", "主机调用")),
)
"""What the figure of differences shows one of: its name, the section with its rows, and its title."""


async def _lists(context: Context, _: State) -> Sequence[Control]:
    return [select("compared-operators.of", WHAT, context, ("", FIRST), *((name, title) for name, _, title in LISTS))]


def _of_name(context: Context, point: Point) -> str | None:
    """The rows of a name, at a click on its bar."""
    place = point.get("customdata")
    if not isinstance(place, (list, tuple)) or not place:
        return None
    chosen = context.state.get("compared-operators.of") or LISTS[0][0]
    section = next((section for name, section, _ in LISTS if name == chosen), LISTS[0][1])
    return f"{context.state.changed({f'{section}.search': place[0], f'{section}.page': None}).url}#{section}"


WHAT, FIRST = Text("Compare", "比对"), Text("the first that is known", "首个已知的")

FIGURES = (
    FigurePlace("compared-parts", reads=("steps", "base_steps", "base_ranks")),
    FigurePlace(
        "compared-operators",
        controls=_lists,
        options=lambda state: {"by": state.get("by") or None},
        click=_of_name,
        reads=("steps", "base_steps", "base_ranks", "by"),
    ),
)


@dataclass(frozen=True)
class Opening:
    """What comes first: the sentences, and the two runs."""

    sentences: Sequence[str]
    base: Entry
    new: Entry


async def build(context: Context) -> None:
    """Build the comparison that the URL asks for."""
    from stepscope.pages.compare import PAGE

    pair = OfPair(context)

    async def load(state: State) -> Opening:
        runs = pair.runs(state)
        stamps = context.asking.stamps(runs)
        answered = await pair.whole(state)
        key = ("opening", stamps, hashable(answered.request), context.language)
        sentences = await context.asking.ask(key, lambda: _sentences(context, answered), runs)
        base, new = (context.web.catalogue.entry(run) for run in runs)
        return Opening(sentences, base, new)

    with frame(context, context.word("compare")):
        _fields(context)
        if not any(context.state.get(side) for side in SIDES):
            paragraph(HOW.of(context.language), "empty")
        else:
            reads = [*SIDES, "ranks", "steps", *(option.name for option in PAGE.options)]
            context.panels.add("opening", load, lambda found, state: _opening(context, found, state), reads)
            for place in FIGURES:
                figure_panel(context, place, pair)
            for section in PAGE.sections:
                if section.heading:
                    section_panel(context, PAGE, section, subject=pair)
    context.panels.listen()
    await context.panels.fill()


def _fields(context: Context) -> None:
    """The two runs, and which ranks and steps of them; with the first run chosen, the page is built anew."""
    holder = ui.element("div").classes("page-fields")
    is_empty = not any(context.state.get(side) for side in SIDES)

    def show(state: State) -> None:
        if is_empty and any(state.get(side) for side in SIDES):
            ui.navigate.to(state.url)
            return
        holder.clear()
        with holder:
            raw(form(context, state, controls(context, state)))

    show(context.state)
    context.panels.follow(show)


def controls(context: Context, state: State) -> list[Control]:
    """The fields: both runs, then what both sides may be limited to."""
    from stepscope.pages.base import RANKS, STEPS
    from stepscope.pages.compare import PAGE

    language = context.language
    entries = [one for one in context.web.catalogue.entries() if one.ranks][:MOST_CHOICES]
    runs = [Choice(one.id, _called(one)) for one in entries]
    options = {option.name: option for option in (RANKS, STEPS, *PAGE.options)}
    of_sides = {"base": ("base_ranks", "base_steps"), "new": ("ranks", "steps")}
    fields: list[Control] = []
    for (side, chosen), label in zip(of_sides.items(), (BASE, NEW), strict=True):
        other = state.get("new" if side == "base" else "base")
        first = Choice("", (SAME if other else NO_RUN).of(language))
        fields.append(Control(side, label.of(language), "select", [first, *runs]))
        fields += [control_of(options.pop(name), context) for name in chosen]
    return [*fields, *(_way(control_of(option, context), context) for option in options.values())]


def _way(control: Control, context: Context) -> Control:
    """The field for what tells kernels apart, with its values."""
    from stepscope.compare.kernels import BY
    from stepscope.pages.words import said

    if control.name != "by":
        return control
    language = context.language
    ways = [Choice("", USUAL.of(language)), *(Choice(way, said(way, language)) for way in BY)]
    return replace(control, label=WAY.of(language), kind="select", choices=ways)


def _called(entry: Entry) -> str:
    when = minute(entry.start_ns) or minute(entry.changed_ns)
    return f"{entry.name} ({when} UTC)" if when else entry.name


def _sentences(context: Context, answered: Answered) -> list[str]:
    from stepscope.pages.answering import opening_of

    return [worded(text, context.language) for text in opening_of(answered)]


def _opening(context: Context, found: Opening, state: State) -> None:
    swapped = {"base": found.new.id, "new": found.base.id}
    for of_new, of_base in (("ranks", "base_ranks"), ("steps", "base_steps")):
        swapped |= {of_new: state.get(of_base), of_base: state.get(of_new)}
    sides = [
        (name.of(context.language), entry.name, state.elsewhere(run_path(entry.id)).url)
        for name, entry in ((_BASE, found.base), (_NEW, found.new))
    ]
    raw(
        rendered(
            context,
            "compare.html.j2",
            "opening",
            sentences=found.sentences,
            sides=sides,
            swapped=state.changed(swapped).url,
            swap=SWAP.of(context.language),
        )
    )


_BASE, _NEW = Text("Base", "基准"), Text("New", "新")
