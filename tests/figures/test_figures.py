"""Figures show what the answers say, in both languages, and stay small and harmless."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from builders import make_run
from stepscope.analysis.job.step_parts import PARTS
from stepscope.errors import StepscopeError, Unavailable
from stepscope.figures import FIGURES, bundle, drawn_all, figure_named, fragment, to_json
from stepscope.figures.axes import label, labels, short, unit_of
from stepscope.figures.base import Figure
from stepscope.figures.operator_groups import COLUMNS as OPERATORS
from stepscope.figures.style import COLOURS, template
from stepscope.figures.words import title_of, word
from stepscope.run import Run
from stepscope.tables import RANKS
from stepscope.tables.base import Column
from tests.analysis.jobs import MS, job

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_figures_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)
    page = (DOCS / "figures.md").read_text(encoding="utf-8")

    assert page == importlib.import_module("make_figures").page(page), "run: python docs/make_figures.py"


def test_loading_the_figures_loads_no_plotly() -> None:
    code = "import sys, stepscope.figures; print('plotly' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_without_plotly_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)

    with pytest.raises(StepscopeError, match=r"stepscope\[report\]"):
        figure_named("job-time").figure(make_run())


def test_a_name_that_is_close_is_suggested() -> None:
    with pytest.raises(StepscopeError, match="time-by-rank"):
        figure_named("time-by-ranks")


def test_a_run_without_answers_gets_reasons_and_no_empty_figure() -> None:
    found = dict(drawn_all(Run.from_frames({0: {}})))

    assert list(found) == [figure for figure in FIGURES if not figure.of_pair]
    assert all(isinstance(one, str) and one for one in found.values())


def test_a_figure_that_fails_is_reported_and_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(run: Run) -> None:
        raise ValueError("broken")

    broken = replace(FIGURES[0], data=fail)  # type: ignore[arg-type]
    monkeypatch.setattr("stepscope.figures.FIGURES", (broken, FIGURES[1]))
    monkeypatch.delenv("STEPSCOPE_DEBUG")

    found = [one for _, one in drawn_all(job(2, 3))]

    assert found[0] == "this figure could not be drawn: ValueError: broken"
    assert not isinstance(found[1], str)


def test_every_figure_is_valid_alike_at_each_call_and_complete_in_both_languages() -> None:
    for figure, english in drawn_all(job(4, 4, data_ns={2: 9 * MS})):
        if isinstance(english, str):
            continue
        chinese = figure.drawn(job(4, 4, data_ns={2: 9 * MS}), language="zh")
        again = figure.drawn(job(4, 4, data_ns={2: 9 * MS}))

        assert to_json(english) == to_json(again)
        assert english.figure("dark").layout.title.text == english.title
        assert chinese.title != english.title
        assert chinese.shows != english.shows
        assert [table.rows.shape for table in chinese.tables] == [table.rows.shape for table in english.tables]


def test_bars_of_ranks_add_up_to_the_step_and_agree_with_their_table() -> None:
    run = job(4, 4, data_ns={2: 9 * MS})
    drawn = figure_named("time-by-rank").drawn(run)
    steps = run.analyse("time_by_rank")["window_ns"].to_list()

    sums = [sum(trace["y"][place] or 0 for trace in drawn.spec["data"]) for place in range(4)]

    assert sums == pytest.approx([step / 1e6 for step in steps], rel=1e-4)
    assert sum(len([y for y in trace["y"] if y is not None]) for trace in drawn.spec["data"]) == drawn.table.rows.height
    loading = next(trace for trace in drawn.spec["data"] if trace["name"] == "waiting for data")
    assert loading["y"][2] == max(loading["y"])
    assert loading["marker"]["color"] == COLOURS["data_loading"]


def test_the_parts_of_the_job_are_its_answer() -> None:
    run = job(4, 4)
    drawn = figure_named("job-time").drawn(run)
    answer = run.analyse("job_parts")

    assert drawn.spec["data"][0]["x"] == pytest.approx([answer["mean_ns"][0] / 1e6], rel=1e-5)
    assert drawn.spec["layout"]["yaxis"]["ticktext"] == drawn.table.rows["part"].to_list()
    assert sum(answer["share_ratio"]) == pytest.approx(1)


def test_the_map_marks_the_slow_rank() -> None:
    drawn = figure_named("heat-map").drawn(job(4, 4, compute={1: 1.5}))
    heat = drawn.spec["data"][0]

    assert [min(row) > 25 for row in heat["z"]] == [False, True, False, False]
    assert heat["y"] == ["0", "1", "2", "3"]
    assert drawn.table.rows["ranks"][0] == "1"


def test_many_ranks_and_steps_share_cells_and_the_slowest_stays_seen() -> None:
    cells = pl.DataFrame({"rank": [0], "step": [0]}).clear()
    cells = pl.DataFrame(
        [(rank, step) for rank in range(400) for step in range(300)],
        schema={"rank": pl.Int32, "step": pl.Int32},
        orient="row",
    ).with_columns(
        kind=pl.lit("computing"),
        clear_ns=pl.when((pl.col("rank") == 77) & (pl.col("step") == 5)).then(9 * MS).otherwise(0).cast(pl.Int64),
    )
    cells = cells.with_columns(clear_ratio=pl.col("clear_ns") / (10 * MS))
    drawn = figure_named("heat-map").drawn(Answering({"heat_map": cells}))

    assert len(to_json(drawn)) < 120_000
    assert max(max(row) for row in drawn.spec["data"][0]["z"]) == 90
    assert "400 ranks and 300 steps" in drawn.notes[0]


def test_of_many_ranks_those_that_differ_are_shown() -> None:
    rows = pl.DataFrame(
        {
            "rank": range(1000),
            "part": ["computing"] * 1000,
            "mean_ns": [5 * MS] * 1000,
            "share_ratio": [1.0] * 1000,
            "steps": [1] * 1000,
        }
    ).with_columns(mean_ns=pl.when(pl.col("rank") == 777).then(8 * MS).otherwise("mean_ns"))
    drawn = figure_named("time-by-rank").drawn(Answering({"time_parts": rows}))

    assert "777" in drawn.spec["data"][0]["x"]
    assert len(drawn.spec["data"][0]["x"]) == 160
    assert "160 of 1000 ranks" in drawn.notes[0]


def test_a_fragment_and_the_bundle_are_one_page_without_network() -> None:
    drawn = figure_named("time-by-rank").drawn(job(4, 4))
    part, whole = fragment(drawn, rows=3), bundle()

    spec = part.partition('class="ss-spec">')[2].partition("</script>")[0]
    assert json.loads(spec) == json.loads(json.dumps(drawn.spec))
    assert f"{drawn.table.rows.height - 3} more rows" in part
    assert 1_500_000 < len(whole) < 2_200_000
    assert "<script src" not in whole
    assert bundle() == whole


def test_texts_are_shown_as_they_are() -> None:
    assert label("<b>x</b></script>&amp; $y$") == "&lt;b&gt;x&lt;/b&gt;&lt;/script&gt;&amp;amp; &#36;y&#36;"
    assert "\x1b" not in label("\x1b[31m")
    assert labels(["a" * 100, "a" * 101]) == [f"{'a' * 23}…{'a' * 23}", f"{'a' * 23}…{'a' * 23} (2)"]


def test_units_fit_the_greatest_number() -> None:
    unit = unit_of("mean_ns", [1_500_000, None, 20])

    assert unit.of([1_500_000, None, 20]) == [1.5, None, 0.00002]
    assert unit.after == " ms"
    assert unit_of("size_bytes", [2e9]).name == "GB"
    assert unit_of("flops_per_s", [2e13]).name == "TFLOP/s"
    assert short([float("nan"), 3.0, 1 / 3]) == [None, 3, 0.333333]


@pytest.mark.parametrize("part", PARTS)
def test_each_part_has_a_word_and_a_colour(part: str) -> None:
    assert part in COLOURS
    assert word(part, "zh") != part


def test_both_themes_have_the_same_parts() -> None:
    light, dark = template("light"), template("dark", clear=True)

    assert light["layout"].keys() == dark["layout"].keys()
    assert light["layout"]["font"] != dark["layout"]["font"]


class Answering:
    """A run that has only some answers."""

    def __init__(self, answers: dict[str, pl.DataFrame]) -> None:
        self.answers = answers
        self.ranks = [type("R", (), {"rank": 0, "has": lambda _, name: False})()]

    def analyse(self, question: object, **options: object) -> object:
        if not isinstance(question, str):
            return options.get("otherwise", "step")
        if question not in self.answers:
            raise Unavailable("not asked")
        return self.answers[question]

    def table(self, name: str) -> pl.LazyFrame:
        return RANKS.or_empty(None)

    def silent_ranks(self, question: str) -> dict[int, Unavailable]:
        return {}


TITLE = re.compile("[一-鿿]|rank|FLOP")


@pytest.mark.parametrize("figure", FIGURES, ids=[figure.name for figure in FIGURES])
def test_each_column_has_a_chinese_title(figure: Figure) -> None:
    module = importlib.import_module(figure.draw.__module__)
    declared = [value for value in (*vars(module).values(), OPERATORS) if isinstance(value, tuple) and value]
    columns = [one for value in declared for one in value if isinstance(one, Column)]

    assert columns
    assert [one.title for one in columns if not TITLE.search(title_of(one, "zh"))] == []
