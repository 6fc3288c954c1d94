"""Chinese meanings of columns that only pages and the command line show, by question: `SHARED` to `launch_outliers`."""

from __future__ import annotations

MEANINGS = {
    # SHARED
    "Communication without waiting.": "不含等待的通信。",
    "End.": "结束时间。",
    "How far the rank's clock is ahead of the common one; 0 if that is within noise.": (
        "该 rank 的时钟比公共时钟快多少；在噪声范围内为 0。"
    ),
    "True on the device, false on the host.": "在设备上为 true，在主机上为 false。",
    # api_totals
    "Share of the time of all calls of its layer on the rank.": "占该 rank 同层所有调用时间的比例。",
    # call_links
    "Operation; null if not recorded.": "操作；未记录则为空。",
    # call_spread
    "How long after the first rank the last one entered.": "最后一个 rank 比第一个晚多久进入。",
    "Name of the call on its lowest rank.": "调用在编号最小的 rank 上的名称。",
    "Position of the call in its group, as in `arrival`.": "调用在其通信组中的序号，与 `arrival` 相同。",
    "Rank that entered last; null if all entered together.": "最后进入的 rank；同时进入则为空。",
    # call_statistics
    "Share of the time of all calls of all ranks.": "占所有 rank 全部调用时间的比例。",
    # call_totals
    "Share of the time of all calls of the rank.": "占该 rank 全部调用时间的比例。",
    # call_tree
    "Device work itself: only kernels have it.": "设备任务本身：只有 kernel 有。",
    "Device work launched by them and by calls in them.": "它们及其内部调用所下发的设备任务。",
    "Name of the call, without numbers of steps; `file(line): function` of Python.": (
        "调用的名称，不含步号；Python 为 `file(line): function`。"
    ),
    "Number of calls with these calls around them.": "外层调用与此相同的调用次数。",
    "Their time on the host, with all calls in them.": "它们在主机上的时间，含所有内部调用。",
    "`host_ns` over that of the whole tree.": "`host_ns` 与整棵树之比。",
    # copy_rates
    "Highest rate in this time, of all copies that run together.": "这段时间内的最高速率，同时进行的拷贝合计。",
    "Mean rate in this time, also while nothing is copied.": "这段时间内的平均速率，含没有拷贝的时间。",
    # cpu_utilization
    "Context switches since the previous sample.": "自上次采样以来的上下文切换次数。",
    "Number of running or runnable processes.": "正在运行或可运行的进程数。",
    "Number of threads.": "线程数。",
    "Process id; null for the host and for sums.": "进程号；主机及合计为空。",
    "Processors in user code or the kernel.": "处于用户代码或内核中的处理器数。",
    "Share idle.": "空闲比例。",
    "Share in the kernel.": "内核占比。",
    "Share in user code.": "用户代码占比。",
    "Share waiting for I/O.": "等待 I/O 的比例。",
    "When it was sampled.": "采样时间。",
    # critical_path
    "Name of the kernel or call; of several alike in a row, the first; null for the host.": (
        "kernel 或调用的名称；连续多个相同的取第一个；主机为空。"
    ),
    "Number of pieces in a row on this lane, of this kind and name.": "该通道上连续的同类同名段数。",
    "Start of the first one, relative to the start of the step.": "第一段的开始，相对于步的开始。",
    "Time between what they waited for and their starts.": "从所等待的工作结束到它们开始之间的时间。",
    "What the first one waited for; null for the first of all.": "第一段所等待的对象；最初一段为空。",
    "`host`, or the stream or group that ran it.": "`host`，或执行它的 stream 或通信组。",
    # dynamic_shapes
    "True in the first step with these shapes; null if shapes were not recorded.": (
        "首次以这些形状执行的步为 true；未记录形状则为空。"
    ),
    # expert_calls
    "Number of the expert kernel in its step, from 0; of `received` that of the call.": (
        "专家 kernel 在其步内的序号，从 0 开始；`received` 为调用的序号。"
    ),
    # expert_costs
    "Ranks of the group that compute experts, e.g. `0, 1`.": "组内计算专家的 rank，例如 `0, 1`。",
    "The mean step of the replay.": "重放的平均步。",
    "The same if those of all these groups did.": "若所有这些组的专家都均衡，同样的数值。",
    "What the mean step would be shorter if their experts took each the same time.": (
        "若其专家耗时各自相同，平均步可缩短多少。"
    ),
    # flop_tree
    "FLOPs of all calls within the scope.": "作用域内所有调用的 FLOPs。",
    "Last part of the scope.": "作用域的最后一级。",
    "Parent scope; null for the root.": "上级作用域；根为空。",
    "Scope; `Total` is the root.": "作用域；`Total` 为根。",
    "Share of the parent's FLOPs.": "占上级 FLOPs 的比例。",
    "Where the tree comes from: `stated` by the source, or summed from `operators`.": (
        "树的来源：由来源标明（`stated`），或由算子求和（`operators`）。"
    ),
    # functions
    "Part of `self_ns` in which the rank was idle; null if unknown.": "`self_ns` 中 rank 空闲的部分；未知则为空。",
    "Time outside the functions and operators that it called.": "不含其所调用的函数和算子的时间。",
    "Total time; a function that calls itself counts once.": "总时间；递归调用只计一次。",
    # heat_map
    "Excess of those kinds of work in which it is beyond the noise of ordinary ranks.": (
        "超出普通 rank 噪声范围的那些工作类别的多余时间。"
    ),
    "Kind of work at which it loses most; null if at none.": "损失最多的工作类别；没有则为空。",
    "Time that it is busy with its own work, all kinds together.": "忙于自身工作的时间，各类合计。",
    "Time that this usually takes on comparable ranks in this step.": "同类 rank 在该步通常所用的时间。",
    "`clear_ns` over `typical_ns`.": "`clear_ns` 与 `typical_ns` 之比。",
    "`excess_ns` over `typical_ns`.": "`excess_ns` 与 `typical_ns` 之比。",
    "`own_ns` minus `typical_ns`; negative if it is faster.": "`own_ns` 减 `typical_ns`；更快则为负。",
    # host_memory_curve
    "End of a marked range, or when it was sampled.": "标记区间的结束时间，或采样时间。",
    "Memory of the process.": "进程的内存。",
    # input_batches
    "Items in the queue at that time.": "当时队列中的项数。",
    "Number of the batch as recorded.": "记录中的批次号。",
    "Number of the batch in the queue, from 1.": "批次在队列中的序号，从 1 开始。",
    "Time spent passing the batch on; null if not recorded.": "传递该批次所用的时间；未记录则为空。",
    "Time spent waiting for the dataset pipeline; null if not recorded.": "等待数据管道的时间；未记录则为空。",
    "Total time of the batch.": "该批次的总时间。",
    "When the batch was taken.": "取走该批次的时间。",
    # input_samples
    "Number of the sample, from 0.": "采样的序号，从 0 开始。",
    # kernel_launches
    "Longest call.": "最长的调用。",
    "Longest such time.": "最长的这种时间。",
    "Mean duration of the kernel.": "该 kernel 的平均时长。",
    "Mean time from the end of the call to its start.": "从调用结束到其开始的平均时间。",
    "Time of the calls that launch it.": "下发它的调用的时间。",
    "Time that the kernel runs.": "kernel 的运行时间。",
    # kernel_lengths
    "Kernels of this length and more.": "该时长及以上的 kernel。",
    "Kernels shorter than this; null for the longest.": "短于该时长的 kernel；最长一档为空。",
    "Share of all kernels.": "占所有 kernel 的比例。",
    "Share of the time of all kernels.": "占所有 kernel 时间的比例。",
    "Time of these kernels.": "这些 kernel 的时间。",
    # kernel_sequences
    "Operator under which they are launched.": "下发它们的算子。",
    "Share of its calls that launch anything.": "其调用中有下发的比例。",
    "Time of the kernels of all these calls.": "所有这些调用的 kernel 时间。",
    # kernel_shape_totals
    "Share of the rank's device work without communication.": "占该 rank 不含通信的设备任务的比例。",
    # kernel_statistics
    "Name of the kernel or memory operation.": "kernel 或内存操作的名称。",
    "Shapes of the inputs, as recorded; null if not recorded.": "记录的输入形状；未记录则为空。",
    # launch_outliers
    "Duration of the work.": "任务的时长。",
    "From the end of the call to the start of the work.": "从调用结束到任务开始。",
    "Id that the call shares with its work; null if not recorded.": "调用与其任务共有的编号；未记录则为空。",
    "Start of the call.": "调用的开始。",
    "Time of the call for this piece of work.": "这项任务的调用时间。",
    "What is long: the host's `call`, or the `delay` from its end.": (
        "什么过长：主机的调用（`call`），或其结束之后的延迟（`delay`）。"
    ),
}
