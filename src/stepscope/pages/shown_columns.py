"""Titles and importance of the columns of a table to show: as the analysis declares them, else by their names."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.advice.finding import Per
from stepscope.analysis.columns import SHARED
from stepscope.analysis.registry import ANALYSES
from stepscope.pages.step_words import filled
from stepscope.present import title
from stepscope.tables.base import Column


def columns_of(question: str, rows: pl.DataFrame, per: Per = "step") -> list[Column]:
    """The columns of an answer, or of a table made of it, with titles for what the windows of the job are.

    Args:
        question: The analysis.
        rows: The table; a column that the analysis does not declare is the shared one of that name, if there is one.
        per: What the windows are.
    """
    declared = {column.name: column for column in ANALYSES[question].columns} if question in ANALYSES else {}
    found = []
    for name in rows.columns:
        column = declared.get(name) or SHARED.get(name) or Column(name, "string", "")
        found.append(replace(column, title=_title(column, per)))
    return found


def _title(column: Column, per: Per) -> str:
    if column.title:
        return filled(column.title, per)
    words = title(column.name).split(" ")
    return " ".join(filled(f"{{{word}}}", per) if word in ("step", "steps") else word for word in words)
