"""Moments of a recording, for people, to whom a clock that counts from 1970 or a machine's start says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.present import MOMENTS

SLACK_NS = 60_000_000_000
"""Samples may be taken so long before and after the work that is recorded; other clocks are off by far more."""


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
    is_within = start is not None and end is not None and start - SLACK_NS <= first <= end + SLACK_NS
    origin, told = (start, "start of the recording") if is_within else (first, "first")
    return rows.with_columns(pl.col(columns) - origin), f", times since the {told}"
