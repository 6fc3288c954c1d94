"""torch.compile has given up on a function: it runs as written, or is close to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.compile_time_words import ANYTHING
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When functions that are compiled too often are worth a finding."""

    missed_calls: int = limit(2, "calls that run as written", "chosen by us: a recording may end within one")
    missed_ratio: float = limit(
        0.5, "of the calls, for medium severity", "chosen by us: most of what should be compiled is not"
    )
    versions: int = limit(
        7, "versions of a function, for a remark", "torch._dynamo.config.recompile_limit is 8, so one is left"
    )


_LIMIT = Text(
    "torch.compile compiles a function at most `torch._dynamo.config.recompile_limit` times (8 by default); ",
    "torch.compile 对一个函数最多编译 `torch._dynamo.config.recompile_limit` 次（默认 8）；",
)

MESSAGES = {
    "reached": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} compiled functions as if they were not compiled: in {missed} of "
            "{searches} calls[ on rank {worst_rank}] no version fitted, and none was compiled.",
            "{ranks:ranks} 上被编译的函数像未编译一样运行：{searches} 次调用中有 {missed} 次[（rank {worst_rank}）]"
            "没有适用的版本，也没有再编译。",
        ),
        cause=_LIMIT
        + Text(
            "what fits none of these versions then runs as written, with the cost of the search added.",
            "此后不适用于任何版本的调用按原样运行，还要付出查找的开销。",
        ),
        action=ANYTHING,
    ),
    "near": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} version {version} of a compiled function[ on rank {worst_rank}]: it "
            "was compiled again and again before.",
            "{ranks:ranks} 运行某个被编译函数的第 {version} 个版本[（rank {worst_rank}）]：此前它被反复编译。",
        ),
        cause=_LIMIT
        + Text(
            "calls that fit none of its versions then run as written.",
            "此后不适用于任何版本的调用将按原样运行。",
        ),
        action=ANYTHING,
    ),
}


@rule(
    "recompile-limit",
    MESSAGES,
    dimension="schedule",
    computed=Text(
        "Counts the searches for a compiled version that fits (`TorchDynamo Cache Lookup`) after which neither a "
        "version runs (`Torch-Compiled Region`) nor a compiler starts. Of medium severity if that is most calls of "
        "some steps up to the last. How much faster compiled code would be is unknown.",
        "统计查找适用版本（`TorchDynamo Cache Lookup`）之后既没有运行某个版本（`Torch-Compiled Region`）"
        "也没有开始编译的次数。若直到最后一步仍占多数，则为中等严重程度。编译后的代码能快多少未知。",
    ),
    shows=("compiled_searches", "recompilations"),
)
def recompile_limit(compiled_searches: pl.DataFrame, limits: Limits = Limits()) -> Iterator[Finding]:
    """Report ranks whose compiled functions run as written, for too many versions, or nearly; no saving is claimed."""
    ratio = pl.col("missed") / pl.col("searches")
    order = [-pl.col("missed"), "rank"]
    reached = compiled_searches.filter(pl.col("missed") >= limits.missed_calls).sort(*order)
    if reached.height:
        worst = reached.row(0, named=True)
        lasting = reached.filter((ratio >= limits.missed_ratio) & pl.col("last_missed")).height > 0
        facts = {name: worst[name] for name in ("missed", "searches")}
        yield Finding(
            rule="recompile-limit",
            message="reached",
            parameters=facts,
            evidence={**facts, "steps": worst["missed_steps"]},
            least="medium" if lasting else "low",
            confidence="likely",
        ).on(reached["rank"])
    near = compiled_searches.filter(
        (pl.col("missed") < limits.missed_calls) & (pl.col("highest_version") + 1 >= limits.versions)
    ).sort(-pl.col("highest_version"), "rank")
    if near.height:
        version = near["highest_version"][0]
        yield Finding(
            rule="recompile-limit",
            message="near",
            parameters={"version": version + 1},
            evidence={"version": version},
            most="low",
            confidence="likely",
        ).on(near["rank"])
