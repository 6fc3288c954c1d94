"""A page without an answer is an error that says what to record, or which other command shows more."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from stepscope.cli import page_commands
from stepscope.errors import StepscopeError
from stepscope.pages import PAGES
from stepscope.pages.answering import Answered, Request, answer
from stepscope.pages.base import Page, Section
from stepscope.run import Run
from stepscope.tables import OPERATORS, RANKS
from tests.cli.calling import EXAMPLE, document, printed

REMEDY = re.compile(r"`stepscope \w|[Rr]ecord|set TORCH_FR|give the parallel sizes|--layout")
SAYING = ("layout", "what-if", "critical-path", "heat-map", "pipeline", "slowdowns", "strategy", "hangs")
"""Pages that say it in their own words."""


SINGLE = [page for page in PAGES if page.scope != "pair"]


def _empty() -> Run:
    return Run.from_frames({rank: {"ranks": RANKS.frame(start_ns=[0])} for rank in range(2)})


@pytest.mark.parametrize("page", SINGLE, ids=[page.name for page in SINGLE])
@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_page_of_an_empty_run_says_what_to_do(page: Page, form: str, capfd) -> None:
    try:
        answered = answer(_empty(), page)
    except StepscopeError as error:
        assert REMEDY.search(str(error)), error
        return
    if answered.says_anything:
        assert page.name in SAYING
        return

    with pytest.raises(StepscopeError) as told:
        page_commands.print_answered(answered, form, wide=False)  # type: ignore[arg-type]

    assert REMEDY.search(str(told.value)), told.value
    assert capfd.readouterr().out == ""


def test_commands_that_show_something_of_the_run_are_named() -> None:
    operators = OPERATORS.frame(slice=[0], start_ns=[0], duration_ns=[1], name=["aten::mm"])
    run = Run.from_frames({0: {"ranks": RANKS.frame(start_ns=[0]), "operators": operators}})
    (memory,) = (page for page in PAGES if page.name == "memory")
    (kernels,) = (page for page in PAGES if page.name == "kernels")

    assert memory.instead and memory.instead(run).endswith("or with `stepscope record --memory`")
    assert kernels.instead and kernels.instead(run).endswith("Of this recording, `stepscope ops` shows more")


@pytest.mark.parametrize(
    ("rows", "reason", "said", "expected"),
    [
        ([1], True, False, True),
        ([], True, False, False),
        ([], False, False, True),
        ([], True, True, True),
    ],
)
def test_empty_tables_are_no_answer_beside_questions_without_one(rows, reason, said, expected) -> None:
    section = Section("slow_ranks", "Slow ranks", sentences=(lambda _: ["None is."]) if said else None)
    found: list[tuple[Section, pl.DataFrame | str]] = [(section, pl.DataFrame({"rank": rows}))]
    if reason:
        found.append((Section("rank_means", "Means"), "no steps were recorded"))

    assert Answered(Page("p", "Show.", [section]), Request(), _empty(), found).says_anything is expected


def test_a_table_that_was_asked_for_says_that_it_is_empty(capfd) -> None:
    words = ["calls", EXAMPLE, "--table", "process_groups", "--ranks", "0"]
    assert "Process groups" in printed(capfd, *words)

    words = ["ranks", EXAMPLE, "--table", "slow_ranks", "--ranks", "0"]
    assert printed(capfd, *words).startswith("Slow ranks: none\n")
    assert document(capfd, *words)["tables"] == {"slow_ranks": []}


def test_a_job_of_graphs_only_has_no_ranks_to_show(capfd) -> None:
    path = Path(__file__).parents[2].parent / "shared" / "data" / "mindspore" / "real_parallel_strategy2"
    if not path.exists():
        pytest.skip("the recording is not here")

    for form in ("table", "json", "csv"):
        assert "no steps were recorded" in printed(capfd, "ranks", path, "--format", form, code=2)
