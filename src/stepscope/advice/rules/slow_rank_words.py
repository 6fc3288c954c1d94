"""Words of the rule about slow ranks."""

from __future__ import annotations

from stepscope.advice.finding import CPU, MINDSPORE, PYTORCH
from stepscope.advice.messages import Choices, Message, Text, framed
from stepscope.advice.replayed import OFF
from stepscope.advice.rules.slow_rank_reasons import with_reasons

_MORE = Text(
    "[ {when:when}][ since {slow_since:steps}][ until {slow_until:steps}]"
    ": {excess_ns:ms} more[ {every:each}] than[ {rest:ranks}][ {compared:one the other rank|the median rank}]"
    "[ on rank {worst_rank}]"
    "[ ({excess_ratio:percent} of {per:time})][; it arrives last in {times_last} of {collectives} collectives]"
    "[. Only recorded ranks are compared: {unrecorded:count rank is|ranks are} missing].",
    "[（{when:when}）][（自{slow_since:steps}起）][（直到{slow_until:steps}）]"
    "：[{every:each}]比[ {rest:ranks} ][{compared:one 另一个|中位} rank ]多 {excess_ns:ms}[（rank {worst_rank}）]"
    "[（占{per:time}的 {excess_ratio:percent}）]"
    "[；{collectives} 次集合通信中有 {times_last} 次最后到达][。仅比较了已记录的 rank：缺少 {unrecorded} 个]。",
)
_AGAINST = Text(
    " {own_ns:ms}[ {every:each}], against {typical_ns:ms} on[ {rest:ranks}][ {compared:one the other rank|the median "
    "rank}].[ As most are as late, it may be {rest:ranks} that {rest:one differs|differ}: less work, or faster.]"
    "[ Its experts have {expert_load:number .2f}x the work of the median rank's: no more is claimed than what an even "
    "load leaves.][ Its other {normal:one step is|steps are} normal.]"
    "[ Masked by {masked_by:ranks}: fix both to get this saving.]"
    "[ Only {few:windows} could be compared: record more to rule out chance.]"
    "[ The saving is that of {recorded:windows}: in others, not all slow ranks were recorded.]",
    " {own_ns:ms}，[{rest:ranks} ][{compared:one 另一个|中位} rank ]为 {typical_ns:ms}。"
    "[多数 rank 同样慢，因此也可能是 {rest:ranks} 与众不同：工作更少，或更快。]"
    "[它的专家的工作量是中位 rank 的 {expert_load:number .2f} 倍：只计入负载均衡后剩余的部分。]"
    "[其余 {normal:windows}正常。][被 {masked_by:ranks} 掩盖："
    "两者都解决后才能获得这一节省。][只能比较 {few:windows}：多记录几步以排除偶然。]"
    "[节省仅就 {recorded:windows}而言：其余并非所有慢 rank 都有记录。]",
)
_SHORT = Text(
    "[ {when:when}][ since {slow_since:steps}][ until {slow_until:steps}]",
    "[（{when:when}）][（自{slow_since:steps}起）][（直到{slow_until:steps}）]",
)
_BASIS = (
    Text(
        "[less if {others:count other slow rank stays|other slow ranks stay} as late; ]"
        "[less if {beside:count other delay of its own stays|other delays of its own stay}; ]"
        "[{ranged:one |}from the lower to the upper quartile of ]what a replay of the job without its extra time saves"
        "[ in its {slow_windows:windows}, averaged over {steps:windows}]"
        "[{ranged:one |}, and at least 5% either way][{single:one |}, give or take 5%]",
        "[若另外 {others} 个慢 rank 同样晚则更少；][若它自身的另外 {beside} 处延迟仍在则更少；]"
        "按去掉其多用时间的作业重放计算"
        "[（取其变慢的 {slow_windows:windows}，平均到 {steps:windows}）]"
        "[{ranged:one |}：各步节省的上下四分位，且至少 ±5%]"
        "[{single:one |}，±5%]",
    )
    + OFF
)
_MISSING = Text(
    "[nothing if {unrecorded:one the missing rank is|a missing rank is} as late; ]",
    "[若未记录的 {unrecorded} 个 rank 中有同样晚的则为零；]",
)


def _message(verb: Text | Choices, spent: Text | Choices, action: Text | Choices) -> Message:
    """Build a message from the slow rank's kind of work, how its time is spent, and what helps."""
    return Message(
        summary=framed(Text("{ranks:Ranks}[ ({unit})] ", "{ranks:ranks}[（{unit}）] "), verb, _MORE),
        short=framed(Text("{ranks:ranks}[ ({unit})] ", "{ranks:ranks}[（{unit}）] "), verb, _SHORT),
        cause=framed(Text("[Rank {worst_rank}: ]", "[rank {worst_rank}：]"), spent, _AGAINST),
        action=action,
        basis=_MISSING + _BASIS,
    )


_LOGGING = Text("and logging or checkpoints that only this rank does.", "以及只有该 rank 才做的日志或检查点。")

_OF_KINDS = {
    "computing": _message(
        Text("{ranks:one computes|compute} slowly", "计算慢"),
        Text("It computes for", "它的计算耗时[{every:each}]"),
        {
            (None, None): Text(
                "Compare its kernels with another rank's: if all are slower by one factor, check clock, power cap and "
                "temperature of that device; if only some are, check their input shapes (uneven batches or sequences).",
                "把它的 kernel 与另一个 rank 对比：若全部按同一倍数变慢，检查该设备的频率、功耗上限和温度；"
                "若只有部分变慢，检查它们的输入形状（批次或序列长短不均）。",
            ),
            (None, CPU): Text(
                "Compare its operators with another rank's: if all are slower by one factor, check other processes on "
                "its processors, their frequency, the number of threads (OMP_NUM_THREADS) and NUMA binding; if only "
                "some are, check their input shapes (uneven batches or sequences).",
                "把它的算子与另一个 rank 对比：若全部按同一倍数变慢，检查处理器上的其他进程、频率、"
                "线程数（OMP_NUM_THREADS）和 NUMA 绑定；若只有部分变慢，检查它们的输入形状（批次或序列长短不均）。",
            ),
        },
    ),
    "data_loading": _message(
        Text("{ranks:one waits|wait} for data", "在等待数据"),
        Text("Its training loop waits for the next batch for", "它的训练循环等待下一批数据，[{every:each}]"),
        framed(
            Text(
                "Check that rank's input: storage, file sizes, and the CPU load of its host. Then raise ",
                "检查该 rank 的数据输入：存储、文件大小、所在主机的 CPU 负载。然后",
            ),
            {
                (PYTORCH, None): Text(
                    "the number of DataLoader workers (num_workers), prefetch more, or move the slow transform "
                    "offline.",
                    "增加 DataLoader 的工作进程（num_workers）、增加预取，或把慢的变换移到离线处理。",
                ),
                (MINDSPORE, None): Text(
                    "num_parallel_workers of the dataset operators, prefetch more, or write the data set to MindRecord "
                    "in advance.",
                    "增大数据集算子的 num_parallel_workers、增加预取，或提前把数据集写成 MindRecord。",
                ),
                (None, None): Text(
                    "the number of loader workers, prefetch more, or move the slow transform offline.",
                    "增加加载数据的工作进程、增加预取，或把慢的变换移到离线处理。",
                ),
            },
        ),
    ),
    "compile": _message(
        Text("{ranks:one spends|spend} time compiling", "在编译上耗时"),
        Text("Its compiler runs for", "它的编译器运行[{every:each}]"),
        framed(
            Text(
                "Check what only that rank compiles: its batches may have other sizes, or its compiler's cache may be "
                "empty. ",
                "检查只有该 rank 才编译的内容：它的批次大小可能不同，或者它的编译缓存是空的。",
            ),
            {
                (PYTORCH, None): Text(
                    "Find what changed with TORCH_LOGS=recompiles on that rank; use torch.compile(dynamic=True)",
                    "在该 rank 上用 TORCH_LOGS=recompiles 查看变化的原因；使用 torch.compile(dynamic=True)",
                ),
                (MINDSPORE, None): Text(
                    "Declare sizes as dynamic (Cell.set_inputs with None in the shape)",
                    "把大小声明为动态（Cell.set_inputs，形状中用 None）",
                ),
                (None, None): Text("Declare sizes as dynamic", "把大小声明为动态"),
            },
            Text(
                ", or pad its batches to the sizes that the other ranks have.", "，或把它的批次补齐到其他 rank 的大小。"
            ),
        ),
    ),
    "checkpoint": _message(
        Text("{ranks:one spends|spend} time on checkpoints", "在保存检查点上耗时"),
        Text("It stops to write checkpoints for", "它为写检查点而停顿[{every:each}]"),
        Text(
            "Let every rank save its own part, save less often or without stopping for it, and to local storage first.",
            "让每个 rank 保存自己的部分，降低保存频率或异步保存，并先写到本地存储。",
        ),
    ),
    "garbage_collection": _message(
        Text("{ranks:one spends|spend} time on garbage collection", "在垃圾回收上耗时"),
        Text("Python collects garbage there for", "该 rank 上 Python 的垃圾回收[{every:each}]"),
        Text(
            "Find what only that rank keeps or collects: calls of gc.collect(), lists of results or logs that grow. "
            "Call gc.freeze() after warm-up, or let all ranks collect in the same step.",
            "找出只有该 rank 才保留或回收的内容：gc.collect() 调用、不断增长的结果或日志列表。"
            "在预热后调用 gc.freeze()，或让所有 rank 在同一步回收。",
        ),
    ),
    "dispatch": _message(
        {
            (None, None): Text("{ranks:one dispatches|dispatch} late", "下发慢"),
            (None, CPU): Text("{ranks:one spends|spend} time outside of operators", "在算子之外耗时"),
        },
        {
            (None, None): Text(
                "Its host launches work late: it is busy for", "它的主机下发任务过晚：主机忙于[{every:each}]"
            ),
            (None, CPU): Text("It is outside of the framework's operators for", "它在框架算子之外耗时[{every:each}]"),
        },
        framed(
            Text(
                "Check that host: other processes on its CPUs, CPU frequency, NUMA binding, garbage collection, ",
                "检查该主机：CPU 上的其他进程、CPU 频率、NUMA 绑定、垃圾回收，",
            ),
            {
                (PYTORCH, None): Text(
                    "synchronising calls (`.item()`, prints of tensors) or logging that only this rank does.",
                    "以及只有该 rank 才做的同步调用（`.item()`、打印张量）或日志。",
                ),
                (MINDSPORE, None): Text(
                    "synchronising calls (`.asnumpy()`, prints of tensors) or logging that only this rank does.",
                    "以及只有该 rank 才做的同步调用（`.asnumpy()`、打印张量）或日志。",
                ),
                (None, None): Text(
                    "calls that wait for the device, or logging that only this rank does.",
                    "以及只有该 rank 才做的等待设备的调用或日志。",
                ),
                **dict.fromkeys(((PYTORCH, CPU), (MINDSPORE, CPU), (None, CPU)), _LOGGING),
            },
        ),
    ),
    "memory": _message(
        Text("{ranks:one copies|copy} memory slowly", "内存拷贝慢"),
        Text("Its memory copies take", "它的内存拷贝耗时[{every:each}]"),
        {
            (None, None): Text(
                "Check host memory (pinned or pageable), the PCIe link and the NUMA placement of that rank.",
                "检查主机内存（锁页或可分页）、PCIe 链路以及该 rank 的 NUMA 位置。",
            ),
            (None, CPU): Text(
                "Check the NUMA placement of that rank and what else uses the memory of its host.",
                "检查该 rank 的 NUMA 位置，以及主机上还有什么在使用内存。",
            ),
        },
    ),
}
"""By `slow_ranks.kind`."""

_ROTATING = Message(
    summary=Text(
        "In {slow_count} of {steps:windows}, another rank is late each time ({ranks:ranks}): {excess_ns:ms} more than "
        "the median rank.",
        "{steps:windows}中有 {slow_count} 次都有不同的 rank 变慢（{ranks:ranks}）：比中位 rank 多 {excess_ns:ms}。",
    ),
    short=Text("each time another rank is late", "每次都有不同的 rank 变慢"),
    cause=Text(
        "It takes longer for `{kind}`, but no rank more often than chance explains, so no single machine is at fault.",
        "变慢的是 `{kind}`，但没有哪个 rank 超出偶然的次数，因此不是某一台机器的问题。",
    ),
    action=Text(
        "Look at uneven batches (sequence lengths, sizes of images, experts) and at the network or storage that all "
        "share, not at one machine.",
        "检查不均匀的批次（序列长度、图像大小、专家）以及共用的网络或存储，而不是某一台机器。",
    ),
    basis=_BASIS,
)

MESSAGES = {**with_reasons(_OF_KINDS), "rotating": _ROTATING}
"""By kind, by kind and recorded reason (`computing/alike`), and `rotating` if it is another rank each time."""
