"""The columns of an operation-level trace, and how they are read and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.present import plural
from stepscope.sources.operation_trace.times import times_of
from stepscope.sources.plausible import WEEK_NS

COLUMNS: Mapping[str, Any] = {
    "rank": pl.Int32,
    "stage": pl.Int32,
    "dp_rank": pl.Int32,
    "step": pl.Int32,
    "optype": pl.String,
    "start_ts": pl.Float64,
    "duration": pl.Float64,
}
"""Columns that are needed: `start_ts` are seconds since the start of the step, `duration` are seconds (see `times`)."""

OPTIONAL: Mapping[str, Any] = {"seq_id": pl.Int32, "mb_id": pl.Int32, "mc": pl.Int32, "gmc": pl.Int32}
"""Position among operations of its kind in the step, micro-batch, model chunk of the rank and of the job; -1: none."""

MARKS = frozenset({"rank", "step", "optype", "start_ts"})
"""Columns by which a trace is recognised."""

AGAIN = "Copy the file again from where it was recorded"
_NS = 1e9


def schema_of_file(path: Path) -> dict[str, pl.DataType]:
    """Columns of a Parquet file and their types.

    Raises:
        UnreadableInput: If its end, where they are listed, is missing or damaged.
    """
    try:
        return dict(pl.read_parquet_schema(path))
    except OSError as error:
        raise UnreadableInput(
            path, f"cannot be read: {error.strerror or error}", "Check the file and its disk"
        ) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise UnreadableInput(path, "is a Parquet file that is cut off or damaged", AGAIN) from error


def columns_of(path: Path) -> list[str]:
    """The columns of a trace.

    Raises:
        UnreadableInput: If one that is needed is missing or holds neither numbers nor text.
    """
    found = schema_of_file(path)
    if missing := [name for name in COLUMNS if name not in found]:
        raise UnreadableInput(path, f"lacks the columns {', '.join(missing)} of an operation trace", AGAIN)
    for name in COLUMNS:
        if found[name].is_nested() or found[name].is_temporal() or found[name] in (pl.Binary, pl.Object):
            raise UnreadableInput(path, f"column {name} holds {found[name]}, which is no {_meant(name)}", AGAIN)
    return list(found)


def _meant(name: str) -> str:
    return "text" if COLUMNS[name] == pl.String else "number"


def operations(path: Path, found: list[str]) -> pl.LazyFrame:
    """All rows of a trace, with the columns of `COLUMNS` and `OPTIONAL`; what does not fit is null.

    Numbers may be the end of a text, e.g. of `rank3`. If positions are missing, they follow from the order of starts.
    """
    rows = pl.scan_parquet(path, glob=False)
    schema, times = schema_of_file(path), times_of(path)
    wanted = {**COLUMNS, **OPTIONAL}
    taken = [_taken(name, dtype, schema.get(name)) for name, dtype in wanted.items()]
    start = pl.col("start_ts") - pl.col("start_ts").min().over("step") if times.is_running else pl.col("start_ts")
    known = rows.select(taken).with_columns(
        start_ts=start * times.seconds,
        duration=pl.col("duration") * times.seconds,
        optype=pl.col("optype").str.strip_chars().str.to_lowercase().str.replace_all("_", "-", literal=True),
    )
    if "seq_id" in found:
        return known
    turn = pl.col("start_ts").rank("ordinal").over("rank", "step", "optype", "mc") - 1
    return known.with_columns(seq_id=turn.cast(pl.Int32))


def _taken(name: str, dtype: Any, stored: pl.DataType | None) -> pl.Expr:
    if stored is None:
        return pl.lit(None, dtype).alias(name)
    value = pl.col(name).cast(dtype, strict=False)
    if dtype != pl.Int32 or stored.is_numeric():
        return value
    return pl.coalesce(value, pl.col(name).cast(pl.String).str.extract(r"(\d+)\s*$").cast(dtype, strict=False))


def collected(rows: pl.LazyFrame, path: Path) -> pl.DataFrame:
    """Rows of a trace.

    Raises:
        UnreadableInput: If its pages are damaged.
    """
    try:
        return rows.collect()
    except OSError as error:
        raise UnreadableInput(
            path, f"cannot be read: {error.strerror or error}", "Check the file and its disk"
        ) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise UnreadableInput(path, "is a Parquet file with damaged data", AGAIN) from error


_WRONG: Mapping[str, pl.Expr] = {
    "without rank, stage, dp_rank, step or optype": pl.any_horizontal(
        pl.col("rank", "stage", "dp_rank", "step", "optype").is_null()
    ),
    "with a negative rank, stage or dp_rank": pl.any_horizontal(pl.col("rank", "stage", "dp_rank") < 0),
    "without a start or a duration": pl.any_horizontal(pl.col("start_ts", "duration").is_null())
    | ~pl.all_horizontal(pl.col("start_ts", "duration").is_finite()),
    "with a negative start": pl.col("start_ts") < 0,
    "with a negative duration": pl.col("duration") < 0,
    "that last more than a week": (pl.col("start_ts") + pl.col("duration")) * _NS > WEEK_NS,
}
"""What makes a row useless."""

IS_SANE = ~pl.any_horizontal(expression.fill_null(value=True) for expression in _WRONG.values())
"""Whether a row can be used."""


def faults(rows: pl.LazyFrame, path: Path) -> dict[str, int]:
    """How many rows cannot be used, by the first reason for each."""
    first = pl.coalesce(
        pl.when(expression.fill_null(value=True)).then(pl.lit(reason)) for reason, expression in _WRONG.items()
    )
    counts = collected(rows.filter(~IS_SANE).select(reason=first).group_by("reason").len().sort("reason"), path)
    return {reason: int(count) for reason, count in counts.iter_rows()}


def told(counted: Mapping[str, int]) -> str:
    """What is left out, and why."""
    total = Counter(counted).total()
    reasons = ", ".join(f"{count} {reason}" for reason, count in counted.items())
    return f"{plural(total, 'operation')} left out: {reasons}"


def in_ns(seconds: pl.Expr) -> pl.Expr:
    """Seconds as whole ns."""
    return (seconds * _NS).round().cast(pl.Int64)
