"""What the vendor's own advisor recommends about operators that run on the device's CPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.platforms import NPU, platform_of
from stepscope.advice.ranks import named, place

RECOMMENDATION = "recommendation"
AI_CPU = "AICPUModel"
"""The advisor's name for operators on the device's CPU."""

MOST_LINES = 8
"""Lines of a recommendation that are quoted; all of it is in the evidence."""


@rule("ai-cpu")
def ai_cpu(stated: pl.LazyFrame, ranks: pl.LazyFrame | None = None) -> Iterator[Finding]:
    """Hand on the recommendations that lie beside a profile (msadvisor), the same one of several ranks once.

    How much they would save, the advisor does not say.
    """
    rows = (
        stated.filter((pl.col("name") == RECOMMENDATION) & pl.col("text").is_not_null())
        .group_by("text", maintain_order=True)
        .agg(pl.col("rank").unique().sort())
        .collect()
    )
    for text, numbers in rows.select("text", "rank").iter_rows():
        if platform_of(ranks, numbers).device not in (None, NPU):
            continue  # the advisor knows Ascend devices only, so this is about another job
        for model, content in _models(text).items():
            lines = list(_lines(content.get("extend")))
            if lines:
                yield _finding(model, content, lines, numbers)


def _finding(model: str, content: dict[str, Any], lines: list[str], ranks: list[int]) -> Finding:
    """What the advisor says of one of its subjects."""
    shown = lines[:MOST_LINES]
    more = f"; {len(lines) - len(shown)} more" if len(lines) > len(shown) else ""
    what = "operators on the device's CPU (AI CPU)" if model == AI_CPU else str(content.get("session") or model)
    return Finding(
        rule="ai-cpu",
        summary=f"{named(ranks, 'has', 'have')} a recommendation of the vendor's advisor (msadvisor) about {what}.",
        cause=str(content.get("summary") or "The advisor gives no reason."),
        action="; ".join(shown) + more,
        saving_ns=0,
        saving_ratio=0.0,
        where=place(ranks),
        evidence={"recommendation": content},
    )


def _models(text: str) -> dict[str, dict[str, Any]]:
    """Recommendations by the subject of the advisor; text that is no JSON is a single line."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if not isinstance(value, dict) or "extend" in value:
        return {AI_CPU: value if isinstance(value, dict) else {"extend": value}}
    return {name: content for name, content in value.items() if isinstance(content, dict)}


def _lines(value: Any, depth: int = 0) -> Iterator[str]:
    """All texts in the advisor's tables, in order, without the titles above them."""
    if isinstance(value, str) and value.strip():
        yield value.strip()
    elif isinstance(value, list) and depth < 6:
        for one in value:
            yield from _lines(one, depth + 1)
    elif isinstance(value, dict) and depth < 6:
        yield from _lines(value.get("value"), depth + 1)
