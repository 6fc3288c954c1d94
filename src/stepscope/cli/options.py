"""Arguments and options that commands share, each defined once."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from stepscope.errors import StepscopeError
from stepscope.pages.base import RANKS, STEPS, Option


def declared(option: Option) -> Any:
    """An option of a page as the command-line library takes it."""
    return typer.Option(
        option.on_command_line,
        help=option.help,
        metavar=option.metavar,
        parser=option.parsed,
        show_default=False,
    )


def worded(names: type[Enum], *flags: str, **more: Any) -> Any:
    """An option whose values are a few words."""
    words = [each.value for each in names]

    def parsed(text: Any) -> Any:
        try:
            return names(text)
        except ValueError:
            raise StepscopeError(f"{flags[0]} {text}: give one of {', '.join(words)}") from None

    return typer.Option(*flags, parser=parsed, metavar="|".join(words), autocompletion=lambda: words, **more)


Paths = Annotated[
    list[Path],
    # an input without read permission is reported with a remedy and does not hide the others
    typer.Argument(help="Trace files or directories.", metavar="PATH", show_default=False, readable=False),
]
OnePath = Annotated[
    Path, typer.Argument(help="Trace file or directory.", metavar="PATH", show_default=False, readable=False)
]
OneRun = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Run to show: its number or name in `info`. Default: the first.",
        metavar="RUN",
        show_default=False,
    ),
]
Ranks = Annotated[str | None, declared(RANKS)]
Steps = Annotated[str | None, declared(STEPS)]
NoStore = Annotated[bool, typer.Option("--no-store", help="Do not read or write the cache of parsed inputs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the verdict, findings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback on errors.")]
LimitsFile = Annotated[
    Path | None,
    typer.Option(
        "--limits", help="TOML file with limits that replace the defaults; see `rules`.", metavar="FILE", readable=False
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
    Language, worded(Language, "--language", help="Language of findings and verdict: en or zh (Chinese).")
]
FormatOption = Annotated[
    Format | None, worded(Format, "--format", "-f", help="Output format. Default: table.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Same as --format json.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Same as --format csv.")]
AsCsvOfTables = Annotated[
    bool, typer.Option("--csv", help="Same as --format csv: prints one table, the first or the one given by --table.")
]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to FILE instead of standard output.", metavar="FILE"),
]
Wide = Annotated[bool, typer.Option("--wide", "-w", help="Show all columns and full names, regardless of width.")]


def one_table(names: list[str], *, default: str = "all; the first with --csv, --search, --filter or --sort") -> object:
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
