"""The list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from stepscope._version import __version__
from stepscope.cli.analyze import analyze
from stepscope.cli.cache import cache
from stepscope.cli.flops import flops
from stepscope.cli.host import host
from stepscope.cli.info import info
from stepscope.cli.input import input_
from stepscope.cli.memory import memory
from stepscope.cli.ops import ops
from stepscope.cli.record import record
from stepscope.cli.rules import rules
from stepscope.cli.shapes import shapes
from stepscope.cli.sql import sql
from stepscope.cli.steps import steps

app = typer.Typer(
    name="stepscope",
    help="Says which step, rank, operator, link or input stage of a training job costs the time, and why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


for command in (analyze, info, sql, steps, ops, flops, shapes, memory, host, rules):
    app.command()(command)
app.command("input")(input_)
app.command(context_settings={"allow_interspersed_args": False})(record)
app.add_typer(cache, name="cache")
