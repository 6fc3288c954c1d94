"""Arguments and options that commands share, each defined once."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

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
Ranks = Annotated[str | None, typer.Option(help="Only these ranks, e.g. 0,3-5.", metavar="LIST")]
Steps = Annotated[str | None, typer.Option(help="Only these steps, e.g. 10-12.", metavar="LIST")]
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

OneRank = Annotated[
    int | None, typer.Option("--rank", help="Rank to show. Default: the lowest.", metavar="R", show_default=False)
]
OneStep = Annotated[
    int | None,
    typer.Option("--step", help="Show only this step, as the recording numbers it.", metavar="N", show_default=False),
]
Search = Annotated[
    str | None,
    typer.Option(help="Show rows that contain TEXT (case-insensitive).", metavar="TEXT", show_default=False),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help='Show rows that meet this condition in SQL, e.g. "total_ms > 5".',
        metavar="EXPR",
        show_default=False,
    ),
]
Sort = Annotated[
    str | None,
    typer.Option(help="Sort by a column, e.g. total; -total: the largest first.", metavar="COL", show_default=False),
]
Top = Annotated[
    int | None,
    typer.Option(
        help="Rows of a table. Default: 20 on a screen, all in JSON and CSV.", metavar="N", min=1, show_default=False
    ),
]
PageNumber = Annotated[
    int, typer.Option("--page", help="Page number (with --top rows a page).", metavar="N", min=1, show_default=False)
]


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
