"""Training waits for a compiler: once at the start, or again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, NPU, PYTORCH, Finding, per_of, platform_of
from stepscope.advice.messages import Message, Text, framed
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.stopping import BASIS, code_of, names_of, span_of, stopped, worst_call
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
    launch_calls: int = limit(20, "calls per step that compile an operator", "the Ascend advisor's limit")
    launch_ratio: float = limit(0.01, "of the mean step, for these calls", "chosen by us: less is not worth a finding")
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
            Text(" Begin to record later to see training alone.", "更晚开始记录即可只看训练本身。"),
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
    "launch": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one compiles|compile} operators as they are launched: {calls:number .0f} times "
            "{per:each}, for {total_ns:ms}[ on rank {worst_rank}]; the device is idle meanwhile for {idle_ns:ms} of "
            "{step_ns:whole} ({ratio:percent}).",
            "{ranks:ranks} 在下发算子时编译：{per:each} {calls:number .0f} 次，共 {total_ns:ms}"
            "[（rank {worst_rank}）]；其间设备空闲 {idle_ns:ms}，占{step_ns:whole} 的 {ratio:percent}。",
        ),
        cause=Text(
            "The host calls {names:list}, which looks for or builds a kernel for the sizes at hand before it launches "
            "it.",
            "主机调用 {names:list}：下发之前先为当前形状查找或编译 kernel。",
        ),
        action={
            (PYTORCH, NPU): Text(
                "Add to the start of the script, in every process: torch_npu.npu.set_compile_mode(jit_compile=False) "
                "and torch_npu.npu.config.allow_internal_format=False. Then operators use kernels that are compiled "
                "in advance.",
                "在脚本开头（每个进程）加入 torch_npu.npu.set_compile_mode(jit_compile=False) 和 "
                "torch_npu.npu.config.allow_internal_format=False，让算子使用预先编译的 kernel。",
            ),
            (MINDSPORE, NPU): Text(
                "Call mindspore.set_context(ascend_config=dict(jit_compile=False)) at the start of the script, in "
                "every process, so that operators use kernels that are compiled in advance.",
                "在脚本开头（每个进程）调用 mindspore.set_context(ascend_config=dict(jit_compile=False))，"
                "让算子使用预先编译的 kernel。",
            ),
            (PYTORCH, None): Text(
                "Keep the caches of compiled kernels between starts (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR on a "
                "disk that stays), and pad batches to a few sizes.",
                "在多次启动之间保留已编译 kernel 的缓存（TORCHINDUCTOR_CACHE_DIR、TRITON_CACHE_DIR 指到持久磁盘），"
                "并把批次补齐到少数几种大小。",
            ),
            (None, None): Text(
                "Use kernels that are compiled in advance, and pad batches to a few sizes.",
                "使用预先编译的 kernel，并把批次补齐到少数几种大小。",
            ),
        },
        basis=BASIS,
    ),
}


@rule(
    "compile-time",
    MESSAGES,
    claim=Claim(Turn.STOPPED, "compile", yields=("compile",)),
    dimension="schedule",
    computed=Text(
        "Sums the time that compilers take on each rank, in the first step and outside all steps (`once`), in later "
        "steps (`again`), and in calls that compile operators as they are launched (`launch`). The saving of "
        "compiling again is its sum divided by the number of recorded steps; of compiling at launch, the idle time "
        "meanwhile; compiling once is a cost of the job and not of a step, so none is claimed.",
        "累加各 rank 上编译器占用的时间，分为首步和各步之外（`once`）、之后的步（`again`）以及下发算子时的编译调用"
        "（`launch`）。重复编译的节省为其总和除以记录的步数，下发时编译的节省为其间的空闲时间；"
        "只编译一次是作业的开销而不是每步的开销，因此不计节省。",
    ),
    shows=("compile_time", "compile_calls"),
    explains=("slow-rank:compile", "long-step:compile"),
)
def compile_time(
    compile_time: pl.DataFrame,
    steps: pl.LazyFrame | None = None,
    compile_calls: pl.DataFrame | None = None,
    breakdown: pl.DataFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report ranks that wait for a compiler at the start, ranks that compile again in later steps, and ranks that
    compile operators as they are launched.

    Compiling once is a cost of the job, not of a step, so no saving is claimed. Compiling again in at least
    `again_steps` later steps is claimed as the mean over all recorded steps (or iterations, if no steps are marked).
    """
    launching: list[int] = []
    if compile_calls is not None and breakdown is not None and platform_of(ranks).device != CPU:
        for finding in _at_launch(compile_calls, breakdown, limits):
            launching = finding.ranks
            yield finding
    once, again = _slow(compile_time.filter(~pl.col("rank").is_in(launching)), limits)
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


def _at_launch(calls: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits) -> Iterator[Finding]:
    """Ranks that compile operators as they are launched."""
    many = (pl.col("calls") >= limits.launch_calls) & (pl.col("total_ns") >= limits.launch_ratio * pl.col("step_ns"))
    found = stopped(calls, breakdown, many)
    if found is None:
        return
    numbers = {"idle_ns": found.idle_ns, "total_ns": found.total_ns, "calls": found.calls, "step_ns": found.step_ns}
    yield Finding(
        rule="compile-time",
        message="launch",
        parameters={**numbers, "ratio": found.idle_ratio, "names": names_of(calls, found.ranks)},
        **found.saving(per_of(breakdown)),
        evidence={"kind": "launch", **numbers},
        confidence="certain",
        code=code_of(calls, found.ranks),
        span_ns=span_of(worst := worst_call(calls, found.ranks)),
        span_rank=worst["rank"],
    ).on(found.ranks)


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
