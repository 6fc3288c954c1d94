"""The figures of a run, as Plotly reads them, with the tables behind them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from stepscope.figures import FIGURES, Drawn, Figure
from stepscope.figures.style import THEMES
from stepscope.pages.base import RANKS, STEPS, Kind
from stepscope.present import Language
from stepscope.web.api.calls import JSON, Call, Operation, Place
from stepscope.web.api.content import described_table
from stepscope.web.api.parameters import INT64, LANGUAGE, NUMBERS, Parameter, of_option
from stepscope.web.api.problems import ApiProblem
from stepscope.web.asking import AS_DRAWN

_BY_NAME: Mapping[str, Figure] = {figure.name: figure for figure in FIGURES if not figure.of_pair}

THEME = Parameter("theme", "text", "Colours for a light or a dark page.", "light", choices=THEMES)

_KINDS: Mapping[str, Kind] = {"int": "integer", "float": "number", "bool": "flag"}


def figure_named(name: str, known: Mapping[str, Figure]) -> Figure:
    """The figure of a name.

    Raises:
        ApiProblem: If there is none; the text lists them.
    """
    if name not in known:
        raise ApiProblem("unknown-page", f"there is no figure {name}. There are: {', '.join(known)}")
    return known[name]


def options_of(figure: Figure) -> list[Parameter]:
    """What may be chosen of a figure: the keyword arguments with which it asks for its rows."""
    return [
        found
        for each in figure.options
        if (found := _option(each.name, str(each.annotation), each.default)) is not None
    ]


def _option(name: str, annotation: str, default: Any) -> Parameter | None:
    """An option by its type as it is written; None for what is no plain value."""
    words = name.replace("_", " ")
    about = f"Choose the {words}." + (f" Default: {default}." if default else "")
    if annotation.startswith("Literal["):
        choices = ast.literal_eval(annotation[len("Literal") : annotation.index("]") + 1])
        return Parameter(name, "text", about, default, choices=choices)
    if annotation.startswith("Choice"):
        return Parameter(name, "text", f"{about} Write numbers like 0,3-5 or 7-.", pattern=NUMBERS)
    kind = _KINDS.get(annotation.partition(" ")[0], "text" if "str" in annotation else None)
    return None if kind is None else Parameter(name, kind, about, default, 0 if kind == "integer" else None)


def _parameters(place: Place) -> Sequence[Parameter]:
    own = options_of(figure_named(place["figure"], _BY_NAME))
    return (*own, of_option(RANKS), of_option(STEPS), THEME, LANGUAGE, INT64)


async def _list(call: Call) -> Response:
    call.entry()
    path = f"/runs/{call.run}/figures"
    figures = [
        {**_described(figure, call.language), "links": {"self": call.address(f"{path}/{figure.name}")}}
        for figure in _BY_NAME.values()
    ]
    return await call.kept([call.service.started], lambda: {"figures": figures})


def _described(figure: Figure, language: Language) -> dict[str, Any]:
    return {
        "name": figure.name,
        "title": figure.title.of(language),
        "shows": figure.shows.of(language),
        "needs": list(figure.needs),
        "options": [each.name for each in options_of(figure)],
    }


async def _one(call: Call) -> Response:
    figure, entry = figure_named(call.place["figure"], _BY_NAME), call.entry()
    tag = call.tag(entry.stamp, JSON)
    if (same := call.unchanged(tag)) is not None:
        return same
    asking, values = call.service.asking, call.values
    options = {each.name: values[each.name] for each in options_of(figure) if values[each.name] is not None}
    drawn = await asking.of_figure(
        AS_DRAWN, call.run, figure.name, call.language, options, values["ranks"], values["steps"]
    )
    body = await call.asked(
        call.question(entry.stamp, JSON), lambda: call.encoded(plain_figure(drawn, values["theme"]))
    )
    return call.sent(body, JSON, tag=tag)


def plain_figure(drawn: Drawn, theme: Any) -> dict[str, Any]:
    """A figure for programs: as Plotly reads it, with its tables and notes."""
    return {
        "name": drawn.name,
        "title": drawn.title,
        "shows": drawn.shows,
        "figure": drawn.themed(theme),
        "tables": [described_table(table) for table in drawn.tables],
        "notes": list(drawn.notes),
    }


OPERATIONS = (
    Operation(
        "list_figures",
        "/runs/{run}/figures",
        "List all figures: what they show, and the analyses whose answers they draw.",
        _list,
        (LANGUAGE,),
        subject="Figures",
    ),
    Operation(
        "show_figure",
        "/runs/{run}/figures/{figure}",
        "Draw a figure as Plotly reads it (`data` and `layout`), with its tables and what they rest on.",
        _one,
        _parameters,
        returns={JSON: {"$ref": "#/components/schemas/Figure"}},
        problems=("not-recorded",),
        variants=[{"figure": name} for name in _BY_NAME],
        subject="Figures",
    ),
)
