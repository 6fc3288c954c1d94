"""A command line makes the command that it names, and no other."""

from __future__ import annotations

from typer.main import get_command

from stepscope.cli.app import app, program_for


def names(words: list[str]) -> list[str]:
    return sorted(get_command(program_for(words)).commands)  # type: ignore[attr-defined]


def test_only_the_named_command_is_made() -> None:
    assert names(["report", "DIR"]) == ["report"]
    assert names(["what-if", "DIR"]) == ["what-if"]


def test_all_are_made_where_no_command_comes_first() -> None:
    every = sorted(get_command(app).commands)  # type: ignore[attr-defined]

    for words in ([], ["--help"], ["--plugin", "mine", "report"], ["reprot"], ["rules", "slow-rank"]):
        assert names(words) == every
