"""`stepscope cache`: what is stored of inputs that were read before."""

from __future__ import annotations

from typing import Annotated

import typer

from stepscope.cli.options import Debug, Format, FormatOption

cache = typer.Typer(help="List or clear the cache of parsed inputs.", no_args_is_help=True, rich_markup_mode=None)


@cache.command("list")
def list_(form: FormatOption = Format.TABLE, debug: Debug = False) -> None:  # noqa: ARG001 - read by main()
    """List what is stored: input, size, age."""
    from datetime import datetime

    import polars as pl

    from stepscope.cli.output import print_frame
    from stepscope.store import Store, cache_directory

    directory = cache_directory()
    entries = Store(directory).list_entries()
    columns = {
        "input": [str(e.manifest.path) for e in entries],
        "source": [e.manifest.source for e in entries],
        "size_mb": [round(e.manifest.size_bytes / 1e6, 2) for e in entries],
        "used": [datetime.fromtimestamp(e.used).isoformat(sep=" ", timespec="seconds") for e in entries],
    }
    schema = {"input": pl.String, "source": pl.String, "size_mb": pl.Float64, "used": pl.String}
    frame = pl.DataFrame(columns, schema=schema).sort("used", descending=True)
    print_frame(frame, form, f"{directory}: {len(entries)} entries, {frame['size_mb'].sum():.1f} MB")


@cache.command("clear")
def clear(
    unused_days: Annotated[float, typer.Option(help="Only entries not used for so many days.", min=0)] = 0.0,
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Remove stored inputs; they are read again when they are needed."""
    from stepscope.store import Store, cache_directory

    directory = cache_directory()
    removed, freed = Store(directory).clear(unused_s=unused_days * 86400)
    print(f"removed {removed} entries, {freed / 1e6:.1f} MB, from {directory}")
