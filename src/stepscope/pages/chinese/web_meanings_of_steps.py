"""Chinese meanings of columns that only pages and the command line show, by question: `rank_bandwidths` to `work_names`."""

from __future__ import annotations

MEANINGS = {
    # rank_bandwidths
    "Bytes over time, between hosts; null if nothing was moved.": "主机间的字节数与时间之比；没有传输则为空。",
    "Bytes over time, inside of its host; null if nothing was moved.": "主机内的字节数与时间之比；没有传输则为空。",
    "Bytes that its calls moved between hosts.": "其调用在主机间传输的字节数。",
    "Bytes that its calls moved inside of its host.": "其调用在主机内传输的字节数。",
    "Its rate over that of the step's median rank; null as the rate.": "其速率与该步中位 rank 之比；与速率同为空。",
    "Number of the step; null where no step is known.": "步号；没有已知的步则为空。",
    # rank_calls
    "Name of the operator; null for all calls of a group, operation and size.": (
        "算子名称；按通信组、操作和大小合计时为空。"
    ),
    "Operation, e.g. `all_reduce`; null if not recorded.": "操作，例如 `all_reduce`；未记录则为空。",
    # rank_counters
    "First step at a new level that lasts; null if it never moved.": "首个持续处于新水平的步；从未变化则为空。",
    "Level before; null if it never moved.": "之前的水平；从未变化则为空。",
    "Level from that step on; null if it never moved.": "自该步起的水平；从未变化则为空。",
    "Lowest level in any step.": "各步中的最低水平。",
    "Mean over the steps, in the counter's unit, as are the next ones.": "各步平均，单位同计数器；以下各列相同。",
    "Mean while the rank computes.": "该 rank 计算时的平均。",
    "Number of steps with this counter.": "有该计数器的步数。",
    "True if it differs from the peers' beyond the limit.": "与同类的差异超过上限则为 true。",
    "What it shows.": "它所表示的内容。",
    "`busy_mean` of the median peer; null without peers.": "中位同类的 `busy_mean`；没有同类则为空。",
    "`busy_mean` over `typical`; null without peers.": "`busy_mean` 与 `typical` 之比；没有同类则为空。",
    # rank_overlap
    "Part of it in which the rank does not compute.": "其中该 rank 不计算的部分。",
    "Share of the step.": "占步的比例。",
    "Time in which any of them runs.": "其中任一运行的时间。",
    # rank_ranges
    "As in `ranges`.": "与 `ranges` 相同。",
    "Its mean.": "其平均值。",
    "Mean of all of them.": "全部的平均值。",
    "Name of the range, as marked.": "区间的标记名称。",
    "Number of ranges or points on all ranks.": "所有 rank 上的区间或时间点数。",
    "Rank with the longest mean.": "平均最长的 rank。",
    "Rank with the shortest mean.": "平均最短的 rank。",
    "Ranks that have it.": "拥有它的 rank。",
    "Total time of all ranks; null for points, as all times are.": "所有 rank 的总时间；时间点的各项时间均为空。",
    # recorded_positions
    "Calls that the dump still has.": "转储中仍保留的调用数。",
    "Calls that the rank has not left.": "该 rank 尚未离开的调用数。",
    "Highest sequence number among them.": "其中最大的序号。",
    "Lowest sequence number among them.": "其中最小的序号。",
    "Lowest sequence number of those; null if there is none.": "其中最小的序号；没有则为空。",
    "Number of the last of these calls among all calls of the rank.": (
        "这些调用中的最后一个在该 rank 所有调用中的编号。"
    ),
    "Operation of the last of these calls.": "这些调用中最后一个的操作。",
    "Row of `stacks` of that call.": "该调用在 `stacks` 中的行号。",
    "True for `send`, `recv` and their batches; false for collectives.": (
        "`send`、`recv` 及其批量为 true；集合通信为 false。"
    ),
    "When it made that call.": "发起该调用的时间。",
    "When it made the first of these calls.": "发起其中第一个调用的时间。",
    "Whether earlier calls of the rank are missing from its dump.": "转储中是否缺少该 rank 更早的调用。",
    "Whether the rank has left that call.": "该 rank 是否已离开该调用。",
    # short_kernels
    "Its calls that are shorter than the limit.": "其中短于上限的调用。",
    "Mean of these calls.": "这些调用的平均值。",
    "Share of all kernels of the rank.": "占该 rank 所有 kernel 的比例。",
    "Share of its calls.": "占其调用的比例。",
    "Share of the time of all kernels of the rank.": "占该 rank 所有 kernel 时间的比例。",
    "Time of these calls.": "这些调用的时间。",
    # slack
    "By how much all of its own work, communication apart, could end later without making the step longer.": (
        "其自身工作（通信除外）最多可晚多久结束而不延长该步。"
    ),
    "Its part of the critical path in this step, with the gaps before its pieces.": (
        "该步关键路径中属于它的部分，含各段之前的空隙。"
    ),
    "Length of the step in a replay without changes over its recorded length, minus 1.": (
        "不作更改的重放中该步的长度与记录之比，减 1。"
    ),
    "`path_ns` over the length of the step.": "`path_ns` 占该步长度的比例。",
    # split_pairs
    "Calls: those that as many ranks of the group as possible recorded.": "调用数：尽可能多的组内 rank 所记录的那些。",
    "Elements that it sends to this one in these calls.": "这些调用中它发给对方的元素数。",
    "Rank that receives; its place in the group if members are unknown.": "接收的 rank；成员未知时为其在组内的位置。",
    "Share of what is known to be sent in the group.": "占组内已知发送量的比例。",
    # stage_means
    "Its recorded ranks, e.g. `0, 1`.": "其已记录的 rank，例如 `0, 1`。",
    # stage_operators
    "Calls in the recording, mean of these ranks.": "整段记录中的调用次数，这些 rank 的平均。",
    "Recorded ranks of the stage that run it.": "该阶段中运行它的已记录 rank。",
    "Share of the time of the stage's list.": "占该阶段列表时间的比例。",
    "Their time, mean of these ranks.": "其时间，这些 rank 的平均。",
    "Time on the mean rank of the other stages.": "其他阶段平均 rank 上的时间。",
    "Whether no other recorded stage runs it.": "是否没有其他已记录的阶段运行它。",
    # stage_timeline
    "Between the first and the last rank to start.": "最先与最后开始的 rank 之间的时间。",
    "Calls in the step, on the rank with most.": "该步内的调用次数，取最多的 rank。",
    "End of the last one, mean of the ranks, since the first start of the step on any rank.": (
        "最后一次的结束，各 rank 平均，自任一 rank 在该步最早开始起。"
    ),
    "End of the last one, of the first of the ranks, since the first start of the step on any rank.": (
        "最后一次的结束，最早的 rank，自任一 rank 在该步最早开始起。"
    ),
    "End of the last one, of the last of the ranks, since the first start of the step on any rank.": (
        "最后一次的结束，最晚的 rank，自任一 rank 在该步最早开始起。"
    ),
    "Its time, mean of the ranks.": "其时间，各 rank 平均。",
    "Name of the kernel or call.": "kernel 或调用的名称。",
    "Pipeline stage, from 0; 0 without a pipeline.": "流水线阶段，从 0 开始；没有流水线则为 0。",
    "Recorded ranks of the stage that run it in this step.": "该步内运行它的该阶段已记录 rank。",
    "Start of the first one, mean of the ranks, since the first start of the step on any rank.": (
        "第一次的开始，各 rank 平均，自任一 rank 在该步最早开始起。"
    ),
    "Start of the first one, of the first of the ranks, since the first start of the step on any rank.": (
        "第一次的开始，最早的 rank，自任一 rank 在该步最早开始起。"
    ),
    "Start of the first one, of the last of the ranks, since the first start of the step on any rank.": (
        "第一次的开始，最晚的 rank，自任一 rank 在该步最早开始起。"
    ),
    # step_reduce_statistics
    "Mean start without the first step; null if there is only one step.": "不含第一步的平均开始；只有一步则为空。",
    "Mean start, relative to the start of the step.": "平均开始，相对于步的开始。",
    "Name of the call; null if it differs from step to step.": "调用的名称；各步不同则为空。",
    "Number of steps that contain the call.": "含该调用的步数。",
    "Position among calls of its name (or operation) in step and stream, from 0.": (
        "该步该 stream 内同名（或同操作）调用中的序号，从 0 开始。"
    ),
    # step_reduces
    "Name of the call; null for a gap.": "调用的名称；空隙则为空。",
    "Number of its row in `collectives`; null for a gap.": "其在 `collectives` 中的行号；空隙则为空。",
    "Number of the call within a step, the same in every step; null for a gap.": (
        "调用在步内的编号，各步相同；空隙则为空。"
    ),
    "Operation of the call, e.g. `all_reduce`; null for a gap.": "调用的操作，例如 `all_reduce`；空隙则为空。",
    "Position among calls of its name (or operation), from 0; null for a gap.": (
        "同名（或同操作）调用中的序号，从 0 开始；空隙则为空。"
    ),
    "Start, relative to the start of the step.": "开始时间，相对于步的开始。",
    "`call`, or `gap` between calls.": "调用（`call`），或调用之间的空隙（`gap`）。",
    # step_slowdowns
    "Number of the step as recorded.": "记录中的步号。",
    # step_statistics
    "Limit for outliers; null if operators were recorded in some steps only.": (
        "异常值的上限；只有部分步记录了算子则为空。"
    ),
    "Mean without the rank's first step; null if there is only one step.": "不含该 rank 第一步的平均；只有一步则为空。",
    "Number of steps with a known value of the phase.": "该阶段数值已知的步数。",
    "Numbers of the steps that are outliers.": "异常步的编号。",
    "Share of the steps' time; the shares of one `split` sum to 1.": "占各步时间的比例；同一划分（`split`）之和为 1。",
    "Split to which the phase belongs: `points` or `phases`; null for the step itself.": (
        "该阶段所属的划分：`points` 或 `phases`；步本身为空。"
    ),
    "`share_ratio` without the first step; null if there is only one.": "不含第一步的 `share_ratio`；只有一步则为空。",
    "`step`, or a part of it (a column of `step_trace` without `_ns`).": (
        "`step`，或其一部分（`step_trace` 的列，不含 `_ns`）。"
    ),
    # step_times
    "Transmission, the sum of its calls; null if unknown of all.": "传输，其调用之和；全部未知则为空。",
    "Waiting for other ranks, the sum of its calls; null if unknown of all.": (
        "等待其他 rank，其调用之和；全部未知则为空。"
    ),
    # strategy_edges
    "False for a send or receive whose other side is not found, or is several.": (
        "另一侧找不到或有多个的发送或接收为 false。"
    ),
    "Stage of the node that it comes from; null if that is not found.": "起点节点所在阶段；找不到则为空。",
    "Stage of the node that it leads to; null if that is not found.": "终点节点所在阶段；找不到则为空。",
    "That node.": "该节点。",
    "True for a send and its receive.": "发送与其接收之间为 true。",
    "Which input of that node it is, from 0.": "该节点的第几个输入，从 0 开始。",
    # strategy_nodes
    "Communication group.": "通信组。",
    "Data types of its outputs.": "输出的数据类型。",
    "How its inputs are divided: a list for each input, JSON.": "输入的切分方式：每个输入一个列表（JSON）。",
    "Inputs that are no nodes of the graph.": "不是图中节点的输入。",
    "Its name in the graph.": "在图中的名称。",
    "Its place in the model.": "在模型中的位置。",
    "Its ranks, as recorded.": "记录的 rank。",
    "Nodes from which it takes its inputs.": "提供其输入的节点。",
    "Number that a send and its receive share.": "发送与其接收共有的编号。",
    "Other attributes, JSON, on the lowest recorded rank of the stage.": (
        "其他属性（JSON），取该阶段编号最小的已记录 rank。"
    ),
    "Other side of a send or receive: a place in its group.": "发送或接收的另一侧：在其组内的位置。",
    "Shapes of its outputs, JSON.": "输出的形状（JSON）。",
    "The part of the model that it belongs to.": "所属的模型部分。",
    "The same as the user gave it.": "同上，按用户给定。",
    "What is not the same on all recorded ranks of the stage.": "在该阶段各已记录 rank 上不同的内容。",
    "What the compiler put it in for; null for the model's own.": "编译器插入它的用途；模型自身的为空。",
    "Whether that divides any input; null if it is unknown.": "是否切分了任一输入；未知则为空。",
    # strategy_stages
    "As recorded, e.g. `semi_auto_parallel`; null if ranks differ.": (
        "记录的值，例如 `semi_auto_parallel`；各 rank 不同则为空。"
    ),
    "Constants of its graph.": "图中的常量数。",
    "Inputs of its nodes that are nodes themselves.": "其节点的输入中本身也是节点的数量。",
    "Nodes that are not the same on all its recorded ranks.": "在其已记录 rank 上不全相同的节点数。",
    "Operators of its graph.": "图中的算子数。",
    "Operators that the compiler put in to divide a tensor in another way.": "编译器为改变张量切分而插入的算子数。",
    "Operators that the compiler put in to sum up gradients.": "编译器为累加梯度而插入的算子数。",
    "Operators whose strategy divides an input.": "策略切分了输入的算子数。",
    "Parameters of its graph.": "图中的参数数。",
    "Ranks of the stage, e.g. `0, 1`.": "该阶段的 rank，例如 `0, 1`。",
    "Receives from other stages.": "从其他阶段的接收数。",
    "Sends to other stages.": "向其他阶段的发送数。",
    "Those whose graph was recorded; null if none was.": "其中记录了图的 rank；没有则为空。",
    # stream_idle
    "Device index; null if not recorded.": "设备编号；未记录则为空。",
    "Device stream.": "设备 stream。",
    "Share of the stream's idle time.": "占该 stream 空闲时间的比例。",
    "Why nothing runs on the stream.": "stream 上没有任务运行的原因。",
    # uneven_splits
    "Elements that these send.": "这些 rank 发送的元素数。",
    "Most elements that a rank receives, over the mean of all.": "单个 rank 接收的最大元素数与平均之比。",
    "Most elements that a rank sends, over the mean of all.": "单个 rank 发送的最大元素数与平均之比。",
    "Most elements that go from one rank to another, over the mean of all pairs.": (
        "一个 rank 发给另一个的最大元素数与各对平均之比。"
    ),
    "Of these two the rank that sends.": "这一对中的发送方。",
    "Position of the call in its group, from 0.": "调用在其组内的序号，从 0 开始。",
    "Rank that receives least.": "接收最少的 rank。",
    "Rank that receives most.": "接收最多的 rank。",
    "Rank that sends most.": "发送最多的 rank。",
    "Ranks whose splits are recorded.": "记录了切分的 rank。",
    "The one that receives; its place in the group if members are unknown.": (
        "其中的接收方；成员未知时为其在组内的位置。"
    ),
    # wait_chains
    "Number of calls in which any of them waited.": "其中有等待的调用数。",
    "Rank for which they waited: the last to arrive.": "所等待的 rank：最后到达者。",
    "Ranks that waited, e.g. `0, 1`.": "等待的 rank，例如 `0, 1`。",
    "The same in the mean of all steps, of the median rank.": "所有步平均中的同一数值，取中位 rank。",
    "Time in the median step of the rank that waited longest.": "等待最久的 rank 在中位步的时间。",
    # what_if
    "From the end of the step before (or the first start) to the end of its last work on any rank.": (
        "从上一步结束（或最早开始）到任意 rank 上最后一项工作结束。"
    ),
    "Of `less_ns`, what is taken from calls with members that were not recorded: these may wait for them.": (
        "`less_ns` 中来自成员未记录的调用的部分：它们可能在等待这些成员。"
    ),
    "The same in a replay with all durations as recorded.": "所有时长按记录重放的同一数值。",
    "The same in a replay with the changes.": "带更改重放的同一数值。",
    "Work that the changes take away in the step, summed over all ranks; negative if they add some.": (
        "更改在该步去除的工作，各 rank 合计；增加则为负。"
    ),
    "`replayed_ns` minus `changed_ns`; negative if the step becomes longer.": (
        "`replayed_ns` 减 `changed_ns`；该步变长则为负。"
    ),
    "`replayed_ns` over `recorded_ns`, minus 1: how far the replay is off without changes.": (
        "`replayed_ns` 与 `recorded_ns` 之比减 1：不作更改时重放的误差。"
    ),
    "`saving_ns` over `replayed_ns`.": "`saving_ns` 与 `replayed_ns` 之比。",
    # work_names
    "Number of such names.": "这类名称的数量。",
    "What it can name in this job; of many, the first, or those that take longest.": (
        "本作业中可指定的名称；过多时列出最先的或耗时最长的。"
    ),
    "Word of a change, e.g. `rank`.": "更改的关键词，例如 `rank`。",
}
