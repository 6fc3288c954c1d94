"""The workbook: problems first, all rows, units in headers, and nothing that a spreadsheet runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.report import xlsx
from stepscope.report.contents import Contents
from tests.report.reports import HOSTILE, costly, hostile_run, report_of, slow_run


def opened(found: Contents, folder: Path) -> Any:
    import openpyxl

    xlsx.write_workbook(found, folder / "report.xlsx")
    return openpyxl.load_workbook(folder / "report.xlsx")


def rows_of(sheet: Any) -> list[dict[str, Any]]:
    head, *rows = ([cell.value for cell in row] for row in sheet.iter_rows())
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_problems_come_first(tmp_path: Path) -> None:
    book = opened(report_of(slow_run()), tmp_path)

    assert book.sheetnames[:2] == ["Problems", "Sheets"]
    first = rows_of(book["Problems"])[0]
    assert (first["Priority"], first["Ranks"], first["Rule"]) == ("High priority", "2", "slow-rank")
    assert first["Saving (ms)"] == pytest.approx(30, rel=0.1)
    assert book["Problems"]["B2"].fill.fgColor.rgb.endswith("B5495B")


def test_each_item_has_a_sheet_with_all_its_rows(tmp_path: Path) -> None:
    found = report_of(slow_run())
    book = opened(found, tmp_path)

    rows = {row["Sheet"]: row["Rows"] for row in rows_of(book["Sheets"])}
    assert [*rows.values()] == [item.rows.height for item in found.items]
    assert all(book[name].max_row == count + 1 for name, count in rows.items())
    assert all(book[name].freeze_panes == "A2" and book[name].auto_filter.ref for name in rows)


def test_figures_are_in_the_unit_of_their_header(tmp_path: Path) -> None:
    first = rows_of(opened(report_of(slow_run()), tmp_path)["Time by rank"])[0]

    assert first["computing (ms)"] == pytest.approx(60)
    assert first["window start (ms)"] == 0


def test_hostile_names_are_texts(tmp_path: Path) -> None:
    sheet = opened(report_of(hostile_run()), tmp_path)["Kernels"]

    cells = [cell for row in sheet.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "n", "inlineStr"}
    texts = {cell.value for cell in cells}
    assert {*HOSTILE[:6]} <= texts
    assert max(len(text) for text in texts if isinstance(text, str)) == 2_000


def test_names_of_sheets_are_allowed_and_unique(tmp_path: Path) -> None:
    found = report_of(slow_run())
    headings = ["a[b]:*?/\\c", "a b c", "'quoted'", "History", "", "x" * 60, "x" * 50]
    items = [replace(found.items[0], key=str(n), heading=heading) for n, heading in enumerate(headings)]

    names = opened(replace(found, items=items), tmp_path).sheetnames[2:-2]

    assert names == ["a b c", "a b c 2", "quoted", "History 2", "Sheet", "x" * 31, "x" * 29 + " 2"]


def test_long_names_of_sheets_end_with_a_word_of_meaning(tmp_path: Path) -> None:
    found = report_of(slow_run())
    headings = [
        "Floating point operations of each rank",
        "Gaps between the same work in most steps",
        "Operators by type, whole recording",
        "Communication by parallelism, from the timeline",
    ]
    items = [replace(found.items[0], key=str(n), heading=heading) for n, heading in enumerate(headings)]

    names = opened(replace(found, items=items), tmp_path).sheetnames[2:-2]

    assert names == [
        "Floating point operations",
        "Gaps between the same work",
        "Operators by type",
        "Communication by parallelism",
    ]


def test_numbers_have_room_and_their_heads_stand_above_them(tmp_path: Path) -> None:
    found = report_of(slow_run())
    item = next(item for item in found.items if item.question == "breakdown")
    long = item.rows.with_columns(computing_ns=pl.lit(987_654_321_987_654_321))

    sheet = opened(replace(found, items=[replace(item, rows=long)]), tmp_path)["Time by rank"]

    heads = {cell.value: cell for cell in sheet[1]}
    assert heads["computing (ms)"].alignment.horizontal == "right"
    assert heads["window"].alignment.horizontal != "right"
    assert sheet.column_dimensions[heads["computing (ms)"].column_letter].width > len("987654321987.654")


def test_a_cost_of_which_nothing_is_known_to_be_saved_is_no_saving(tmp_path: Path) -> None:
    found = costly(report_of(slow_run()))

    first = rows_of(opened(found, tmp_path)["Problems"])[0]

    assert (first["Saving (ms)"], first["Share"]) == (None, None)
    assert first["Costs (ms)"] == pytest.approx(30, rel=0.1)
    assert first["Costs, share"] > 0.1
    assert "is unknown" in first["Saving"]


def test_rows_that_do_not_fit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = report_of(slow_run())
    monkeypatch.setattr(xlsx, "MOST_ROWS", 3)
    item = next(item for item in found.items if item.question == "breakdown")
    assert item.rows.height == 16

    book = opened(replace(found, items=[item]), tmp_path)

    assert book["Time by rank"].max_row == 3
    assert rows_of(book["Sheets"])[0]["Notes"].startswith("Only the first 2 of 16 rows fit.")


def test_unknown_and_infinite_figures_are_empty_cells(tmp_path: Path) -> None:
    found = report_of(slow_run())
    item = next(item for item in found.items if item.question == "breakdown")
    odd = item.rows.with_columns(computing_ns=pl.Series([float("nan"), float("inf"), None, 1e6] * 4))

    rows = rows_of(opened(replace(found, items=[replace(item, rows=odd)]), tmp_path)["Time by rank"])

    assert [row["computing (ms)"] for row in rows[:4]] == [None, None, None, 1]


def test_columns_of_one_title_are_told_apart(tmp_path: Path) -> None:
    found = report_of(slow_run(), "zh")
    book = opened(found, tmp_path)

    for sheet in book:
        titles = [cell.value for cell in sheet[1]]
        assert len(set(titles)) == len(titles), (sheet.title, titles)


def test_rows_with_long_texts_are_as_high_as_these(tmp_path: Path) -> None:
    book = opened(report_of(slow_run()), tmp_path)

    assert book["Problems"].row_dimensions[2].height > 15


def test_sheets_print_on_the_width_of_a_page_with_their_head(tmp_path: Path) -> None:
    book = opened(report_of(slow_run()), tmp_path)

    for sheet in book:
        assert (sheet.page_setup.orientation, sheet.page_setup.fitToHeight) == ("landscape", 0)
        assert sheet.print_title_rows == "$1:$1"


def test_a_full_disk_is_an_error_of_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise xlsx.XlsxWriterException("no space left on device")

    monkeypatch.setattr(xlsx, "_pack", full)

    with pytest.raises(OSError, match="TMPDIR"):
        xlsx.write_workbook(report_of(slow_run()), tmp_path / "report.xlsx")
    assert list(tmp_path.iterdir()) == []
