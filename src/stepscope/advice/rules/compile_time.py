"""Training waits for a compiler: once at the start, or again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import MINDSPORE, PYTORCH, Finding, per_of
from stepscope.advice.messages import Message, Text, framed
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When compile time is worth a finding."""

    once_ratio: float = limit(
        0.05, "of the recorded time, for compiling at the start", "chosen by us: less is not worth a finding"
    )
    again_ratio: float = limit(
        0.03, "of the recorded time, for compiling later", "the Ascend advisor's limit for medium"
    )
    again_steps: int = limit(
        2, "steps after the first that compile again", "chosen by us: a single one is usually the smaller last batch"
    )


MESSAGES = {
    "once": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one spends|spend} {compile_ns:duration} compiling[ in {steps:steps}][ and outside of "
            "{outside:nouns}][ on rank {worst_rank}] ({ratio:percent} of the recorded time), once.",
            "{ranks:ranks} 编译耗时 {compile_ns:duration}[（{steps:steps}）][{outside:one ，以及训练步之外|}]"
            "[（rank {worst_rank}）]，占记录时间的 {ratio:percent}，只发生一次。",
        ),
        cause=Text(
            "A compiled function is traced and compiled when it first runs; training waits meanwhile.",
            "被编译的函数在首次运行时跟踪并编译，其间训练等待。",
        ),
        action=framed(
            Text(
                "Nothing needs to change if the job runs long enough: this time is paid at each start. To pay less, "
                "keep the compiler's cache between starts",
                "如果训练时间足够长，无需改动：这段时间每次启动只付出一次。想减少它，可在多次启动之间保留编译缓存",
            ),
            {
                (PYTORCH, None): Text(
                    " (TORCHINDUCTOR_CACHE_DIR on a disk that stays), compile one repeated block instead of the whole "
                    "model, and avoid mode='max-autotune'.",
                    "（把 TORCHINDUCTOR_CACHE_DIR 指到持久磁盘），只编译重复的模块而不是整个模型，"
                    "并避免 mode='max-autotune'。",
                ),
                (MINDSPORE, None): Text(
                    " (MS_COMPILER_CACHE_ENABLE=1, and MS_COMPILER_CACHE_PATH on a disk that stays).",
                    "（MS_COMPILER_CACHE_ENABLE=1，并把 MS_COMPILER_CACHE_PATH 指到持久磁盘）。",
                ),
                (None, None): Text(".", "。"),
            },
            Text(" Record later steps to see training alone.", "记录更靠后的步即可只看训练本身。"),
        ),
    ),
    "again": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one compiles|compile} again in {step_count:windows} after the first[ on rank "
            "{worst_rank}]: {compile_ns:duration} in total, {ratio:percent} of the recorded time.",
            "{ranks:ranks} 在首次之后又有 {step_count:windows}重新编译[（rank {worst_rank}）]："
            "共 {compile_ns:duration}，占记录时间的 {ratio:percent}。",
        ),
        cause=Text(
            "The compiled code did not fit what came later in {steps:steps}, so it was made anew "
            "{times:count time|times}. Sizes of batches that vary are the usual reason.",
            "已编译的代码不适用于后来的{steps:steps}，因此重新编译了 {times} 次。通常是因为批次大小变化。",
        ),
        action={
            (PYTORCH, None): Text(
                "Find what changed with TORCH_LOGS=recompiles. If sizes vary, use torch.compile(dynamic=True) or "
                "torch._dynamo.mark_dynamic, or pad batches to a few sizes and set drop_last=True in the loader; keep "
                "Python numbers and flags that change out of the compiled function.",
                "用 TORCH_LOGS=recompiles 查看变化的原因。若大小变化，使用 torch.compile(dynamic=True) 或 "
                "torch._dynamo.mark_dynamic，或把批次补齐到少数几种大小并在加载器中设置 drop_last=True；"
                "不要让会变化的 Python 数值和标志进入被编译的函数。",
            ),
            (MINDSPORE, None): Text(
                "If sizes vary, declare them as dynamic (Cell.set_inputs with None in the shape), or pad batches to a "
                "few sizes and leave out the last, smaller one (batch(drop_remainder=True)); pass numbers that change "
                "as Tensor; create compiled cells and functions once, before the loop.",
                "若大小变化，把它们声明为动态（Cell.set_inputs，形状中用 None），或把批次补齐到少数几种大小并去掉"
                "最后较小的一批（batch(drop_remainder=True)）；会变化的数值以 Tensor 传入；"
                "被编译的 Cell 和函数在循环之前只创建一次。",
            ),
            (None, None): Text(
                "If sizes vary, declare them as dynamic, or pad batches to a few sizes and leave out the last, smaller "
                "batch; keep Python numbers and flags that change out of the compiled function.",
                "若大小变化，把它们声明为动态，或把批次补齐到少数几种大小并去掉最后较小的一批；"
                "不要让会变化的 Python 数值和标志进入被编译的函数。",
            ),
        },
    ),
}


@rule(
    "compile-time",
    MESSAGES,
    claim=Claim(Turn.STOPPED, "compile", yields=("compile",)),
    dimension="schedule",
    computed=Text(
        "Sums the time that compilers take on each rank, in the first step and outside all steps "
        "(`once`), and in later steps (`again`). The saving of compiling again is its sum divided by the "
        "number of recorded steps; compiling once is a cost of the job and not of a step, so none is "
        "claimed.",
        "累加各 rank 上编译器占用的时间，分为首步和各步之外（`once`）以及之后的步（`again`）。重复编译的"
        "节省为其总和除以记录的步数；只编译一次是任务的开销而不是每步的开销，因此不计节省。",
    ),
    shows=("compile_time",),
    explains=("slow-rank:compile", "long-step:compile"),
)
def compile_time(
    compile_time: pl.DataFrame, steps: pl.LazyFrame | None = None, limits: Limits = Limits()
) -> Iterator[Finding]:
    """Report ranks that wait for a compiler at the start, and ranks that compile again in later steps.

    Compiling once is a cost of the job, not of a step, so no saving is claimed. Compiling again in at least
    `again_steps` later steps is claimed as the mean over all recorded steps (or iterations, if no steps are marked).
    """
    once, again = _slow(compile_time, limits)
    if once:
        facts = {name: once[0][name] for name in ("compile_ns", "steps", "ratio")}
        yield Finding(
            rule="compile-time",
            message="once",
            parameters={**facts, "outside": 1 if once[0]["steps"] and once[0]["is_outside"] else None},
            evidence={"kind": "once", **facts},
            where={"steps": once[0]["steps"]} if once[0]["steps"] else {},
            least="medium",
            confidence="certain",
        ).on(row["rank"] for row in once)
    if again:
        facts = {name: again[0][name] for name in ("compile_ns", "steps", "ratio", "times")}
        recorded_steps = again[0]["recorded_steps"]
        yield Finding(
            rule="compile-time",
            message="again",
            parameters={**facts, "step_count": len(facts["steps"])},
            saving_ns=round(facts["compile_ns"] / max(recorded_steps or 1, 1)),
            saving_ratio=facts["ratio"],
            per=per_of(steps),
            where={"steps": facts["steps"]},
            evidence={"kind": "again", **facts, "recorded_steps": recorded_steps},
            confidence="certain",
        ).on(row["rank"] for row in again)


def _slow(compile_time: pl.DataFrame, limits: Limits) -> list[list[dict[str, Any]]]:
    """The ranks that compile long enough at the start, and those in later steps; the longest time first."""
    in_step = pl.col("step").is_not_null()
    later = in_step & (in_step.cum_sum().over("rank") > 1)
    again = later & (later.sum().over("rank") >= limits.again_steps)
    spent, recorded = pl.col("compile_ns"), pl.col("recorded_ns")
    least_ratio = pl.when("again").then(limits.again_ratio).otherwise(limits.once_ratio)
    found = (
        compile_time.group_by("rank", "recorded_ns", "recorded_steps", again=again, maintain_order=True)
        .agg(
            pl.col("compile_ns", "times").sum(),
            steps=pl.col("step").drop_nulls(),
            is_outside=pl.col("step").is_null().any(),
        )
        .with_columns(ratio=pl.when(recorded > 0).then(spent / recorded).otherwise(0.0))
        .filter((spent > 0) & (spent >= least_ratio * recorded))
        .sort(-spent, maintain_order=True)
    )
    return [found.filter(pl.col("again") == which).to_dicts() for which in (False, True)]
