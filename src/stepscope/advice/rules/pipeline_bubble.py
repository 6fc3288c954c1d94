"""Pipeline stages wait for one another for much of each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import Finding, per_of
from stepscope.advice.formatters import ms
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.slow_rank_reasons import parameters_of
from stepscope.limits import limit

FEW, UNEVEN, LONGER, LESS, UNKNOWN = "few", "uneven", "longer", "less", "unknown"

_WAIT = Text(
    "Pipeline stages wait for one another for {bubble:percent} of the {per:time} ({bubble_ns:ms}, mean of the ranks)",
    "流水线各阶段相互等待占{per:time}的 {bubble:percent}（{bubble_ns:ms}，各 rank 平均）",
)
_WORK = Text(" In their order, the stages compute for {stages:names}.", "各阶段依次计算 {stages:names}。")
_IDEAL = Text(
    "With {stages_number} stages and {micro_batches:count micro-batch|micro-batches}"
    "[ in {chunks} model chunks on each rank], even stages wait for {ideal:percent}.",
    "{stages_number} 个阶段、{micro_batches} 个微批[，每个 rank {chunks} 个模型块]时，均衡的阶段等待 {ideal:percent}。",
)
_ALSO = Text(
    "[ Stages are uneven, too: stage {heavier} computes {times:number .2f} times as long as the mean stage.]",
    "[此外各阶段不均衡：阶段 {heavier} 的计算时间是各阶段平均的 {times:number .2f} 倍。]",
)
_ALSO_BALANCE = Text(
    "[ Move layers from stage {heavier} to others as well.]", "[并把阶段 {heavier} 的一些层移到其他阶段。]"
)
_MORE = Text(
    "Use more micro-batches, as far as memory and the batch allow, or give each rank several model chunks (interleaved "
    "schedule, with more transfers): with twice as many of either, even stages wait for {twice:percent}.",
    "在内存和批大小允许的范围内增加微批，或让每个 rank 承担多个模型块（交错调度，传输更多）："
    "任一项翻倍后，均衡的阶段等待 {twice:percent}。",
)
_BALANCE = Text(
    "Move layers from stage {longest} to others: it computes {factor:number .2f} times as long as the mean stage.",
    "把阶段 {longest} 的一些层移到其他阶段：它的计算时间是各阶段平均的 {factor:number .2f} 倍。",
)
_ELSE = Text(
    "See findings on slow ranks, slow links and uneven work, if there are any, and «`stepscope pipeline`» for the "
    "stages and transfers that wait longest.",
    "如有慢 rank、慢链路和工作量不均的结论，先看这些；用 «`stepscope pipeline`» 查看等待最久的阶段和传输。",
)
_NOTHING = Text("it is unknown how much can be saved", "能节省多少未知")

MESSAGES = {
    FEW: Message(
        summary=_WAIT + Text(": the pipeline has few micro-batches.", "：流水线的微批太少。"),
        cause=_IDEAL + _WORK + _ALSO,
        action=_MORE + _ALSO_BALANCE,
        basis=Text(
            "up to what twice as many micro-batches of half the size save, if these compute as fast: half of what even "
            "stages wait",
            "至多为微批数翻倍且大小减半、计算速度不变时所节省的时间：均衡阶段等待时间的一半",
        ),
    ),
    UNEVEN: Message(
        summary=_WAIT + Text(", as they are uneven.", "，因为各阶段不均衡。"),
        cause=Text(
            "[With {stages_number} stages and {micro_batches:count micro-batch|micro-batches}, even stages wait for "
            "{ideal:percent}.]",
            "[{stages_number} 个阶段、{micro_batches} 个微批时，均衡的阶段等待 {ideal:percent}。]",
        )
        + _WORK,
        action=_BALANCE,
        basis=_NOTHING,
    ),
    LONGER: Message(
        summary=_WAIT + Text(", longer than their schedule asks for.", "，超过调度本身所需。"),
        cause=_IDEAL + _WORK,
        action=_ELSE,
        basis=_NOTHING,
    ),
    LESS: Message(
        summary=_WAIT + Text(".", "。"),
        cause=Text(
            "With {stages_number} stages and {micro_batches:count micro-batch|micro-batches}, this is less than stages "
            "have to wait where a backward pass is one piece: the schedule splits it (zero bubble) or is another one, "
            "and how long they have to wait in it is unknown.",
            "{stages_number} 个阶段、{micro_batches} 个微批时，这少于反向不拆分的调度所必需的等待："
            "该调度拆分了反向（零气泡）或属于其他调度，其必需的等待时间未知。",
        )
        + _WORK,
        action=_ELSE,
        basis=_NOTHING,
    ),
    UNKNOWN: Message(
        summary=_WAIT + Text(".", "。"),
        cause=Text(
            "How many micro-batches {per:each} they have is unknown[ (at most {most})], and so is how long they have "
            "to wait.",
            "{per:each}有多少微批未知[（至多 {most} 个）]，因此必须等待多久也未知。",
        )
        + _WORK,
        action=Text("Check the number of micro-batches. ", "检查微批的数量。") + _ELSE,
        basis=_NOTHING,
    ),
}
"""By what makes it long: few micro-batches, uneven stages, something else, or nobody knows, also where it is short."""


@dataclass(frozen=True)
class Limits:
    """When waiting is worth a finding."""

    bubble_ratio: float = limit(
        0.1, "of the step, mean of the ranks", "MindSpore Insight's limit of receiving between stages"
    )


@rule(
    "pipeline-bubble",
    MESSAGES,
    whole_job=True,
    dimension="communication",
    computed=Text(
        "Divides the time in which pipeline stages wait for one another by the step, and compares it "
        "with what the formula of the schedule gives for even stages. Slow ranks, links and uneven "
        "stages claim what they cost, so nothing is claimed here; the upper bound is what twice the "
        "micro-batches would save by that formula.",
        "用流水线各阶段相互等待的时间除以一步的时间，并与调度公式在阶段均衡时的结果比较。慢 rank、慢链路"
        "和不均衡阶段各自计入其代价，因此这里不计节省；上限为按公式将微批次加倍所得。",
    ),
    shows=("pipeline_schedule", "pipeline_stages"),
)
def pipeline_bubble(
    pipeline_schedule: pl.DataFrame,
    pipeline_stages: pl.DataFrame,
    breakdown: pl.DataFrame,
    slow_ranks: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report the waiting of pipeline stages for one another, with what even stages would (`pipeline_schedule`).

    What slow ranks, slow links and uneven stages cost is claimed by their own findings, so this one claims nothing;
    the upper bound of its saving is what the formula of the schedule gives for twice the micro-batches.
    """
    known = pipeline_schedule.row(0, named=True)
    bubble, ideal = known["bubble_ratio"], known["ideal_ratio"]
    if bubble is None or bubble < limits.bubble_ratio or known["recorded_stages"] < known["stages"]:
        return
    uneven = known["uneven_stage"] is not None
    more = bubble if ideal is None else bubble - ideal
    if ideal is not None and ideal >= limits.bubble_ratio and not (uneven and more >= ideal):
        message = FEW
    elif uneven:
        message = UNEVEN
    elif slow_ranks is not None and slow_ranks.height:
        return  # they are why, and told
    elif known["waits_less"]:
        message = LESS
    else:
        message = UNKNOWN if ideal is None else LONGER
    facts = _facts(known, pipeline_stages)
    most = _at_most(known, pipeline_stages) if message == FEW else 0
    yield Finding(
        rule="pipeline-bubble",
        message=message,
        parameters={name: facts[name] for name in sorted(parameters_of(MESSAGES[message]))},
        saving_ns=0,
        saving_high_ns=most,
        per=per_of(breakdown),
        least="medium" if message == FEW else "low",
        confidence="likely" if message in (FEW, UNEVEN) else "possible",
        evidence={name: known[name] for name in _EVIDENCE},
    )


_EVIDENCE = (
    *("stages", "micro_batches", "model_chunks", "micro_batches_by", "ideal_ratio", "bubble_ratio", "bubble_ns"),
    *("largest_work_factor", "longest_stage"),
)


def _at_most(known: dict[str, Any], stages: pl.DataFrame) -> int:
    """What twice as many micro-batches save at most: half of what even stages wait, as long as they compute now."""
    work = stages["work_ns"].mean()
    if not isinstance(work, float) or known["ideal_ratio"] is None:
        return 0
    even_ns = work * known["ideal_ratio"] / (1 - known["ideal_ratio"])
    least: float = min(even_ns, known["bubble_ns"])
    return round(least / 2)


def _facts(known: dict[str, Any], stages: pl.DataFrame) -> dict[str, Any]:
    """Parameters of all messages."""
    p, m, v = known["stages"], known["micro_batches"], known["model_chunks"] or 1
    work = [ms(length) for length in stages.sort("stage")["work_ns"].drop_nulls()]
    return {
        "bubble": known["bubble_ratio"],
        "bubble_ns": known["bubble_ns"],
        "ideal": known["ideal_ratio"],
        "stages_number": p,
        "micro_batches": m,
        "most": known["most_micro_batches"],
        "heavier": known["uneven_stage"],
        "times": None if known["uneven_stage"] is None else known["largest_work_factor"],
        "chunks": v if v > 1 else None,
        "twice": None if m is None else (p - 1) / (2 * m * v + p - 1),
        "stages": work,
        "longest": known["longest_stage"],
        "factor": known["largest_work_factor"],
    }
