"""Queries in SQL over the tables of a run: the schema beside them, the answer as a table and as a chart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicegui import ui

from stepscope.errors import StepscopeError
from stepscope.texts import Text
from stepscope.web.addresses import PREFIX, run_path
from stepscope.web.asking import hashable
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Choice, Control, form
from stepscope.web.ui.html import paragraph, raw, rendered
from stepscope.web.ui.site_map import WebPage
from stepscope.web.ui.state import LONGEST_VALUE, State

if TYPE_CHECKING:
    import polars as pl

    from stepscope.pages.listing import Part
    from stepscope.tables.base import Table

ROWS = 50
"""Rows of an answer on a page."""

MOST_POINTS = 5_000
"""Rows that a chart draws; more are for a download."""

MOST_SERIES = 12
"""Series of a chart; a reader tells no more colours apart."""

LONGEST_NS = 10**15
"""Longer times, eleven days, are no durations of a recording, but moments."""

KINDS = ("line", "bar", "scatter")

WORDS = {
    "sql": Text("Query (SQL)", "查询（SQL）"),
    "run": Text("Run", "运行"),
    "keys": Text("Ctrl+Enter runs it", "按 Ctrl+Enter 运行"),
    "tables": Text("Tables of this run", "此运行的数据表"),
    "none": Text("not recorded", "未记录"),
    "rows": Text("{count} rows", "{count} 行"),
    "examples": Text("Examples", "示例"),
    "insert": Text("Put this name into the query", "将此名称填入查询"),
    "first": Text("First rows", "前几行"),
    "start": Text(
        "Write a SELECT over the tables beside, or choose an example. Queries read the tables of this run and nothing "
        "else: no file, no address, no other run.",
        "请针对旁边的数据表编写 SELECT，或选择一个示例。查询只能读取此运行的数据表：不能读取文件、地址或其他运行。",
    ),
    "download": Text("Download all rows", "下载所有行"),
    "chart": Text("Chart", "图表"),
    "no_chart": Text("none", "无"),
    "line": Text("Line", "折线"),
    "bar": Text("Bars", "柱形"),
    "scatter": Text("Points", "散点"),
    "x": Text("Across (x)", "横轴（x）"),
    "y": Text("Up (y)", "纵轴（y）"),
    "by": Text("Colour", "颜色"),
    "empty": Text("The answer has no rows.", "结果没有任何行。"),
    "first_points": Text("The first {most} of {count} rows are drawn.", "共 {count} 行，只绘制前 {most} 行。"),
    "first_series": Text(
        "The first {most} of {count} values of {name} are drawn.", "{name} 共 {count} 个值，只绘制前 {most} 个。"
    ),
    "no_numbers": Text("The chart needs a column of numbers for y.", "图表的纵轴需要数值列。"),
    "result": Text("Answer", "结果"),
}

EXAMPLES: Sequence[tuple[tuple[str, ...], Text, str]] = (
    (
        ("kernels",),
        Text("Kernels that take longest", "耗时最长的内核"),
        "SELECT name, COUNT(*) AS calls, SUM(duration_ns) AS total_ns\nFROM kernels\nGROUP BY name\n"
        "ORDER BY total_ns DESC\nLIMIT 20",
    ),
    (
        ("steps",),
        Text("Length of each step of each rank", "每个 rank 每一步的耗时"),
        "SELECT rank, step, end_ns - start_ns AS step_ns\nFROM steps\nORDER BY rank, step",
    ),
    (
        ("collectives",),
        Text("Communication by operation and rank", "按操作和 rank 统计通信"),
        "SELECT rank, operation, COUNT(*) AS calls, SUM(duration_ns) AS total_ns\nFROM collectives\n"
        "GROUP BY rank, operation\nORDER BY rank, total_ns DESC",
    ),
    ((), Text("The tables", "数据表"), "SHOW TABLES"),
)
"""What a query may look like: the tables that it needs, a title, the query."""


@dataclass(frozen=True)
class Known:
    """A table of a run."""

    table: Table
    rows: int


async def build(context: Context, page: WebPage) -> None:  # noqa: ARG001 - as all pages are built
    """Build the page."""

    async def schema(_: State) -> list[Known]:
        return await context.asking.about(context.run, "schema", known_tables)

    async def answer(state: State) -> Part | None:
        return await _part(context, state)

    async def drawn(state: State) -> pl.DataFrame | None:
        if not state.get("sql"):
            return None
        try:
            return await context.asking.query(context.run, state.get("sql"))
        except StepscopeError:
            return None  # the table beside says why

    with ui.element("div").classes("query"):
        with ui.element("div").classes("query-main"):
            _editor(context)
            context.panels.add("result", answer, lambda part, state: _result(context, part, state), ("sql",))
            context.panels.add("chart", drawn, lambda rows, state: _chart(context, rows, state), ("sql",))
        with ui.element("div").classes("query-schema"):
            context.panels.add("schema", schema, lambda found, _: _schema(context, found), ())


def known_tables(run: Any) -> list[Known]:
    """The tables of a run with rows, the largest first; then those without."""
    from stepscope.tables import TABLES

    coverage = run.coverage()
    found = [Known(table, int(coverage[name].sum())) for name, table in TABLES.items()]
    return sorted(found, key=lambda known: (-min(known.rows, 1), known.table.name))


async def _part(context: Context, state: State) -> Part | None:
    """The rows of the answer that a state shows; None if it asks nothing.

    Raises:
        StepscopeError: If the query is none, or takes too long.
    """
    from stepscope.pages.listing import listed

    sql = state.get("sql")
    if not sql:
        return None
    runs = (context.run,)
    stamps = context.asking.stamps(runs)
    found = await context.asking.query(context.run, sql)
    listing = state.listing("result", ROWS)
    return await context.asking.ask(
        ("query part", stamps, sql, hashable(listing)), lambda: listed(found, listing), runs
    )


def _editor(context: Context) -> None:
    holder = ui.element("div")

    def show(_: object = None) -> None:
        holder.clear()
        with holder:
            hidden = [(name, value) for name, value in context.state.params.items() if _stays(name)]
            raw(
                rendered(
                    context,
                    "query.html.j2",
                    "editor",
                    said=_said(context),
                    sql=context.state.get("sql"),
                    hidden=hidden,
                    longest=LONGEST_VALUE,
                )
            )

    show()
    context.panels.follow(show)


def _stays(name: str) -> bool:
    """Whether a value still means something for another query."""
    return name != "sql" and not name.startswith(("result.", "chart."))


def asking(state: State, sql: str) -> str:
    """The URL of the page with another query."""
    kept = {name: None for name in state.params if not _stays(name)}
    return state.changed({**kept, "sql": sql}).url


def _said(context: Context) -> Mapping[str, str]:
    return {key: text.of(context.language) for key, text in WORDS.items()}


def _schema(context: Context, found: Sequence[Known]) -> None:
    having = {known.table.name for known in found if known.rows}
    examples = [
        (title.of(context.language), asking(context.state, sql))
        for needs, title, sql in EXAMPLES
        if having.issuperset(needs)
    ]
    tables = [
        {
            "name": known.table.name,
            "doc": _doc(known.table.doc, context),
            "rows": WORDS["rows"].of(context.language).format(count=f"{known.rows:,}") if known.rows else "",
            "url": asking(context.state, f"SELECT *\nFROM {known.table.name}\nLIMIT 100"),
            "columns": [
                {"name": column.name, "type": column.dtype, "doc": _doc(column.full_doc, context), "unit": column.unit}
                for column in known.table.columns
            ],
        }
        for known in found
    ]
    raw(rendered(context, "query.html.j2", "schema", said=_said(context), tables=tables, examples=examples))


def _doc(text: str, context: Context) -> str:
    from stepscope.pages.words import said

    return said(text, context.language)


def _result(context: Context, part: Part | None, state: State) -> None:
    from stepscope.pages.shown_table import ShownTable
    from stepscope.tables.base import Column
    from stepscope.web.ui.tables import table_markup

    if part is None:
        paragraph(WORDS["start"].of(context.language), "empty")
        return
    if part.found == 0:
        paragraph(WORDS["empty"].of(context.language), "empty")
    rows, name = with_moments(part.rows), WORDS["result"].of(context.language)
    columns = [Column(each, "string", "", title=each) for each in rows.columns]  # as SQL names them
    shown = ShownTable(name, columns, rows, name=name, found=part.found)
    raw(table_markup(context, shown, "result", ROWS, state, [], is_declared=False))
    posts = [
        {
            "title": name,
            "url": f"{PREFIX}{run_path(context.run)}/query?format={name.lower()}",
            "body": json.dumps({"sql": state.get("sql")}),
            "file": f"{context.run}-query.{name.lower()}",
        }
        for name in ("CSV", "Parquet")
    ]
    raw(rendered(context, "query.html.j2", "downloads", said=_said(context), posts=posts))


def with_moments(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with moments as the numbers that they are: as durations since 1970 nobody can use them."""
    import polars as pl

    times = [name for name, dtype in rows.schema.items() if name.endswith("_ns") and dtype.is_integer()]
    names = [name for name in times if (most := rows[name].max()) is not None and int(most) > LONGEST_NS]  # type: ignore[arg-type]
    return rows.with_columns(pl.col(names).cast(pl.String)) if names else rows


def _chart(context: Context, rows: pl.DataFrame | None, state: State) -> None:
    if rows is None or rows.is_empty():
        return
    said = _said(context)
    raw(form(context, state, chart_controls(rows, said)))
    kind = state.get("chart.kind")
    if kind not in KINDS:
        return
    spec, notes = chart(rows, kind, state.get("chart.x"), state.get("chart.y"), state.get("chart.by"), said)
    if spec is not None:
        from stepscope.web.ui.figures import on_page

        with ui.element("figure").classes("drawn").props('id="drawn-query"'):
            plot = ui.plotly(on_page(context, spec["data"], spec["layout"]))
            plot.classes("plot").props(f'role="img" aria-label="{said["chart"]}"').style("height: 420px")
    for text in notes:
        paragraph(text, "note")


def chart_controls(rows: pl.DataFrame, said: Mapping[str, str]) -> list[Control]:
    """The fields of the chart."""
    plain = [name for name, dtype in rows.schema.items() if not dtype.is_nested()]
    numbers = [name for name in plain if rows.schema[name].is_numeric()]
    x, y = usual_axes(rows)

    def columns(names: Sequence[str], first: str) -> list[Choice]:
        return [Choice(name, name) for name in dict.fromkeys([*([first] if first else []), *names])]

    return [
        Control(
            "chart.kind", said["chart"], "select", [Choice("", said["no_chart"]), *(Choice(k, said[k]) for k in KINDS)]
        ),
        Control("chart.x", said["x"], "select", columns(plain, x)),
        Control("chart.y", said["y"], "select", columns(numbers, y)),
        Control("chart.by", said["by"], "select", [Choice("", said["no_chart"]), *columns(plain, "")]),
    ]


def usual_axes(rows: pl.DataFrame) -> tuple[str, str]:
    """The columns that a chart shows unless others are chosen: the first, and the last with numbers."""
    plain = [name for name, dtype in rows.schema.items() if not dtype.is_nested()]
    numbers = [name for name in plain if rows.schema[name].is_numeric()]
    y = numbers[-1] if numbers else ""
    return next((name for name in plain if name != y), y), y


def chart(
    rows: pl.DataFrame, kind: str, x: str, y: str, by: str, said: Mapping[str, str]
) -> tuple[dict[str, Any] | None, list[str]]:
    """A chart of rows as they are, as Plotly takes it, and what it leaves out.

    Args:
        kind: One of `KINDS`.
        x, y, by: Columns; names that are none stand for the usual ones.
        said: Words of the page.
    """
    usual_x, usual_y = usual_axes(rows)
    x = x if x in rows.columns else usual_x
    y = y if y in rows.columns and rows.schema[y].is_numeric() else usual_y
    if not y:
        return None, [said["no_numbers"]]
    notes = []
    if rows.height > MOST_POINTS:
        notes.append(said["first_points"].format(most=f"{MOST_POINTS:,}", count=f"{rows.height:,}"))
        rows = rows.head(MOST_POINTS)
    series = [("", rows)]
    if by in rows.columns:
        series = [(str(name[0]), part) for name, part in rows.group_by(by, maintain_order=True)]
        if len(series) > MOST_SERIES:
            notes.append(said["first_series"].format(most=MOST_SERIES, count=len(series), name=by))
            series = series[:MOST_SERIES]
    mode = {"line": {"type": "scatter", "mode": "lines"}, "scatter": {"type": "scatter", "mode": "markers"}}
    data = [
        {**mode.get(kind, {"type": "bar"}), "name": name, "x": _plotted(part, x), "y": _plotted(part, y)}
        for name, part in series
    ]
    layout = {
        "xaxis": {"title": {"text": x}, "automargin": True},
        "yaxis": {"title": {"text": y}, "automargin": True},
        "showlegend": len(series) > 1,
        "barmode": "group",
        "margin": {"t": 20},
    }
    return {"data": data, "layout": layout}, notes


def _plotted(rows: pl.DataFrame, name: str) -> list[Any]:
    """Values of a column; a browser shortens long names itself, but not those of operators."""
    return [value[:80] if isinstance(value, str) else value for value in rows[name].to_list()]


PAGES_HERE: tuple[WebPage, ...] = (
    WebPage(
        "query",
        Text("Query", "查询"),
        "run",
        about=Text(
            "SQL over the tables of this run. Times are in nanoseconds, unknown values are NULL.",
            "针对此运行数据表的 SQL。时间单位为纳秒，未知值为 NULL。",
        ),
        build=build,
    ),
)
