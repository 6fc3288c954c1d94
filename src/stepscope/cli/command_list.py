"""The list of commands as the help of `stepscope` shows it: by what they are about."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from stepscope.pages.base import Scope

START, RUNNING, FURTHER = "Start here", "Running jobs", "Queries and settings"
SCOPES: dict[Scope, str] = {"job": "The whole job", "rank": "One rank", "pair": "Two sides"}
"""Headings of commands that show a page, by what the page is about."""

HEADINGS = (START, RUNNING, *SCOPES.values(), FURTHER)
"""All headings, in order. A command has one of them as its `rich_help_panel`."""


class CommandList(TyperGroup):
    """Commands that its help lists under headings, in plain text."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See the base class; an option of a command that stands before the command is an error that says so."""
        place = next((place for place, word in enumerate(args) if word in self.commands), len(args))
        own = {name for each in self.get_params(ctx) for name in each.opts}
        if place < len(args):
            of_command = {name for each in self.commands[args[place]].params for name in each.opts}
            for word in args[:place]:
                name = word.partition("=")[0]
                if name in of_command - own:
                    ctx.fail(f"{name} comes after the command: stepscope {args[place]} ... {name}")
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See the base class."""
        shown = [(name, each) for name in self.list_commands(ctx) if (each := self.get_command(ctx, name))]
        width = max(len(name) for name, _ in shown)
        for heading in HEADINGS:
            rows = [
                (name.ljust(width), each.get_short_help_str(limit=formatter.width))
                for name, each in shown
                if getattr(each, "rich_help_panel", None) == heading and not each.hidden
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
