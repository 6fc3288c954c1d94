"""Write the tables of docs/commands.md about pages from their declarations: `python docs/make_commands.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from stepscope.pages import PAGES
from stepscope.pages.base import CHOOSING, LISTING, Option

PAGE = Path(__file__).with_name("commands.md")
BEGIN, END = "<!-- pages: made by docs/make_commands.py -->\n", "<!-- end of pages -->"


def page(text: str) -> str:
    """The page with its tables as the pages are declared."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n".join(lines()) + "\n" + END + rest.partition(END)[2]


def lines() -> Iterator[str]:
    """The commands about one rank, the options that all of them take, and their own."""
    yield from ["| command | what it shows | tables |", "|---|---|---|"]
    for shown in PAGES:
        tables = ", ".join(f"[`{each.key}`](analyses.md#{each.question})" for each in shown.sections)
        yield f"| `stepscope {shown.name} PATH` | {shown.help} | {tables} |"
    yield from ["", "| option | meaning |", "|---|---|"]
    yield from option_rows((*CHOOSING["rank"], *LISTING))
    yield from ["", "| command | own option | meaning |", "|---|---|---|"]
    for shown in PAGES:
        yield from (f"| `{shown.name}` {row}" for row in option_rows(shown.options))


def option_rows(options: Iterable[Option]) -> Iterator[str]:
    """A row for each option."""
    for option in options:
        yield f"| `{option.on_command_line} {option.metavar}` | {option.help} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
