"""The Chinese of sentences about answers: what a comparison found, what tables rest on, why some are missing.

Each is known by its English form. Where it names figures or ranks, they stand at the same numbers in the Chinese one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stepscope.pages.chinese import issues, page_sentences, reasons, web_sentences
from stepscope.pages.chinese.values import VALUES

_STEP = "(?:step|iteration|recording)"

SENTENCES: tuple[tuple[str, str], ...] = (
    # comparisons
    (
        rf"Own work of (.+) takes (.+) longer in (?:an? {_STEP}|the recording) than that of (.+?)"
        r"(, which as a whole is within noise .+?)?(: .+)?\.",
        r"每步自身的工作：{1} 比 {3} 长 \2{4}{5}。",
    ),
    (
        rf", which as a whole is within noise \((\d+) and (\d+) {_STEP}s?\)",
        r"（总体在噪声范围内，\1 步与 \2 步）",
    ),
    (
        r"Own work of (.+) takes about as long as that of (.+): (.+) and (.+), without communication\.",
        r"每步自身的工作：{1} 与 {2} 大致相同，\3 与 \4（不计通信）。",
    ),
    (
        r"In that time (.+) waits?: (?:its|their) exposed communication takes (.+?) longer( \(.+?\))?"
        rf"(, so that the {_STEP} of both takes the same time: .+)?\.",
        r"在此期间 {1} 在等待：其未掩盖的通信多 \2{3}{4}。",
    ),
    (
        r"Its exposed communication takes (.+?) longer as well( \(.+\))?\.",
        r"其未掩盖的通信也多 \1{2}。",
    ),
    (rf", so that the {_STEP} of both takes the same time: (.+) and (.+)", r"，因此两者每步耗时相同：\1 与 \2"),
    (rf"The {_STEP} takes the same time( for .+ and .+)?: (.+) and (.+)\.", r"{1}每步耗时相同：\2 与 \3。"),
    (
        rf"The {_STEP} is (\S+?)( times)? slower( for .+ than for .+)?: (.+) instead of (.+) \((.+?)\)\. (.+)",
        r"{3}每步变慢（\1{2}）：\4，原为 \5（\6）。{7}",
    ),
    (
        rf"The {_STEP} is (\S+?)( times)? faster( for .+ than for .+)?: (.+) instead of (.+) \((.+?)\)\. (.+)",
        r"{3}每步变快（\1{2}）：\4，原为 \5（\6）。{7}",
    ),
    (r" times", " 倍"),
    (
        rf"This is within noise: {_STEP}s? of one side differ as much \((\d+) and (\d+) {_STEP}s?\)(.*)",
        r"这在噪声范围内：同一侧的各步也有这样大的差异（\1 步与 \2 步）{3}",
    ),
    (
        rf"Too few {_STEP}s to tell whether this is noise \((\d+) and (\d+)\)(.*)",
        r"步数太少，无法判断是否为噪声（\1 步与 \2 步）{3}",
    ),
    (rf"This is beyond noise \((\d+) and (\d+) {_STEP}s?\)(.*)", r"这超出了噪声（\1 步与 \2 步）{3}"),
    (r": chance gives such a difference in less than (\S+) of cases\.", r"：偶然出现这样差异的概率小于 \1。"),
    (r": chance gives such a difference in (\S+) of cases\.", r"：偶然出现这样差异的概率为 \1。"),
    (
        r"Times cannot be compared: (.+) has no steps, so its whole recording stands against a step of the other side\. Only "
        r"what single calls take is comparable\. Record it with steps \(prof\.step\(\) after each\)\.",
        r"无法比较时间：{1}没有步，其整段记录与另一侧的一步相对。只有单次调用的耗时可以比较。请按步记录（每步之后调用 "
        r"prof.step()）。",
    ),
    (
        r"No steps are known, so whole recordings are compared, which may hold different numbers of them\.",
        "没有步，因此比较的是整段记录，两者的步数可能不同。",
    ),
    (r"\.", "。"),
    (r"By part: (.+)\.", r"按组成部分：{1}。"),
    (
        r"Kernels are uniformly (\S+?)( times)? slower( for .+)?, whatever they compute: as by another clock, power limit "
        r"or device, not by another program\.",
        r"{3}所有 kernel 无论计算什么都同样变慢（\1{2}）：像是时钟、功耗上限或设备不同，而不是程序不同。",
    ),
    (
        r"Kernels are uniformly (\S+?)( times)? faster( for .+)?, whatever they compute: as by another clock, power limit "
        r"or device, not by another program\.",
        r"{3}所有 kernel 无论计算什么都同样变快（\1{2}）：像是时钟、功耗上限或设备不同，而不是程序不同。",
    ),
    (
        r"Kernels that multiply matrices are (\S+?)( times)? slower( for .+?)? \((.+)\), the others are not\.",
        r"{3}矩阵乘 kernel 变慢（\1{2}；{4}），其他 kernel 没有。",
    ),
    (
        r"Kernels that multiply matrices are (\S+?)( times)? faster( for .+?)? \((.+)\), the others are not\.",
        r"{3}矩阵乘 kernel 变快（\1{2}；{4}），其他 kernel 没有。",
    ),
    (
        r"Kernels that do not multiply matrices are (\S+?)( times)? slower( for .+?)? \((.+)\), the others are not\.",
        r"{3}非矩阵乘 kernel 变慢（\1{2}；{4}），其他 kernel 没有。",
    ),
    (
        r"Kernels that do not multiply matrices are (\S+?)( times)? faster( for .+?)? \((.+)\), the others are not\.",
        r"{3}非矩阵乘 kernel 变快（\1{2}；{4}），其他 kernel 没有。",
    ),
    (
        r"Calls of equal shapes are (\S+?)( times)? slower( for .+?)? in (.+)\.",
        r"{3}形状相同的调用变慢（\1{2}）：{4}。",
    ),
    (
        r"Calls of equal shapes are (\S+?)( times)? faster( for .+?)? in (.+)\.",
        r"{3}形状相同的调用变快（\1{2}）：{4}。",
    ),
    (r"The number of calls differs most: (.+)\.", r"差异最大的是调用次数：{1}。"),
    (r"Calls have other shapes: (.+)\.", r"调用的形状不同：{1}。"),
    (r"Most of it is in kernels that only one side runs: (.+)\.", r"大部分差异来自只有一侧执行的 kernel：{1}。"),
    (
        r"Of the ranks, (\d+) takes most longer itself \((\S+ \S+) without communication\); most others do not "
        r"\((.+)\)\.(?: Look at it alone with «--ranks» \d+\.)?",
        r"各 rank 中，rank \1 自身增加最多（不计通信 \2）；多数其他 rank 没有（\3）。",
    ),
    (
        r"The slowest rank, (\d+), against rank (\d+), whose own time is the median of the ranks that are not slow\."
        r"( Slow as well: .+)?",
        r"最慢的 rank \1 与 rank \2 比较；后者自身的时间是不慢的各 rank 的中位数。{3}",
    ),
    (r" Slow as well: ranks? (.+); choose with «--ranks»\.", r"同样慢的还有 rank \1；可用 «--ranks» 选择。"),
    (
        r"ranks? (\S+) against rank (\d+), whose own time is the median of the ranks that are not slow\.",
        r"rank \1 与 rank \2 比较；后者自身的时间是不慢的各 rank 的中位数。",
    ),
    (r"Rank (\d+) is compared with rank (\d+)(?: of the base)?\.", r"rank \1 与基准 rank \2 比较。"),
    (
        rf"Compared are {_STEP}s? (\S+) of (.+) and (\S+) of (.+)\.",
        r"比较的是{2}的步 \1 与{4}的步 \3。",
    ),
    (r"Differences are (.+) less (.+)\.", r"差值为 {1} 减去 {2}。"),
    (
        rf"Some ranks and {_STEP}s? belong to both sides, so the differences are smaller than they really are\.",
        "部分 rank 和步同时属于两侧，因此差异比实际小。",
    ),
    (
        rf"Of (.+), {_STEP} (\S+) does not count: a first one, far longer\.",
        r"{1}的第 \2 步不计入：它是最初的步，远长于其他步。",
    ),
    (
        rf"Of (.+), {_STEP} (\S+) stands out: it counts in the means, the test weighs it no more than others\.",
        r"{1}的第 \2 步异常长：它计入平均值，检验中不比其他步权重更大。",
    ),
    (rf"noise: {_STEP}s? of one side differ as much from one another\.", "噪声：同一侧的各步之间也有这样大的差异。"),
    (
        rf"too few: all {_STEP}s? of one side are above those of the other, but a test needs at least (\d+) {_STEP}s? on each "
        r"side, here are (\d+) and (\d+); these differences are shown untested\.",
        r"步数太少：一侧的各步全部高于另一侧，但检验要求每侧至少 \1 步，这里是 \2 步与 \3 步；这些差异未经检验。",
    ),
    (
        rf"too few: all {_STEP}s? of one side are above those of the other, but to be sure of one of (\d+) rows the test "
        rf"needs (\d+) {_STEP}s? on each side, here are (\d+) and (\d+)\.",
        r"步数太少：一侧的各步全部高于另一侧，但要在 \1 行中确认一行，检验要求每侧 \2 步，这里是 \3 步与 \4 步。",
    ),
    (
        rf"too few: all {_STEP}s? of one side are above those of the other, but {_STEP}s? that follow one another resemble "
        r"each other, so that (\d+) and (\d+) of them tell too little\.",
        r"步数太少：一侧的各步全部高于另一侧，但相邻的步彼此相似，因此 \1 步与 \2 步说明不了什么。",
    ),
    (r"same: less than (\S+) of difference\.", r"相同：差异小于 \1。"),
    (
        r"small: less than (\S+) of the whole on both sides, so not tested\.",
        r"很小：在两侧都小于总量的 \1，因此未检验。",
    ),
    (r"added, removed: on one side only\.", "新增、不再出现：只在一侧有。"),
    (
        rf"untested: one figure for each side, none by {_STEP}, so there is no test\.",
        "未检验：每侧只有一个数值，没有各步的数值，因此无法检验。",
    ),
    (
        r"Compared is the time of the kernels that each launched itself\.",
        "比较的是各项自身下发的 kernel 的时间。",
    ),
    (r"Compared is the own time of each on the host\.", "比较的是各项在主机上的自身时间。"),
    (
        r"Compared is the time of modules on the host, that of the modules in them as well\.",
        "比较的是各模块在主机上的时间，包括其中的模块。",
    ),
    (
        r"`\*`: one side has more modules of this class there, so all of them are compared together\.",
        "`*`：一侧在该处有更多此类模块，因此合在一起比较。",
    ),
    (
        r"Places in the tree of calls: (\d+) with the same path on both sides, (\d+) matched by the inner part of the path "
        r"\(one side has other operators around it\), (\d+) on one side only\.",
        r"调用树中的位置：\1 个在两侧路径相同，\2 个按路径的内层部分匹配（一侧另有外层算子），\3 个只在一侧。",
    ),
    (
        r"Calls that wait or communicate last as long as what they wait for, which may be another rank: waiting less is no "
        r"gain of a rank, and waiting more no fault of it\.",
        "等待或通信的调用与其所等待的（可能是另一个 rank）持续一样久：等待更少不是该 rank 的收益，等待更多也不是它的过错。",
    ),
    (r"Memory: all (\d+) figures are the same\.", r"内存：\1 项数值全部相同。"),
    (r"(base|new|ranks? \S+|steps? \S+): (.+)", r"{1}侧：{2}"),
    (r"Not the same work, so compare with care: (.+)\.", r"两侧的任务不同，请谨慎比较：{1}。"),
    (
        r"Compared are the means over ranks (.+) of the base and (.+) of the new side\.",
        r"比较的是基准侧 rank \1 与新的一侧 rank \2 的平均值。",
    ),
    (
        r"p: how often chance alone gives such a difference between the \w+ of both sides \(Mann-Whitney test, "
        r"adjusted for the number of rows\); the verdict is more or less if p is at most (.+)\.",
        r"p：两侧各步之间仅因偶然出现这样差异的概率（Mann-Whitney 检验，按行数校正）；不超过 \1 才判断为增加或减少。",
    ),
    (
        r"Kernels of both sides have hardly any name in common, so they are compared by class of work\.",
        "两侧的 kernel 几乎没有相同的名称，因此按任务类别比较。",
    ),
    (
        r"These are the operators that launched the kernels, with the kernels' time; «--by» type for kernels\.",
        "这里是下发 kernel 的算子及其 kernel 的时间；按 kernel 比较请用 «--by» type。",
    ),
    (
        r"which rank is slow is unknown: (.+)\. Choose «--ranks» and «--base-ranks»",
        r"不知道哪个 rank 慢：{1}；请用 «--ranks» 和 «--base-ranks» 选择",
    ),
    (
        r"no rank of (.+) is slower than the others\. Choose «--ranks» and «--base-ranks»",
        r"\1 中没有比其他更慢的 rank；请用 «--ranks» 和 «--base-ranks» 选择",
    ),
    (
        r"(.+) has one rank only\. Give a second run to compare it with, or «--base-steps» and «--steps»",
        r"\1 只有一个 rank；请给出另一次运行与之比较，或使用 «--base-steps» 和 «--steps»",
    ),
    # what tables rest on
    (
        r"(\d+) of (\d+) pieces of device work \((.+)\) take less time than their launch\.",
        r"\2 个设备任务中有 \1 个（\3）的耗时比主机下发它还短。",
    ),
    (
        r"No device is faster than its peak\. Either the peak is that of another data type .*Give another peak with "
        r"«`stepscope flops --peak-tflops`»\.",
        "没有设备能超过其峰值。可能是峰值属于另一种数据类型（启用 TF32 时 float32 按 TF32 执行），或时间、形状不属于该设备；"
        "如果有卷积，其快速算法执行的运算也少于所计的运算。可用 «`stepscope flops --peak-tflops`» 给出其他峰值。",
    ),
    (
        r"Of several curves of memory, the one closest to the capacity is shown: (.+)\. Recordings that hold fewer "
        r"curves, as other exports of the same job may, show another; «`stepscope memory`» lists all\.",
        r"有多条内存曲线，显示最接近容量的一条：{1}。曲线较少的记录（例如同一作业的其他导出）可能显示另一条；"
        r"«`stepscope memory`» 列出全部。",
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
    # sides
    (r" for (.+) than for (.+)", r"与 {2} 相比，{1} "),
    (r" for (.+) and (.+)", r"对 {1} 与 {2}，"),
    (r" for (.+)", r"对 {1}，"),
    (r"the base", "基准侧"),
    (r"the new side", "新的一侧"),
    (r"(.+) \((typical|slow)\)", r"{1}（{2}）"),
    (r"(?:steps?|iterations?) ([\d,-]+)", r"第 \1 步"),
    (r": (.+)", r"：{1}"),
    (r" \((.+)\)", r"（{1}）"),
)
"""English form of a whole sentence, or of the rest of one, and the Chinese: `\\1` is taken as it is, `{1}` translated."""

_COMPILED = tuple(
    (re.compile(form, re.DOTALL), chinese)
    for form, chinese in (
        *web_sentences.ERRORS,
        *web_sentences.REASONS,
        *SENTENCES,
        *page_sentences.FORMS,
        *reasons.FORMS,
        *issues.FORMS,
        *web_sentences.FORMS,
    )
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
