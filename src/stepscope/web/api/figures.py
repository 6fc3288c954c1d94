"""The figures of a run, as Plotly reads them, with the tables behind them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from stepscope.figures import FIGURES, Drawn, Figure
from stepscope.figures.style import THEMES
from stepscope.pages.base import RANKS, STEPS
from stepscope.present import Language
from stepscope.web.api.calls import JSON, Call, Operation, Place
from stepscope.web.api.content import described_table
from stepscope.web.api.parameters import INT64, LANGUAGE, Parameter, of_option
from stepscope.web.api.problems import ApiProblem

_BY_NAME: Mapping[str, Figure] = {figure.name: figure for figure in FIGURES if not figure.of_pair}

_THEME = Parameter("theme", "text", "Colours for a light or a dark page.", "light", choices=THEMES)

_KINDS = {int: "integer", float: "number", str: "text", bool: "flag"}


def figure_named(name: str) -> Figure:
    """The figure of a name.

    Raises:
        ApiProblem: If there is none; the text lists them.
    """
    if name not in _BY_NAME:
        raise ApiProblem("unknown-page", f"there is no figure {name}. There are: {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def _options(figure: Figure) -> list[Parameter]:
    """What may be chosen of a figure: the keyword arguments with which it asks for its rows."""
    found = []
    for each in list(inspect.signature(figure.data, eval_str=False).parameters.values())[1:]:
        kind = next((kind for known, kind in _KINDS.items() if str(each.annotation).startswith(known.__name__)), None)
        if kind is None:
            continue
        words = each.name.replace("_", " ")
        text = f"Choose the {words}." if each.default is None else f"Choose the {words}. Default: {each.default}."
        found.append(Parameter(each.name, kind, text, each.default, 0 if kind == "integer" else None))  # type: ignore[arg-type]
    return found


def _parameters(place: Place) -> Sequence[Parameter]:
    own = _options(figure_named(place["figure"]))
    return (*own, of_option(RANKS), of_option(STEPS), _THEME, LANGUAGE, INT64)


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
        "options": [each.name for each in _options(figure)],
    }


async def _one(call: Call) -> Response:
    figure, entry = figure_named(call.place["figure"]), call.entry()
    tag = call.tag(entry.stamp, JSON)
    if (same := call.unchanged(tag)) is not None:
        return same
    asking, values = call.service.asking, call.values
    options = {each.name: values[each.name] for each in _options(figure) if values[each.name] is not None}
    drawn = await asking.figure(call.run, figure.name, call.language, options, values["ranks"], values["steps"])
    body = await asking.ask(call.question(entry.stamp, JSON), lambda: call.encoded(_plain(drawn, values["theme"])))
    return call.sent(body, JSON, tag=tag)


def _plain(drawn: Drawn, theme: Any) -> dict[str, Any]:
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
