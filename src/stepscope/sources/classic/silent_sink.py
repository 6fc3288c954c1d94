"""A sink for a file that another part reads as well: that part writes its rows and reports its damage."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.tables import Table


class SilentSink:
    """Takes rows and issues, and keeps none of them."""

    workers = 1

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """See `Sink`."""

    def issue(self, *_: object, **__: object) -> None:
        """See `Sink`."""

    def advance(self, count: int) -> None:
        """See `Sink`."""

    def scratch(self) -> Path:
        """See `Sink`.

        Raises:
            OSError: Always: there is nothing to keep.
        """
        raise OSError("no room for intermediate files")
