"""Searching, filtering, sorting and paging of answers."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.errors import NoRows, StepscopeError
from stepscope.pages.listing import Listing, listed
from tests.cli.calling import EXAMPLE, document, printed

MS = 1_000_000

FRAME = pl.DataFrame(
    {
        "name": ["MatMul-op1", "Conv2D-op2", "matmul-op3", None],
        "total_ns": [3 * MS, 1 * MS, 2 * MS, None],
        "size_bytes": [1_000_000, 2_000_000, 3_000_000, None],
        "share_ratio": [0.5, 0.2, 0.3, None],
    }
)


def names(**listing: object) -> list[str | None]:
    return listed(FRAME, Listing(**listing)).rows["name"].to_list()  # type: ignore[arg-type]


def test_nothing_asked_is_everything() -> None:
    page = listed(FRAME, Listing())

    assert page.rows.equals(FRAME)
    assert page.found == 4


def test_a_search_looks_at_all_texts_in_any_case() -> None:
    assert names(search="MATMUL") == ["MatMul-op1", "matmul-op3"]
    with pytest.raises(
        NoRows, match=r"--search op\.: no row contains it\. There are matmul-op3, Conv2D-op2, MatMul-op1"
    ):
        names(search="op.")


@pytest.mark.parametrize(
    ("where", "there"),
    [
        ("total_ms > 5", "total_ms is 1 to 3"),
        (
            "name = 'Conv2d-op2' AND share > 0",
            "name: there are Conv2D-op2, MatMul-op1, matmul-op3. share is 0.2 to 0.5",
        ),
    ],
)
def test_a_filter_that_no_row_meets_says_what_there_is(where: str, there: str) -> None:
    with pytest.raises(NoRows) as told:
        names(where=where)

    assert str(told.value) == f"--filter {where}: no row meets it. {there}"


def test_a_column_may_have_the_name_of_a_word_of_sql() -> None:
    frame = FRAME.rename({"name": "group"})

    assert listed(frame, Listing(where="group = 'Conv2D-op2' AND total_ms < 5")).found == 1


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("total_ns > 1500000", ["MatMul-op1", "matmul-op3"]),
        ("total > 1500000", ["MatMul-op1", "matmul-op3"]),
        ("total_ms > 1.5 AND share < 0.4", ["matmul-op3"]),
        ("total_us = 1000", ["Conv2D-op2"]),
        ("size_MB >= 2", ["Conv2D-op2", "matmul-op3"]),
        ("name LIKE 'Conv%' OR total_ns IS NULL", ["Conv2D-op2", None]),
        ("total_ns = MAX(total_ns)", ["MatMul-op1"]),
        ("name = 'Conv2D-op2'", ["Conv2D-op2"]),
    ],
)
def test_a_filter_names_columns_in_any_unit(where: str, expected: list[str | None]) -> None:
    page = listed(FRAME, Listing(where=where))

    assert page.rows["name"].to_list() == expected
    assert page.rows.columns == FRAME.columns


def test_sorting_puts_the_unknown_last_and_takes_several_columns() -> None:
    assert names(sort="total") == ["Conv2D-op2", "matmul-op3", "MatMul-op1", None]
    assert names(sort="-total_ms") == ["MatMul-op1", "matmul-op3", "Conv2D-op2", None]
    assert names(sort="-size, name")[0] == "matmul-op3"


def test_pages_tell_how_many_rows_there_are() -> None:
    page = listed(FRAME, Listing(sort="total", top=3, page=2))

    assert page.rows["name"].to_list() == [None]
    assert page.found == 4


@pytest.mark.parametrize("page", [0, 3, -1])
def test_a_page_that_is_not_there_says_how_many_there_are(page: int) -> None:
    with pytest.raises(StepscopeError, match=r"no page -?\d: there are 2 pages for 4 rows"):
        listed(FRAME, Listing(top=3, page=page))


def test_an_empty_table_has_one_empty_page() -> None:
    assert listed(FRAME.clear(), Listing(top=3, search="x", where="total > 1", sort="name")).found == 0


def test_no_rows_a_page_is_a_page_of_nothing() -> None:
    assert listed(FRAME, Listing(top=0)).rows.height == 0


@pytest.mark.parametrize("listing", [{"sort": "totl"}, {"where": "totl > 1"}, {"sort": "-totl"}])
def test_an_unknown_column_lists_those_there_are(listing: dict[str, str]) -> None:
    with pytest.raises(StepscopeError, match=r"no column 'totl'. Did you mean total_ns\? Columns: name, total_ns, "):
        listed(FRAME, Listing(**listing))


@pytest.mark.parametrize(
    "where",
    ["", "total >", "total > 1; DROP TABLE x", "name = 1", "1", "total", "'", "(" * 500, "name ~ '('", "f(total) > 1"],
)
def test_what_is_no_condition_is_told(where: str) -> None:
    with pytest.raises(StepscopeError, match=r"filter .*Write a condition in SQL"):
        listed(FRAME, Listing(where=where))


@pytest.mark.parametrize(
    "where",
    [
        "total IN (SELECT a FROM read_csv('{file}'))",
        "total = ( select a from read_csv('{file}'))",
        "total IN (FROM read_csv('{file}'))",
        "total IN (WITH q AS (SELECT 1) SELECT * FROM q)",
        "total IN (VALUES (1))",
        "EXISTS (SELECT * FROM read_csv('{file}'))",
        "total > ANY (\n\tSELECT a FROM read_csv('{file}'))",
        "total IN (/* */ SELECT a FROM read_csv('{file}'))",
        "total IN (-- \n SELECT a FROM read_csv('{file}'))",
        "SELECT 1",
    ],
)
def test_a_filter_reads_no_file_and_asks_no_query(where: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a\n1000000\n")

    with pytest.raises(StepscopeError, match="only a condition over the columns"):
        listed(FRAME, Listing(where=where.format(file=file)))


def test_a_function_that_would_read_a_file_is_none_that_a_filter_has(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="filter"):
        listed(FRAME, Listing(where=f"read_csv('{tmp_path}') > 1"))


def test_an_endless_filter_is_refused() -> None:
    with pytest.raises(StepscopeError, match="at most 2000"):
        listed(FRAME, Listing(where="NOT " * 1000 + "total > 1"))


@pytest.mark.parametrize(
    "name", ["bandwidth", "Bandwidth", "bandwidth_bytes", "bandwidth_GB_per_s", "of the mean", "of_the_mean"]
)
def test_a_column_is_named_as_its_heading_or_with_its_unit(name: str) -> None:
    frame = pl.DataFrame({"link": ["a", "b"], "bandwidth_bytes_per_s": [2.0, 1.0], "of_mean_ratio": [0.2, 0.1]})

    part = listed(frame, Listing(sort=name), {"of_mean_ratio": "of the mean"})

    assert part.rows["link"].to_list() == ["b", "a"]


def test_a_heading_of_a_page_sorts_its_table_and_its_json(capfd) -> None:
    for title in ("step time", "step_time", "-Step Time"):
        words = ["steps", EXAMPLE, "--rank", "0", "--table", "step_trace", f"--sort={title}"]
        lengths = [row["step_ns"] for row in document(capfd, *words)["tables"]["step_trace"]]
        assert lengths == sorted(lengths, reverse=title.startswith("-"))
        assert printed(capfd, *words) and printed(capfd, *words, "--csv")
