"""What columns about communication, hosts, experts and hanging calls as evidence mean, in Chinese."""

from __future__ import annotations

MEANINGS = {
    # calls beside matrix products
    "Calls that transmit mostly while a rank multiplies matrices.": "主要在 rank 进行矩阵乘时传输的调用数。",
    "Calls of the kind, in all groups, that transmit while none does.": "同类调用（所有通信组）中没有矩阵乘时传输的次数。",
    "Median transmission of the former.": "前者传输时间的中位数。",
    "Median transmission of the latter; null if there are few.": "后者传输时间的中位数；次数太少时为空。",
    "The former over the latter.": "前者与后者之比。",
    "True if they are slower by `slower_factor`, and three quarters of them than three quarters of those alone.": (
        "按 `slower_factor` 变慢，且四分之三的调用慢于单独进行时的四分之三时为真。"
    ),
    "Bytes of the median call inside of a host; null if not recorded.": "中位调用在主机内传输的字节数；未记录时为空。",
    "Rate inside of a host beside matrix products, of the median call; null if not recorded.": (
        "与矩阵乘同时进行时主机内的速率（中位调用）；未记录时为空。"
    ),
    "The same alone; null as `alone_ns`.": "单独进行时的该速率；为空的条件同 `alone_ns`。",
    "What they take longer than alone, summed over the calls of a step; null if unknown.": (
        "比单独进行时多用的时间，每步各调用之和；未知时为空。"
    ),
    "Part of it by which computing would go on sooner; null if unknown.": "其中可使计算提前继续的部分；未知时为空。",
    # transfers
    "Calls that the tasks are parts of, without their numbers; null if not recorded.": "任务所属的调用（不含编号）；未记录时为空。",
    "What the tasks do, e.g. `Memcpy`, `Reduce_Inline`.": "任务的内容，例如 `Memcpy`、`Reduce_Inline`。",
    "Kind of link, e.g. `HCCS`.": "链路类型，例如 `HCCS`。",
    "Smallest size in the row: sizes of one row differ by less than a factor of two.": "该行的最小大小：同一行的大小相差不到一倍。",
    "Number of tasks of more than the least size that can be aligned.": "大于可对齐最小大小的任务数。",
    "How many of them have a size that is no multiple of 512 bytes.": "其中大小不是 512 字节整数倍的个数。",
    "Bytes that all of them move.": "全部任务搬运的字节数。",
    "Time of all of them.": "全部任务的时间。",
    "Bytes that the unaligned ones move.": "未对齐任务搬运的字节数。",
    "Time of the unaligned ones.": "未对齐任务的时间。",
    "Bytes over time of the unaligned ones.": "未对齐任务的字节数除以时间。",
    "The same of aligned tasks of like size on the same kind of link, on all ranks; null if there are few.": (
        "所有 rank 上同类链路、大小相近的对齐任务的该速率；太少时为空。"
    ),
    "How much longer the unaligned ones take than at that rate; null if that is unknown.": (
        "未对齐任务比按该速率多用的时间；未知时为空。"
    ),
    "`SDMA` inside of a host, `RDMA` between hosts.": "`SDMA` 为主机内，`RDMA` 为主机间。",
    "Size below which a call is small on it.": "小于该大小即为小包。",
    "Calls that move anything over it, in all steps.": "所有步中经由它传输的调用数。",
    "How many of them move less than the limit of the transport.": "其中小于该传输方式上限的个数。",
    "Share of the calls that are small.": "小包调用的比例。",
    "Time of all of them on the transport.": "它们在该传输方式上的总时间。",
    "Time of the small ones.": "小包的时间。",
    "Share of that time.": "小包占该时间的比例。",
    "Mean size of the small ones; null if there are none.": "小包的平均大小；没有时为空。",
    "Bytes over time of the small ones.": "小包的字节数除以时间。",
    "The same of the others; null if there are none.": "其余调用的该速率；没有时为空。",
    "Best rate of larger calls of the operation, among as many members and hosts; null if there are none.": (
        "同一操作、成员数和主机数相同的较大调用的最高速率；没有时为空。"
    ),
    "What its best transmission takes longer than its bytes at that rate, summed over the calls of a step: what many small calls cost; null as the rate.": (
        "最快一次传输比按该速率传输其字节多用的时间，每步各调用之和：大量小调用的代价；为空的条件同该速率。"
    ),
    "Part of `latency_ns` by which computing would go on sooner; null as the rate.": (
        "`latency_ns` 中可使计算提前继续的部分；为空的条件同该速率。"
    ),
    "What shows it.": "判断依据。",
    "When the rank entered the call, on its own clock.": "该 rank 进入调用的时刻（其自身时钟）。",
    "Length of the call on this rank.": "该 rank 上该调用的时长。",
    "The same without waiting for other ranks; all of it if waiting is unknown.": "去掉等待其他 rank 后的时长；等待未知时为全部时长。",
    "Bytes moved between hosts; null if not recorded.": "主机间传输的字节数；未记录时为空。",
    "Time of that; null if not recorded.": "其时间；未记录时为空。",
    "Median transmission of other calls of its kind, else what its bytes take at the median rate between hosts; null if neither is known.": (
        "同类其他调用传输时间的中位数，否则为按主机间速率中位数传输其字节所需的时间；都未知时为空。"
    ),
    "How much longer it took, on the rank of the call that took least; null if unknown.": (
        "多用的时间（该调用中耗时最短的 rank）；未知时为空。"
    ),
    # hosts
    "How often the compiler started.": "编译器启动的次数。",
    "Number of steps of the rank; null if none are marked.": "该 rank 的步数；没有标记时为空。",
    "Recorded host time, including compiling before and after the steps.": "记录的主机时间，包括各步前后的编译。",
    "Whose CPU use it is; `operators` is the sum over dataset operators.": "CPU 使用的归属；`operators` 为数据集算子之和。",
    "Worker or dataset operator; null for host and process.": "worker 或数据集算子；主机和进程为空。",
    "Number of processors of the host; shares refer to all of them.": "主机的处理器数；比例以全部处理器计。",
    "Mean of `user_ratio`.": "`user_ratio` 的平均。",
    "Mean of `system_ratio`.": "`system_ratio` 的平均。",
    "Mean of `io_ratio`.": "`io_ratio` 的平均。",
    "Mean of `idle_ratio`.": "`idle_ratio` 的平均。",
    "Mean of `busy_processors`.": "`busy_processors` 的平均。",
    "Mean of `runnable`.": "`runnable` 的平均。",
    "Mean of `context_switches`.": "`context_switches` 的平均。",
    "Maximum of `user_ratio`.": "`user_ratio` 的最大值。",
    "Maximum of `system_ratio`.": "`system_ratio` 的最大值。",
    "Maximum of `io_ratio`.": "`io_ratio` 的最大值。",
    "Maximum of `idle_ratio`.": "`idle_ratio` 的最大值。",
    "Maximum of `busy_processors`.": "`busy_processors` 的最大值。",
    "Maximum of `runnable`.": "`runnable` 的最大值。",
    "Maximum of `context_switches`.": "`context_switches` 的最大值。",
    "Time in which the training loop waited for its batches.": "训练循环等待批次的时间。",
    "`wait_ns` over `step_ns`.": "`wait_ns` 占 `step_ns` 的比例。",
    "Cause of most of the device's idle time around it.": "其前后设备空闲时间的主要原因。",
    "Idle time of the device without a break, of which this is the longest quiet part.": (
        "设备连续空闲的时间，其中这一段主机没有活动且最长。"
    ),
    "Innermost Python function around it; null if none was recorded.": "其外最内层的 Python 函数；未记录时为空。",
    "Whether garbage collections of the rank were recorded: then this is none.": "是否记录了该 rank 的垃圾回收：若是，则这一段不是垃圾回收。",
    "What it is for, if ranges or functions around it say so.": "用途（由其外的区间或函数得知）。",
    "Why it waits: for a `value` of a tensor, for a `size` that depends on values, for a `copy to host` or a `copy to device`, or by an explicit `call`.": (
        "等待的原因：张量的值、依赖于值的大小、拷贝到主机、拷贝到设备，或显式调用。"
    ),
    "Outermost operator of the framework around it; null if there is none.": "其外最外层的框架算子；没有时为空。",
    "Innermost annotated range around it; null if there is none.": "其外最内层的标注区间；没有时为空。",
    "Line of the user's code around it; null if not recorded.": "其外的用户代码行；未记录时为空。",
    "Number of waits.": "等待次数。",
    "Waits in a step.": "每步的等待次数。",
    "Time that the host waited.": "主机等待的时间。",
    "Longest of these waits.": "其中最长的一次等待。",
    "Time for which the device then had no work, as more was launched only after the wait; at most the wait. Time with another cause, such as data loading, is not counted.": (
        "设备因此没有任务的时间（等待之后才下发新的任务），不超过等待时间；有其他原因（如等待数据）的时间不计。"
    ),
    "Start of the costliest wait.": "代价最大的等待的开始时刻。",
    "Length of the costliest wait.": "代价最大的等待的时长。",
    # memory
    "`growth`, `unreleased`, `fragmentation` or `near capacity`.": "增长、未释放、碎片或接近容量上限。",
    "Operator that allocated the blocks, for `unreleased`.": "分配这些内存块的算子（未释放时）。",
    "Bytes grown, never released, never in use, or still free.": "增长的、从未释放的、从未使用的或仍空闲的字节数。",
    "Share of the peak, of the reserved memory, or of the capacity.": "占峰值、预留内存或容量的比例。",
    "Growth, or bytes not released, per step.": "每步增长或未释放的字节数。",
    "Number of steps that show the hint.": "出现该迹象的步数。",
    "Number of blocks, for `unreleased`.": "内存块数（未释放时）。",
    "Highest use.": "最高使用量。",
    "Total memory of the device (of the host for host memory); null if unknown.": "设备的总内存（主机内存则为主机的）；未知时为空。",
    "Bytes reserved although as much was free, for `fragmentation`.": "虽有同样多的空闲内存仍被预留的字节数（碎片时）。",
    "Peak of the memory curve, including the static part.": "内存曲线的峰值，包括静态部分。",
    "Node of the peak; null for memory over time.": "峰值所在的节点；按时间记录的内存为空。",
    "When the peak was first reached; null for a graph.": "首次达到峰值的时刻；图为空。",
    "Step of the peak.": "峰值所在的步。",
    "Phase of the step at the peak, as in `memory_usage`.": "峰值时所处的步内阶段，同 `memory_usage`。",
    "Name of that node.": "该节点的名称。",
    "Full name of that node.": "该节点的全名。",
    "Part that stays allocated for the whole graph.": "整个图期间一直占用的部分。",
    "Peak without the static part.": "不含静态部分的峰值。",
    "Number of allocations.": "分配次数。",
    "Peak as the source states it for the rank.": "数据源标明的该 rank 的峰值。",
    "Static part as stated.": "标明的静态部分。",
    "Allocations as stated.": "标明的分配次数。",
    "Releases as stated.": "标明的释放次数。",
    "Highest of peak, stated peak and reserved memory, divided by the capacity.": (
        "峰值、标明的峰值和预留内存中的最大者除以容量。"
    ),
    # experts
    "Name of the group; null if it has none or none is known.": "通信组名称；没有或未知时为空。",
    "Its ranks that compute experts, e.g. `0, 1`.": "组内计算专家的 rank，例如 `0, 1`。",
    "How the group is known.": "如何得知该组。",
    "What the load is measured by.": "负载的度量方式。",
    "Load of the rank with most over the mean of the group; 1 if even.": "负载最大的 rank 与组平均之比；均衡时为 1。",
    "Rank with most load; of several, the lowest.": "负载最大的 rank；有多个时取编号最小的。",
    "Its load: tokens, elements or ns.": "其负载：token 数、元素数或纳秒。",
    "Rank with least load; of several, the lowest.": "负载最小的 rank；有多个时取编号最小的。",
    "Its load.": "其负载。",
    "Mean of the group.": "组平均。",
    "Most load of a rank in each call, whichever it is, over the mean of the group, both summed over calls; null if calls cannot be compared.": (
        "每次调用中负载最大的 rank（不论是哪个）与组平均之比，二者都对调用求和；调用无法比较时为空。"
    ),
    "Number of these calls; null if there are none.": "这些调用的次数；没有时为空。",
    "How many ranks have most load in some call.": "在某次调用中负载最大的 rank 个数。",
    "Members of the group whose load is unknown.": "组内负载未知的成员。",
    "Rows of the first input of its grouped matrix products, summed over calls in the steps that the ranks of its group share; null if shapes were not recorded.": (
        "其分组矩阵乘第一个输入的行数，对组内各 rank 共有的步中的调用求和；未记录形状时为空。"
    ),
    "Elements that all-to-all calls bring to its experts, summed over the calls that as many ranks as possible recorded; null if splits were not recorded.": (
        "all-to-all 调用带给其专家的元素数，对尽可能多的 rank 都有记录的调用求和；未记录切分时为空。"
    ),
    "Time of its kernels that compute experts, in these steps; null if none is known.": "这些步中计算专家的 kernel 时间；未知时为空。",
    "Its load over the mean of the group.": "其负载与组平均之比。",
    # hanging calls
    "Number of the call in `unfinished_calls`.": "该调用在 `unfinished_calls` 中的编号。",
    "What is wrong.": "问题所在。",
    "Ranks that cause it; null if unknown.": "造成问题的 rank；未知时为空。",
    "Members that did not make it either, where other ranks called something else; null if none.": (
        "其他 rank 调用了别的操作时，同样没有发起该调用的成员；没有时为空。"
    ),
    "Ranks that wait in the call, or in the one behind it.": "在该调用或其后的调用中等待的 rank。",
    "Members that are not in it, or whose device has not begun it, as they wait in another call.": (
        "因在另一调用中等待而未进入该调用、或设备尚未开始的成员。"
    ),
    "Members of which it is unknown whether they are in it.": "不知道是否已进入该调用的成员。",
    "Process group: name and members.": "通信组：名称和成员。",
    "Description of the group, else its number.": "通信组的描述，否则为其编号。",
    "Sequence number of the call in its group.": "该调用在通信组内的序号。",
    "Library that makes the call, e.g. `nccl`; null if not recorded.": "执行调用的通信库，例如 `nccl`；未记录时为空。",
    "True for `send` and `recv`.": "`send` 和 `recv` 为真。",
    "Rank that sends, of a `send` or `recv`; else null.": "`send` 或 `recv` 的发送方；否则为空。",
    "Rank that receives; likewise null.": "接收方；否则为空。",
    "Whether the members of the group were recorded.": "是否记录了通信组的成员。",
    "When the first of the waiting ranks made the call.": "最先等待的 rank 发起调用的时刻。",
    "From then until the dump was written; null if the file was copied later.": "从那时到写出 dump 的时间；文件后来被复制时为空。",
    "Time after which the framework gives the call up.": "框架放弃该调用的超时时间。",
    "Call because of which it hangs; null if it causes itself.": "使其挂起的调用；由自身造成时为空。",
    "Number of the call in this answer, from 0.": "该调用在此答案中的编号，从 0 起。",
    "Sequence number of the call; of point-to-point calls, that of the waiting rank.": "调用的序号；点对点调用取等待方的序号。",
    "Operation that most members called.": "多数成员调用的操作。",
    "What the rank did about the call.": "该 rank 对该调用做了什么。",
    "What it called; of a missing rank, or one whose dump is older, its last call.": (
        "其调用的操作；缺席的或 dump 较旧的 rank 为其最后一次调用。"
    ),
    "Group of that call.": "该调用的通信组。",
    "Sequence number of that call.": "该调用的序号。",
    "Whether it has left that call.": "是否已离开该调用。",
    "Whether its device has begun this call; false if work in front of it still runs there, null if not recorded.": (
        "其设备是否已开始该调用；前面的任务仍在运行时为假，未记录时为空。"
    ),
    "Whether it waits in this call, or in a later one of the group.": "是否在该调用或组内之后的调用中等待。",
    "When it was seen to have left this call.": "得知其离开该调用的时刻。",
    "What it called next in the group; null if nothing.": "其在组内的下一次调用；没有时为空。",
    "Whether it has left that one.": "是否已离开下一次调用。",
    "Bytes that it gives to the call; null if it is missing.": "其提供给调用的字节数；缺席时为空。",
    "Data type of that; null if it is missing.": "其数据类型；缺席时为空。",
    "When it made its call.": "其发起调用的时刻。",
    "When its dump was written, as the file states.": "其 dump 的写出时刻（文件标明）。",
    "Where the code made its call: innermost function outside of libraries.": "发起调用的代码位置：库以外最内层的函数。",
    "Call stack of its call, innermost first.": "其调用的调用栈，最内层在前。",
}
