"""Pages: the same answers as the commands, a part at a time, in every format."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import polars as pl
import pytest

from stepscope.pages.answering import Request, answer, plain_rows
from stepscope.pages.answering import document as of_page
from stepscope.web.api.pages import RUN_PAGES
from tests.cli.calling import EXAMPLE, document
from tests.web.api.api_server import ID, PREFIX, Api

COMMANDS = {
    "ops": {},
    "steps": {"rank": 2},
    "ranks": {"ranks": "0,2"},
    "calls": {"by_rank": True},
    "critical-path": {},
    "gaps": {"limit": 3},
}
"""Pages that are compared with what their command prints, and what is chosen there."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_is_what_its_command_prints(served: Api, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = COMMANDS[name]
    words = [word for key, value in options.items() for word in _words(key, value)]
    printed = document(capsys, name, EXAMPLE, "--no-store", *words)
    found = served.of_run(f"/pages/{name}", top=10_000, **options)
    assert {key: found[key] for key in printed} == printed
    for key, rows in printed["tables"].items():
        assert [column["name"] for column in found["columns"][key]] == list(rows[0]) if rows else True


def _words(key: str, value: Any) -> list[str]:
    flag = f"--{key.replace('_', '-')}"
    return [flag] if value is True else [flag, str(value)]


@pytest.mark.parametrize("name", sorted(RUN_PAGES))
def test_all_pages_and_their_tables_are_those_that_are_declared(served: Api, name: str) -> None:
    page, run = RUN_PAGES[name], served.runs.open(ID)
    whole = of_page(answer(run, page, Request()))
    found = served.of_run(f"/pages/{name}", top=10_000)
    assert found["tables"] == json.loads(json.dumps({key: plain_rows(rows) for key, rows in whole["tables"].items()}))
    assert found["unavailable"] == whole["unavailable"]
    for key in page.keys:
        one = of_page(answer(run, page, Request(table=key)))
        part = served.of_run(f"/pages/{name}/{key}", top=7)
        rows = {each: plain_rows(frame.head(7)) for each, frame in one["tables"].items()}
        assert part["tables"] == json.loads(json.dumps(rows))
        assert part["rows"] == one["rows"] and part["total"] == one["rows"].get(key, 0)
        assert part["unavailable"] == one["unavailable"]


def test_links_lead_through_all_rows(served: Api) -> None:
    whole = served.of_run("/pages/ops/operator_instances", top=10_000)["tables"]["operator_instances"]
    at, pages, rows = f"{PREFIX}/runs/{ID}/pages/ops/operator_instances?top=17&sort=-total_ns&lang=zh", 0, []
    while at is not None:
        found = served.client.get(at).json()
        pages, rows = pages + 1, rows + found["tables"]["operator_instances"]
        assert found["page"] == pages and found["total"] == len(whole)
        assert found["links"]["self"] and found["links"]["last"]
        at = found["links"]["next"]
    assert found["pages"] == pages == -(-len(whole) // 17) and found["links"]["last"].endswith(f"page={pages}")
    assert len(rows) == len(whole)
    assert [row["total_ns"] for row in rows] == sorted((row["total_ns"] for row in whole), reverse=True)
    back = dict(parse_qsl(urlsplit(found["links"]["prev"]).query))
    assert back == {"top": "17", "sort": "-total_ns", "lang": "zh", "page": str(pages - 1)}


def test_rows_are_searched_filtered_and_sorted(served: Api) -> None:
    found = served.of_run("/pages/ops/operator_types", search="mm", filter="total_ms > 0.001", sort="-total", top=5)
    rows = found["tables"]["operator_types"]
    assert rows and all("mm" in row["type"].lower() for row in rows)
    assert [row["total_ns"] for row in rows] == sorted((row["total_ns"] for row in rows), reverse=True)
    assert found["total"] >= len(rows)


def test_a_page_of_which_rows_are_chosen_shows_its_main_table(served: Api) -> None:
    found = served.of_run("/pages/ops", search="mm")
    assert list(found["tables"]) == ["operator_types"] and found["notes"]


def test_columns_have_titles_units_and_meanings_in_both_languages(served: Api) -> None:
    english, chinese = (
        {
            each["name"]: each
            for each in served.of_run("/pages/steps/step_trace", lang=language)["columns"]["step_trace"]
        }
        for language in ("en", "zh")
    )
    assert english.keys() == chinese.keys()
    lengths = [each for name, each in english.items() if name.endswith("_ns")]
    assert lengths and all(each["unit"] == "ns" and each["meaning"] for each in lengths)
    assert any(english[name]["title"] != chinese[name]["title"] for name in english)
    assert any(english[name]["meaning"] != chinese[name]["meaning"] for name in english)


@pytest.mark.parametrize("by", ["format", "accept"])
def test_whole_tables_are_csv_and_parquet(served: Api, by: str) -> None:
    path = f"/runs/{ID}/pages/ops/operator_instances"
    asked = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
    responses = {
        form: served.get(
            path, None if by == "format" else {"Accept": media}, **({"format": form} if by == "format" else {})
        )
        for form, media in asked.items()
    }
    for form, response in responses.items():
        assert response.status_code == 200
        assert response.headers["content-type"].partition(";")[0] == asked[form]
        assert response.headers["content-disposition"] == f'attachment; filename="{ID}-operator_instances.{form}"'
        assert response.headers["vary"] == "Accept"
    whole = served.of_run("/pages/ops/operator_instances", top=10_000)["tables"]["operator_instances"]
    assert len(whole) > 100  # more than JSON has unasked
    rows = list(csv.DictReader(io.StringIO(responses["csv"].text)))
    assert [row["name"] for row in rows] == [row["name"] for row in whole]
    frame = pl.read_parquet(io.BytesIO(responses["parquet"].content))
    assert plain_rows(frame) == whole


def test_a_file_may_be_a_part_of_a_table(served: Api) -> None:
    found = served.get(f"/runs/{ID}/pages/ops/operator_types", format="csv", top=3, sort="type", search="aten")
    assert len(found.text.splitlines()) == 4


def test_times_beyond_javascript_may_be_texts(served: Api) -> None:
    plain, texts = (served.of_run("/tables/steps", top=3, int64=how)["tables"]["steps"] for how in ("number", "text"))
    for row, other in zip(plain, texts, strict=True):
        assert isinstance(row["start_ns"], int) and row["start_ns"] > 1 << 53
        assert other["start_ns"] == str(row["start_ns"])
        assert other["step"] == row["step"]


def test_what_if_takes_several_causes(served: Api) -> None:
    path = f"{PREFIX}/runs/{ID}/pages/what-if/what_if"
    asked = ([], [("without", "rank=2")], [("without", "rank=2"), ("without", "rank=1")])
    found = [served.client.get(path, params=each).json()["tables"]["what_if"] for each in asked]
    saved = [sum(row["saving_ns"] for row in rows) for rows in found]
    assert saved[0] < saved[1] < saved[2]


def test_a_layout_may_be_given(served: Api) -> None:
    plain, given = (
        served.of_run("/pages/layout/parallel_dimensions", **options)["tables"]["parallel_dimensions"]
        for options in ({}, {"layout": "tp=2,dp=2"})
    )
    assert plain != given
    assert served.of_run("/pages/ranks", layout="tp=2,dp=2")["tables"]
    assert "tp" in served.problem(f"/runs/{ID}/pages/ranks", 400, "bad-request", layout="nix=9")["detail"]


def test_the_pages_are_listed_with_their_tables_and_options(served: Api) -> None:
    pages = {page["name"]: page for page in served.get("/pages").json()["pages"]}
    assert {*RUN_PAGES, "compare"} == set(pages)
    what_if = {option["name"]: option for option in pages["what-if"]["options"]}
    assert what_if["without"]["repeated"] and not what_if["ideal"]["repeated"]
    for page in served.of_run("/pages")["pages"]:
        assert served.client.get(page["links"]["self"]).status_code == 200
        assert list(page["links"]["tables"]) == [table["name"] for table in page["tables"]]


def test_two_runs_are_compared(served: Api, capsys: pytest.CaptureFixture[str]) -> None:
    printed = document(capsys, "compare", EXAMPLE, "--no-store", "--base-ranks", "0", "--ranks", "2")
    found = served.get("/compare", base=ID, base_ranks="0", ranks="2", top=10_000).json()
    for side in ("base", "new"):
        del printed[side]["path"]
    assert {key: found[key] for key in printed} == printed
    table = served.get("/compare/time_differences", base=ID, new=ID, base_ranks="0", ranks="2", top=2).json()
    assert table["tables"]["time_differences"] == printed["tables"]["time_differences"][:2]
    whole = served.get("/compare/time_differences", base=ID, base_ranks="0", ranks="2", format="csv")
    assert len(whole.text.splitlines()) == len(printed["tables"]["time_differences"]) + 1
