"""Two runs compared, or one run with a part of itself: the page that `stepscope compare` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from stepscope.compare import Pair
from stepscope.figures import FIGURES, Figure
from stepscope.pages.answering import Answered, Request
from stepscope.pages.base import BASE_RANKS, BASE_STEPS, RANKS, STEPS, Section
from stepscope.pages.compare import PAGE
from stepscope.web.api.calls import JSON, LONGEST_NAME, Call, Operation, Place
from stepscope.web.api.figures import THEME, figure_named, options_of, plain_figure
from stepscope.web.api.files import CSV, PARQUET
from stepscope.web.api.pages import PAGE_ANSWER, ROW_PROBLEMS, TABLE_ANSWER, page_parameters, section_named, sent
from stepscope.web.api.parameters import INT64, LANGUAGE, Parameter, of_option

_SIDES = (
    Parameter("base", "text", "Id of the run to compare with.", longest=LONGEST_NAME, required=True),
    Parameter(
        "new",
        "text",
        "Id of the run that is judged. Default: the base, of which other ranks or steps are compared.",
        longest=LONGEST_NAME,
    ),
)


async def _page(call: Call) -> Response:
    return await _sent(call, None)


async def _table(call: Call) -> Response:
    return await _sent(call, section_named(PAGE, call.place["table"]))


async def _sent(call: Call, section: Section | None) -> Response:
    base, new = call.values["base"], call.values["new"] or call.values["base"]
    stamps = [call.entry(each).stamp for each in (base, new)]

    async def answers(request: Request) -> Answered:
        return await call.service.asking.pair(base, new, PAGE, request)

    return await sent(call, PAGE, stamps, answers, section)


_FIGURES: Mapping[str, Figure] = {figure.name: figure for figure in FIGURES if figure.of_pair}
_CHOOSING = (RANKS, STEPS, BASE_RANKS, BASE_STEPS)


async def _figure(call: Call) -> Response:
    figure, values = figure_named(call.place["figure"], _FIGURES), call.values
    base, new = values["base"], values["new"] or values["base"]
    stamps = [call.entry(each).stamp for each in (base, new)]
    chosen = {option.name: values[option.name] for option in _CHOOSING}
    options = {each.name: values[each.name] for each in options_of(figure) if values[each.name] is not None}
    catalogue = call.service.catalogue

    def draw() -> dict[str, Any]:
        pair = Pair(catalogue.open(base), catalogue.open(new)).select(**chosen)
        return plain_figure(figure.drawn(pair, language=call.language, **options), values["theme"])

    return await call.kept(stamps, draw)


def _figure_parameters(place: Place) -> Sequence[Parameter]:
    own = options_of(figure_named(place["figure"], _FIGURES))
    return (*_SIDES, *own, *(of_option(option) for option in _CHOOSING), THEME, LANGUAGE, INT64)


def _parameters(place: Place) -> Sequence[Parameter]:
    return (*_SIDES, *page_parameters(PAGE, one_table="table" in place))


def _tables(_: Place) -> Mapping[str, Sequence[str]]:
    return {"table": PAGE.keys}


OPERATIONS = (
    Operation(
        "compare_runs",
        "/compare",
        "Compare two runs: what differs, whether that is more than noise, and the first rows of each table.",
        _page,
        _parameters,
        returns={JSON: PAGE_ANSWER},
        problems=ROW_PROBLEMS,
        subject="Comparisons",
    ),
    Operation(
        "compare_table",
        "/compare/{table}",
        "Show one table of a comparison: rows that are searched, filtered, sorted and paged, or all of them as a file.",
        _table,
        _parameters,
        returns={JSON: TABLE_ANSWER, CSV: {"type": "string"}, PARQUET: {"type": "string", "format": "binary"}},
        problems=ROW_PROBLEMS,
        names=_tables,
        subject="Comparisons",
    ),
    Operation(
        "compare_figure",
        "/compare/figures/{figure}",
        "Draw a figure of a comparison as Plotly reads it, with its tables and what they rest on.",
        _figure,
        _figure_parameters,
        returns={JSON: {"$ref": "#/components/schemas/Figure"}},
        problems=("not-recorded",),
        variants=[{"figure": name} for name in _FIGURES],
        subject="Comparisons",
    ),
)
