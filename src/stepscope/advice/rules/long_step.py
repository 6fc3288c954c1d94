"""Single steps take far longer than the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, Confidence, Finding, per_of, platform_of, saved
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.idle_gaps import short_name
from stepscope.analysis.job.outlier_steps import MAIN
from stepscope.analysis.step.processor_waits import waits_ratio
from stepscope.limits import limit

_HOW_MUCH = Text(
    " in {steps:steps}[ on rank {rank}][ and {more} more]: {excess_ns:ms} more than in a median {per:noun} of "
    "{median_ns:ms} ({ratio:percent} of the recorded time).",
    "（{steps:steps}[，rank {rank}][ 和另外 {more} 个]）：比 {median_ns:ms} 的中位{per:each}多 {excess_ns:ms}"
    "（占记录时间的 {ratio:percent}）。",
)
_CAUSE = Text(
    "This accounts for {kind_ns:ms} of the extra time; {of:windows} were recorded.[ In its longest gap, the host is in "
    "`{during}`.][ Of so few {few:nouns}, chance cannot be ruled out: record more.]",
    "多出的时间中有 {kind_ns:ms} 属于此类；共记录了 {of:windows}。[在最长的空隙中，主机在执行 `{during}`。]"
    "[{few:nouns}太少，无法排除偶然：请多记录一些。]",
)
_BASIS = Text(
    "[{summed:one |}the extra time][{replayed:one |}what a replay of the job without the extra time saves]"
    ", spread over all {per:nouns}[{replayed:one |}, give or take 5%]",
    "[{summed:one |}多出的时间][{replayed:one |}不含多出时间的作业重放所节省的时间]平均到每{per:noun}"
    "[{replayed:one |}，±5%]",
)
_HOST = Text(
    "See what the host did in that {per:noun} with «`stepscope gaps`». If it is evaluation, logging or start-up, do it "
    "less often or leave it out of the recording.",
    "用 «`stepscope gaps`» 查看主机在该{per:noun}中做了什么。若是评估、日志或启动过程，降低其频率或不记录它。",
)
_WORK: Choices = {
    (None, None): Text(
        "Compare the kernels of that {per:noun} with another's («`stepscope ops --step`»): other input shapes mean an "
        "uneven batch; the same kernels, only slower, mean a lower clock or another process on the device.",
        "把该{per:noun}的 kernel 与其他的对比（«`stepscope ops --step`»）：输入形状不同说明批次不均；"
        "kernel 相同但更慢，说明频率降低或设备上有其他进程。",
    ),
    (None, CPU): Text(
        "Compare the operators of that {per:noun} with another's («`stepscope ops --step`»): other input shapes mean "
        "an uneven batch; the same operators, only slower, mean other processes on the processors.",
        "把该{per:noun}的算子与其他的对比（«`stepscope ops --step`»）：输入形状不同说明批次不均；"
        "算子相同但更慢，说明处理器上有其他进程。",
    ),
}
_NETWORK: Choices = {
    (None, None): Text(
        "No recorded rank is late otherwise: check the network (retransmissions, links that went down) and ranks that "
        "were not recorded.",
        "没有其他已记录的 rank 迟到：检查网络（重传、断开的链路）以及未被记录的 rank。",
    ),
    (None, CPU): Text(
        "No recorded rank is late otherwise: check what else runs on the processors, which move the data; between "
        "hosts, also the network (retransmissions), and ranks that were not recorded.",
        "没有其他已记录的 rank 迟到：检查搬运数据的处理器上还有什么在运行，主机之间还要检查网络（重传），"
        "以及未被记录的 rank。",
    ),
}
_KINDS: dict[str, tuple[Text, Text | Choices]] = {
    "computing": (Text("Computing takes far longer", "计算耗时长得多"), _WORK),
    "communication": (Text("Communication takes far longer", "通信耗时长得多"), _NETWORK),
    "memory": (Text("Copying memory takes far longer", "内存拷贝耗时长得多"), _HOST),
    "compile": (Text("A compiler runs", "编译器在运行"), _HOST),
    "garbage_collection": (Text("Python collects garbage", "Python 在回收垃圾"), _HOST),
    "data_loading": (Text("Waiting for data takes far longer", "等待数据耗时长得多"), _HOST),
    "checkpoint": (Text("A checkpoint is written", "在写检查点"), _HOST),
    "synchronisation": (Text("The device is idle around synchronising calls", "设备在同步调用前后空闲"), _HOST),
    "dispatch": (Text("The host launches work far too late", "主机下发任务过晚"), _HOST),
    "dependency": (
        Text("The device is idle although its next work was launched in time", "后续任务已及时下发，但设备空闲"),
        _HOST,
    ),
    "python": (Text("Python code runs outside any operator", "在算子之外运行 Python 代码"), _HOST),
    "other": (Text("Nothing that was recorded runs", "没有任何被记录的活动"), _HOST),
    "unmarked": (Text("Nothing that light tracing marks runs", "没有任何轻量打点标记的活动"), _HOST),
    "not_recorded": (Text("The device is idle for a cause that was not recorded", "设备空闲，原因未被记录"), _HOST),
    "outside": (
        Text("The host works before or after all work of its device", "主机在设备的全部任务之前或之后耗时"),
        _HOST,
    ),
    "unknown": (Text("Something takes far longer", "耗时长得多"), _HOST),
}
"""What happens, and the action, by `outlier_steps.kind`."""

MESSAGES = {kind: Message(what + _HOW_MUCH, _CAUSE, action, basis=_BASIS) for kind, (what, action) in _KINDS.items()}

MESSAGES[SAME := "computing/same"] = Message(
    summary=Text("The same operators take far longer", "同样的算子耗时长得多") + _HOW_MUCH,
    cause=Text(
        "Names and shapes of its operators are those of the other {per:nouns}, so processors were slower or taken "
        "away: by other processes, a lower clock, or the host of a virtual machine.",
        "其算子的名称和形状与其他{per:nouns}相同，因此是处理器变慢或被占用：其他进程、降频，或虚拟机的宿主机。",
    ),
    action=Text(
        "Nothing in the script needs to change. If it recurs, find what else runs on the host then, or give the job "
        "processors of its own.",
        "脚本无需改动。若反复出现，找出当时主机上还运行了什么，或为作业分配专用的处理器。",
    ),
    basis=_BASIS,
)

OF_DEVICES = ("synchronisation", "dispatch", "dependency", "not_recorded", "outside")
"""Kinds that exist only with a device."""

_REPLAYED = ("cost_ns", "saving_low_ns", "saving_high_ns")

LEAST_STEPS = 3
"""Steps from which it is known what an ordinary one takes."""


@dataclass(frozen=True)
class Limits:
    """When long steps are a remark only."""

    waits_ratio: float = limit(
        0.25, "of the steps, waiting for processors", "chosen by us: on such a host any step may be long by chance"
    )


_CONFIDENCE: dict[str, Confidence] = {
    **dict.fromkeys(("compile", "garbage_collection", "data_loading", "checkpoint"), "certain"),
    **dict.fromkeys(("dependency", "python", "other", "unmarked", "not_recorded", "outside", "unknown"), "possible"),
}
"""Kinds of time that are marked as such, and those that have several explanations."""


@rule(
    "long-step",
    MESSAGES,
    whole_job=True,
    claim=Claim(Turn.LONG_STEP, time_in="kind", own=True),
    dimension="overall",
    computed=Text(
        "Finds steps other than the first that take far longer than the rank's median step, and the kind "
        "of work that most of the extra time is. The saving is the extra time spread over all steps, or "
        "what a replay without it saves if one rank alone stops, less what other findings claim of that "
        "kind.",
        "找出除首步外远长于该 rank 中位步的步，以及多出的时间主要属于哪类工作。节省为多出的时间分摊到所有"
        "步；若只有一个 rank 停顿，则为去掉它的重放所得；并扣除其他结论在该类时间上已计入的部分。",
    ),
    shows=("outlier_steps", "gaps"),
)
def long_step(
    outlier_steps: pl.DataFrame,
    breakdown: pl.DataFrame,
    gaps: pl.DataFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    single_stalls: pl.DataFrame | None = None,
    idle: pl.DataFrame | None = None,
    processor_waits: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report steps that take far longer than the others, and what they spend the extra time on.

    A first step is start-up and left out. The saving is the extra time spread over all steps, or what a replay without
    it saves if one rank alone stops (`single_stalls`), less what other rules claim of the same kind; where they claim
    nearly all of it, they name the steps, and this rule is silent. Of two steps of one rank, none is claimed. On a host
    without free processors, and of the same operators on a CPU, it is a remark.
    """
    per, count, on_cpu = per_of(breakdown), breakdown["rank"].n_unique(), platform_of(ranks).device == CPU
    stalls = {} if single_stalls is None else {(row["rank"], row["step"]): row for row in single_stalls.to_dicts()}
    if on_cpu and idle is not None:
        stalls = {place: {**row, "kind": _cause(row, idle)} for place, row in stalls.items()}
    remark = waits_ratio(processor_waits) >= limits.waits_ratio
    later = _with_stalls(outlier_steps.filter(~pl.col("is_first")), stalls)
    for (kind,), rows in later.partition_by("kind", as_dict=True, maintain_order=True).items():
        worst = rows.sort(-pl.col("excess_ns"), "step").row(0, named=True)
        steps, recorded = worst["steps"], max(worst["recorded_ns"], 1)
        excess = min(rows["excess_ns"].sum(), recorded)
        replayed = [stalls[place] for row in rows.iter_rows(named=True) if (place := _stall_of(row, stalls))]
        saved_ns, low_ns, high_ns = _saving(rows, replayed, excess)
        everyone = worst["alike"] >= count
        same = on_cpu and kind == "computing" and bool(rows["same_work"].fill_null(value=False).all())
        message = SAME if same else "unknown" if on_cpu and kind in OF_DEVICES else kind
        yield Finding(
            rule="long-step",
            message=message,
            parameters={
                "rank": None if everyone else worst["rank"],
                "more": None if everyone or worst["alike"] == 1 else worst["alike"] - 1,
                "steps": rows["step"].to_list(),
                "excess_ns": excess,
                "median_ns": worst["median_ns"],
                "ratio": excess / recorded,
                **({} if same else _extra(rows, worst, gaps, few=steps < LEAST_STEPS and bool(replayed))),
                "summed": None if low_ns else 1,
                "replayed": 1 if low_ns else None,
            },
            saving_ns=saved(per, saved_ns / steps, steps),
            saving_ratio=saved_ns / recorded,
            saving_low_ns=saved(per, low_ns / steps, steps),
            saving_high_ns=saved(per, high_ns / steps, steps),
            replayed=len(replayed) == rows.height,
            per=per,
            where={**({} if everyone else {"rank": worst["rank"]}), "steps": rows["step"].to_list()},
            confidence=_CONFIDENCE.get(kind, "likely"),
            span_ns=_span(breakdown, worst),
            span_rank=worst["rank"],
            evidence={
                "kind": kind,
                "steps": rows["step"].to_list(),
                **{name: worst[name] for name in ("window_ns", "median_ns", "recorded_ns")},
                "excess_ns": excess,
            },
            least="low" if same or remark else "medium",
            most="low" if same or remark else "medium" if steps < LEAST_STEPS else "high",
        )


def _cause(stall: dict[str, Any], idle: pl.DataFrame) -> str:
    """What a host without a device stops for: of what is not marked, the cause of most of its idle time."""
    kind = str(stall["kind"])
    here = idle.filter(pl.col("rank") == stall["rank"], pl.col("step") == stall["step"])
    long = here.filter(pl.col("idle_ns") >= MAIN * stall["excess_ns"]).sort(-pl.col("idle_ns"), "cause")
    return kind if kind not in OF_DEVICES or long.is_empty() else str(long["cause"][0])


def _extra(rows: pl.DataFrame, worst: dict[str, Any], gaps: pl.DataFrame | None, *, few: bool) -> dict[str, Any]:
    """What is told of the extra time."""
    steps = worst["steps"]
    return {
        "kind_ns": rows["kind_ns"].sum(),
        "of": steps,
        "during": _during(gaps, worst),
        "few": steps if few else None,
    }


def _with_stalls(later: pl.DataFrame, stalls: dict[tuple[int, int], dict[str, Any]]) -> pl.DataFrame:
    """The long steps, and those in which one rank stops though they are not that much longer than others; or much
    longer for another reason, of which the stall is no part."""
    known = {place for row in later.iter_rows(named=True) if (place := _stall_of(row, stalls))}
    beside = {place: row["excess_ns"] for place, row in stalls.items() if place not in known}
    less = [beside.get((rank, step), 0) for rank, step in later.select("rank", "step").iter_rows()]
    later = later.with_columns(
        pl.max_horizontal("kind_ns", pl.col("excess_ns") - pl.Series(less, dtype=pl.Int64)).alias("excess_ns")
    )
    more = [
        {
            **{name: row[name] for name in ("step", "rank", "kind", "window_ns", "median_ns", "excess_ns", "steps")},
            **{"alike": 1, "kind_ns": row["excess_ns"], "is_first": False, "recorded_ns": row["recorded_ns"]},
            **{"share_ratio": row["window_ns"] / max(row["recorded_ns"], 1), "same_work": None},
        }
        for place, row in stalls.items()
        if place not in known
    ]
    return pl.concat([later, pl.DataFrame(more, schema=later.schema)]).sort("step")


def _stall_of(row: dict[str, Any], stalls: dict[tuple[int, int], dict[str, Any]]) -> tuple[int, int] | None:
    """Rank and step of the stall that makes a step long: on a device, a stall at the start of a step makes the window
    of the step before longer."""
    places = ((row["rank"], row["step"] + later) for later in (0, 1))
    long = (place for place in places if place in stalls)
    return next((place for place in long if stalls[place]["excess_ns"] >= MAIN * row["excess_ns"]), None)


def _saving(rows: pl.DataFrame, replayed: list[dict[str, Any]], excess_ns: int) -> tuple[float, float, float]:
    """What all these steps cost together, with its bounds. A sum of extra times has no lower bound: others may be as
    late. Of two steps of one rank, it is unknown which one is ordinary."""
    if len(replayed) == rows.height:
        sums = [sum(row[name] * row["steps"] for row in replayed) for name in _REPLAYED]
        return sums[0], sums[1], sums[2]
    summed = excess_ns if rows["steps"].max() >= LEAST_STEPS else 0  # type: ignore[operator]
    return summed, 0, summed


def _span(breakdown: pl.DataFrame, row: dict[str, Any]) -> tuple[int, int] | None:
    """Start and end of a step on its rank."""
    step = breakdown.filter((pl.col("rank") == row["rank"]) & (pl.col("step") == row["step"]))
    if step.is_empty():
        return None
    start_ns, window_ns = step.select("window_start_ns", "window_ns").row(0)
    return start_ns, start_ns + window_ns


def _during(gaps: pl.DataFrame | None, row: dict[str, Any]) -> str | None:
    """What the host did in the longest gap of a step on its rank, if that was recorded."""
    if gaps is None:
        return None
    found = gaps.filter((pl.col("rank") == row["rank"]) & (pl.col("step") == row["step"])).head(1)
    did = found.filter(pl.col("duration_ns") >= MAIN * row["excess_ns"])["during"].drop_nulls()
    return short_name(did[0]) if did.len() else None
