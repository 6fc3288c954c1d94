"""Recommendations of the vendor's own advisor about operators that run on the device's CPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.advice.finding import NPU, Finding, place, platform_of
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule

RECOMMENDATION = "recommendation"
AI_CPU = "AICPUModel"
"""The advisor's name for operators on the device's CPU."""

MOST_LINES = 8
"""Number of lines of a recommendation that are quoted; the evidence has all."""


_CAUSE = Text(
    "[{reason}]{no_reason:one The advisor gives no reason.|}", "[{reason}]{no_reason:one 该工具没有给出原因。|}"
)
_ACTION = Text("{lines:names ; }[; {more} more]", "{lines:names ；}[；另有 {more} 条]")
_HAS = Text(
    "{ranks:Ranks} {ranks:one has|have} a recommendation of the vendor's advisor (msadvisor) about ",
    "{ranks:ranks} 有一条厂商建议工具（msadvisor）的建议，关于",
)

MESSAGES = {
    "ai_cpu": Message(
        _HAS + Text("operators on the device's CPU (AI CPU).", "设备自身 CPU（AI CPU）上的算子。"), _CAUSE, _ACTION
    ),
    "other": Message(_HAS + Text("{subject}.", " {subject}。"), _CAUSE, _ACTION),
}
"""Messages by subject. The advisor's own text is quoted verbatim, in its language."""


@rule(
    "ai-cpu",
    MESSAGES,
    dimension="computation",
    computed=Text(
        "Quotes the recommendations that the vendor's advisor (msadvisor) left in the profile; nothing "
        "is computed here. That advisor estimates no saving, so none is claimed.",
        "引用厂商建议工具（msadvisor）留在性能数据中的建议，这里不做任何计算。该工具不估计节省，因此不计节省。",
    ),
    shows=("kernel_type_totals",),
)
def ai_cpu(rank_figures: pl.LazyFrame, ranks: pl.LazyFrame | None = None) -> Iterator[Finding]:
    """Report recommendations of the vendor's advisor (msadvisor) in a profile, once if several ranks have the same.

    The advisor does not estimate savings.
    """
    rows = (
        rank_figures.filter((pl.col("name") == RECOMMENDATION) & pl.col("text").is_not_null())
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
    """A recommendation of the advisor about one of its subjects."""
    shown, reason = lines[:MOST_LINES], str(content.get("summary") or "")
    subject = {} if model == AI_CPU else {"subject": str(content.get("session") or model)}
    return Finding(
        rule="ai-cpu",
        message="other" if subject else "ai_cpu",
        parameters={
            "ranks": sorted(set(ranks)),
            **subject,
            "reason": reason,
            "no_reason": 0 if reason else 1,
            "lines": shown,
            "more": len(lines) - len(shown) or None,
        },
        where=place(ranks),
        evidence={"recommendation": content},
        confidence="certain",
    )


def _models(text: str) -> dict[str, dict[str, Any]]:
    """Recommendations by the advisor's subject; text that is not JSON is a single line."""
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
