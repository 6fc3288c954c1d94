"""What a writer of timelines is: it draws processes, tracks and rows, and knows neither tables nor families."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from stepscope.timeline.tracks.base import FLOW, RANGE_COLUMNS

MOST_TEXT = 4096
"""Characters of a name or argument that a viewer gets; what is cut off ends in `…`."""


@dataclass(frozen=True)
class Process:
    """A rank, or the whole job.

    Args:
        number: Its number in the file: the rank; the job has one beyond all ranks.
        name: What it is called.
        order: Its place among the processes.
        labels: What else is known of it.
        is_rank: False for the whole job.
    """

    number: int
    name: str
    order: int
    labels: tuple[str, ...] = ()
    is_rank: bool = True


@dataclass(frozen=True)
class Track:
    """A track of a process.

    Args:
        number: Its number, unique in the file, from 1 on.
        process: Number of the process.
        group: Title of the group of tracks that it is in; empty if it is in none.
        title: What it is called.
        order: Places of the group, the track and the lane among their like.
        is_counter: Whether it has samples instead of ranges.
    """

    number: int
    process: int
    group: str
    title: str
    order: tuple[int, int, int]
    is_counter: bool = False


class Writer(Protocol):
    """Writes a timeline to a file. Rows of a track come in order of time; tracks come before their rows."""

    @property
    def size_bytes(self) -> int:
        """About how large the file has become."""

    def process(self, process: Process) -> None:
        """A new process."""

    def track(self, track: Track) -> None:
        """A new track."""

    def ranges(self, rows: pl.DataFrame, until_ns: int | None) -> None:
        """Ranges of a window of time.

        Args:
            rows: `number` (of the track), `start_ns`, `end_ns` (null for a point), `name`, `category`, arguments, and
                flows; by track, start, and the longer first.
            until_ns: Where the next window begins; None for the last one.
        """

    def samples(self, rows: pl.DataFrame) -> None:
        """Samples of counters: `number` (of the track), `start_ns`, `value`."""

    def close(self) -> None:
        """The end of the file."""


def argument_columns(rows: pl.DataFrame) -> list[str]:
    """The columns with arguments that have any value."""
    own = {*RANGE_COLUMNS, "number", "end_ns", "lane"}
    return [
        name
        for name in rows.columns
        if name not in own and not name.startswith(FLOW) and rows[name].null_count() < rows.height
    ]


def flow_columns(rows: pl.DataFrame) -> list[str]:
    """The columns with numbers of arrows that have any value."""
    return [name for name in rows.columns if name.startswith(FLOW) and rows[name].null_count() < rows.height]


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def readable(text: str) -> str:
    r"""A text as viewers can take it: control characters as escapes, and not too long.

    Examples:
        >>> readable("a\x00b")
        'a\\x00b'
    """
    if len(text) > MOST_TEXT:
        text = f"{text[:MOST_TEXT]}…"
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
