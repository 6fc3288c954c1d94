"""The communication of steps: columns `stream_<stream>_<n>_<operator>` or `stream_<stream>_parallel_<n>`.

Each has its length, and where it starts and ends, in any order of columns. A step without the call has zeros, or a call
without length. The file does not list the members of a call. Ranks that run the same operator use the same name,
so the operator stands for the group; the two sides of a point-to-point call are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.sources.ascend.groups import read_call_name
from stepscope.sources.csv_files.layout import Field, column_key
from stepscope.tables.communication import POINT_TO_POINT

_NAME = re.compile(r"stream_(?P<stream>\d{1,9})_(?:parallel_\d+|\d+(?:_(?P<operator>.+))?)")
_NUMBER = re.compile(r"-op\d+$")
_ENDS = ("_start_point", "_end_point")


@dataclass(frozen=True)
class Reduces:
    """The communication that a file has columns for.

    Args:
        names: Recorded names, in the order of the file.
        points: The columns that hold starts and ends.
        lengths: Header keys of the columns with lengths, which also follow from the points.
    """

    names: tuple[str, ...]
    points: tuple[Field, ...]
    lengths: frozenset[str]


def find_reduces(headers: Sequence[str]) -> Reduces:
    """The communication that a file has columns for: start and end, or none of a call is read."""
    there = {header.strip() for header in headers}
    names = [name.strip() for name in headers if _NAME.fullmatch(name.strip()) and not name.strip().endswith(_ENDS)]
    starts = [name.removesuffix(_ENDS[0]) for name in there if name.endswith(_ENDS[0])]
    order = dict.fromkeys([*names, *sorted(starts)])
    whole = [name for name in order if _NAME.fullmatch(name) and all(name + end in there for end in _ENDS)]
    columns = [name + end for name in whole for end in _ENDS]
    points = tuple(Field(column, "ticks", (column_key(column),)) for column in columns)
    return Reduces(tuple(whole), points, frozenset(map(column_key, whole)))


def calls_of(steps: pl.DataFrame, reduces: Reduces, rank: int) -> pl.DataFrame:
    """The calls of a rank in order of start, with the columns of `collectives` but for `collective`.

    `steps` has `step`, and the columns of the calls' points.
    """
    names = [name for name in reduces.names if {name + end for end in _ENDS} <= set(steps.columns)]
    numbered = steps.with_row_index("sequence")
    parts = [
        numbered.select(
            "step",
            pl.col("sequence").cast(pl.Int64),
            start_ns=pl.col(name + _ENDS[0]),
            duration_ns=pl.col(name + _ENDS[1]) - pl.col(name + _ENDS[0]),
            **_facts(name, rank),
        ).filter(pl.col("duration_ns") != 0)
        for name in names
    ]
    none = {"step": pl.Int32, "start_ns": pl.Int64, "duration_ns": pl.Int64}
    return pl.concat(parts).sort("start_ns", maintain_order=True) if parts else pl.DataFrame(schema=none)


def _facts(name: str, rank: int) -> dict[str, pl.Expr]:
    """What the name of a call encodes."""
    match = _NAME.fullmatch(name)
    operator = (match["operator"] if match else None) or name
    word = _NUMBER.sub("", operator)
    operation = read_call_name(word).operation if word != name else "parallel" if "_parallel_" in name else "unknown"
    alone = operation in POINT_TO_POINT
    return {
        "name": pl.lit(name),
        "operation": pl.lit(operation),
        "group": pl.lit(f"{operator} of rank {rank}" if alone else operator),
        "stream": pl.lit(int(match["stream"]) if match else None, pl.Int32),
        "on_device": pl.lit(value=True),
    }
