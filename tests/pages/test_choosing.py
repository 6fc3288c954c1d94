"""Options that choose rows do so in every table that has their column, and a choice that nothing meets is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from stepscope.analysis import ANALYSES
from stepscope.errors import NoRows, StepscopeError
from stepscope.pages import PAGES, answering
from stepscope.pages.answering import Request, answer
from stepscope.pages.base import Option, Page
from stepscope.pages.choosing import places_of
from stepscope.pages.listing import Listing
from stepscope.run import Run
from stepscope.tables import GROUPS, LINKS, RANKS
from tests.cli.calling import EXAMPLE, document, printed

SINGLE = [page for page in PAGES if page.scope != "pair"]
CHOOSING = [(page, option) for page in PAGES for option in page.options if option.columns]
JOB_WIDE = [name for name, analysis in ANALYSES.items() if analysis.scope == "job" and analysis.whole_job]
RANK_COLUMNS = ("rank", "rank_a", "rank_b", "source", "destination")

ROWS = 2


def _page(name: str) -> Page:
    return next(page for page in PAGES if page.name == name)


def _made_up(question: str) -> pl.DataFrame:
    """Rows of an answer: numbers 0 and 1, texts `Text0` and `Text1`; ranks are always numbers."""
    values: dict[str, Any] = {}
    for name, dtype in ANALYSES[question].schema.items():
        base = dtype.inner if isinstance(dtype, pl.List) else dtype
        prefix = "" if name == "ranks" else "Text"
        texts = [f"{prefix}{number}" if base == pl.String else number for number in range(ROWS)]
        column = pl.Series(name, texts).cast(base) if base != pl.Boolean else pl.Series(name, [False, True])
        values[name] = column if base is dtype else pl.Series(name, [[each] for each in column], dtype=dtype)
    return pl.DataFrame(values)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of two ranks, all of whose questions have an answer."""
    monkeypatch.setattr(answering, "_answer", lambda _run, section, _values: _made_up(section.question))
    return Run.from_frames({rank: {"ranks": RANKS.frame(start_ns=[0])} for rank in range(ROWS)})


@pytest.mark.parametrize(("page", "option"), CHOOSING, ids=[f"{page.name}-{option.name}" for page, option in CHOOSING])
def test_an_option_chooses_rows_of_every_table_or_says_of_which_not(made_up: Run, page: Page, option: Option) -> None:
    (column,) = option.columns
    is_text = any(_made_up(each.question).schema.get(column) == pl.String for each in page.sections)
    value = "text1" if is_text else "1"

    answered = answer(made_up, page, Request(options={option.name: value}))

    others = []
    for section, rows in answered.found:
        assert isinstance(rows, pl.DataFrame)
        if column in rows.columns and option.name not in section.takes:
            assert rows[column].to_list() == ["Text1" if is_text else 1], section.key
        elif option.name not in section.takes:
            others.append(section.key)
            assert rows.height == ROWS
    assert all(any(key in note and option.on_command_line in note for note in answered.notes) for key in others)
    assert bool(answered.notes) == bool(others)


@pytest.mark.parametrize("page", SINGLE, ids=[page.name for page in SINGLE])
@pytest.mark.parametrize("choice", [{"search": "Txt1"}, {"where": "{text} = 'Txt1'"}, {"where": "{number} > 5"}])
def test_rows_that_are_not_there_are_an_error_on_every_page(made_up: Run, page: Page, choice: dict[str, str]) -> None:
    for section in page.sections:
        rows = _made_up(section.question)
        text = next((name for name, dtype in rows.schema.items() if dtype == pl.String and name != "ranks"), None)
        number = next((name for name, dtype in rows.schema.items() if dtype.is_numeric()), None)
        listing = Listing(**{key: words.format(text=text, number=number) for key, words in choice.items()})
        if "None" in str(listing.where):
            continue
        answered = answer(made_up, page, Request(table=section.key, listing=listing))
        with pytest.raises(NoRows) as told:
            answering.document(answered)
        if "where" not in choice and text is None:
            assert "no texts" in str(told.value) or "ranks" in rows.columns
        else:
            assert f"{number} is 0 to 1" in str(told.value) or "here are Text1, Text0" in str(told.value)


@pytest.mark.parametrize("name", JOB_WIDE)
def test_chosen_ranks_choose_rows_wherever_a_column_names_a_rank(name: str) -> None:
    rows = _made_up(name)
    names = [each for each in RANK_COLUMNS if rows.schema.get(each, pl.String) != pl.String]

    kept = ANALYSES[name].of_ranks(rows, [1])

    if names:
        assert [kept[each].to_list() for each in names] == [[1]] * len(names)


def _linked() -> Run:
    """Three ranks, each with a link to itself and the next one."""
    ends = {rank: [rank, (rank + 1) % 3] for rank in range(3)}
    return Run.from_frames(
        {
            rank: {
                "ranks": RANKS.frame(start_ns=[0]),
                "links": LINKS.frame(
                    source=[rank] * 2,
                    destination=to,
                    transport=["LOCAL", "HCCS" if rank else "RDMA"],
                    size_bytes=[10, 20],
                    duration_ns=[10, 10],
                ),
            }
            for rank, to in ends.items()
        }
    )


@pytest.mark.parametrize(
    ("ranks", "options", "pairs"),
    [
        (None, {"source": "0"}, [(0, 0), (0, 1)]),
        (None, {"destination": "0"}, [(0, 0), (2, 0)]),
        (None, {"transport": "hccs"}, [(1, 2), (2, 0)]),
        ("2", {}, [(1, 2), (2, 0), (2, 2)]),
        ("2", {"source": "1", "transport": "HCCS"}, [(1, 2)]),
    ],
)
def test_all_tables_of_links_are_of_the_same_links(
    ranks: str | None, options: Mapping[str, str], pairs: list[tuple[int, int]]
) -> None:
    tables = answer(_linked(), _page("links"), Request(ranks=ranks, options=options)).tables

    assert tables["link_totals"].select("source", "destination").rows() == pairs
    cells = tables["link_matrix"].explode("destinations", "sizes_bytes", "durations_ns")
    assert cells.select("source", "destinations").rows() == pairs
    apart = [pair for pair in pairs if pair[0] != pair[1]]
    assert tables["transport_totals"]["links"].sum() == len(apart)
    assert tables["transport_totals"]["size_bytes"].sum() == 20 * len(apart)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"source": "7"}, "--source 7: there is no such source. There are 0-2"),
        ({"transport": "hcs"}, "--transport hcs: there is no such transport. There are HCCS, LOCAL, RDMA"),
        ({"source": "0", "transport": "hcs"}, "--transport hcs: there is no such transport. There are HCCS, "),
        ({"source": "0", "destination": "2"}, "no row meets --source 0 --destination 2 at the same time. "),
    ],
)
def test_links_that_are_not_there_are_an_error_that_lists_those_there_are(options: dict[str, str], text: str) -> None:
    with pytest.raises(NoRows) as told:
        answer(_linked(), _page("links"), Request(options=options))

    assert str(told.value).startswith(text)


def _staged() -> Run:
    stated = ['{"pipeline_stage": 0}', '{"pipeline_stage": 1}']
    return Run.from_frames(
        {
            rank: {"ranks": RANKS.frame(start_ns=[0], parallelism=[stated[rank // 2]]), **_of_rank(rank)}
            for rank in range(4)
        }
    )


def _of_rank(rank: int) -> dict[str, pl.DataFrame]:
    return {"links": LINKS.frame(source=[rank], destination=[(rank + 1) % 4], size_bytes=[10], duration_ns=[10])}


def test_a_stage_stands_for_its_ranks_in_every_table() -> None:
    answered = answer(_staged(), _page("communication"), Request(options={"stage": "1"}))

    assert [rank.rank for rank in answered.run.ranks] == [2, 3]


@pytest.mark.parametrize("page", ["ranks", "communication"])
def test_a_stage_that_is_not_there_is_an_error_that_lists_those_there_are(page: str) -> None:
    with pytest.raises(
        StepscopeError, match=r"^no stage 7 in .*\. Its stages are 0 \(ranks 0-1\) and 1 \(ranks 2-3\)$"
    ):
        answer(_staged(), _page(page), Request(options={"stage": "7"}))
    with pytest.raises(StepscopeError, match=r"^no stage 1 in .*\. Its stages are "):
        answer(_staged(), _page(page), Request(ranks="0-1", options={"stage": "1"}))


def test_a_job_without_stages_has_stage_0_only() -> None:
    answered = answer(_linked(), _page("ranks"), Request(options={"stage": "0"}))

    assert len(answered.run.ranks) == 3
    with pytest.raises(StepscopeError, match="No pipeline stages are known: give the parallel sizes"):
        answer(_linked(), _page("ranks"), Request(options={"stage": "1"}))


def _on_hosts() -> Run:
    facts = {rank: RANKS.frame(start_ns=[0], world_size=[4], host=[f"node-{rank // 2}"]) for rank in range(4)}
    groups = {
        rank: GROUPS.frame(group=["a", "w"], name=["tensor", "world"], members=[[0, 1], [0, 1, 2, 3]])
        for rank in range(2)
    }
    return Run.from_frames(
        {
            rank: {"ranks": facts[rank], **({"groups": groups[rank]} if rank in groups else {}), **_of_rank(rank)}
            for rank in range(4)
        }
    )


@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        ({"host": "node-1"}, [2, 3]),
        ({"host": "node-1, node-0"}, [0, 1, 2, 3]),
        ({"group": "tensor"}, [0, 1]),
        ({"group": "tensor", "host": "node-0"}, [0, 1]),
    ],
)
def test_hosts_and_groups_stand_for_their_ranks(options: dict[str, str], ranks: list[int]) -> None:
    answered = answer(_on_hosts(), _page("communication"), Request(options=options))

    assert [rank.rank for rank in answered.run.ranks] == ranks


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"host": "node-7"}, "--host node-7: there is no such host in frames. "),
        ({"group": "tensr"}, "--group tensr: there is no such group in frames. There "),
        ({"group": "tensor", "host": "node-1"}, "--group tensor: it has none of the chosen ranks"),
    ],
)
def test_hosts_and_groups_that_are_not_there_are_an_error(options: dict[str, str], text: str) -> None:
    with pytest.raises(StepscopeError) as told:
        answer(_on_hosts(), _page("ranks"), Request(options=options))

    assert str(told.value).startswith(text)


def test_places_are_those_of_all_ranks() -> None:
    places = places_of(_on_hosts().select(ranks="2"))

    assert places.hosts == {"node-0": [0, 1], "node-1": [2, 3]}
    assert places.groups == {"tensor": [0, 1]}, "a group of all ranks chooses nothing"


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_script_sees_that_nothing_was_found(capfd, form: str) -> None:
    error = printed(capfd, "ops", EXAMPLE, "--rank", "0", "--search", "adm", "--format", form, code=2)

    assert "--search adm: no row contains it. There are " in error
    assert "--table " in error or form == "csv"


def test_a_page_says_which_tables_a_search_leaves_out(capfd) -> None:
    words = ["ops", EXAMPLE, "--rank", "0", "--search", "addmm"]

    assert "This is only operator_types, as rows are chosen of one table; of others: --table " in printed(capfd, *words)
    assert document(capfd, *words)["notes"][-1].startswith("This is only operator_types, ")
    assert "This is only" not in printed(capfd, *words, "--table", "operator_types")
