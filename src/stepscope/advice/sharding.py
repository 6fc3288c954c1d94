"""Settings of PyTorch's FSDP that its all-gathers speak for: gathered late, in small pieces, or twice a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding, per_of, place
from stepscope.advice.messages import Message, Text
from stepscope.analysis.communication.sharded_gathers import BACKWARD, FORWARD
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When the all-gathers of FSDP are worth a finding."""

    gathers_ratio: float = limit(
        0.03, "of the step, in all-gathers of FSDP that nothing covers", "chosen by us: less is not worth a finding"
    )
    small_gather_bytes: int = limit(
        1_048_576, "bytes gathered by a call", "chosen by us: at 100 GB/s these take 10 us, less than a call's latency"
    )
    small_gathers: int = limit(8, "small all-gathers in a step", "chosen by us: fewer cost little")
    room_ratio: float = limit(
        0.8, "of the memory, at the peak with all parameters gathered", "chosen by us: `memory-capacity` begins at 0.9"
    )


_UNLESS_LONGER = Text(
    "if computing covers all of it, as far as there is computing that communication does not overlap yet",
    "上限为计算能将其全部掩盖的情况，且不超过尚未与通信重叠的计算时间",
)

MESSAGES = {
    "forward_gathers": Message(
        summary=Text(
            "In the forward pass, all-gathers of FSDP that nothing covers take {late_ns:ms} {per:each} "
            "({ratio:percent}), without those of the first module.",
            "前向中，{per:each}有 {late_ns:ms}（{ratio:percent}）的 FSDP all-gather 未被掩盖，不含第一个模块。",
        ),
        cause=Text(
            "{calls:number .0f} of them {per:each} begin only when their module is needed[, most for {module}].",
            "{per:each}有 {calls:number .0f} 次在需要该模块时才开始[，耗时最多的是 {module}]。",
        ),
        action=Text(
            "Gather ahead: `set_modules_to_forward_prefetch` of modules wrapped by `fully_shard`, or "
            "`forward_prefetch=True` of FullyShardedDataParallel (leave `limit_all_gathers` on, as memory grows by the "
            "modules gathered ahead).",
            "提前收集：对 `fully_shard` 的模块使用 `set_modules_to_forward_prefetch`，对 FullyShardedDataParallel 设置 "
            "`forward_prefetch=True`（保持 `limit_all_gathers`，因为提前收集的模块会占用内存）。",
        ),
        basis=_UNLESS_LONGER,
    ),
    "backward_gathers": Message(
        summary=Text(
            "In the backward pass, all-gathers of FSDP that nothing covers take {late_ns:ms} {per:each} "
            "({ratio:percent}), without those of the first module.",
            "反向中，{per:each}有 {late_ns:ms}（{ratio:percent}）的 FSDP all-gather 未被掩盖，不含第一个模块。",
        ),
        cause=Text(
            "{calls:number .0f} of them {per:each} begin only when their module is needed[, most for {module}].",
            "{per:each}有 {calls:number .0f} 次在需要该模块时才开始[，耗时最多的是 {module}]。",
        ),
        action=Text(
            "Gather ahead: `backward_prefetch=BackwardPrefetch.BACKWARD_PRE` of FullyShardedDataParallel, or "
            "`set_modules_to_backward_prefetch` of modules wrapped by `fully_shard`.",
            "提前收集：对 FullyShardedDataParallel 设置 `backward_prefetch=BackwardPrefetch.BACKWARD_PRE`，对 "
            "`fully_shard` 的模块使用 `set_modules_to_backward_prefetch`。",
        ),
        basis=_UNLESS_LONGER,
    ),
    "small_gathers": Message(
        summary=Text(
            "FSDP gathers small shards: {calls:number .0f} all-gathers of {size:size} on average {per:each}, of which "
            "nothing covers {late_ns:ms} ({ratio:percent}).",
            "FSDP 收集的分片很小：{per:each}有 {calls:number .0f} 次 all-gather，平均 {size:size}，其中 {late_ns:ms}"
            "（{ratio:percent}）未被掩盖。",
        ),
        cause=Text(
            "A call of this size takes its latency, whatever it sends.",
            "这种大小的调用，耗时取决于延迟，而不是数据量。",
        ),
        action=Text(
            "Wrap larger modules: call `fully_shard` for whole blocks instead of single layers, or raise "
            "`min_num_params` of the `auto_wrap_policy`.",
            "包装更大的模块：对整个块而不是单个层使用 `fully_shard`，或增大 `auto_wrap_policy` 的 `min_num_params`。",
        ),
        basis=Text(
            "if a single call {per:each} gathers them all, as quickly as one does now",
            "上限为{per:each}只用一次调用收集全部，且与现在的一次同样快",
        ),
    ),
    "gathered_twice": Message(
        summary=Text(
            "FSDP gathers parameters again in the backward pass, of which nothing covers {late_ns:ms} {per:each} "
            "({ratio:percent}), while memory has room.",
            "FSDP 在反向中再次收集参数，{per:each}有 {late_ns:ms}（{ratio:percent}）未被掩盖，而内存仍有余量。",
        ),
        cause=Text(
            "Parameters are given up after the forward pass. Kept, they need {size:size} more than the peak of "
            "{used:percent} at most, which makes {kept:percent}.",
            "参数在前向后被释放。保留它们最多比峰值（{used:percent}）多占 {size:size}，即 {kept:percent}。",
        ),
        action=Text(
            "Set `reshard_after_forward=False` in `fully_shard`, or `ShardingStrategy.SHARD_GRAD_OP` in "
            "FullyShardedDataParallel.",
            "在 `fully_shard` 中设置 `reshard_after_forward=False`，或在 FullyShardedDataParallel 中使用 "
            "`ShardingStrategy.SHARD_GRAD_OP`。",
        ),
        basis=Text("at most all of this time", "上限为该时间的全部"),
    ),
}


def sharded(
    gathers: pl.DataFrame | None, peaks: pl.DataFrame | None, breakdown: pl.DataFrame, limits: Limits
) -> Iterator[Finding]:
    """What late, small and repeated all-gathers cost in a step, on the median rank. No call is in two findings."""
    step_ns = median(breakdown, pl.col("window_ns"))
    steps = breakdown["step"].n_unique()
    if gathers is None or gathers.is_empty() or not step_ns or not steps:
        return
    least = limits.gathers_ratio * step_ns
    is_small = (pl.col("gathered_bytes") < limits.small_gather_bytes).fill_null(value=False)
    small, rest = gathers.filter(is_small), gathers.filter(~is_small)
    calls, bare = (_of_step(small, name, steps) for name in ("calls", "transmit_ns"))
    if calls >= limits.small_gathers and bare >= least:
        size = float(small.select((pl.col("gathered_bytes") * pl.col("calls")).sum() / pl.col("calls").sum()).item())
        shown = {"calls": calls, "size": size}
        yield _finding("small_gathers", small, bare, bare * (1 - 1 / calls), shown, breakdown)
    else:
        rest = gathers
    again = rest.filter(pl.col("phase") == BACKWARD).join(
        rest.filter(pl.col("phase") == FORWARD), on=["rank", "module"], how="semi", nulls_equal=True
    )
    bare = _of_step(again, "transmit_ns", steps)
    room = _room(again, peaks, steps)
    is_again = room is not None and bare >= least and room["kept"] <= limits.room_ratio
    if is_again and room is not None:
        yield _finding("gathered_twice", again, bare, bare, room, breakdown)
    free = median(breakdown, pl.col("computing_ns") - pl.col("overlapped_ns")) or 0.0
    for phase in (FORWARD, BACKWARD):
        own = rest.filter(pl.col("phase") == phase)
        if is_again and phase == BACKWARD:
            own = own.join(again, on=["rank", "module"], how="anti", nulls_equal=True)
        late = _of_step(own, "late_ns", steps)
        saving = min(late, free)
        if saving < least:
            continue
        free -= saving
        worst = own.filter(pl.col("module").is_not_null()).group_by("module").agg(pl.col("late_ns").sum())
        named = worst.sort("late_ns", "module", descending=[True, False])["module"].to_list()[:1]
        alone = _of_step(own.with_columns(alone=pl.col("calls") - pl.col("ahead")), "alone", steps)
        told = {"calls": alone, "module": named[0] if named else None}
        yield _finding(f"{phase}_gathers", own.filter(pl.col("late_ns") > 0), late, saving, told, breakdown)


def _of_step(rows: pl.DataFrame, name: str, steps: int) -> float:
    """The sum of a column in a step, on the median rank of those that have such rows; 0 if there are none."""
    return float(rows.group_by("rank").agg(pl.col(name).sum())[name].median() or 0) / steps  # type: ignore[arg-type]


def _room(again: pl.DataFrame, peaks: pl.DataFrame | None, steps: int) -> dict[str, float] | None:
    """What keeping the parameters needs, on the rank with least memory left; None if that is unknown of any rank."""
    if peaks is None or again.is_empty() or again["gathered_bytes"].has_nulls():
        return None
    more = again.group_by("rank").agg(size=(pl.col("gathered_bytes") * pl.col("calls")).sum() / steps)
    own = peaks.filter(pl.col("device").is_not_null() & (pl.col("capacity_bytes") > 0))
    of_rank = own.group_by("rank").agg(pl.col("used_ratio").max(), pl.col("capacity_bytes").min())
    both = more.join(of_rank, on="rank").drop_nulls()
    if both.height < more.height:
        return None
    kept = both.select("size", used="used_ratio", kept=pl.col("used_ratio") + pl.col("size") / pl.col("capacity_bytes"))
    return kept.sort("kept", descending=True).row(0, named=True)


def _finding(
    message: str,
    rows: pl.DataFrame,
    late_ns: float,
    saving_ns: float,
    shown: Mapping[str, float | str | None],
    breakdown: pl.DataFrame,
) -> Finding:
    step_ns = median(breakdown, pl.col("window_ns")) or 1.0
    return Finding(
        rule="data-parallel",
        message=message,
        parameters={"late_ns": late_ns, "ratio": late_ns / step_ns, **shown},
        saving_ns=round(saving_ns),
        saving_ratio=saving_ns / step_ns,
        saving_low_ns=0,
        per=per_of(breakdown),
        where=place(rows["rank"].unique().sort()),
        evidence={"late_ns": round(late_ns), "calls": int(rows["calls"].sum())},
        most="medium",
        confidence="possible",
    )
