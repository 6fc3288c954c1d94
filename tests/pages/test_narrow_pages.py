"""What every page shows on a screen of 80 columns: the columns that tell rows apart, and no title cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.cli import output
from stepscope.cli.layout import Laid, TextColumn
from stepscope.cli.output import KEYS, Output
from stepscope.errors import StepscopeError
from stepscope.pages import PAGES
from stepscope.pages.answering import Request, answer
from stepscope.pages.base import Page
from stepscope.pages.showing import shown_sections
from stepscope.pages.shown_table import ShownTable
from stepscope.run import Run, open_run
from stepscope.tables import LINKS
from tests.cli.calling import EXAMPLE

WIDTH = 80
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
INPUTS = {
    "example": Path(EXAMPLE),
    "ascend": SHARED / "ascend" / "db_8rank",
    "gpus": SHARED / "pytorch" / "dlrm_8rank_v100",
}


@pytest.fixture(scope="module", params=INPUTS)
def recorded(request: pytest.FixtureRequest) -> Run:
    path = INPUTS[request.param]
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return open_run(path)


def _tables(run: Run, page: Page) -> list[ShownTable]:
    """Tables of a page, with each of its flags."""
    flags = [option.name for option in page.options if option.kind == "flag" and option.name.startswith("by_")]
    found = []
    for options in ({}, *({flag: True} for flag in flags)):
        try:
            answered = answer(run, page, Request(options=options))
        except StepscopeError:
            continue
        found += [table for section in shown_sections(answered) for table in section.tables if table.rows.height]
    return found


def _laid(table: ShownTable, monkeypatch: pytest.MonkeyPatch) -> tuple[list[TextColumn], Laid]:
    """The columns of a table and how they are laid out on a narrow screen."""
    seen: list[tuple[list[TextColumn], Laid]] = []
    lay_out = output.lay_out

    def noted(columns: list[TextColumn], width: int | None) -> Laid:
        seen.append((columns, lay_out(columns, width)))
        return seen[-1][1]

    monkeypatch.setattr(Output, "room", WIDTH)
    monkeypatch.setattr(output, "lay_out", noted)
    Output().table(table)
    monkeypatch.undo()
    return seen[0]


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_key_columns_stay_and_titles_are_whole(recorded: Run, page: Page, monkeypatch, capsys) -> None:
    for table in _tables(recorded, page):
        columns, laid = _laid(table, monkeypatch)
        capsys.readouterr()
        titles = {column.name: column.title or column.name for column in table.columns}
        keys = [name for name in KEYS if name in table.rows.columns]
        left = [name for name in keys if titles[name] not in laid.dropped]
        assert _distinct(table, left) == _distinct(table, keys), (table.heading, laid.dropped)
        assert "rank" not in keys or "rank" in left, table.heading
        assert not any("…" in line for line in laid.header), table.heading
        assert all(len(line) <= WIDTH for line in laid.header), table.heading
        known = {word for column in columns for word in column.title.split()}
        assert {word for line in laid.header for word in line.split()} <= known, table.heading


def _distinct(table: ShownTable, names: list[str]) -> int:
    return table.rows.select(names).unique().height if names else 1


def test_a_wide_matrix_keeps_its_row_label(monkeypatch, capsys) -> None:
    links = LINKS.frame(
        source=[n for n in range(12) for _ in range(12)], destination=[*range(12)] * 12, size_bytes=[10**9] * 144,
        duration_ns=[10**7] * 144,
    )  # fmt: skip
    (page,) = (page for page in PAGES if page.name == "links")
    table = next(
        t for t in _tables(Run.from_frames({0: {"links": links}}), page) if t.heading.startswith("Bandwidth b")
    )

    _, laid = _laid(table, monkeypatch)
    capsys.readouterr()

    assert laid.header[-1].split()[0] == "from"
    assert [line.split()[0] for line in laid.body] == [str(rank) for rank in range(12)]
    assert laid.dropped[-1] == "to 11"
