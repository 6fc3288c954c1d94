"""The answers of a page as plain data for programs: one object with all tables, or one table."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.pages.answering import Answered
from stepscope.pages.listing import listed


def document(answered: Answered) -> dict[str, Any]:
    """The tables by name, how many rows each has, why others are missing, and what could not be read."""
    run = answered.run
    about = {"rank": run.ranks[0].rank} if answered.page.scope == "rank" else {"ranks": [r.rank for r in run.ranks]}
    listing = answered.request.listing
    parts = {
        section.key: listed(answer, listing) for section, answer in answered.found if isinstance(answer, pl.DataFrame)
    }
    return {
        "run": run.name,
        **about,
        "step" if answered.page.scope == "rank" else "steps": answered.request.steps,
        "rows": {key: part.found for key, part in parts.items()},
        "tables": {key: _rows(part.rows) for key, part in parts.items()},
        "unavailable": {section.key: answer for section, answer in answered.found if isinstance(answer, str)},
        "issues": _rows(run.issues.filter(pl.col("severity") != "note").drop("rank")),
    }


def one_table(answered: Answered) -> pl.DataFrame:
    """The first table; `rank` is one of its columns."""
    return listed(next(iter(answered.tables.values())), answered.request.listing).rows


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON, which has no NaN and no infinity."""
    floats = pl.col(pl.Float64)
    return frame.with_columns(pl.when(floats.is_finite()).then(floats)).to_dicts()
