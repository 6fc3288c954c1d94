"""The tables of a run: what there is, a part of one at a time, or a whole one as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from starlette.responses import Response

from stepscope.errors import Unavailable
from stepscope.export.run_tables import table_of
from stepscope.pages.base import RANKS, STEPS
from stepscope.present import plural
from stepscope.run import Run
from stepscope.tables import TABLES
from stepscope.web.api.calls import JSON, Call, Operation, Place
from stepscope.web.api.content import described
from stepscope.web.api.files import CSV, FORMAT, PARQUET, file_name, format_of, table_file
from stepscope.web.api.listings import PAGE, TOP, TOP_ROWS, paging
from stepscope.web.api.pages import TABLE_ANSWER
from stepscope.web.api.parameters import INT64, Parameter, of_option
from stepscope.web.api.problems import ApiProblem, BadRequest

COLUMNS = Parameter("columns", "text", "Only these columns, separated by commas. Default: all.", longest=4_000)


async def _list(call: Call) -> Response:
    entry, catalogue = call.entry(), call.service.catalogue
    path = f"/runs/{call.run}/tables"

    def compute() -> dict[str, Any]:
        coverage = catalogue.open(entry.id).coverage()
        tables = [
            {
                "name": name,
                "meaning": table.doc,
                "key": list(table.key or ()),
                "rows": int(coverage[name].sum()),
                "ranks": int((coverage[name] > 0).sum()),
                "columns": described(table.columns),
                "links": {"self": call.address(f"{path}/{name}")},
            }
            for name, table in TABLES.items()
        ]
        return {"tables": tables}

    return await call.kept([entry.stamp], compute)


async def _one(call: Call) -> Response:
    name, entry = call.place["table"], call.entry()
    if name not in TABLES:
        raise ApiProblem("unknown-page", f"there is no table {name}. There are: {', '.join(TABLES)}")
    columns = _columns(name, call.values["columns"])
    form = format_of(call)
    tag = call.tag(entry.stamp, form)
    if (same := call.unchanged(tag)) is not None:
        return same
    values = call.values

    def rows() -> tuple[Run, pl.LazyFrame]:
        run = call.service.catalogue.open(entry.id).select(values["ranks"], values["steps"])
        found = table_of(run, name)
        if found is None:
            raise Unavailable(run.missing(name) or f"no rank has the table {name}", table=name)
        return run, found.select(columns)

    if form != "json":
        whole = (await call.apart(rows))[1]
        if values["top"] is not None:
            whole = whole.slice((values["page"] - 1) * values["top"], values["top"])
        elif values["page"] != 1:
            raise BadRequest("page: a whole table has one page; give top as well")
        return await table_file(call, form, file_name(call.run, name), [entry.stamp], whole, tag)

    def content() -> bytes:
        run, found = rows()
        top, page = values["top"] or TOP_ROWS, values["page"]
        total = int(found.select(pl.len()).collect().item())
        pages = max(1, -(-total // top))
        if page > pages:
            there = "is 1 page" if pages == 1 else f"are {pages} pages"
            raise BadRequest(f"there is no page {page}: there {there} for {plural(total, 'row')}")
        part = found.slice((page - 1) * top, top).collect()
        return call.encoded(
            {
                "run": run.name,
                "ranks": [rank.rank for rank in run.ranks],
                "steps": values["steps"],
                "rows": {name: total},
                "tables": {name: part},
                "columns": {name: described(each for each in TABLES[name].columns if each.name in columns)},
                **paging(call, total),
            }
        )

    return call.sent(await call.asked(call.question(entry.stamp, form), content), JSON, tag=tag)


def _columns(table: str, chosen: str | None) -> list[str]:
    """The chosen columns of a table.

    Raises:
        ApiProblem: If there is none of that name.
    """
    known = [column.name for column in TABLES[table].columns]
    if chosen is None:
        return known
    wanted = list(dict.fromkeys(name.strip() for name in chosen.split(",")))
    if unknown := [name for name in wanted if name not in known]:
        raise ApiProblem("unknown-column", f"there is no column {unknown[0]!r}. Columns: {', '.join(known)}")
    return wanted


def _names(_: Place) -> Mapping[str, Sequence[str]]:
    return {"table": list(TABLES)}


OPERATIONS = (
    Operation(
        "list_tables",
        "/runs/{run}/tables",
        "List the tables of a run with all columns: the schema of queries. Times are in ns.",
        _list,
        subject="Tables",
    ),
    Operation(
        "show_rows",
        "/runs/{run}/tables/{table}",
        "Show rows of a table as they were recorded, or all of them as a file.",
        _one,
        (of_option(RANKS), of_option(STEPS), COLUMNS, TOP, PAGE, FORMAT, INT64),
        returns={JSON: TABLE_ANSWER, CSV: {"type": "string"}, PARQUET: {"type": "string", "format": "binary"}},
        problems=("unknown-column", "not-recorded"),
        names=_names,
        subject="Tables",
    ),
)
