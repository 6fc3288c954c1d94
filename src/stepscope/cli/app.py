"""The list of commands."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command_name

from stepscope._version import __version__
from stepscope.cli.analyze import TakesJsonFile, analyze
from stepscope.cli.attach import attach
from stepscope.cli.cache import cache
from stepscope.cli.collect import collect
from stepscope.cli.command_list import FURTHER, RUNNING, SCOPES, START, CommandList
from stepscope.cli.export import export
from stepscope.cli.flame import flame_command
from stepscope.cli.info import info
from stepscope.cli.live import live
from stepscope.cli.options import Command, summary_of
from stepscope.cli.pack import pack
from stepscope.cli.page_commands import command_of
from stepscope.cli.pair_commands import compare_command
from stepscope.cli.record import record
from stepscope.cli.report import report
from stepscope.cli.rules import rules
from stepscope.cli.serve import serve
from stepscope.cli.sql import sql
from stepscope.cli.timeline import timeline
from stepscope.cli.view import view
from stepscope.pages import PAGES
from stepscope.pages.base import Page
from stepscope.references import as_typed

FLAME = "flame"
"""The page whose command draws as well."""

app = typer.Typer(
    name="stepscope",
    cls=CommandList,
    help="Find out which step, rank, operator, link or input stage costs a training job its time, and why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(help="Import this Python module with rules or analyses first (repeatable).", metavar="MODULE"),
    ] = None,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit
    for path in plugin or []:
        from stepscope.plugins import load

        load(path)


def _add(command: Callable[..., int | None], heading: str, **more: Any) -> None:
    """Add a command; the list of commands shows the whole first paragraph of its help, under a heading."""
    app.command(short_help=summary_of(command), rich_help_panel=heading, **{"cls": Command, **more})(command)


def add_page(page: Page) -> None:
    """Add the command that shows a page."""
    text = as_typed(f"{page.help}\n\n{page.more}" if page.more else page.help)
    command = app.command(page.name, help=text, short_help=page.help, rich_help_panel=SCOPES[page.scope], cls=Command)
    if page.name == FLAME:
        command(flame_command())
    else:
        command(compare_command(page) if page.scope == "pair" else command_of(page))


def program_for(words: Sequence[str]) -> typer.Typer:
    """The program for a command line: with the command that it begins with alone, since making all takes a while."""
    chosen = [
        one
        for one in app.registered_commands
        if words and (one.name or get_command_name(getattr(one.callback, "__name__", ""))) == words[0]
    ]
    if not chosen:
        return app
    part = copy.copy(app)
    part.registered_commands, part.registered_groups = chosen, []
    return part


_add(record, START, context_settings={"allow_interspersed_args": False})
_add(analyze, START, cls=TakesJsonFile)
_add(report, START)
_add(timeline, START)
_add(view, START)
_add(serve, START)
_add(collect, START)
_add(info, START)
_add(attach, RUNNING)
app.add_typer(live, name="live", rich_help_panel=RUNNING)
for each in PAGES:
    add_page(each)
_add(sql, FURTHER)
_add(export, FURTHER)
_add(pack, FURTHER)
app.add_typer(rules, name="rules", rich_help_panel=FURTHER)
app.add_typer(cache, name="cache", rich_help_panel=FURTHER)
