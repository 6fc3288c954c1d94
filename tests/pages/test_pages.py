"""A page is declared once, in a module of its own; commands, their help and their JSON come from the declaration."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from package_copy import copy_package, printed
from stepscope.advice.finding import WINDOWS
from stepscope.analysis import ANALYSES
from stepscope.cli import app
from stepscope.compare import COMPARISONS
from stepscope.errors import StepscopeError
from stepscope.pages import PAGES
from stepscope.pages.answering import Request, answer
from stepscope.pages.base import Option, Page, Section
from stepscope.pages.job import PAGE as JOB
from stepscope.pages.listing import Listing
from stepscope.pages.showing import shown_sections
from stepscope.pages.shown_table import filled
from stepscope.run import Run, open_run
from stepscope.tables import (
    GRAPH_NODES,
    GRAPH_TENSORS,
    HOST_USAGE,
    INPUT_PIPELINE,
    MEMORY_CURVE,
    OPERATOR_STEPS,
    RANK_FIGURES,
    RANKS,
    STEPS,
)
from tests.cli import calling

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader"
SECTIONS = [(page, section) for page in (*PAGES, JOB) for section in page.sections]
QUESTIONS = {**ANALYSES, **COMPARISONS}
EACH_SECTION = pytest.mark.parametrize(
    ("page", "section"), SECTIONS, ids=[f"{page.name}-{each.key}" for page, each in SECTIONS]
)


def _longest(rows: pl.DataFrame) -> Iterator[str]:
    yield f"The longest of {{the_steps}} is {rows['step_ns'].max()} ns."


LENGTHS = Page(
    "lengths",
    "Show how long the steps of a rank are.",
    [
        Section(
            "step_trace",
            "Lengths of {the_steps}",
            name="lengths",
            takes={"start": "forward_start"},
            sentences=_longest,
        )
    ],
    more="It is a page made by a test.",
    options=[Option("start", "text", "Operator at which the forward pass starts.", "NAME")],
)
LOST = Page("lost", "Show where a job loses time.", [Section("slow_ranks", "Slow ranks")], scope="job")


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pages more."""
    made = copy.copy(app.app)
    made.registered_commands = [*made.registered_commands]
    monkeypatch.setattr(app, "app", made)
    app.add_page(LENGTHS)
    app.add_page(LOST)


@pytest.mark.usefixtures("added")
def test_a_page_is_a_command_with_help(capfd) -> None:
    assert "Show how long the steps of a rank are." in calling.printed(capfd, "--help")

    text = " ".join(calling.printed(capfd, "lengths", "--help").split())

    for words in (LENGTHS.help, LENGTHS.more, "--start NAME", LENGTHS.options[0].help, "--rank R", "--search TEXT"):
        assert words in text


@pytest.mark.usefixtures("added")
def test_a_page_is_shown_as_tables_json_and_csv(capfd) -> None:
    words = ["lengths", EXAMPLE, "--rank", "1", "--start", "aten::mm"]

    text = calling.printed(capfd, *words)
    found = calling.document(capfd, *words)
    csv = calling.printed(capfd, *words, "--csv")

    rows = found["tables"]["lengths"]
    assert text.startswith("Lengths of the steps, times since the start of the recording: ")
    assert f"The longest of the steps is {max(row['step_ns'] for row in rows)} ns." in text
    assert (found["rank"], found["rows"]) == (1, {"lengths": len(rows)})
    assert {row["forward_start_by"] for row in rows} == {"argument"}
    assert len(csv.splitlines()) == 1 + len(rows)


@pytest.mark.usefixtures("added")
def test_a_page_about_a_job_has_ranks_and_steps(capfd) -> None:
    found = calling.document(capfd, "lost", EXAMPLE, "--ranks", "0,2")

    assert (found["ranks"], found["steps"]) == ([0, 2], None)
    assert {row["rank"] for row in found["tables"]["slow_ranks"]} == {2}


PAGE_FILE = """
from stepscope.pages.base import Page, Section

PAGE = Page("lengths", "Show how long the steps are.", [Section("step_trace", "Lengths of {the_steps}")])
"""


def test_a_page_is_one_new_file_and_one_line(tmp_path: Path) -> None:
    copy_package(
        tmp_path, {"pages/lengths.py": PAGE_FILE}, {"pages/__init__.py": ('    "host",\n', '    "lengths",\n')}
    )

    assert "lengths Show how long the steps are." in " ".join(printed(tmp_path, "--help").split())
    assert "--rank R" in printed(tmp_path, "lengths", "--help")
    assert [*json.loads(printed(tmp_path, "lengths", str(EXAMPLE), "--json"))["tables"]] == ["step_trace"]
    assert printed(tmp_path, "lengths", str(EXAMPLE)).startswith("Lengths of the steps, ")


def test_the_same_tables_are_there_without_a_surface() -> None:
    run = open_run(EXAMPLE)

    answered = answer(run, LENGTHS, Request(ranks=1, listing=Listing(sort="-step", top=2)))
    ((section),) = shown_sections(answered)

    (table,) = section.tables
    assert table.heading == "Lengths of the steps, times since the start of the recording: rows 1-2 of 5"
    assert table.rows["step"].to_list() == [8, 7]
    assert [column.name for column in table.columns] == table.rows.columns
    assert {column.name: column.title for column in table.columns}["step_ns"] == "step time"


def test_an_option_is_checked_wherever_it_comes_from() -> None:
    (flops,) = (page for page in PAGES if page.name == "flops")

    with pytest.raises(StepscopeError, match="--peak-tflops 0: give at least"):
        answer(Run.from_frames({0: {}}), flops, Request(options={"peak_tflops": 0}))


def test_a_table_that_is_left_out_beside_another_comes_back_without_it() -> None:
    groups = pl.DataFrame({"group": ["0"], "group_name": [None], "cost_ns": [5]}, schema_overrides={"group_name": str})
    run, links = Run.from_frames({0: {}}), pl.DataFrame({"cost_ns": [1]})

    def shown(links: pl.DataFrame) -> list[str]:
        answers = {"slow_links": links, "slow_groups": groups}
        found = [(section, answers[section.question]) for section in JOB.sections if section.question in answers]
        answered = type(answer(run, JOB))(JOB, Request(), run, found)
        return [table.heading for section in shown_sections(answered) for table in section.tables]

    assert shown(links) == ["Slow links"]
    assert shown(links.clear()) == ["Slow groups"]


@EACH_SECTION
def test_a_section_names_an_analysis_its_options_and_its_columns(page: Page, section: Section) -> None:
    analysis = QUESTIONS[section.question]
    columns = {column.name for column in analysis.columns}
    views = [name for view in section.views for name in (*view.shows, *view.without)]
    own = {option.name for option in page.options} | {"step", "steps", "ranks"}

    assert set(section.takes.values()) <= set(analysis.options)
    assert {*section.hidden, *views, *filter(None, [section.bar])} <= columns
    assert set(section.takes) <= own or page.name == "input"
    assert section.unless in ("", *(other.question for other in page.sections))


@pytest.mark.parametrize("per", ["step", *WINDOWS.values()])
@EACH_SECTION
def test_every_heading_and_title_can_be_filled_in(page: Page, section: Section, per: str) -> None:
    headings = [section.heading, section.chosen_heading, *(view.heading for view in section.views)]
    titles = [column.title for column in QUESTIONS[section.question].columns]

    texts = [filled(text, per) for text in (*headings, *titles)]

    assert not any("{" in text for text in texts)
    if per == "iteration":
        assert not any("step" in text.lower() for text in texts)


def test_braces_in_names_stay() -> None:
    assert filled("{a_step} of kernel<{lambda}, {0}>{", "iteration") == "an iteration of kernel<{lambda}, {0}>{"


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_names_and_questions_of_a_page_are_there_once(page: Page) -> None:
    assert len(set(page.keys)) == len(page.keys)
    assert [other.name for other in PAGES].count(page.name) == 1
    assert page.help.endswith(".") and page.help[0].isupper()


def test_help_loads_no_polars() -> None:
    asked = [["--help"], *([page.name, "--help"] for page in (*PAGES, JOB))]
    code = f"""
import sys
from stepscope.cli import main
for words in {asked!r}:
    main(words)
    if "polars" in sys.modules:
        sys.exit(" ".join(words))
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage:") == len(asked)


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("{Input_0: {format: ND, data_type: FLOAT16, shape: 16,64}}", "FLOAT16[16,64]"),
        (
            "{Input_0: {format: NHWC, data_type: INT8, shape: 1,2}, Input_1: {format: ND, data_type: BOOL, shape: }}",
            "INT8[1,2] NHWC, BOOL[]",
        ),
        ('["[32, 1]", "[4]"]', "[[32, 1], [4]]"),
        ("{a: 1}", "{a: 1}"),
        ("2,3;3,5", "2,3;3,5"),
        (None, None),
    ],
)
def test_shapes_are_readable(recorded: str | None, shown: str | None) -> None:
    executions = OPERATOR_STEPS.frame(
        step=[1, 2], unit=["GPU"] * 2, type=["Add"] * 2, name=["Add-op1"] * 2, duration_ns=[1, 1],
        input_shapes=[recorded, "7"],
    )  # fmt: skip
    (page,) = (page for page in PAGES if page.name == "shapes")

    answered = answer(Run.from_frames({0: {"operator_steps": executions}}), page, Request(table="dynamic_shapes"))
    ((section),) = shown_sections(answered)

    assert section.tables[0].rows["input_shapes"].to_list() == [shown, "7"]
    assert answered.tables["dynamic_shapes"]["input_shapes"].to_list() == [recorded, "7"]  # as data, as recorded


@pytest.mark.parametrize(
    ("name", "shown", "whole"),
    [
        ("memory", ["memory_peak", "memory_usage"], ["memory_hints"]),
        ("host", ["host_memory_curve"], []),
        ("input", ["input_batches"], ["input_queues"]),
    ],
)
def test_a_heading_tells_which_steps_an_answer_is_of(name: str, shown: list[str], whole: list[str]) -> None:
    starts, ends = [0, 100], [100, 200]
    spans = {"start_ns": starts, "end_ns": ends, "window_start_ns": starts, "window_end_ns": ends}
    run = Run.from_frames(
        {
            0: {
                "ranks": RANKS.frame(start_ns=[0]),
                "steps": STEPS.frame(step=[1, 2], window=["host"] * 2, **spans),
                "memory_curve": MEMORY_CURVE.frame(time_ns=[10, 110], device=[0, 0], allocated_bytes=[95, 90]),
                "rank_figures": RANK_FIGURES.frame(name=["memory_capacity_bytes"], value=[100.0]),
                "host_usage": HOST_USAGE.frame(time_ns=[50, 150], scope=["process"] * 2, rss_bytes=[1, 2]),
                "input_pipeline": INPUT_PIPELINE.frame(
                    operator=["get_next"] * 2, batch=[1, 2], step=[1, 2], time_ns=[5, 105], queue_size=[1, 1]
                ),
            }
        }
    )
    (page,) = (page for page in PAGES if page.name == name)

    for of_all, questions in ((False, shown), (True, whole)):
        for question in questions:
            answered = answer(run, page, Request(steps="2", table=question))
            ((section),) = shown_sections(answered)
            heading, rows = section.tables[0].heading, answered.tables[question]
            assert (", all steps" in heading) == of_all
            if "step" in rows.columns and not of_all:
                assert rows["step"].to_list() == [2] * rows.height


def test_a_graph_is_of_all_steps() -> None:
    spans = {name: [0] for name in ("start_ns", "end_ns", "window_start_ns", "window_end_ns")}
    nodes = GRAPH_NODES.frame(graph=[0], node=[0], name=["MatMul-op1"], total_bytes=[5])
    tensors = GRAPH_TENSORS.frame(graph=[0], tensor=[0], node=[0], size_bytes=[5], life_start=[0], life_end=[0])
    steps = STEPS.frame(step=[1], window=["host"], **spans)
    run = Run.from_frames({0: {"steps": steps, "graph_nodes": nodes, "graph_tensors": tensors}})
    (page,) = (page for page in PAGES if page.name == "memory")

    for question in ("memory_peak", "memory_usage", "memory_breakdown"):
        ((section),) = shown_sections(answer(run, page, Request(steps="1", table=question)))
        assert ", all steps" in section.tables[0].heading


def test_operators_are_shown_with_shapes_that_were_recorded_among_their_inputs() -> None:
    form = (
        '{"Input_0": {"format": "ND", "shape": "32,84"}, "input_1": {"shape": [32, 120]}, "Output_0": {"shape": "84"}}'
    )
    totals = pl.DataFrame(
        {
            "level": ["operator"] * 2,
            "unit": ["AI_CORE"] * 2,
            "name": ["a", "b"],
            "count": [1] * 2,
            "total_ns": [30, 20],
            "inputs": [form, "{}"],
        }
    )
    run = Run.from_frames({0: {"operator_totals": totals}})
    (page,) = [page for page in PAGES if page.name == "ops"]

    answered = answer(run, page, Request(table="operator_instances"))
    ((table,),) = [section.tables for section in shown_sections(answered)]

    assert table.rows["input_shapes"].to_list() == ["32,84;32,120", None]
