"""The Chinese of sentences about answers: what a comparison found, what tables rest on, why some are missing.

Each is known by its English form. Where it names figures or ranks, they stand at the same numbers in the Chinese one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stepscope.pages.chinese import issues, page_sentences, reasons
from stepscope.pages.chinese.values import VALUES

_STEP = "(?:step|iteration|recording)"

SENTENCES: tuple[tuple[str, str], ...] = (
    # comparisons
    (rf"The {_STEP} takes the same time: (.+) and (.+)\.", r"每步耗时相同：\1 与 \2。"),
    (
        rf"The {_STEP} is (\S+?)( times)? slower: (.+) instead of (.+) \((.+?)\)\. (.+)",
        r"每步变慢（\1{2}）：\3，原为 \4（\5）。{6}",
    ),
    (
        rf"The {_STEP} is (\S+?)( times)? faster: (.+) instead of (.+) \((.+?)\)\. (.+)",
        r"每步变快（\1{2}）：\3，原为 \4（\5）。{6}",
    ),
    (r" times", " 倍"),
    (
        r"This is within noise: steps of one side differ as much \((\d+) and (\d+) steps\)(.*)",
        r"这在噪声范围内：同一侧的各步也有这样大的差异（\1 步与 \2 步）{3}",
    ),
    (
        r"Too few steps to tell whether this is noise \((\d+) and (\d+)\)(.*)",
        r"步数太少，无法判断是否为噪声（\1 步与 \2 步）{3}",
    ),
    (r"This is beyond noise \((\d+) and (\d+) steps\)(.*)", r"这超出了噪声（\1 步与 \2 步）{3}"),
    (r": chance gives such a difference in (\S+) of cases\.", r"：偶然出现这样差异的概率为 \1。"),
    (r"\.", "。"),
    (r"By part: (.+)\.", r"按组成部分：{1}。"),
    (
        r"Kernels are uniformly (\S+?)( times)? slower, whatever they compute: as by another clock, power limit or "
        r"device, not by another program\.",
        r"所有 kernel 无论计算什么都同样变慢（\1{2}）：像是时钟、功耗上限或设备不同，而不是程序不同。",
    ),
    (
        r"Kernels are uniformly (\S+?)( times)? faster, whatever they compute: as by another clock, power limit or "
        r"device, not by another program\.",
        r"所有 kernel 无论计算什么都同样变快（\1{2}）：像是时钟、功耗上限或设备不同，而不是程序不同。",
    ),
    (
        r"Kernels that multiply matrices are (\S+?)( times)? slower \((.+)\), the others are not\.",
        r"矩阵乘 kernel 变慢（\1{2}；{3}），其他 kernel 没有。",
    ),
    (
        r"Kernels that multiply matrices are (\S+?)( times)? faster \((.+)\), the others are not\.",
        r"矩阵乘 kernel 变快（\1{2}；{3}），其他 kernel 没有。",
    ),
    (
        r"Kernels that do not multiply matrices are (\S+?)( times)? slower \((.+)\), the others are not\.",
        r"非矩阵乘 kernel 变慢（\1{2}；{3}），其他 kernel 没有。",
    ),
    (
        r"Kernels that do not multiply matrices are (\S+?)( times)? faster \((.+)\), the others are not\.",
        r"非矩阵乘 kernel 变快（\1{2}；{3}），其他 kernel 没有。",
    ),
    (r"Calls of equal shapes are (\S+?)( times)? slower in (.+)\.", r"形状相同的调用变慢（\1{2}）：{3}。"),
    (r"Calls of equal shapes are (\S+?)( times)? faster in (.+)\.", r"形状相同的调用变快（\1{2}）：{3}。"),
    (r"The number of calls differs most: (.+)\.", r"差异最大的是调用次数：{1}。"),
    (r"Calls have other shapes: (.+)\.", r"调用的形状不同：{1}。"),
    (r"Most of it is in kernels that only one side runs: (.+)\.", r"大部分差异来自只有一侧执行的 kernel：{1}。"),
    (
        r"Of the ranks, (\d+) takes most longer itself \((\S+ \S+) without communication\); most others do not "
        r"\((.+)\)\.(?: Look at it alone with --ranks \d+\.)?",
        r"各 rank 中，rank \1 自身增加最多（不计通信 \2）；多数其他 rank 没有（\3）。",
    ),
    (
        r"The slowest rank, (\d+), against rank (\d+), whose own time is the median of the ranks that are not slow\.",
        r"最慢的 rank \1 与 rank \2 比较；后者自身的时间是不慢的各 rank 的中位数。",
    ),
    (r"Rank (\d+) is compared with rank (\d+)(?: of the base)?\.", r"rank \1 与基准 rank \2 比较。"),
    (r"Compared are steps (.+) of the base and (.+) of the new side\.", r"比较的是基准侧的步 \1 与新的一侧的步 \2。"),
    (
        r"Compared is the time of the kernels that each launched itself\.",
        "比较的是各项自身下发的 kernel 的时间。",
    ),
    (r"Compared is the own time of each on the host\.", "比较的是各项在主机上的自身时间。"),
    (r"Memory: all (\d+) figures are the same\.", r"内存：\1 项数值全部相同。"),
    (r"(base|new): (.+)", r"{1}侧：{2}"),
    (r"Not the same work, so compare with care: (.+)\.", r"两侧的任务不同，请谨慎比较：{1}。"),
    (
        r"Compared are the means over ranks (.+) of the base and (.+) of the new side\.",
        r"比较的是基准侧 rank \1 与新的一侧 rank \2 的平均值。",
    ),
    (
        r"p: how often chance alone gives such a difference between the \w+ of both sides \(Mann-Whitney test, "
        r"adjusted for the number of rows\); more or less up to (.+)\.",
        r"p：两侧各步之间仅因偶然出现这样差异的概率（Mann-Whitney 检验，按行数校正）；不超过 \1 才判断为增加或减少。",
    ),
    (
        r"Kernels of both sides have no names in common, so they are compared by class of work\.",
        "两侧的 kernel 没有相同的名称，因此按任务类别比较。",
    ),
    (
        r"These are the operators that launched the kernels, with the kernels' time; --by type for kernels\.",
        "这里是下发 kernel 的算子及其 kernel 的时间；按 kernel 比较请用 --by type。",
    ),
    (
        r"no rank of (.+) is slower than the others\. Choose --ranks and --base-ranks",
        r"\1 中没有比其他更慢的 rank；请用 --ranks 和 --base-ranks 选择",
    ),
    (
        r"(.+) has one rank only\. Give a second run to compare it with, or --base-steps and --steps",
        r"\1 只有一个 rank；请给出另一次运行与之比较，或使用 --base-steps 和 --steps",
    ),
    # what tables rest on
    (
        r"(\d+) of (\d+) pieces of device work \((.+)\) take less time than their launch\.",
        r"\2 个设备任务中有 \1 个（\3）的耗时比主机下发它还短。",
    ),
    (
        r"No device is faster than its peak\. Either the peak is that of another data type .*Give another peak with "
        r"`stepscope flops --peak-tflops`\.",
        "没有设备能超过其峰值。可能是峰值属于另一种数据类型（启用 TF32 时 float32 按 TF32 执行），或时间、形状不属于该设备；"
        "如果有卷积，其快速算法执行的运算也少于所计的运算。可用 `stepscope flops --peak-tflops` 给出其他峰值。",
    ),
    (
        r"Of several curves of memory, the one closest to the capacity is shown: (.+)\. Recordings that hold fewer "
        r"curves, as other exports of the same job may, show another; `stepscope memory` lists all\.",
        r"有多条内存曲线，显示最接近容量的一条：{1}。曲线较少的记录（例如同一作业的其他导出）可能显示另一条；"
        r"`stepscope memory` 列出全部。",
    ),
    (
        r"Times are whole microseconds: rates are uncertain, and lie between `least` and the one shown\.",
        "时间只精确到微秒：速率不确定，介于 `least` 与所示值之间。",
    ),
    (
        r"(Exposed communication|Communication|Computing|Waiting) of ranks? (\S+) differs?(?:, of rank (\d+))?: (\S+ \S+)"
        rf" in an? {_STEP} as the profile states it, (\S+ \S+) in the timeline\. Believe the timeline: it shows when each "
        r"piece began and ended\.",
        r"rank \2 的{1}不一致（rank \3）：profile 标明每步 \4，时间线为 \5。请以时间线为准：它记录了每一段的开始和结束。",
    ),
    (
        r"The mean of ranks? (\S+) leaves out step (\S+), which is the first that was recorded, so that its interval "
        r"is unknown\.",
        r"rank \1 的平均值不含第 \2 步：它是记录的第一步，因此其间隔未知。",
    ),
    (
        r"The mean of ranks? (\S+) leaves out step (\S+), which is far longer than the others\.",
        r"rank \1 的平均值不含第 \2 步：它远长于其他步。",
    ),
    (
        r"What ranks? (\S+) does? was recorded in some \w+ only: these parts are means of (\d+) of (\d+)(?: \(.+\))?, "
        r"so they need not add up to the mean \w+\.",
        r"rank \1 的活动只在部分步中有记录：这些部分是 \3 步中 \2 步的平均，因此不一定等于平均步时间。",
    ),
    (
        r"Calls of (\d+) ranks? overlap, and `total` counts each of them: those of rank (\d+) take (\S+ \S+), in which "
        r"(\S+ \S+) pass\.",
        r"\1 个 rank 的通信相互重叠，而“总计”分别计入每次：rank \2 的通信共 \3，实际经过 \4。",
    ),
    (
        rf"The operators of ranks? (\S+) add up to (\S+ \S+) in an? {_STEP}; the profile states (\S+ \S+)(?: \(.+\))?\. "
        r"Believe the operators: they are listed one by one\.",
        r"rank \1 的算子每步合计 \2；profile 标明 \3。请以算子为准：它们是逐个列出的。",
    ),
    (r"The bottleneck is ([a-z ]+)\.", r"瓶颈是{1}。"),
    (r"Slowest operators of the pipeline: (.+)\.", r"数据管道中最慢的算子：\1。"),
    # what a recording lacks
    (r"the recording has no steps", "记录中没有步"),
    (r"no steps were recorded, neither by a timeline nor in a step table", "没有记录步：时间线和步表中都没有"),
    (r"the recording has no communication calls", "记录中没有通信"),
    (
        r"the recording has no communication calls; one device only, or recorded at profiler level 0",
        "记录中没有通信；只有一个设备，或以 profiler level 0 记录",
    ),
    (r"no communication was recorded", "没有记录通信"),
    (
        r"the recording has no accelerator work; MindSpore's own profiler kept only totals of them, or nothing",
        "记录中没有加速器任务；MindSpore 的 profiler 只保留了总计，或没有保留",
    ),
    (
        r"the recording has no accelerator work; recorded without NPU activities",
        "记录中没有加速器任务；记录时未包含 NPU 活动",
    ),
    (r"the recording has no accelerator work; it records host ranges only", "记录中没有加速器任务；只记录了主机区间"),
)
"""English form of a whole sentence, or of the rest of one, and the Chinese: `\\1` is taken as it is, `{1}` translated."""

_COMPILED = tuple(
    (re.compile(form, re.DOTALL), chinese)
    for form, chinese in (*SENTENCES, *page_sentences.FORMS, *reasons.FORMS, *issues.FORMS)
)
_GROUP = re.compile(r"\\(\d)|\{(\d)\}")
_CHANGED = re.compile(r"[a-z][a-z ]*[a-z](?= [+-]?\d)")
"""Names of parts of a step before the time by which they changed."""


def in_chinese(text: str) -> str | None:
    """A sentence in Chinese; None if its form is not known."""
    for form, chinese in _COMPILED:
        if found := form.fullmatch(text):
            return _GROUP.sub(_filled(found), chinese)
    parts = text.split("; ")
    known = [in_chinese(part) for part in parts] if len(parts) > 1 else [None]
    return "；".join(filter(None, known)) if all(known) else None


def _filled(found: re.Match[str]) -> Callable[[re.Match[str]], str]:
    def text(place: re.Match[str]) -> str:
        part = found[int(place[1] or place[2])] or ""
        if place[1] or not part:
            return part
        known = reasons.NOUNS.get(part) or VALUES.get(part) or VALUES.get(part.lower()) or in_chinese(part)
        if known or not _CHANGED.search(part):
            return known or part.replace(" and ", "、")
        changed = _CHANGED.sub(lambda name: VALUES.get(name[0], name[0]), part)
        for mark, chinese in ((" (", "（"), (")", "）"), ("; ", "；"), (", ", "，")):
            changed = changed.replace(mark, chinese)
        return changed

    return text
