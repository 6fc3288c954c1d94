"""Calls of earlier versions that go on working."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

TO_FILE = "--json-file"
"""What `--json FILE` became: the answers go to the file as JSON and to the screen as text."""


class TakesJsonFile(TyperCommand):
    """A command whose `--json` once took a file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See the base class."""
        return super().parse_args(ctx, with_json_file(args))


def with_json_file(words: Sequence[str]) -> list[str]:
    """The words of a call, with `--json FILE` by the name that it has now, and `--json -` without the dash.

    A word behind `--json` is that file unless it is a recording or a directory, which are inputs.

    Examples:
        >>> with_json_file(["run", "--json", "-"]), with_json_file(["run", "--json", "new.json"])
        (['run', '--json'], ['run', '--json-file', 'new.json'])
    """
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--json="):
            word, value = word.split("=", 1)
            rest.insert(0, value)
        elif word != "--json" or not rest or (rest[0].startswith("-") and rest[0] != "-") or _is_input(Path(rest[0])):
            found.append(word)
            continue
        file = rest.pop(0)
        found += ["--json"] if file == "-" else [TO_FILE, file]
    return found


def _is_input(path: Path) -> bool:
    """Whether this is to be read rather than written."""
    from stepscope.sources.discover import discover

    return path.is_dir() or (path.is_file() and bool(discover([path]).inputs))
