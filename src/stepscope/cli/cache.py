"""`stepscope cache`: the cache of parsed inputs and of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepscope import present
from stepscope.cli.formatted import formatted
from stepscope.cli.options import Debug, Format, declared
from stepscope.errors import StepscopeError
from stepscope.pages.base import Option

if TYPE_CHECKING:
    from stepscope.store import Store

cache = typer.Typer(
    help="List or clear the cache of parsed inputs and answers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

UNUSED_DAYS = Option(
    "unused_days", "number", "Delete only entries that have not been used for this many days.", "DAYS", minimum=0
)


@cache.command("list")
@formatted
def list_(*, form: Format, wide: bool) -> None:
    """List the cached inputs, and the runs with cached answers, with their size and last use."""
    from datetime import datetime

    import polars as pl

    from stepscope.cli.output import Output, print_frame
    from stepscope.pages.shown_table import undeclared

    store = _store()
    entries = store.list_entries()  # the most recently used first
    schema = {"input": pl.String, "source": pl.String, "size_bytes": pl.Int64, "used": pl.String}
    found = [(e.manifest.path, e.manifest.source, e.manifest.size_bytes, e.used) for e in entries]
    found += [(one.about().path, "answers", one.size_bytes, one.used) for one in store.list_answers()]
    rows = [
        (
            present.printable(path),
            source,
            size_bytes,
            datetime.fromtimestamp(used).isoformat(sep=" ", timespec="minutes"),
        )
        for path, source, size_bytes, used in found
    ]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if form == "table":
        size = sum(row[2] for row in rows)
        held = present.plural(len(entries), "entry", "entries")
        Output(wide=wide).table(undeclared(frame, f"{store.directory}: {held}, {present.size(size)}"))
    else:
        print_frame(frame, form)


@cache.command("clear")
def clear(
    unused_days: Annotated[float, declared(UNUSED_DAYS)] = 0.0,
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Delete the cached inputs and answers; they are parsed and computed again when needed."""
    store = _store()
    removed, freed = store.clear(unused_s=unused_days * 86400)
    print(f"removed {present.plural(removed, 'entry', 'entries')}, {present.size(freed)}, from {store.directory}")


def _store() -> Store:
    """The store.

    Raises:
        StepscopeError: If its directory cannot be used.
    """
    from stepscope.store import Store, cache_directory

    directory = cache_directory()
    try:
        return Store(directory)
    except OSError as error:
        raise StepscopeError(
            f"{directory}: the cache cannot be opened: {error.strerror or error}. Set STEPSCOPE_CACHE to a directory "
            "that you can read and write"
        ) from error
