"""The command that lists gaps: longest first, what the host did in one column, the same place of several ranks once."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope import open_run
from stepscope.cli.output import Output
from stepscope.pages.answering import Request, answer
from stepscope.pages.gaps import PAGE, _host
from stepscope.pages.showing import shown_sections
from stepscope.pages.shown_table import ShownTable
from stepscope.run import Run
from tests.analysis.jobs import job
from tests.cli.calling import EXAMPLE, document, printed


@pytest.fixture(scope="module")
def tables() -> list[ShownTable]:
    sections = shown_sections(answer(open_run(EXAMPLE), PAGE, Request()))
    return [table for section in sections for table in section.tables]


def test_the_longest_gaps_of_all_ranks_come_first(tables: list[ShownTable]) -> None:
    rows = tables[0].rows

    assert rows["duration_ns"].to_list() == sorted(rows["duration_ns"], reverse=True)
    assert rows["rank"][0] == 2
    assert rows["host"][0].startswith("data loader: ")


def test_columns_mean_what_the_answer_declares(tables: list[ShownTable]) -> None:
    meanings = {column.name: column.doc for column in tables[0].columns}

    assert meanings["cause"] == "Cause of most of the idle time."
    assert [name for name, doc in meanings.items() if not doc] == ["host"]


def test_gaps_at_one_place_of_several_ranks_are_one_row(tables: list[ShownTable]) -> None:
    rows = tables[1].rows

    assert rows.select("cause", "before_name", "next_name").is_unique().all()
    assert any("-" in ranks or "," in ranks for ranks in rows["ranks"])


def test_a_narrow_screen_shows_what_the_host_did_and_what_ended_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Output, "room", 80)
    lines = printed(capsys, "gaps", EXAMPLE).splitlines()

    assert max(map(len, lines)) <= 80
    assert sum("what the host did" in line and "ended by" in line for line in lines) == 2
    assert {"layer", "during", "next_name"} <= set(document(capsys, "gaps", EXAMPLE)["tables"]["gaps"][0])


def test_where_there_are_no_gaps_it_is_said() -> None:
    rank = job(ranks=1, steps=1, calls=1, jitter=0).ranks[0]
    frames = {name: rank.table(name).drop("rank").collect() for name in ("kernels", "steps")}
    frames["kernels"] = frames["kernels"].with_columns(duration_ns=frames["steps"]["end_ns"] - pl.col("start_ns"))
    said = [
        sentence
        for section in shown_sections(answer(Run.from_frames({0: frames}), PAGE, Request()))
        for sentence in section.sentences
    ]
    assert said == [
        "No gaps: on every rank, work begins as soon as the work before it has ended.",
        "No gap is between the same work in most steps.",
    ]


def test_a_gap_in_which_only_an_enclosing_range_is_known_says_so() -> None:
    rows = pl.DataFrame({"layer": ["nothing recorded", "python"], "during": ["## forward ##", "f"]})

    assert rows.select(host=_host())["host"].to_list() == ["unknown, in ## forward ##", "python: f"]
