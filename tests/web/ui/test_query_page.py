"""The page for queries: its schema, its table, its chart, and the URLs of other queries."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest

pytest.importorskip("nicegui")

from page_contexts import HOSTILE, context_of, entry

from stepscope.run import open_run
from stepscope.tables import TABLES
from stepscope.web.ui.html import rendered
from stepscope.web.ui.pages import query
from stepscope.web.ui.pages.query import EXAMPLES, asking, chart, known_tables, usual_axes, with_moments
from stepscope.web.ui.state import State

EXAMPLE = Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank_slow_loader"
SAID = {key: text.en for key, text in query.WORDS.items()}
ROWS = pl.DataFrame({"rank": [0, 0, 1], "name": ["a", "b", "a"], "total_ns": [3, 2, 1]})


def test_tables_with_rows_come_first_with_their_number() -> None:
    found = known_tables(open_run(EXAMPLE))

    assert {known.table.name for known in found} == set(TABLES)
    has_rows = [known.rows > 0 for known in found]
    assert has_rows == sorted(has_rows, reverse=True)
    steps = next(known for known in found if known.table.name == "steps")
    assert steps.rows == open_run(EXAMPLE).query("SELECT COUNT(*) AS n FROM steps")["n"][0]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[1].en)
def test_examples_are_queries_over_tables_that_they_name(example: tuple[tuple[str, ...], object, str]) -> None:
    needs, _, sql = example

    found = open_run(EXAMPLE).query(sql)

    assert found.width
    assert set(needs) <= set(TABLES)


def test_another_query_keeps_nothing_of_the_answer_before() -> None:
    state = State.of("/runs/one/query?sql=a&result.page=3&chart.kind=bar&lang=zh&rank=2")

    found = parse_qs(urlsplit(asking(state, "SELECT 1")).query)

    assert found == {"sql": ["SELECT 1"], "lang": ["zh"], "rank": ["2"]}


def test_moments_stay_whole_numbers() -> None:
    rows = pl.DataFrame({"start_ns": [1_760_000_000_000_000_001], "duration_ns": [5]})

    found = with_moments(rows)

    assert found["start_ns"].to_list() == ["1760000000000000001"]
    assert found["duration_ns"].to_list() == [5]


def test_a_chart_has_the_values_of_the_answer() -> None:
    spec, notes = chart(ROWS, "bar", "name", "total_ns", "rank", SAID)

    assert spec is not None
    assert [(each["type"], each["name"], each["x"], each["y"]) for each in spec["data"]] == [
        ("bar", "0", ["a", "b"], [3, 2]),
        ("bar", "1", ["a"], [1]),
    ]
    assert not notes


def test_a_chart_takes_the_usual_columns_for_those_that_are_none() -> None:
    spec, _ = chart(ROWS, "line", "nothing", "name", "nobody", SAID)

    assert spec is not None
    assert usual_axes(ROWS) == ("rank", "total_ns")
    assert (spec["data"][0]["x"], spec["data"][0]["y"]) == ([0, 0, 1], [3, 2, 1])


def test_a_chart_says_what_it_leaves_out() -> None:
    rows = pl.DataFrame({"at": range(query.MOST_POINTS + 1), "value": 1.0, "by": range(query.MOST_POINTS + 1)})

    spec, notes = chart(rows, "scatter", "at", "value", "by", SAID)

    assert spec is not None
    assert len(spec["data"]) == query.MOST_SERIES
    assert len(notes) == 2


def test_a_chart_without_numbers_says_so() -> None:
    assert chart(pl.DataFrame({"a": ["x"]}), "bar", "", "", "", SAID) == (None, [SAID["no_numbers"]])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_a_client_sends_is_escaped(language: str) -> None:
    context = context_of("/runs/one/query", [entry("one")], language=language)

    found = rendered(context, "query.html.j2", "editor", said=SAID, sql=HOSTILE, hidden=[("lang", HOSTILE)], longest=9)

    assert "<script>alert" not in found
    assert "<img" not in found


def test_words_are_there_in_both_languages() -> None:
    for key, text in query.WORDS.items():
        assert text.en and text.zh, key
