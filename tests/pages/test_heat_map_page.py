"""Ranks by steps as blocks: which cells are slow, folding of many ranks and steps, and terminals without blocks."""

from __future__ import annotations

import io

import polars as pl
import pytest

from stepscope.cli.output import Output
from stepscope.errors import Unavailable
from stepscope.pages.answering import Request, answer
from stepscope.pages.heat_map import PAGE
from stepscope.pages.showing import ShownSection, shown_sections
from stepscope.pages.shown_table import ShownTable
from stepscope.run import Run
from stepscope.tables.base import Column
from tests.analysis.jobs import MS, job
from tests.cli.calling import EXAMPLE, document, printed


def shown(run: Run) -> ShownSection:
    return next(iter(shown_sections(answer(run, PAGE, Request()))))


def test_each_rank_and_step_has_its_excess() -> None:
    found = job(ranks=4, steps=3, compute={1: 1.3}, jitter=0.0).analyse("heat_map")

    assert found.select("rank", "step").rows() == [(rank, step) for rank in range(4) for step in (1, 2, 3)]
    slow = found.filter(rank=1)
    assert slow["excess_ns"].to_list() == slow["clear_ns"].to_list() == [6 * MS] * 3
    assert slow["kind"].to_list() == ["computing"] * 3
    assert found.filter(pl.col("rank") != 1)["clear_ns"].to_list() == [0] * 9


def test_noise_is_that_of_all_steps_also_if_some_were_chosen() -> None:
    run = job(ranks=4, steps=6, compute={1: 1.1}, jitter=0.05)

    assert run.select(steps="3").analyse("heat_map").equals(run.analyse("heat_map").filter(step=3))
    mended = run.analyse("what_if", ideal=True)
    assert run.select(steps="3").analyse("what_if", ideal=True).equals(mended.filter(step=3))


def test_blocks_show_where_and_how_much() -> None:
    run = job(ranks=4, steps=5, compute={1: 1.3}, once_ns={("compute", 2, 3): 2 * MS}, jitter=0.001)
    table = shown(run).tables[0]

    assert table.heading == "Own work above that of peers, steps 1-5"
    assert table.rows["ranks"].to_list() == ["0", "1", "2", "3"]
    assert table.rows["by_step"].to_list() == ["·····", "█████", "·····", "·▒···"]
    assert table.rows["kind"].to_list() == [None, "computing", None, "computing"]


def test_figures_count_what_the_blocks_count() -> None:
    run = job(ranks=8, steps=4, compute={1: 1.3}, jitter=0.02)
    rows = shown(run).tables[0].rows

    assert rows["excess_ns"].to_list() == [0, *rows["excess_ns"][1:2], *[0] * 6]
    assert rows["excess_ns"][1] == pytest.approx(run.analyse("slow_ranks")["excess_ns"][0], rel=0.05)


def test_marks_of_ranks_that_no_finding_names_are_explained() -> None:
    once = job(ranks=8, steps=20, once_ns={("data", 9, 7): 4 * MS}, jitter=0.01)

    assert shown(once).sentences[1] == (
        "Rank 7 is marked but not among the slow ranks of `analyze`: that may be chance, or it costs the job next to "
        "nothing."
    )
    assert not any("marked" in one for one in shown(job(ranks=8, steps=4, compute={1: 1.3})).sentences)


def test_healthy_ranks_of_many_share_a_row() -> None:
    table = shown(job(ranks=20, steps=2, compute={7: 1.2}, jitter=0.001)).tables[0]

    assert table.rows["ranks"].to_list() == ["7", "0-6,8-19"]
    assert table.rows["by_step"].to_list() == ["▓▓", "··"]


def test_of_many_steps_a_block_is_the_slowest() -> None:
    found = shown(job(ranks=4, steps=50, calls=1, once_ns={("compute", 50, 3): 9 * MS}, jitter=0.001)).tables[0]

    assert found.heading == "Own work above that of peers, steps 1-50, 2 steps a block"
    assert found.rows["by_step"].to_list() == ["·" * 25] * 3 + ["·" * 24 + "█"]


def test_nobody_slow_is_said_and_one_rank_has_no_answer() -> None:
    assert "No rank is slower than its peers in any step." in shown(job(steps=3, jitter=0.001)).sentences
    with pytest.raises(Unavailable, match="at least two ranks"):
        job(ranks=1).analyse("heat_map")


TABLE = ShownTable(
    "Map",
    [Column("by_step", "string", "", title="by step"), Column("rank", "int32", "")],
    pl.DataFrame({"by_step": ["·░▒▓█" * 8], "rank": [0]}),
    drawn="by_step",
)


def test_blocks_are_letters_where_there_are_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Output()
    out.file = io.TextIOWrapper(raw := io.BytesIO(), encoding="ascii")
    out.table(TABLE)
    out.say("· usual, ░ from 2%…")
    out.file.flush()

    assert b".:+*#" * 8 in raw.getvalue()
    assert raw.getvalue().endswith(b". usual, : from 2%...\n")


def test_blocks_have_colours_and_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Output, "room", 45)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = Output()
    out.file = io.TextIOWrapper(raw := io.BytesIO(), encoding="utf-8")
    out.table(TABLE)
    out.file.flush()

    text = raw.getvalue().decode()
    assert text.count("\x1b[32m░") == text.count("\x1b[91m█") == 8


def test_the_command_gives_rows_and_a_map(capsys: pytest.CaptureFixture[str]) -> None:
    assert [row["rank"] for row in document(capsys, "heat-map", EXAMPLE)["tables"]["heat_map"]][-1] == 3
    assert "· usual" in printed(capsys, "heat-map", EXAMPLE)
