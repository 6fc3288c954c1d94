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


class Format(str, Enum):
    """How a table is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print the result.")]
