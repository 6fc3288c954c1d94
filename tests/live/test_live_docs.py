"""The pages about running jobs name commands, options and variables that there are, and all of them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from stepscope.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "live.md", ROOT / "docs" / "attach.md", ROOT / "README.md")
LIVE = PAGES[0].read_text(encoding="utf-8")
NUMBERS = {"PID": "4711", "LAUNCHER": "4710"}


def commands() -> list[str]:
    """Each command line in the examples of the pages."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
            found += re.findall(r"^(?:[A-Z_]+=\S+ )?(stepscope (?:live|attach|record) .*)$", block, re.M)
    return sorted(set(found))


@pytest.mark.parametrize("line", commands())
def test_every_command_in_the_pages_can_be_typed(line: str) -> None:
    words = shlex.split(line, comments=True)
    words = [NUMBERS.get(word, word) for word in (words[:-1] if words[-1] == "&" else words)]
    command: Any = typer.main.get_command(app)
    for _ in range(2 if words[1] == "live" else 1):
        command, words = command.commands[words[1]], words[1:]

    with command.make_context(words[0], words[1:]) as context:
        assert context.params


def test_the_examples_are_found() -> None:
    assert len(commands()) > 25
    names = {line.split()[2] for line in commands() if line.startswith("stepscope live ")}
    live: Any = typer.main.get_command(app).commands["live"]  # type: ignore[attr-defined]
    assert names == set(live.commands)


def test_every_option_of_the_manager_is_named() -> None:
    live: Any = typer.main.get_command(app).commands["live"]  # type: ignore[attr-defined]
    options = [option for option in live.commands["manager"].params if option.param_type_name == "option"]
    missing = [
        option.opts[0] for option in options if not any(name in LIVE for name in (*option.opts, *option.secondary_opts))
    ]

    assert set(missing) <= {"--debug"}


def test_every_variable_is_named() -> None:
    sources = [*(ROOT / "src/stepscope/live").rglob("*.py"), *(ROOT / "src/stepscope/cli/live").rglob("*.py")]
    named = {
        name for file in sources for name in re.findall(r'"(STEPSCOPE_[A-Z_]+)"', file.read_text(encoding="utf-8"))
    }

    assert len(named) > 8
    assert not {name for name in named if name not in LIVE}
