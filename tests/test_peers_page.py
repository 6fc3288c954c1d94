"""The page about other tools names commands, options and analyses that exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from stepscope.analysis import ANALYSES
from stepscope.analysis.registry import needed
from stepscope.cli.app import app
from stepscope.cli.page_commands import _given
from stepscope.errors import StepscopeError
from stepscope.pages import PAGES
from stepscope.pages.answering import Request, answer
from stepscope.pages.base import Page
from stepscope.run import Run, open_run
from tests.cli.calling import EXAMPLE

PAGE = (Path(__file__).parents[1] / "docs" / "peers.md").read_text(encoding="utf-8")


def _calls() -> Iterator[list[str]]:
    """The words of each call that the page names, without `stepscope`."""
    for call in re.findall(r"`stepscope ([^`]*)`", PAGE):
        yield call.split()


CALLS = [list(call) for call in sorted({tuple(call) for call in _calls()})]
LINES = [
    line
    for line in PAGE.splitlines()
    if line.startswith("|") and "`stepscope " in line and not re.search("`stepscope (analyze|sql)", line)
]
"""Of commands that answer a few questions; `analyze` and its findings rest on most."""

PAGE_OF = {page.name: page for page in PAGES}
MADE_UP = ("experts", "functions")
"""Pages of which no recording here has anything."""

SHARED = Path(__file__).parents[2] / "shared" / "data"
INPUTS = ("ascend/db_8rank", "pytorch/dlrm_8rank_v100", "mindspore/real_cluster_pipeline4")


def test_every_command_and_option_exists() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    calls = list(_calls())

    assert len(calls) > 5
    for name, *words in calls:
        assert name in commands, name
        known = {flag for parameter in commands[name].params for flag in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known, (name, words)


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_every_call_is_one_that_the_command_takes(call: list[str]) -> None:
    name, *words = call
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    query = ["SELECT 1"] if name == "sql" else []

    with command.make_context(name, [EXAMPLE, *query, *words]) as context:
        assert str(context.params.get("path") or context.params.get("paths")).find("ddp_gloo") > 0


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Recordings of PyTorch on GPUs and on a CPU, of Ascend devices, and of MindSpore with a pipeline."""
    return [open_run(path) for path in (Path(EXAMPLE), *(SHARED / name for name in INPUTS)) if path.exists()]


@pytest.mark.skipif(not SHARED.exists(), reason="the recordings are not here")
@pytest.mark.parametrize(
    "call", [call for call in CALLS if call[0] in PAGE_OF and call[0] not in MADE_UP], ids=" ".join
)
def test_every_call_has_an_answer_of_a_recording(call: list[str], runs: list[Run]) -> None:
    name, *words = call
    page = PAGE_OF[name]
    with get_command(app).commands[name].make_context(name, [EXAMPLE, *words]) as context:  # type: ignore[attr-defined]
        options = {option.name: _given(option, context.params[option.name]) for option in page.options}
    table = words[words.index("--table") + 1] if "--table" in words else None
    ranks = words[words.index("--ranks") + 1] if "--ranks" in words else None
    request = Request(ranks=ranks, table=table, options=options)

    assert any(_rows(run, page, request) for run in runs)


def _rows(run: Run, page: Page, request: Request) -> int:
    try:
        return sum(rows.height for rows in answer(run, page, request).tables.values())
    except StepscopeError:
        return 0


@pytest.mark.parametrize("line", LINES, ids=[line.split("|")[1].strip("` ") for line in LINES])
def test_a_line_names_answers_of_its_commands(line: str) -> None:
    pages = [PAGE_OF[name] for name in re.findall(r"`stepscope ([\w-]+)", line) if name in PAGE_OF]
    named = re.findall(r"\]\(analyses\.md#(\w+)\)", line)

    assert set(named) <= _asked([section.question for page in pages for section in page.sections])


def _asked(questions: Iterable[str]) -> set[str]:
    """Questions and those that their answers are made of."""
    found: set[str] = set()
    for name in questions:
        found |= {name} | _asked(other.name for other in needed(name).others)
    return found


def test_every_table_that_a_call_names_is_one_of_its_page() -> None:
    keys = {page.name: page.keys for page in PAGES}
    for name, *words in _calls():
        if "--table" in words and name in keys:
            assert words[words.index("--table") + 1] in keys[name]


def test_every_analysis_exists() -> None:
    named = re.findall(r"\[(\w+)\]\(analyses\.md#(\w+)\)", PAGE)

    assert len(named) > 5
    for text, anchor in named:
        assert text == anchor
        assert anchor in ANALYSES


def test_each_tool_has_its_section() -> None:
    assert re.findall("^## (.*)$", PAGE, re.MULTILINE) == ["Ascend: msprof-analyze cluster", "HTA", "TraceLens"]
