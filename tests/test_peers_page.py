"""The page about other tools names commands, options and analyses that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from typer.main import get_command

from stepscope.analysis import ANALYSES
from stepscope.cli.app import app
from stepscope.pages import PAGES

PAGE = (Path(__file__).parents[1] / "docs" / "peers.md").read_text(encoding="utf-8")


def _calls() -> Iterator[list[str]]:
    """The words of each call that the page names, without `stepscope`."""
    for call in re.findall(r"`stepscope ([^`]*)`", PAGE):
        yield call.split()


def test_every_command_and_option_exists() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    calls = list(_calls())

    assert len(calls) > 5
    for name, *words in calls:
        assert name in commands, name
        known = {flag for parameter in commands[name].params for flag in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known, (name, words)


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
