"""Write the tables of docs/commands.md from the commands and pages themselves: `python docs/make_commands.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from stepscope.cli.app import app
from stepscope.cli.command_list import SCOPES
from stepscope.pages import PAGES

PAGE = Path(__file__).with_name("commands.md")
BEGIN, END = "<!-- {}: made by docs/make_commands.py -->\n", "<!-- end of {} -->"

ABOUT = {
    scope: ([each for each in PAGES if each.scope == scope], f"[{name}](#{name.replace(' ', '-')})")
    for scope, name in ((scope, heading.lower()) for scope, heading in SCOPES.items())
}
"""Pages about the whole job and about one rank, and what stands for their commands in the list of options."""

_NAMES_OF_TABLES = re.compile(r"this table: .*?\. Default: .*")


def page(text: str) -> str:
    """The page with its tables as the commands and pages are declared."""
    for name, lines in {"options": options(), "pages": pages()}.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = text.partition(begin)
        text = before + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2]
    return text


def pages() -> Iterator[str]:
    """The commands that show pages, by what they are about, and the tables of each."""
    for scope, (about, _) in ABOUT.items():
        yield from [f"### {SCOPES[scope]}", "", "| command | what it shows | tables |", "|---|---|---|"]
        of_pairs = scope == "pair"
        named, asked = ("comparisons.md", "BASE [NEW]") if of_pairs else ("analyses.md", "PATH")
        for shown in about:
            tables = ", ".join(f"[`{each.key}`]({named}#{each.question})" for each in shown.sections)
            yield f"| `stepscope {shown.name} {asked}` | {shown.help} | {tables} |"
        yield ""


def options() -> Iterator[str]:
    """Each option of the command line, the commands that take it, and what it does."""
    taken: dict[tuple[str, str], list[str]] = {}
    every = dict(commands(get_command(app), ""))
    for name, command in every.items():
        for option in command.params:
            if option.param_type_name == "option" and not option.hidden:
                taken.setdefault((_written(option), _meaning(option)), []).append(name)
    yield from ["| option | commands | meaning |", "|---|---|---|"]
    for (written, meaning), names in taken.items():
        yield f"| {written} | {_listed(names, list(every)[1:])} | {meaning} |"


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The command and those within it, by name; `stepscope` itself has none."""
    within = getattr(command, "commands", {})
    if not within or not name:
        yield name, command
    for word, each in within.items():
        yield from commands(each, f"{name} {word}".strip())


def _written(option: Any) -> str:
    names = [f"{name} {option.metavar or ''}".strip() for name in (*option.opts, *option.secondary_opts)]
    return ", ".join(f"`{name}`" for name in names).replace("|", "\\|")


def _meaning(option: Any) -> str:
    return _NAMES_OF_TABLES.sub("this table; `-h` lists them.", option.help)


def _listed(names: list[str], every: list[str]) -> str:
    if names == [""]:
        return "before the command"
    if len(names) > len(every) - 4:
        left = [f"`{name}`" for name in every if name not in names]
        return f"all but {', '.join(left)}" if left else "all"
    left, together = set(names), []
    for about, link in ABOUT.values():
        if (of_pages := {each.name for each in about}) <= left:
            left -= of_pages
            together.append(link)
    return ", ".join([*(f"`{name}`" for name in names if name in left), *together])


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
