"""Moments as times since the start of the recording: a clock that counts from 1970 or boot means nothing to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

SLACK_NS = 60_000_000_000
"""Samples may be taken this long before or after the recorded work; other clocks are off by far more."""

SERIES = ("queue", "module", "scope", "component")
"""Columns whose values may each have a clock of their own, e.g. a queue on the device and one on the host."""

APART = {"queue": "get_next", "module": "process"}
"""Series on a clock of their own unless the recording has one clock for all: the device's queue, and samples of the
process as opposed to what the framework marked."""


def since_start(
    rows: pl.DataFrame, answer: pl.DataFrame, moments: Sequence[str], facts: Mapping[str, Any]
) -> tuple[pl.DataFrame, str]:
    """Rows whose moments count from the start of the recording, or from the first moment of the answer.

    Args:
        rows: Those of the answer that are shown.
        answer: All of it.
        moments: Its columns that are moments.
        facts: `start_ns` and `end_ns` of the recording. Times count from that start if the moments are on the same
            clock, which means within the recording; files of the host or of a dataset pipeline may have their own.

    Returns:
        The rows, and what the heading adds about the start of their times; empty if they have none.
    """
    columns = list(moments)
    known = [first for name in columns if (first := answer[name].min()) is not None]
    if not known:
        return rows, ""
    first, start, end = min(known), facts.get("start_ns"), facts.get("end_ns")
    origins = _origins(answer, columns, has_one_clock=start is not None)
    if len(set(origins.values())) > 1:
        series = [name for name in SERIES if name in answer.columns]
        own = pl.Series([origins.get(key) for key in rows.select(series).iter_rows()], dtype=pl.Int64)
        return rows.with_columns(pl.col(columns) - own), ", times since the first of each clock"
    is_within = start is not None and end is not None and start - SLACK_NS <= first <= end + SLACK_NS
    origin, start_of = (start, "start of the recording") if is_within else (first, "first")
    return rows.with_columns(pl.col(columns) - origin), f", times since the {start_of}"


def _origins(answer: pl.DataFrame, columns: list[str], *, has_one_clock: bool) -> dict[tuple[Any, ...], int]:
    """The first moment on the clock of each series.

    A series goes by a clock of its own if it is one of `APART` and the recording has no clock for all, or if it is far
    apart from all others.
    """
    series = [name for name in SERIES if name in answer.columns]
    if not series:
        return {}
    spans = answer.group_by(series).agg(
        first=pl.min_horizontal(pl.col(columns).min()), last=pl.max_horizontal(pl.col(columns).max())
    )
    origins: dict[tuple[Any, ...], int] = {}
    clock: bool | None = None
    origin = reach = 0
    own = [pl.col(name) == value for name, value in APART.items() if name in series and not has_one_clock]
    known = spans.drop_nulls("first").with_columns(apart=pl.any_horizontal(False, *own).fill_null(False))
    for *key, first, last, apart in known.sort("apart", "first", *series).iter_rows():
        if clock != apart or first > reach + SLACK_NS:
            clock, origin, reach = apart, first, last
        reach = max(reach, last)
        origins[tuple(key)] = origin
    return origins
