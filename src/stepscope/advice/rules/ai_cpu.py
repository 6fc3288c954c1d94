"""Operators that run on the device's CPU, and what the vendor's own advisor recommends about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import MINDSPORE, NPU, PYTORCH, Finding, place, platform_of
from stepscope.advice.messages import Message, Text, framed
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.device_work import NAMED, computes_late, cost_of, operator_names, saving_of
from stepscope.limits import limit

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
    "operators": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} {names:list} on the device's own CPU (AI CPU): {total_ns:ms} "
            "{per:each}[ on rank {worst_rank}], in {exposed_ns:ms} of which the device does nothing else.",
            "{ranks:ranks} 在设备自身的 CPU（AI CPU）上运行 {names:list}：{per:each} {total_ns:ms}[（rank "
            "{worst_rank}）]，"
            "其中 {exposed_ns:ms} 设备不做其他事情。",
        ),
        cause=Text(
            "AI cores do not compute these operators with their data types or shapes[: inputs are {types:list}]"
            "[; called in {code}].",
            "AI 核不支持以这些数据类型或形状计算这些算子[：输入为 {types:list}][；调用位置 {code}]。",
        ),
        action=framed(
            Text("", ""),
            {
                (None, None): Text("Cast their inputs to float16 or float32", "把输入转换为 `float16` 或 `float32`"),
                (PYTORCH, None): Text(
                    "Cast their inputs to bfloat16, float16 or float32 (`.float()`, `.int()` instead of 64 bits)",
                    "把输入转换为 `bfloat16`、`float16` 或 `float32`（用 `.float()`、`.int()` 代替 64 位）",
                ),
                (MINDSPORE, None): Text(
                    "Cast their inputs to float16, float32 or int32 (`ops.cast`) instead of 64 bits",
                    "用 `ops.cast` 把输入转换为 `float16`、`float32` 或 `int32`，而不是 64 位",
                ),
            },
            Text(
                ", use another operator that AI cores compute, or do it on the host with the data; if none of this is "
                "possible, ask the vendor for the operator.",
                "，改用 AI 核支持的算子，或放到主机上与数据一起处理；都不可行时，请厂商优化该算子。",
            ),
        ),
        basis=Text(
            "up to all that the job would save without them, as AI cores need time for their work, too",
            "最多为去掉它们所能节省的时间，因为在 AI 核上也需要时间",
        ),
    ),
}
"""Messages by subject. The advisor's own text is quoted verbatim, in its language."""

COMPUTED = Text(
    "All kernels that ran on the AI CPU, if one takes at least the limit. The saving is what a replay of the job saves "
    "without them; at least half of it, as AI cores need time for their work, too, but are far faster.",
    "所有在 AI CPU 上运行的 kernel，其中至少一个达到界限。节省为去掉它们后作业重放所节省的时间；"
    "下限为其一半，因为 AI 核也需要时间，但快得多。",
)


@dataclass(frozen=True)
class Limits:
    """Which operators on the AI CPU are worth a finding."""

    longest_ns: int = limit(20_000, "ns, of the longest call", "the Ascend advisor's limit")


@rule(
    "ai-cpu",
    MESSAGES,
    claim=Claim(Turn.STOPPED, "computing", yields=("computing",)),
    dimension="computation",
    computed=COMPUTED,
    shows=("ai_cpu_operators",),
    explains=("slow-rank:computing/ai_cpu", "uneven-work"),
)
def ai_cpu(
    rank_figures: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    ai_cpu_operators: pl.DataFrame | None = None,
    breakdown: pl.DataFrame | None = None,
    slow_ranks: pl.DataFrame | None = None,
    operator_savings: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report operators that ran on the AI CPU of Ascend devices, with data types and the code that calls them, and what
    the vendor's advisor (msadvisor) recommends in a profile, once if several ranks have the same."""
    if ai_cpu_operators is not None:
        yield from _operators(ai_cpu_operators, ranks, breakdown, slow_ranks, operator_savings, limits)
    if rank_figures is None:
        return
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


def _operators(
    operators: pl.DataFrame,
    ranks: pl.LazyFrame | None,
    breakdown: pl.DataFrame | None,
    slow_ranks: pl.DataFrame | None,
    savings: pl.DataFrame | None,
    limits: Limits,
) -> Iterator[Finding]:
    """The finding about operators that were recorded."""
    is_long = pl.col("max_ns").max().over("rank") >= limits.longest_ns
    rows = operators.filter(is_long)
    if rows.is_empty() or platform_of(ranks, rows["rank"].unique().to_list()).device not in (None, NPU):
        return
    every = _numbers(ranks, breakdown)
    total = cost_of(rows.select("rank", cost_ns="total_ns"), every, breakdown)
    exposed = cost_of(rows.select("rank", cost_ns="exposed_ns"), every, breakdown)
    worst = rows.filter(pl.col("rank") == total.ranks[0])
    code = tuple(worst.sort(-pl.col("total_ns"), "name")["code"].drop_nulls().unique(maintain_order=True))
    types = worst["rare_types"].explode().drop_nulls().unique().sort().to_list()
    saving = saving_of("ai_cpu", savings, exposed)
    late = computes_late(exposed.ranks, slow_ranks)
    names = operator_names(worst, "total_ns")
    yield Finding(
        rule="ai-cpu",
        message="operators",
        parameters={
            "names": names[:NAMED],
            "total_ns": total.cost_ns,
            "exposed_ns": exposed.cost_ns,
            "types": types or None,
            "code": code[0] if code else None,
        },
        **saving.claimed(),
        saving_low_ns=saving.time_ns // 2,
        where={"operators": names},
        evidence={"total_ns": total.cost_ns, "exposed_ns": exposed.cost_ns, "calls": int(worst["count"].sum())},
        per=total.per,
        least=exposed.severity if late else "low",
        confidence="certain",
        code=code,
    ).on(total.ranks)


def _numbers(ranks: pl.LazyFrame | None, breakdown: pl.DataFrame | None) -> list[int]:
    """The ranks of the job, as far as they are recorded."""
    if breakdown is not None:
        return sorted(set(breakdown["rank"]))
    return [] if ranks is None else ranks.select(pl.col("rank").unique().sort()).collect()["rank"].to_list()


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
