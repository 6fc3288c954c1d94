"""What fits a screen: a row is a line, the most important columns stay, and all are there with `--wide`."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.advice.formatters import ms
from stepscope.cli.output import Output, bars
from stepscope.pages.shown_table import undeclared
from stepscope.present import duration
from stepscope.tables.base import ORDINARY
from tests.cli.calling import EXAMPLE, document, printed

RULE = "─"


def screen(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, *words: str) -> list[str]:
    """The lines that a command shows in a terminal of this width."""
    monkeypatch.setattr(Output, "room", width)
    return printed(capfd, *words).splitlines()


def tables(lines: list[str]) -> dict[str, list[str]]:
    """Heading to the lines of its rows."""
    found = {}
    for number, line in enumerate(lines):
        if line.startswith(RULE):
            heading = next(
                text for text in reversed(lines[:number]) if text and not text.startswith(" ") and ": " in text
            )
            rest = lines[number + 1 :]
            ends = [n for n, text in enumerate(rest) if not text or text.startswith("…")]
            found[heading] = rest[: ends[0] if ends else None]
    return found


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", ["steps", "ops", "flops", "memory", "input"])
def test_a_row_is_a_line(capfd, monkeypatch, command: str, width: int) -> None:
    lines = screen(capfd, monkeypatch, width, command, EXAMPLE, "--rank", "0")

    shown = tables(lines)
    assert max(map(len, lines)) <= width
    assert shown
    for heading, rows in shown.items():
        of_many = heading.partition("rows 1-")[2].partition(" of ")[0]
        assert len(rows) == int(of_many or heading.rpartition(": ")[2].split()[0]), heading


def test_the_most_important_columns_stay_and_all_are_there_on_demand(capfd, monkeypatch) -> None:
    narrow = screen(capfd, monkeypatch, 80, "steps", EXAMPLE, "--rank", "0")
    wide = screen(capfd, monkeypatch, 80, "steps", EXAMPLE, "--rank", "0", "--wide")

    assert any("step time" in line and "backward" in line for line in narrow)
    assert "… window, other: shown with --wide" in narrow
    assert any("forward start" in line for line in wide)
    assert not any("shown with --wide" in line for line in wide)


def test_a_table_of_many_figures_keeps_its_first_columns_and_stays_a_table(capfd, monkeypatch) -> None:
    monkeypatch.setattr(Output, "room", 40)
    frame = pl.DataFrame({"event": ["a", "b"], **{f"figure{n}_ns": [10**6 * n, 10**7 * n] for n in range(12)}})

    important = {"event": ORDINARY + 3, "figure7_ns": ORDINARY + 2, "figure3_ns": ORDINARY + 1}
    table = undeclared(frame, "Figures")
    columns = [replace(column, importance=important.get(column.name, ORDINARY)) for column in table.columns]
    Output().table(replace(table, columns=columns))

    heading, title, rule, *rows, dropped, more, last = capfd.readouterr().out.splitlines()
    assert title.split() == ["event", "figure0", "figure3", "figure7"] or title.split() == [
        "event",
        "figure3",
        "figure7",
    ]
    assert [row.split()[0] for row in rows] == ["a", "b"]
    assert "figure11" in dropped + more + last
    assert heading == "Figures"
    assert set(rule) == {RULE}


def test_a_step_has_a_bar_on_a_screen_only(capfd, monkeypatch) -> None:
    lines = screen(capfd, monkeypatch, 80, "steps", EXAMPLE, "--rank", "0")

    rows = next(rows for heading, rows in tables(lines).items() if heading.startswith("Steps by phase"))
    assert max(row.count("█") for row in rows) == 8
    assert all("█" in row for row in rows)
    monkeypatch.setattr(Output, "room", None)
    assert "█" not in printed(capfd, "steps", EXAMPLE, "--rank", "0")


def test_bars_are_as_long_as_their_values_are_large() -> None:
    assert bars([8, 4, 1, 0, None], 8) == ["████████", "████", "█", "", ""]
    assert bars([8, 4.5], 8) == ["████████", "████▌"]
    assert bars([8, 4, 0.01], 8, blocks=False) == ["########", "####", "#"]
    assert bars([0, None], 8) == ["", ""]


def test_a_terminal_without_unicode_gets_ascii(monkeypatch, capfd) -> None:
    monkeypatch.setattr(Output, "encoding", "ascii")

    lines = screen(capfd, monkeypatch, 80, "steps", EXAMPLE, "--rank", "0")

    assert any("########" in line for line in lines)
    assert all(line.isascii() for line in lines)


def test_two_ways_to_split_a_step_are_two_tables_whose_shares_are_the_whole(capfd) -> None:
    rows = document(capfd, "steps", EXAMPLE, "--rank", "0")["tables"]["step_statistics"]
    headings = [
        line
        for line in printed(capfd, "steps", EXAMPLE, "--rank", "0").splitlines()
        if line.startswith(("Steps ", "Statistics "))
    ]

    for split in ("phases", "points"):
        assert sum(row["share_ratio"] for row in rows if row["split"] == split) == pytest.approx(1, abs=1e-6)
    assert [row["phase"] for row in rows if row["split"] is None] == ["step"]
    assert [heading.partition(":")[0] for heading in headings] == [
        "Steps by phase",
        "Steps cut at the start of forward and the end of backward",
        "Statistics by phase",
        "Statistics of the parts between these points",
    ]


@pytest.mark.parametrize("page", [1, 2, 3])
def test_each_table_of_an_answer_has_its_own_rows_and_counts(capfd, page: int) -> None:
    words = ["steps", EXAMPLE, "--rank", "2", "--table", "step_statistics", "--top", "3", "--page", page]

    shown = tables(printed(capfd, *words).splitlines())

    assert {heading.rpartition(": ")[2]: len(rows) for heading, rows in shown.items()} == [
        {"rows 1-3 of 7": 3, "rows 1-3 of 4": 3},
        {"rows 4-6 of 7": 3, "row 4 of 4": 1},
        {"row 7 of 7": 1},
    ][page - 1]


def test_flops_are_of_a_call_or_a_step_and_say_so(capfd, monkeypatch) -> None:
    lines = screen(capfd, monkeypatch, 120, "flops", EXAMPLE, "--rank", "0")

    headings = [*tables(lines)]
    assert headings[0].startswith("Operations by operator, FLOPs per call: ")
    assert headings[1].startswith("Operations of a step: ")
    assert any(" float32 " in line for line in lines)


def test_a_severity_is_named_as_one(capfd) -> None:
    assert "; severity: high [slow-rank]" in printed(capfd, "analyze", EXAMPLE)


DURATIONS = {
    **{0: "0 us", 1: "1 ns", 99: "99 ns", 100: "0.1 us", 999_949: "999.9 us", 999_951: "1.00 ms"},
    **{999_994_999: "999.99 ms", 999_996_000: "1.00 s", 12_850_000_000: "12.85 s", -2_000_000_000: "-2.00 s"},
}


@pytest.mark.parametrize(("ns", "text"), DURATIONS.items())
def test_durations_are_in_seconds_from_one_second_and_zero_is_always_the_same(ns: float, text: str) -> None:
    assert duration(ns) == text


def test_findings_are_in_seconds_from_one_second() -> None:
    assert (ms(12.85e9), ms(999e6), ms(1e9), ms(62e6)) == ("12.85 s", "999 ms", "1.00 s", "62.0 ms")
