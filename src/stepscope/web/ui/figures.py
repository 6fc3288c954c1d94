"""Figures on a page: drawn by Plotly in the browser, with their fields, table, and downloads as pictures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from nicegui import ui
from nicegui.element import Element

from stepscope.errors import StepscopeError, Unavailable
from stepscope.pages.base import STEP, STEPS
from stepscope.web.asking import Made
from stepscope.web.ui.choosing import OF_JOB, OF_RANK
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control, form
from stepscope.web.ui.html import raw, rendered
from stepscope.web.ui.missing import missing_figure
from stepscope.web.ui.panels import Panel
from stepscope.web.ui.state import State
from stepscope.web.ui.subjects import OfRun, Subject
from stepscope.web.ui.tables import plain_table

if TYPE_CHECKING:
    from markupsafe import Markup
    from nicegui.events import GenericEventArguments

    from stepscope.figures import Drawn

Point = Mapping[str, Any]
"""What was clicked: `x`, `y`, `label`, `trace` (its name), `customdata`, `index` and `curve`."""

CONFIG = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "toImage"],
}

_CLICKED = """(event) => {
  const point = event.points && event.points[0];
  if (!point) return;
  emit({x: point.x, y: point.y, label: point.label, trace: point.data && point.data.name, index: point.pointNumber,
        curve: point.curveNumber, customdata: point.customdata});
}"""
"""Only what was clicked goes to the server, not the whole trace."""

PICTURES = ("png", "svg")

TABLE_ROWS = 60
"""Rows of a figure's table on a page; all of them can be downloaded."""


@dataclass(frozen=True)
class OnPage:
    """A figure in the form in which a page shows it, whatever the page's address.

    Args:
        name: Its name.
        title: Its title.
        shows: What it shows.
        spec: What Plotly draws, as JSON.
        height: Its height in pixels.
        below: Its notes, and its tables, folded.
    """

    name: str
    title: str
    shows: str
    spec: str
    height: int
    below: Markup


@dataclass(frozen=True)
class FigurePlace:
    """A figure on a page, and what may be chosen of it.

    Args:
        name: The figure's name.
        controls: Its fields. A field named `{figure}.{option}` sets an option of this figure, any other a parameter of
            the whole page.
        options: Options of the figure that a state gives, besides those of its own fields.
        click: The URL that a click on a point leads to; None if to none.
        reads: Parameters of the page on which it depends.
        by_rank: Whether it is drawn of the one rank that the page is about.
        by_step: Whether it is drawn of the steps that the page is about, as its tables are.
    """

    name: str
    controls: Callable[[Context, State], Awaitable[Sequence[Control]]] | None = None
    options: Callable[[State], Mapping[str, Any]] | None = None
    click: Callable[[Context, Point], str | None] | None = None
    reads: Sequence[str] = field(default_factory=tuple)
    by_rank: bool = False
    by_step: bool = True


def options_of(place: FigurePlace, state: State) -> dict[str, Any]:
    """The options of a figure that a state gives.

    Raises:
        StepscopeError: If one that is a number is given as something else.
    """
    start = f"{place.name}."
    own = {name.removeprefix(start): value for name, value in state.params.items() if name.startswith(start)}
    kinds = _kinds(place.name)
    if unknown := [name for name in own if name not in kinds]:
        raise StepscopeError(f"figure {place.name} has no option {unknown[0][:100]}. There are: {', '.join(kinds)}")
    numbers = {name for name, kind in kinds.items() if kind.partition(" ")[0] == "int"}
    if wrong := next((name for name in own if name in numbers and not _is_whole(own[name])), ""):
        raise StepscopeError(f"{wrong} {own[wrong][:100]}: give a whole number")
    given: dict[str, Any] = {name: int(value) if name in numbers else value for name, value in own.items()}
    return {**(place.options(state) if place.options else {}), **given}


@cache
def _kinds(figure: str) -> dict[str, str]:
    """The options of a figure, with their types as they are written."""
    from stepscope.figures import figure_named

    return {option.name: str(option.annotation) for option in figure_named(figure).options}


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 19


def figure_panel(
    context: Context, place: FigurePlace, subject: Subject | None = None
) -> Panel[tuple[OnPage, Sequence[Control]] | Unavailable]:
    """A panel with a figure.

    Args:
        subject: Whom it shows. Default: the run of the page.
    """
    asked, made = subject or OfRun(context), for_page(context)

    async def load(state: State) -> tuple[OnPage, Sequence[Control]] | Unavailable:
        options = options_of(place, state)
        try:
            figure, controls = await asyncio.gather(
                asked.of_figure(made, place.name, options, state, by_rank=place.by_rank, by_step=place.by_step),
                _controls(context, place, state),
            )
        except Unavailable as reason:
            return reason
        return figure, controls

    def show(loaded: tuple[OnPage, Sequence[Control]] | Unavailable, state: State) -> None:
        if isinstance(loaded, Unavailable):
            raw(missing_figure(context, place.name, loaded))
            return
        figure, controls = loaded
        clicked = partial(place.click, context) if place.click else None
        show_figure(context, figure, state, controls, clicked)

    steps = STEP if place.by_rank else STEPS
    chosen = [*(OF_RANK if place.by_rank else OF_JOB), *((steps.name,) if place.by_step else ())]
    return context.panels.add(
        f"figure-{place.name}", load, show, reads=[*chosen, *asked.reads, f"{place.name}.", *place.reads]
    )


async def _controls(context: Context, place: FigurePlace, state: State) -> Sequence[Control]:
    return await place.controls(context, state) if place.controls else ()


def show_figure(
    context: Context,
    figure: OnPage,
    state: State,
    controls: Sequence[Control] = (),
    clicked: Callable[[Point], str | None] | None = None,
) -> None:
    """A figure with its heading, fields, notes, table and downloads."""
    with ui.element("figure").classes("drawn") as whole:
        whole.props["id"] = f"drawn-{figure.name}"
        raw(_head(context, figure, form(context, state, controls)))
        plot = Plot(figure.spec)
        plot.classes("plot").style(f"height: {figure.height}px")
        plot.props["role"], plot.props["aria-label"] = "img", figure.title
        if clicked is not None:
            plot.classes("clickable")
            plot.on("plotly_click", lambda event: _go(event, clicked), js_handler=_CLICKED)
        raw(figure.below)


class Plot(ui.plotly):
    """A figure that Plotly draws.

    Args:
        spec: What it draws, as JSON: NiceGUI would look through each number of it to notice changes.
    """

    def __init__(self, spec: str) -> None:
        self._spec = _inserted(spec)
        super().__init__({})

    def update(self) -> None:
        """See the base class."""
        with self.props.suspend_updates():
            self.props["options"] = self._spec
        Element.update(self)


def _inserted(text: str) -> Any:
    """What becomes this JSON when it is a part of other JSON."""
    try:
        import orjson
    except ImportError:  # NiceGUI does without it on some platforms
        import json

        return json.loads(text)
    return orjson.Fragment(text)


def for_page(context: Context) -> Made[OnPage]:
    """Makes figures for a page in its language and theme."""

    def make(drawn: Drawn) -> OnPage:
        from nicegui import json

        spec = on_page(context, drawn.spec["data"], {**drawn.spec["layout"], "autosize": True})
        below = rendered(
            context,
            "figure.html.j2",
            "below",
            title=drawn.title,
            notes=drawn.notes,
            tables=[
                (
                    plain_table(context, replace(table, rows=table.rows.head(TABLE_ROWS)), f"{drawn.name}-{place}"),
                    table.rows.height - TABLE_ROWS,
                )
                for place, table in enumerate(drawn.tables)
            ],
        )
        height = int(spec["layout"].get("height", 400))
        return OnPage(drawn.name, drawn.title, drawn.shows, json.dumps(spec), height, below)

    return Made(("page", context.theme), make)


def on_page(context: Context, data: Sequence[Any], layout: Mapping[str, Any]) -> dict[str, Any]:
    """A figure as Plotly takes it, in the colours and the language of the page."""
    from stepscope.figures.style import template

    language = {"locale": "zh-CN"} if context.language == "zh" else {}
    theme = template(context.theme, clear=True)
    return {"data": data, "layout": {**layout, "template": theme}, "config": {**CONFIG, **language}}


def _head(context: Context, figure: OnPage, fields: Markup) -> Markup:
    """Title, buttons that save the figure as a picture, which is made in the browser, what it shows, and its fields."""
    name = f"{context.entry.name if context.entry else 'stepscope'}-{figure.name}"
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)[:120]
    return rendered(context, "figure.html.j2", "head", figure=figure, fields=fields, pictures=PICTURES, file=plain)


def _go(event: GenericEventArguments, clicked: Callable[[Point], str | None]) -> None:
    point = event.args if isinstance(event.args, dict) else {}
    url = clicked(point)
    if url is not None:
        ui.run_javascript(f"stepscope.go({_quoted(url)})")


def _quoted(text: str) -> str:
    import json

    return json.dumps(text).replace("<", "\\u003c")
