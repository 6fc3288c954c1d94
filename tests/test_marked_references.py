"""Sentences mark the options, tables and pages that they name, and each surface names them for its readers."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path

import polars as pl
import pytest

from stepscope import Run, open_run
from stepscope.advice import Words
from stepscope.cli.notes import note
from stepscope.cli.page_commands import print_answered
from stepscope.errors import StepscopeError, Unavailable
from stepscope.pages.answering import Answered, Request, document
from stepscope.pages.base import Page, Section
from stepscope.references import as_typed, references_in
from stepscope.report.answers import answers
from stepscope.report.contents import contents
from stepscope.report.json_report import plain_findings
from stepscope.report.markdown import page_as_markdown
from stepscope.run.encoding import decoded, encoded
from stepscope.run.engine.messages import error_of, reason_of
from worded_texts import COMMANDS, OPTIONS, TABLES, texts

EXAMPLE = Path(__file__).parents[1] / "examples" / "ddp_gloo_4rank_slow_loader"

_MARKED = re.compile("«[^»]*»")
_IN_BACKTICKS = re.compile("`[^`]*`")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*(?![\w-])")
_COMMAND = re.compile(r"stepscope ([a-z][a-z-]*)")

TYPED = {
    "advice/advise.py": ["--debug"],  # of a rule that failed
    "advice/daily.py": ["--gpus", "--gpu-hour-price"],  # which only commands have
    "advice/rules/exposed_communication.py": ["`stepscope analyze --table arrival`"],  # which no page shows
    "pages/base.py": ["--filter"],  # the option itself
    "pages/chinese/issues.py": ["--run"],  # chooses one of several runs in a directory, before there is a page
    "pages/frequencies.py": ["--limits"],
    "pages/sequences.py": ["`--shortest 3 --sort -count`"],  # an example of a command line, in its help
    "timeline/narrowing.py": ["--explain"],  # which pages decide by themselves
    "timeline/sound.py": ["--format"],  # of files
    "timeline/viewer/server.py": ["--port"],
}
"""What is typed on a command line by every reader, by file."""


def test_what_sentences_refer_to_exists() -> None:
    known = {"option": {option.removeprefix("--") for option in OPTIONS}, "table": TABLES, "page": COMMANDS}
    found = [(file, one) for file, text in texts() for one in references_in(text)]
    marks = [mark for _, text in texts() for mark in _MARKED.findall(text)]

    assert [mark for mark in marks if "«" in as_typed(mark) and "X" not in mark] == []
    assert len(found) > 150
    assert [(file, one) for file, one in found if one.name not in known[one.kind]] == []


def test_sentences_mark_the_options_and_pages_that_they_name() -> None:
    bare = []
    for file, text in texts():
        rest = _MARKED.sub("", text)
        for typed in TYPED.get(file, ()):
            rest = rest.replace(typed, "")
        pages = [command for command in _COMMAND.findall(rest) if command in COMMANDS]
        if pages or _OPTION.search(_IN_BACKTICKS.sub("", rest)):
            bare.append((file, text))

    assert bare == []
    for file, known in TYPED.items():
        assert all(any(file == of and typed in text for of, text in texts()) for typed in known), file


def test_an_error_is_shown_as_it_is_typed_and_keeps_its_marks() -> None:
    error = StepscopeError("choose «--ranks» or «`stepscope ops --step`»")

    assert str(error) == "choose --ranks or `stepscope ops --step`"
    assert error.marked == "choose «--ranks» or «`stepscope ops --step`»"
    assert pickle.loads(pickle.dumps(error)).marked == error.marked


def test_reasons_keep_their_marks_on_disk_and_between_processes() -> None:
    reason = Unavailable("use «--scale»", causes=[Unavailable("see «--table transfers»")])

    for found in (decoded(encoded(reason)), error_of(reason_of(reason)), reason.again()):
        assert found.marked == "use «--scale»"
        assert found.causes[0].marked == "see «--table transfers»"


@pytest.fixture(scope="module")
def run() -> Run:
    """A job of four ranks."""
    return open_run(EXAMPLE, use_store=False)


@pytest.fixture
def answered(run: Run) -> Answered:
    """A page with marks in all that it says."""
    section = Section(
        "steps", "Steps", notes=lambda *_: ["see «--table steps»"], sentences=lambda _: ["take «--steps»"]
    )
    missing = Section("links", "Links")
    page = Page("made-up", "", [section, missing], scope="job")
    found = [(section, pl.DataFrame({"step": [1]})), (missing, "choose «--ranks»")]
    return Answered(page, Request(), run, found, ["«`stepscope ops`» has more"])


def test_the_terminal_and_markdown_show_sentences_as_they_are_typed(
    answered: Answered, capsys: pytest.CaptureFixture[str]
) -> None:
    print_answered(answered, "table", wide=True)
    note("use «--json»")
    printed = capsys.readouterr()

    for text in ("take --steps\n", "see --table steps\n", "choose --ranks.\n", "`stepscope ops` has more\n"):
        assert text in printed.out
    assert printed.err == "stepscope: use --json\n"
    assert "«" not in page_as_markdown(answered)


def test_programs_get_sentences_in_words_of_their_choice(answered: Answered) -> None:
    typed, named = document(answered), document(answered, lambda text: text.replace("«--ranks»", "ranks"))

    assert typed["unavailable"] == {"links": "choose --ranks"}
    assert typed["notes"] == ["see --table steps", "`stepscope ops` has more"]
    assert named["unavailable"] == {"links": "choose ranks"}


def test_findings_keep_their_marks_only_for_a_surface_that_asks_for_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answers(run)
    module = sys.modules["stepscope.advice.advise"]  # its name in the package is a function
    monkeypatch.setattr(module, "words_of", lambda *_: Words("slow", "why", "see «`stepscope gaps`»", "", ""))

    typed, marked = (contents(run, found, modules=False, marked=marked).problems[0].words for marked in (False, True))

    assert typed.action == "see `stepscope gaps`"
    assert marked.action == "see «`stepscope gaps`»"
    assert plain_findings(found)[0]["action"] == typed.action
