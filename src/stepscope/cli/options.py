"""Arguments and options that commands share, each defined once."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

Paths = Annotated[
    list[Path],
    # what may not be read is told with a remedy, and hides nothing else
    typer.Argument(help="Trace files or directories, any mix.", show_default=False, readable=False),
]
OnePath = Annotated[Path, typer.Argument(help="Trace file or directory.", show_default=False, readable=False)]
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
    """How a table is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print the result.")]

OneRank = Annotated[
    int | None,
    typer.Option("--rank", help="The rank; without it the only one, else the lowest.", metavar="R", show_default=False),
]
OneStep = Annotated[
    int | None,
    typer.Option("--step", help="Only this step, as the source numbers it.", metavar="N", show_default=False),
]
OneTable = Annotated[
    str | None, typer.Option("--table", help="Only this of the command's tables.", metavar="NAME", show_default=False)
]
Search = Annotated[
    str | None, typer.Option(help="Only rows with this text, in any case.", metavar="TEXT", show_default=False)
]
Where = Annotated[
    str | None,
    typer.Option(
        "--filter", help='Only rows for which this holds, in SQL: "total_ms > 5".', metavar="EXPR", show_default=False
    ),
]
Sort = Annotated[
    str | None,
    typer.Option(help="Sort by a column, e.g. total; -total: the largest first.", metavar="COL", show_default=False),
]
Top = Annotated[
    int | None, typer.Option(help="Rows of a table; all in JSON and CSV.", metavar="N", min=1, show_default="20")
]
PageNumber = Annotated[int, typer.Option("--page", help="Which page of so many rows.", metavar="N", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print one table as CSV.")]
