"""Reports, figures, timelines and tables of a run: those of the commands, as files that are let go after sending."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.compare import Pair
from stepscope.errors import Unavailable
from stepscope.figures import FIGURES
from stepscope.report.answers import answers
from stepscope.report.contents import contents
from stepscope.report.html import to_html
from stepscope.run import Run
from stepscope.tables import TABLES
from stepscope.timeline import TimelineOptions, write_timeline
from tests.cli.calling import EXAMPLE, document
from tests.web.api.api_server import ID, PREFIX, Api, serving


def test_the_report_is_that_of_the_command(served: Api) -> None:
    run = served.runs.open(ID)
    for language in ("en", "zh"):
        response = served.get(f"/runs/{ID}/report.html", lang=language)
        whole = to_html(contents(run, answers(run), language, figures=True))  # type: ignore[arg-type]
        assert response.content == whole
        assert response.headers["content-type"].startswith("text/html")
        assert response.headers["content-security-policy"].startswith("sandbox ")
        assert "allow-same-origin" not in response.headers["content-security-policy"]


def test_the_json_of_a_run_is_that_of_analyze(served: Api, capsys: pytest.CaptureFixture[str]) -> None:
    printed = document(capsys, "analyze", EXAMPLE, "--no-store")
    assert served.of_run("/report.json") == printed
    found = served.of_run("/findings")
    assert found["findings"] == printed["findings"] and found["total"] == found["found"] == len(printed["findings"])


def test_findings_are_chosen(served: Api) -> None:
    whole = served.of_run("/findings")["findings"]
    first = whole[0]
    rule, severity = first["rule"], first["severity"]
    assert served.of_run("/findings", rule=rule)["findings"] == [one for one in whole if one["rule"] == rule]
    assert served.of_run("/findings", severity=severity)["found"] >= 1
    assert served.of_run("/findings", rule="nix") == {"total": len(whole), "found": 0, "findings": []}
    rank = first["where"]["rank"]
    assert first in served.of_run("/findings", rank=rank)["findings"]
    assert first not in served.of_run("/findings", rank=rank + 1)["findings"]


def test_the_overview_has_verdict_findings_and_evidence(served: Api) -> None:
    run = served.runs.open(ID)
    for language in ("en", "zh"):
        known = contents(run, answers(run), language)  # type: ignore[arg-type]
        found = served.of_run("/overview", lang=language)
        assert found["verdict"] == list(known.verdict) and found["counts"] == known.counts
        assert [one["finding"]["summary"] for one in found["problems"]] == [one.words.summary for one in known.problems]
        for told, problem in zip(found["problems"], known.problems, strict=True):
            assert [one["question"] for one in told["evidence"]] == [one.question for one in problem.evidence]
            assert all(table["rows"] and table["columns"] for one in told["evidence"] for table in one["tables"])
        assert {fact["name"]: fact["text"] for fact in found["facts"]} == {
            fact.name: fact.text for fact in known.facts.facts
        }


def test_a_workbook_and_markdown(served: Api) -> None:
    book = served.get(f"/runs/{ID}/report.xlsx")
    assert "xl/workbook.xml" in zipfile.ZipFile(io.BytesIO(book.content)).namelist()
    assert book.headers["content-disposition"] == f'attachment; filename="{ID}-report.xlsx"'
    text = served.get(f"/runs/{ID}/report.md", lang="zh")
    assert text.headers["content-type"] == "text/markdown; charset=utf-8" and "性能分析报告" in text.text


@pytest.mark.parametrize("name", [figure.name for figure in FIGURES if not figure.of_pair])
def test_figures_are_those_that_notebooks_draw(served: Api, name: str) -> None:
    figure = next(figure for figure in FIGURES if figure.name == name)
    try:
        drawn = figure.drawn(served.runs.open(ID), language="zh")
    except Unavailable as reason:
        assert served.problem(f"/runs/{ID}/figures/{name}", 404, "not-recorded")["detail"] == str(reason)
        return
    found = served.of_run(f"/figures/{name}", lang="zh", theme="dark")
    assert found["title"] == drawn.title and found["notes"] == list(drawn.notes)
    spec = json.loads(json.dumps(drawn.themed("dark")))
    assert found["figure"] == spec and "template" in spec["layout"]
    assert [len(table["rows"]) for table in found["tables"]] == [table.rows.height for table in drawn.tables]
    assert (
        served.of_run(f"/figures/{name}", theme="light")["figure"]["layout"]["template"] != spec["layout"]["template"]
    )


@pytest.mark.parametrize("name", [figure.name for figure in FIGURES if figure.of_pair])
def test_figures_of_comparisons(served: Api, name: str) -> None:
    run = served.runs.open(ID)
    figure = next(figure for figure in FIGURES if figure.name == name)
    drawn = figure.drawn(Pair(run, run).select(base_ranks="0", ranks="2"))  # type: ignore[arg-type]
    response = served.get(f"/compare/figures/{name}", base=ID, base_ranks="0", ranks="2")
    assert response.status_code == 200, response.text
    assert response.json()["figure"] == json.loads(json.dumps(drawn.themed()))
    served.problem(f"/runs/{ID}/figures/{name}", 404, "unknown-page")


def test_options_of_figures(served: Api) -> None:
    listed = {figure["name"]: figure for figure in served.of_run("/figures")["figures"]}
    assert "rank" in listed["memory"]["options"]
    plain, other = (served.of_run("/figures/memory", **options)["tables"] for options in ({"rank": 0}, {"rank": 3}))
    assert plain != other
    some = served.of_run("/figures/step-times", steps="4-6")["tables"][0]["rows"]
    assert {row["step"] for row in some} == {4, 5, 6}
    served.problem(f"/runs/{ID}/figures/time-by-rank", 400, "bad-request", rank=0)
    assert "pie or bar" in served.problem(f"/runs/{ID}/figures/operator-types", 400, "bad-request", form="x")["detail"]


@pytest.mark.parametrize("form", ["perfetto", "json", "json.gz"])
def test_a_timeline_is_that_of_the_command(served: Api, tmp_path: Path, form: str) -> None:
    ending = {"perfetto": "t.pftrace", "json": "t.json", "json.gz": "t.json.gz"}[form]
    known = tmp_path / ending
    run = served.runs.open(ID).select(ranks="1-2", steps="4-5")
    write_timeline(run, known, TimelineOptions("summary"))
    response = served.get(f"/runs/{ID}/timeline", kind="summary", format=form, ranks="1-2", steps="4-5")
    assert response.status_code == 200 and ID in response.headers["content-disposition"]
    if form == "json.gz":
        assert gzip.decompress(response.content) == gzip.decompress(known.read_bytes())
    else:
        assert response.content == known.read_bytes()


def test_a_timeline_may_be_of_a_part_of_the_time(served: Api) -> None:
    step = served.of_run("/tables/steps", top=2)["tables"]["steps"][1]
    whole, part = (
        served.of_run("/timeline", format="json", explain="false", **window)["traceEvents"]
        for window in ({}, {"start_ns": step["start_ns"], "end_ns": step["end_ns"]})
    )
    assert 0 < len(part) < len(whole)
    served.problem(f"/runs/{ID}/timeline", 400, "bad-request", start_ns=2, end_ns=1)
    assert "ranks" in served.problem(f"/runs/{ID}/timeline", 400, "bad-request", ranks="x")["detail"]
    assert "graph" in served.problem(f"/runs/{ID}/timeline", 400, "bad-request", graphs="1")["detail"]
    found = served.problem(f"/runs/{ID}/timeline", 400, "bad-request", start_ns=1, end_ns=2)
    assert "nothing with a time" in found["detail"]


def test_a_part_of_a_timeline_can_be_fetched(served: Api) -> None:
    address = f"/runs/{ID}/timeline?kind=summary"
    whole = served.client.get(PREFIX + address)
    part = served.client.get(PREFIX + address, headers={"Range": "bytes=10-19"})
    assert part.status_code == 206 and part.content == whole.content[10:20]


def test_files_are_let_go_when_they_are_sent(served: Api) -> None:
    for place in ("timeline?kind=summary", "report.xlsx", "tables/slices?format=parquet"):
        assert served.client.get(f"{PREFIX}/runs/{ID}/{place}").status_code == 200
        assert served.client.head(f"{PREFIX}/runs/{ID}/{place}").status_code == 200
    assert served.files.used_bytes
    assert not [kept for kept in served.files._kept.values() if kept.holds]


def test_tables_are_those_of_the_run(served: Api) -> None:
    run = served.runs.open(ID)
    for name in TABLES:
        if not run.has(name):
            continue
        known = run.table(name).collect()
        if known.is_empty():
            continue
        whole = served.get(f"/runs/{ID}/tables/{name}", format="parquet")
        assert_frame_equal(pl.read_parquet(io.BytesIO(whole.content)), known, check_row_order=True)
        part = served.of_run(f"/tables/{name}", top=3, page=1)
        assert part["total"] == known.height and len(part["tables"][name]) == min(3, known.height)


def test_rows_of_tables_are_chosen(served: Api) -> None:
    run = served.runs.open(ID)
    known = run.select(ranks="1-2", steps="5").table("operators").collect()
    found = served.of_run("/tables/operators", ranks="1-2", steps="5", columns="rank,step,name", top=50, page=2)
    assert found["total"] == known.height and found["ranks"] == [1, 2]
    assert found["tables"]["operators"] == known.select("rank", "step", "name").slice(50, 50).to_dicts()
    text = served.get(f"/runs/{ID}/tables/operators", ranks="1", steps="5", format="csv", columns="rank,name").text
    assert (
        text.splitlines()[0] == "rank,name" and len(text.splitlines()) == known.filter(pl.col("rank") == 1).height + 1
    )
    assert "Columns: rank" in served.problem(f"/runs/{ID}/tables/steps", 400, "unknown-column", columns="nix")["detail"]
    assert "page 9" in served.problem(f"/runs/{ID}/tables/steps", 400, "bad-request", page=9)["detail"]


SCRIPT = "<script>alert(1)</script>"
FORMULA = '=HYPERLINK("http://x","y")'


def test_names_are_neither_scripts_nor_formulas() -> None:
    steps = {"step": [1], "start_ns": [0], "end_ns": [9_000], "window_start_ns": [0], "window_end_ns": [9_000]}
    times = {"start_ns": [0, 4_000], "duration_ns": [3_000, 5_000], "step": [1, 1]}
    tables = {
        "steps": pl.DataFrame({**steps, "window": ["step"]}),
        "operators": pl.DataFrame({"slice": [0, 1], "name": [SCRIPT, FORMULA], "self_ns": [3_000, 5_000], **times}),
    }
    with serving({"hostile": Run.from_frames({0: tables, 1: tables}, name=SCRIPT)}) as api:
        page = api.client.get(f"{PREFIX}/runs/hostile/report.html")
        assert page.status_code == 200 and SCRIPT not in page.text and "&lt;script&gt;alert(1)" in page.text
        text = api.client.get(f"{PREFIX}/runs/hostile/tables/operators?format=csv&columns=name").text
        assert "\n\"'=HYPERLINK" in text
        rows = api.client.get(f"{PREFIX}/runs/hostile/tables/operators").json()["tables"]["operators"]
        assert [row["name"] for row in rows] == [SCRIPT, FORMULA] * 2
        listed = api.client.get(f"{PREFIX}/runs").headers
        assert listed["content-type"] == "application/json" and listed["x-content-type-options"] == "nosniff"
