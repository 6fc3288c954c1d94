"""Chinese meanings of columns about kernels, operators, launches and gaps, by the English ones."""

from __future__ import annotations

MEANINGS = {
    "95th percentile (observed) of the duration of the work.": "任务耗时的 95 分位数（观测值）。",
    "95th percentile (observed) of the time from the end of the call to the start of the work.": (
        "从下发调用结束到任务开始的时间的 95 分位数（观测值）。"
    ),
    "95th percentile (observed) of the time of the host's call for a piece.": "主机下发调用耗时的 95 分位数（观测值）。",
    "Core type that ran it, e.g. `AI_CORE`; null if not recorded.": "执行它的核类型，例如 `AI_CORE`；未记录则为空。",
    "Counter with its unit, e.g. `ai_core_frequency_mhz`.": "计数器及其单位，例如 `ai_core_frequency_mhz`。",
    "Data format.": "数据格式。",
    "Data type.": "数据类型。",
    "Different rates, lowest first; of many, the lowest and the highest.": (
        "出现过的频率，从低到高；很多时只列最低和最高。"
    ),
    "FLOPs divided by the time of the operators that performed them.": "FLOPs 除以执行它们的算子的时间。",
    "FLOPs of a step over its length.": "一步的 FLOPs 除以步时间。",
    "FLOPs of all recorded calls.": "所有记录调用的 FLOPs。",
    "FLOPs of one step; null if no steps are known.": "一步的 FLOPs；没有已知的步则为空。",
    "FLOPs over those of the rank with the most: 1 on that rank.": "与 FLOPs 最多的 rank 之比：该 rank 为 1。",
    "From the end of its launch to the end of the gap; null if unknown.": "从其下发结束到空闲段结束；未知则为空。",
    "Highest rate.": "最高频率。",
    "Host range with most time outside of the ranges in it, summed by name; null if none.": (
        "自身时间（不含内层区间）最多的主机区间，按名称汇总；没有则为空。"
    ),
    "Innermost host range that covers most of the gap; null if there is none.": (
        "覆盖空闲段大部分的最内层主机区间；没有则为空。"
    ),
    "Its share of the CPU time of all operators.": "占所有算子 CPU 时间的比例。",
    "Kind of device work.": "设备任务的种类。",
    "Layer of the interface as recorded, e.g. `AscendCL`, `Node`, `Runtime`; null if names state none. Calls of a layer "
    "contain those of lower layers.": (
        "接口层，例如 `AscendCL`、`Node`、`Runtime`；名称未标明则为空。某层的调用包含更低层的调用。"
    ),
    "Longest duration of the work.": "任务的最长耗时。",
    "Longest time from the end of the call to the start of the work.": "从下发调用结束到任务开始的最长时间。",
    "Longest time of the host's call for a piece.": "主机下发调用的最长耗时。",
    "Lowest rate.": "最低频率。",
    "Mean duration of the work.": "任务的平均耗时。",
    "Mean over time; a sample holds until the next one.": "按时间平均；每个采样值保持到下一个采样。",
    "Mean time from the end of the call to the start of the work.": "从下发调用结束到任务开始的平均时间。",
    "Mean time of the host's call for a piece.": "主机下发调用的平均耗时。",
    "Median duration of the work.": "任务耗时的中位数。",
    "Median time from the end of the call to the start of the work.": "从下发调用结束到任务开始的时间的中位数。",
    "Median time of the host's call for a piece.": "主机下发调用耗时的中位数。",
    "Number of samples.": "采样数。",
    "Number of samples; some sources record changes only.": "采样数；有的数据源只记录变化。",
    "Operator type; null if not recorded.": "算子类型；未记录则为空。",
    "Peak rate of the device; null if unknown.": "设备的峰值速率；未知则为空。",
    "Pieces launched by a call beyond the limit.": "下发调用耗时超过上限的任务数。",
    "Pieces of device work with a known launch.": "已知其下发的设备任务数。",
    "Pieces that start later than the limit after it.": "下发后超过上限才开始的任务数。",
    "Pieces that take less time than the host needs to launch them.": "耗时比主机下发它还短的任务数。",
    "Python function, with file and line, of the script around most of the gap, if recorded.": (
        "空闲段大部分时间所在的脚本 Python 函数及其文件和行（如有记录）。"
    ),
    "Share of all device work of all ranks.": "占所有 rank 的设备任务的比例。",
    "Share of all device work of the rank.": "占该 rank 所有设备任务的比例。",
    "Share of all idle time.": "占所有空闲时间的比例。",
    "Share of the device work of all ranks without communication.": "占所有 rank 除通信外设备任务的比例。",
    "Share of the gap that it covers.": "覆盖空闲段的比例。",
    "Share of the gap that it takes.": "占空闲段的比例。",
    "Share of the rank's self time.": "占该 rank 自身时间的比例。",
    "Share of the self time of all operators of all ranks.": "占所有 rank 的所有算子自身时间的比例。",
    "Share of the time below the nominal rate; null if that is unknown.": "低于标称频率的时间比例；标称未知则为空。",
    "Share of the time of all calls of its layer on all ranks.": "占所有 rank 上同层所有调用时间的比例。",
    "Time excluding its direct children on the same thread.": "不含同一线程上直接子算子的时间。",
    "Time excluding the ranges directly inside, on the same thread.": "不含同一线程上直接内层区间的时间。",
    "Time of the kernels that it launched directly; null without device work.": (
        "它直接下发的 kernel 的时间；没有设备任务则为空。"
    ),
    "Utilization as stated; no file defines it.": "数据源标明的利用率；文件中没有其定义。",
    "What the device is made for, as recorded; null if unknown.": "设备的标称值（按记录）；未知则为空。",
    "What the stream waited for meanwhile, as recorded; null if nothing was recorded.": (
        "期间该流在等待什么（按记录）；没有记录则为空。"
    ),
    "When the host launched it: before the gap or in it.": "主机何时下发它：空闲段之前或之中。",
    "When the host launched the work after most of them: before the gap or in it.": (
        "大多数情况下主机何时下发之后的任务：空闲段之前或之中。"
    ),
    "Where the FLOPs come from: `stated` by the source, hardware `counters`, or input `shapes`.": (
        "FLOPs 的来源：数据源标明（`stated`）、硬件计数器（`counters`）或输入形状（`shapes`）。"
    ),
    "Where the host spent most of the gap.": "空闲段中主机的主要时间花在哪里。",
    "Work that began where the gap ends; null if unknown.": "空闲段结束处开始的任务；未知则为空。",
    "Work that ended where the gap begins; null if unknown.": "空闲段开始处结束的任务；未知则为空。",
    "`flops_per_s` over the peak.": "`flops_per_s` 与峰值之比。",
    "`normal`: always at the nominal rate; `idle`: it also falls to that of idle cores; `low`: it ran at other, lower "
    "rates, e.g. for heat or a power cap. Null if the nominal rate is unknown.": (
        "`normal`：始终为标称频率；`idle`：有时降到空闲核的频率；`low`：曾以其他更低频率运行，例如过热或功耗限制。"
        "标称频率未知则为空。"
    ),
    "`step_flops_per_s` over the peak.": "`step_flops_per_s` 与峰值之比。",
}
