"""Arguments and options that commands share, each defined once."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from stepscope.pages import options as pages
from stepscope.pages.base import Option


def declared(option: Option) -> Any:
    """An option of a page as the command-line library takes it."""
    return typer.Option(
        option.on_command_line,
        help=option.help,
        metavar=option.metavar,
        min=option.minimum,
        show_default=False,
    )


Paths = Annotated[
    list[Path],
    # what may not be read is reported with a remedy, and hides nothing else
    typer.Argument(help="Trace files or directories, any mix.", metavar="PATH", show_default=False, readable=False),
]
OnePath = Annotated[
    Path, typer.Argument(help="Trace file or directory.", metavar="PATH", show_default=False, readable=False)
]
OneRun = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Which run, if there are several: its number or name in `info`. Default: 1.",
        metavar="RUN",
        show_default=False,
    ),
]
Ranks = Annotated[str | None, declared(pages.RANKS)]
Steps = Annotated[str | None, declared(pages.STEPS)]
NoStore = Annotated[bool, typer.Option("--no-store", help="Neither use nor fill the cache of parsed inputs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the verdict, the findings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
LimitsFile = Annotated[
    Path | None,
    typer.Option(
        "--limits", help="Judge by the limits in this TOML file; see `rules`.", metavar="FILE", readable=False
    ),
]


class Format(str, Enum):
    """How a command prints its answer."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Language(str, Enum):
    """Language of findings and verdict."""

    EN = "en"
    ZH = "zh"


LanguageOption = Annotated[
    Language, typer.Option("--language", help="Language of findings and verdict: en or zh (Chinese).")
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", "-f", help="How to print the answer. Default: table.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Short for --format csv.")]
AsCsvOfTables = Annotated[
    bool, typer.Option("--csv", help="Short for --format csv: one table, the main one or --table.")
]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the answer to FILE instead of the screen.", metavar="FILE"),
]
Wide = Annotated[bool, typer.Option("--wide", "-w", help="Show all columns and whole names, however wide.")]


def one_table(names: list[str], *, default: str = "all; with --csv, --search, --filter or --sort the first") -> object:
    """The option `--table` of a command with these tables."""
    return Annotated[
        str | None,
        typer.Option(
            "--table",
            help=f"Show only this table: {', '.join(names)}. Default: {default}.",
            metavar="NAME",
            show_default=False,
            autocompletion=lambda: names,
        ),
    ]
