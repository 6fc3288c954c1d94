"""What an exporter gets: one recorded rank, what is wanted, and where to write."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.run import Run


@dataclass
class Job:
    """The export of one recording.

    Args:
        run: The recorded rank alone, as a run of one rank, narrowed to the wanted steps.
        rank: Its number, as in the names of files.
        recording: The directory of raw data.
        about: Its `recording.json`.
        directory: The `profiler` directory to write to.
        steps: The wanted steps; None for all.
        pretty: Indent JSON.
        timeline_limit_bytes: Timelines end before they grow beyond this.
        data_simplification: Leave out what can be made again from the rest.
    """

    run: Run
    rank: int
    recording: Path
    about: dict[str, Any]
    directory: Path
    steps: list[int] | None = None
    pretty: bool = False
    timeline_limit_bytes: int = 500 << 20
    data_simplification: bool = True
    written: list[str] = field(default_factory=list)
    """Files made so far, relative to `directory`."""
    left_out: dict[str, str] = field(default_factory=dict)
    """What could not be made, by file name, and why."""

    def rows(self, table: str) -> pl.DataFrame:
        """The rows of a table in the wanted steps; empty, with its columns, if the rank has none."""
        from stepscope.tables import TABLES  # noqa: PLC0415 - keeps this list in one place

        if not self.run.has(table):
            return pl.DataFrame(schema=TABLES[table].schema)
        return self.run.table(table).collect()

    def write(self, name: str, text: str | bytes | Iterable[str]) -> None:
        """Write one file whole or not at all, for this user alone.

        Args:
            name: Relative to `directory`; directories on the way are made.
            text: Its content, or parts of it.

        Raises:
            OSError: If the disk does not take it.
        """
        path = self.directory / name
        for missing in reversed([place for place in path.parents if not place.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for part in [text] if isinstance(text, (str, bytes)) else text:
                    file.write(part.encode() if isinstance(part, str) else part)
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        self.written.append(name)
