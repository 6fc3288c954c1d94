"""The command that lists gaps: longest first, what the host did in one column, the same place of several ranks once."""

from __future__ import annotations

import pytest

from stepscope import open_run
from stepscope.cli.output import Output
from stepscope.pages.answering import Request, answer
from stepscope.pages.gaps import PAGE
from stepscope.pages.showing import shown_sections
from stepscope.pages.shown_table import ShownTable
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
