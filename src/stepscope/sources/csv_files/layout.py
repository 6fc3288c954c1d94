"""The columns of a CSV file as data: what a header may be called and how its values are kept.

A header is compared in lower case, without its unit in brackets and with `_` for blanks, so that
`Start Time(us)` and `Task Start Time(us)` need only `start_time` and `task_start_time`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

Kind = Literal[
    "text",
    "shape",
    "int",
    "small",
    "float",
    "time",
    "time_ms",
    "time_ns",
    "ticks",
    "duration",
    "ms",
    "kib",
    "mib",
    "gib",
    "device",
]
"""`time`, `time_ms`, `time_ns`: micro-, milli- and nanoseconds as text, exact; `ticks`: likewise, of 10 ns;
`duration`: microseconds as a number, `ms`: milliseconds; `kib`, `mib`, `gib`: memory sizes;
`small`: an integer of 32 bits;
`shape`: text inside an extra pair of quotes; `device`: an index, with or without `NPU:` before it."""

_HEADERS_KEPT = 4096
"""The files of all ranks have the same headers."""
_UNIT = re.compile(r"\((?:us|ns|ms|%|kb|mb|b|byte|gb/s|per-step)\)(?:\(estimate\))?", re.IGNORECASE)


@lru_cache(_HEADERS_KEPT)
def column_key(header: str) -> str:
    """The form in which headers are compared."""
    return _UNIT.sub("", header).strip().strip('"').strip("\ufeff").strip().lower().replace(" ", "_")


@lru_cache(_HEADERS_KEPT)
def bare_key(key: str) -> str:
    """A header key without what writers set between its words: `StepNum` and `step-num` are `step_num`."""
    return key.replace("_", "").replace("-", "").replace(".", "")


@dataclass(frozen=True)
class Field:
    """A column of a file: our name, how its values are kept, and the headers (as keys) it may have.

    A row without a `required` value is left out, and a file without the column cannot be read; `expected` is the same
    for rows, but the column may be missing altogether.
    """

    column: str
    kind: Kind
    headers: tuple[str, ...]
    required: bool = False
    expected: bool = False


@dataclass(frozen=True, eq=False)
class FileLayout:
    """The columns of a file that are read and those that are known but not kept.

    Args:
        fields: What is read.
        ignored: Keys of headers that are known, besides those of `orders`.
        report_cells: Report values that cannot be read in columns that rows may lack too, and a last row that may have
            been cut. It takes a second look at columns with empty values.
        report_empty: Report a file with a header but no rows.
        may_end_open: Its writers leave out the end of the last line.
        orders: Keys of its headers as its writers order them, one tuple a generation: for files without a header.
        repeats: Size of the groups of further columns that may follow those of an order.
    """

    fields: tuple[Field, ...]
    ignored: frozenset[str] = frozenset()
    report_cells: bool = False
    report_empty: bool = False
    may_end_open: bool = False
    orders: tuple[tuple[str, ...], ...] = ()
    repeats: int = 0

    @cached_property
    def usual(self) -> frozenset[str]:
        """Bare keys of the headers that one file may have side by side."""
        return frozenset(map(bare_key, self.ignored.union(*self.orders)))

    @cached_property
    def known(self) -> frozenset[str]:
        """Bare keys of all headers that are known, read or not."""
        return self.usual.union(bare_key(name) for field in self.fields for name in field.headers)


def order(keys: str) -> tuple[str, ...]:
    """Header keys as a line of a file has them, for `FileLayout.orders`."""
    return tuple(keys.split(","))
