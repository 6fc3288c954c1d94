"""What a request asked of a table: some rows, in some order, a page of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asked import Asked

_SWITCHES = ("is_display_detail", "is_display_full_op_name", "is_display_op_detail")
"""Conditions that choose columns, not rows."""
_DEFAULT_LIMIT = 10


def chosen(asked: Asked, columns: Sequence[str], rows: list[list[Any]]) -> dict[str, Any]:
    """The answer to a request for a table: filtered, then sorted, then a page of it; `size` counts before the page.

    Where no order was asked for, the page of an answer cut short has the rows that MindInsight chose: its own order is
    that of its files.
    """
    filters = asked.parameters.get("filter_condition") or {}
    kept = [
        row for row in rows if all(_fits(row[columns.index(n)], f) for n, f in filters.items() if n not in _SWITCHES)
    ]
    answer = {"col_name": list(columns), "size": len(kept)}
    if sort := asked.parameters.get("sort_condition"):
        kept = ordered(columns, kept, sort)
    if page := asked.parameters.get("group_condition"):
        limit, number = page.get("limit", _DEFAULT_LIMIT), page.get("offset", 0)
        if sort or len(kept) <= limit:
            kept = kept[number * limit : (number + 1) * limit]
        else:
            shown = [_names(row) for row in asked.answer["object"]]
            kept = [row for row in kept if _names(row) in shown]
    return {**answer, "object": kept}


def ordered(columns: Sequence[str], rows: list[list[Any]], sort: dict[str, str]) -> list[list[Any]]:
    """Rows in the order of a column; those that are alike there, in the order of their names."""
    at, named = list(columns).index(sort["name"]), sorted(rows, key=_names)
    return sorted(named, key=lambda row: (row[at] is not None, row[at] or 0), reverse=sort["type"] == "descending")


def _names(row: list[Any]) -> list[str]:
    return [cell for cell in row if isinstance(cell, str)][:2]


def _fits(value: Any, condition: dict[str, list[Any]]) -> bool:
    text = str(value)
    return (
        ("in" not in condition or value in condition["in"])
        and ("not_in" not in condition or value not in condition["not_in"])
        and (
            "partial_match_str_in" not in condition
            or any(part.lower() in text.lower() for part in condition["partial_match_str_in"])
        )
    )
