"""Write docs/tables.md from the definitions of the tables: `python docs/make_tables.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from stepscope.tables import TABLES, Column, Table
from stepscope.tables.base import unit_of
from stepscope.tables.kernels import COUNTERS_OF_SETS, KERNEL_COUNTERS

PAGE = Path(__file__).with_name("tables.md")

INTRODUCTION = """\
# Tables

Every source fills these tables and every analysis reads them; `stepscope sql` queries them and
`run.table("kernels")` returns one as a lazy Polars frame. This page is generated from the definitions in
`src/stepscope/tables/` by `docs/make_tables.py`.

- Names end in their unit: `_ns` (integer nanoseconds), `_bytes`, `_ratio` (0 to 1). Times are since
  the epoch, or since the zero of the trace if it has no other clock.
- Unknown is null; 0 means zero. Only columns of a type with `or null` may be null.
- `rank` is filled when a run is opened. It is not stored, as an input may not have it.
- `step` is the training step as the source numbers it, 0 if the source has no steps, null outside all steps.
- Texts are plain strings; Parquet's dictionary encoding stores each distinct one once.
"""


def page() -> str:
    """The whole page."""
    rows = [f"| [`{t.name}`](#{t.name}) | {t.doc} |" for t in TABLES.values()]
    index = "\n".join(["| table | what a row is |", "|---|---|", *rows])
    return "\n".join([INTRODUCTION, index, *("\n" + section(table) for table in TABLES.values())]) + "\n"


def section(table: Table) -> str:
    """One table: what a row is, its key, its columns."""
    lines = [f"## {table.name}", "", table.doc]
    if table.key is not None:
        lines += ["", f"Key: {', '.join(f'`{name}`' for name in ('rank', *table.key))}."]
    if table is KERNEL_COUNTERS:
        return "\n".join([*lines, "", *_counters(table)])
    return "\n".join([*lines, "", *column_rows(table.columns)])


def column_rows(columns: Iterable[Column]) -> Iterator[str]:
    """A table of columns."""
    yield "| column | type | unit | meaning |"
    yield "|---|---|---|---|"
    for column in columns:
        dtype = f"{column.dtype} or null" if column.nullable else column.dtype
        yield f"| `{column.name}` | {dtype} | {column.unit} | {column.full_doc} |"


def _counters(table: Table) -> Iterator[str]:
    """The counters, by the metric set that the profiler records."""
    yield from column_rows(column for column in table.columns if column.dtype != "float64")
    yield ""
    yield (
        "All other columns are float64 counters, by the metric set that records them. Older devices have no prefix; "
        "newer ones have one for the core: `aic_` (cube) or `aiv_` (vector)."
    )
    for name, counters in COUNTERS_OF_SETS.items():
        yield from ("", f"**{name}**", "", "| counter | prefixes | unit | meaning |", "|---|---|---|---|")
        for counter, prefixes, doc in counters:
            shown = ", ".join(f"`{prefix}`" if prefix else "none" for prefix in prefixes)
            yield f"| `{counter}` | {shown} | {unit_of(counter)} | {doc} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
