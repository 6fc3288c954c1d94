"""Moments of a recording, for people, to whom a clock that counts from 1970 or a machine's start says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.present import MOMENTS

SLACK_NS = 60_000_000_000
"""Samples may be taken so long before and after the work that is recorded; other clocks are off by far more."""

SERIES = ("queue", "module", "scope", "component")
"""Columns whose values may have clocks of their own: a queue on the device, one on the host."""

APART = ("get_next", "process")
"""Series on a clock of their own where the recording does not have one for all: the device's queue beside the host's,
what was sampled of the process beside what the framework marked."""


def since_start(rows: pl.DataFrame, answer: pl.DataFrame, facts: Mapping[str, Any]) -> tuple[pl.DataFrame, str]:
    """Rows whose moments count from the start of the recording, or from the first moment of the answer.

    Args:
        rows: Those of the answer that are shown.
        answer: All of it.
        facts: Of the rank. Its start counts where the moments are on its clock, so lie within the recording; files of
            the host or of a dataset pipeline may have clocks of their own.

    Returns:
        The rows, and for the heading from where their times count; empty if they have none.
    """
    columns = [name for name in answer.columns if name in MOMENTS]
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
    origin, told = (start, "start of the recording") if is_within else (first, "first")
    return rows.with_columns(pl.col(columns) - origin), f", times since the {told}"


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
    known = spans.drop_nulls("first").with_columns(apart=pl.any_horizontal(pl.col(series).is_in(APART)))
    known = known.with_columns(apart=pl.col("apart").fill_null(False) & ~pl.lit(has_one_clock))
    for *key, first, last, apart in known.sort("apart", "first", *series).iter_rows():
        if clock != apart or first > reach + SLACK_NS:
            clock, origin, reach = apart, first, last
        reach = max(reach, last)
        origins[tuple(key)] = origin
    return origins
