"""Chinese meanings of columns that only pages and the command line show, by question: `layout_conflicts` to `ranges`."""

from __future__ import annotations

MEANINGS = {
    # layout_conflicts
    "Ranks that show it, e.g. `0, 4`; null if it is about all.": "出现该情况的 rank，例如 `0, 4`；涉及全部则为空。",
    "Size, or number of ranks, that is stated; null if it is not about sizes.": (
        "标明的规模或 rank 数；与规模无关则为空。"
    ),
    "The dimension; null if it is about all.": "维度；涉及全部则为空。",
    "The one that was found, or that transfers suggest.": "实际发现的，或由传输推断的值。",
    "What contradicts: recorded groups have another `size` or other `members` than stated, groups of one "
    "name are `uneven` (they overlap or differ in size) or of two dimensions and `shared` (they have "
    "several ranks in common), sizes need another number of ranks (`world`), some `ranks` recorded other "
    "sizes than most, a group lies across (`crossed`) what is given, a given size takes the place of a "
    "recorded one (`replaced`), the given layout does not fit the recorded groups and none of it is used "
    "(`unused`), or ranks send to each other otherwise than along the given pipelines (`transfers`).": (
        "矛盾所在：记录的通信组与标明的规模（`size`）或成员（`members`）不同；同名的组不均匀（`uneven`：重叠"
        "或规模不同），或两个维度的组有多个共同 rank（`shared`）；各规模需要另一 rank 数（`world`）；部分 "
        "rank 记录的规模与多数不同（`ranks`）；某组与给定布局交叉（`crossed`）；给定规模代替了记录的规模（"
        "`replaced`）；给定布局与记录的组不符而完全未采用（`unused`）；或 rank 之间的发送与给定的流水线不符（"
        "`transfers`）。"
    ),
    "What is contradicted.": "与之矛盾的内容。",
    # link_matrix
    "Bytes moved to each in a step.": "每步传输到各 rank 的字节数。",
    "Ranks that receive, in order.": "接收的 rank，按顺序。",
    "Time of that.": "所用时间。",
    # mean_times
    "Number of steps in the mean.": "计入平均的步数。",
    "Step with most communication exposed; of several, the first.": "未掩盖通信最多的步；相同则取第一个。",
    # memory_usage
    "Change: positive if allocated, negative if released.": "变化量：分配为正，释放为负。",
    "Full name of the node.": "节点的完整名称。",
    "In use or waiting for a stream.": "使用中或等待 stream 释放。",
    "In use, including the static part.": "使用量，含静态部分。",
    "In use, without the static part.": "使用量，不含静态部分。",
    "Name of the node.": "节点名称。",
    "Number of tensors that the node allocates.": "该节点分配的张量数。",
    "Part of the step: `interval` (before forward), `forward and backward`, `tail`; null if not marked.": (
        "步的部分：`interval`（前向之前）、`forward and backward`、`tail`；未标记则为空。"
    ),
    "Reserved by the allocator.": "分配器预留的内存。",
    "Time of the change; null for a graph.": "变化的时间；图则为空。",
    "`forward_start` or `backward_end` at these points; else null.": (
        "在这些位置为 `forward_start` 或 `backward_end`，否则为空。"
    ),
    # model_flops
    "Data type of most FLOPs.": "FLOPs 最多的数据类型。",
    "FLOPs as the source states them.": "来源标明的 FLOPs。",
    "FLOPs of one step on the cube (matrix) unit; null if unknown.": "每步在 cube（矩阵）单元上的 FLOPs；未知则为空。",
    "FLOPs of one step on the vector unit; null if unknown.": "每步在 vector 单元上的 FLOPs；未知则为空。",
    "FLOPs on the cube unit, as stated.": "标明的 cube 单元 FLOPs。",
    "FLOPs on the vector unit, as stated.": "标明的 vector 单元 FLOPs。",
    "Name of the device.": "设备名称。",
    "Number of steps in which operators were counted.": "统计了算子的步数。",
    "Rate as stated.": "标明的速率。",
    "Rate of the cube unit as stated.": "标明的 cube 单元速率。",
    "Rate of the vector unit as stated.": "标明的 vector 单元速率。",
    "Share of the counted operators' calls whose FLOPs are known.": "所计算子的调用中 FLOPs 已知的比例。",
    "Time of the operators that performed them, over all steps.": "执行这些运算的算子在各步的时间合计。",
    "Utilization as stated; the files do not define it.": "标明的利用率；文件未给出定义。",
    "Where the peak comes from: `argument`, `stated`, `device` (cores and clock) or `table`.": (
        "峰值的来源：`argument`（给定）、`stated`（标明）、`device`（核数与频率）或 `table`（表）。"
    ),
    "`step_flops_per_s` over the peak; recomputation counts as work.": "`step_flops_per_s` 与峰值之比；重计算也计入。",
    "`step_flops` divided by `step_ns`.": "`step_flops` 除以 `step_ns`。",
    # module_operators
    "Calls of the operator with these kernels.": "带有这些 kernel 的算子调用次数。",
    "Kernels of one call.": "每次调用的 kernel 数。",
    "Mean of the kernels of a call.": "每次调用的 kernel 平均时间。",
    "Names of the kernels in the order of their launches; `(x3)`: three in a row.": (
        "kernel 名称，按下发顺序；`(x3)` 表示连续三个。"
    ),
    "Path of the module around it; null at the top.": "外层模块的路径；顶层为空。",
    "Path of the module: names of the modules around it, outermost first.": "模块的路径：由外到内的模块名称。",
    "Share of the rank's device work.": "占该 rank 设备任务的比例。",
    "Time of all kernels of these calls.": "所有这些调用的 kernel 时间。",
    "`forward` if it ran in the module, `backward` if its forward operator did; null outside of all modules.": (
        "在模块中运行为 `forward`，其前向算子在模块中为 `backward`；在所有模块之外为空。"
    ),
    # modules
    "Calls of the module.": "模块的调用次数。",
    "FLOPs of all its calls, with the modules in it; null if unknown.": "所有调用的 FLOPs，含内层模块；未知则为空。",
    "FLOPs of operators whose device work is known, over `kernel_ns`.": (
        "设备任务已知的算子的 FLOPs 与 `kernel_ns` 之比。"
    ),
    "Modules around it.": "外层模块数。",
    "Part of it in their backward pass.": "其中属于反向的部分。",
    "Part of it launched while the module ran.": "其中在模块运行期间下发的部分。",
    "Part of it outside of the modules in it.": "其中不属于内层模块的部分。",
    "Pieces of device work launched in it and the modules in it.": "在其中（含内层模块）下发的设备任务数。",
    "Time of these calls on the host.": "这些调用在主机上的时间。",
    "Time of this work.": "这些任务的时间。",
    "`flops_per_s` over the peak of the device (MFU).": "`flops_per_s` 与设备峰值之比（MFU）。",
    "`kernel_ns` over all device work of the rank.": "`kernel_ns` 占该 rank 所有设备任务的比例。",
    # operator_counters
    "Counter with its unit, as in `kernel_counters` or as the device names it.": (
        "计数器及其单位，与 `kernel_counters` 或设备的命名相同。"
    ),
    "Highest value.": "最大值。",
    "Kernels with this counter.": "带有该计数器的 kernel 数。",
    "Lowest value.": "最小值。",
    "Mean of these kernels.": "这些 kernel 的平均值。",
    "Mean weighted by the time of kernels; null if unknown.": "按 kernel 时间加权的平均；未知则为空。",
    "Sum over these kernels; null for shares and rates.": "这些 kernel 的合计；比例与速率为空。",
    "Time of these kernels; null if unknown.": "这些 kernel 的时间；未知则为空。",
    # operator_flops
    "Data type of the first input.": "第一个输入的数据类型。",
    "FLOPs of one call on the cube unit (all if undivided).": "每次调用在 cube 单元上的 FLOPs（不区分时为全部）。",
    "FLOPs of one call on the vector unit; null if unknown.": "每次调用在 vector 单元上的 FLOPs；未知则为空。",
    "FLOPs of one call; null if they cannot be computed from its shapes.": "每次调用的 FLOPs；无法由形状算出则为空。",
    "Number of calls inside steps.": "各步内的调用次数。",
    "Rate of the cube (matrix) unit; null if unknown.": "cube（矩阵）单元的速率；未知则为空。",
    "Rate of the vector unit; null if unknown.": "vector 单元的速率；未知则为空。",
    "Share of all known FLOPs.": "占所有已知 FLOPs 的比例。",
    "Total time on the device (on the host if there is no device).": "设备上的总时间（没有设备则为主机时间）。",
    # operator_instances
    "Blocks or cores used.": "使用的线程块或核数。",
    "Data types of the inputs.": "输入的数据类型。",
    "Framework operator that it was compiled from; null if not recorded.": "编译前的框架算子；未记录则为空。",
    "Grid of the launch.": "下发的网格。",
    "Inputs and outputs as recorded (JSON).": "记录的输入与输出（JSON）。",
    "Kind of device work; null for host operators.": "设备任务的种类；主机算子为空。",
    "Part of the model, e.g. `Default`, `Gradients`; null if not recorded.": (
        "所属的模型部分，例如 `Default`、`Gradients`；未记录则为空。"
    ),
    "Process id.": "进程号。",
    "Thread block of the launch.": "下发的线程块。",
    "`wait_ns` over `count`.": "`wait_ns` 除以 `count`。",
    # operator_launches
    "Calls of the operator with this sequence.": "带有该序列的算子调用次数。",
    "Mean time from its start to its first launch; null if not known.": "从其开始到首次下发的平均时间；未知则为空。",
    "Mean time from the start of the first launch to that of its work; null if not known.": (
        "从首次下发开始到其任务开始的平均时间；未知则为空。"
    ),
    "Operator that launches them.": "下发它们的算子。",
    # operator_statistics
    "Share of the time of all operators of all ranks, those inside others included.": (
        "占所有 rank 全部算子时间的比例，含嵌套的算子。"
    ),
    # operator_type_ranks
    "Mean over all calls; null if their number is unknown.": "所有调用的平均；次数未知则为空。",
    "Number of calls on all ranks; null if not recorded.": "所有 rank 上的调用次数；未记录则为空。",
    "Rank with the longest mean; of several, the lowest.": "平均最长的 rank；相同则取编号最小者。",
    "Rank with the shortest mean; of several, the lowest.": "平均最短的 rank；相同则取编号最小者。",
    "Share of the time of its list on all ranks.": "占其列表在所有 rank 上时间的比例。",
    "That mean.": "该平均值。",
    "Total time on all ranks.": "所有 rank 的总时间。",
    # operator_types
    "Number of kernels that it launched directly; null if unknown.": "它直接下发的 kernel 数；未知则为空。",
    "Number of operators or kernels of the type.": "该类型的算子或 kernel 数。",
    "Share of its list's time (self time if operators call each other).": (
        "占其列表时间的比例（算子互相调用时为自身时间）。"
    ),
    "Total time of the kernels that it launched directly; null if unknown.": (
        "它直接下发的 kernel 的总时间；未知则为空。"
    ),
    "Total waiting or dispatch time before its calls, as reported by the source.": (
        "其调用之前的等待或下发时间合计，由来源给出。"
    ),
    # operator_utilization
    "Calls with known FLOPs.": "FLOPs 已知的调用。",
    "FLOPs of all of them.": "它们的 FLOPs 合计。",
    "FLOPs over this time.": "FLOPs 与该时间之比。",
    "Peak of the device for this data type; null if unknown.": "设备对该数据类型的峰值；未知则为空。",
    "Rate over the peak (MFU of the operator).": "速率与峰值之比（算子的 MFU）。",
    "Their time on the device (on the host if there is no device).": "它们在设备上的时间（没有设备则为主机时间）。",
    "Type of the operator, else its name.": "算子的类型，没有则为名称。",
    # overall_summary
    "Its time; the parts of a step add up to the step.": "其时间；各部分之和等于整步。",
    "Number of its kernels; null for idle time and waiting.": "其 kernel 数；空闲与等待为空。",
    "Sum of its kernels, also of those that run at once; null for idle time and waiting.": (
        "其 kernel 时间之和，含同时运行的；空闲与等待为空。"
    ),
    # parallel_dimensions
    "Groups with recorded ranks.": "记录了成员的组数。",
    "Ranks in each of its groups; null if unknown.": "每组的 rank 数；未知则为空。",
    "The dimension.": "维度。",
    "The ranks of the first group, e.g. `0-3`; null if unknown.": "第一个组的 rank，例如 `0-3`；未知则为空。",
    "What it divides: kind of parallelism.": "它切分什么：并行的种类。",
    "What shows it: the user (`given`), names of groups, recorded sizes, `marks` of the framework's data "
    "parallelism, or how its groups communicate.": (
        "依据：用户给定（`given`）、组名、记录的规模、框架数据并行的标记（`marks`），或通信组的通信方式。"
    ),
    # parallel_layout
    "Address of the device's network interface; null if no table of ranks has it.": (
        "设备网卡的地址；没有 rank 表则为空。"
    ),
    "Its position in its context-parallel group, from 0; null if unknown.": (
        "在其上下文并行组中的位置，从 0 开始；未知则为空。"
    ),
    "Its position in its data-parallel group, from 0; null if unknown.": (
        "在其数据并行组中的位置，从 0 开始；未知则为空。"
    ),
    "Its position in its expert-parallel group, from 0; null if unknown.": (
        "在其专家并行组中的位置，从 0 开始；未知则为空。"
    ),
    "Its position in its pipeline-parallel group, from 0; null if unknown.": (
        "在其流水线并行组中的位置，从 0 开始；未知则为空。"
    ),
    "Its position in its tensor-parallel group, from 0; null if unknown.": (
        "在其张量并行组中的位置，从 0 开始；未知则为空。"
    ),
    "Number of its device on the host; null if not recorded.": "其设备在主机上的编号；未记录则为空。",
    "Ranks in that group: 1 if there is no context-parallel division; null if unknown.": (
        "该组的 rank 数：没有上下文并行切分则为 1；未知则为空。"
    ),
    "Ranks in that group: 1 if there is no data-parallel division; null if unknown.": (
        "该组的 rank 数：没有数据并行切分则为 1；未知则为空。"
    ),
    "Ranks in that group: 1 if there is no expert-parallel division; null if unknown.": (
        "该组的 rank 数：没有专家并行切分则为 1；未知则为空。"
    ),
    "Ranks in that group: 1 if there is no pipeline-parallel division; null if unknown.": (
        "该组的 rank 数：没有流水线并行切分则为 1；未知则为空。"
    ),
    "Ranks in that group: 1 if there is no tensor-parallel division; null if unknown.": (
        "该组的 rank 数：没有张量并行切分则为 1；未知则为空。"
    ),
    "The ranks of that group, e.g. `0-3`; null if unknown.": "该组的 rank，例如 `0-3`；未知则为空。",
    "What shows host and device; null if nothing does.": "主机与设备的依据；没有则为空。",
    "What shows that, as in `parallel_dimensions`; null if unknown.": (
        "其依据，与 `parallel_dimensions` 相同；未知则为空。"
    ),
    # pipeline_blocks
    "End on the common clock; null if it is unknown.": "公共时钟上的结束时间；未知则为空。",
    "Micro-batch, from 0; in order of time where it is not recorded.": "微批，从 0 开始；未记录则按时间顺序编号。",
    "Start on the common clock; null if it is unknown.": "公共时钟上的开始时间；未知则为空。",
    "Virtual stage of the rank, from 0, if recorded.": "rank 的虚拟阶段，从 0 开始（若已记录）。",
    "Which pass.": "前向或反向。",
    "`operations`: recorded; `marks`: ranges of forward and backward (`phase_ranges`), if there are as "
    "many as micro-batches. A guess: `1F1B` or `all forward first`: the schedule whose order all sends "
    "and receives of the step fit, while they do not fit the other one; a pass starts when it has its "
    "input and ends when it sends.": (
        "`operations`：已记录；`marks`：前向与反向的区间（`phase_ranges`），且数量与微批数相同。推测：`1F1B` "
        "或 `all forward first`，即该步所有收发的顺序符合此调度而不符合另一种；每一遍在输入就绪时开始，在发送"
        "时结束。"
    ),
    # pipeline_bubbles
    "As the source states it: on Ascend devices, all time in receives.": "来源标明的值：昇腾设备上为所有接收时间。",
    "Length of the step's window; null if it is unknown.": "该步窗口的长度；未知则为空。",
    "Of that, in collectives with other stages.": "其中与其他阶段的集合通信。",
    "Of that, in sends and receives.": "其中的发送与接收。",
    "Sends and receives of which it is unknown how long they wait.": "不知道等待多久的发送与接收。",
    "The same; of step tables that do not tell it from idle time, all but exposed communication.": (
        "同上；若步表不区分空闲时间，则为除未掩盖通信外的全部。"
    ),
    "Time in receives from other stages, with transmission, in which it does not compute.": (
        "从其他阶段接收（含传输）且不计算的时间。"
    ),
    "Time spent computing; null if it is unknown.": "计算时间；未知则为空。",
    "Waiting for other stages; null if it is unknown.": "等待其他阶段的时间；未知则为空。",
    "`pairs`: waiting for a rank of another stage that enters a call later, without computing; "
    "`receives`: time in receives, with transmission, without computing, as some have no pair; "
    "`recorded`: as the source states it.": (
        "`pairs`：等待其他阶段的 rank 更晚进入调用且不计算；`receives`：接收（含传输）且不计算的时间，因为有"
        "些没有配对；`recorded`：来源标明的值。"
    ),
    # pipeline_transfers
    "Activations to a later stage (`forward`) or gradients to an earlier one (`backward`); null if unknown.": (
        "传给后面阶段的激活（`forward`）或传给前面阶段的梯度（`backward`）；未知则为空。"
    ),
    "From when both had entered to when the receiver has it.": "从双方都进入到接收方收到。",
    "Its pipeline stage.": "其流水线阶段。",
    "Micro-batch, from 0, as recorded.": "记录的微批，从 0 开始。",
    "Name of the send, or of the receive if that is alone.": "发送的名称；只有接收时为接收的名称。",
    "Position among what the one sends to the other in the step, from 0.": "该步内一方发给另一方的序号，从 0 开始。",
    "Rank that receives; null if it is unknown.": "接收的 rank；未知则为空。",
    "Rank that sends; null if it is unknown.": "发送的 rank；未知则为空。",
    "Virtual stage of the sender, from 0, as recorded.": "发送方的虚拟阶段，从 0 开始，按记录。",
    "Waiting of the receiver for the sender.": "接收方等待发送方的时间。",
    "Waiting of the sender for the receiver.": "发送方等待接收方的时间。",
    "What is received, as the receiver states it.": "接收方所述的接收内容。",
    "What is sent.": "发送的内容。",
    "When it left it.": "离开调用的时间。",
    "When the receiver entered the call, on the common clock.": "接收方进入调用的时间（公共时钟）。",
    "When the sender entered the call, on the common clock.": "发送方进入调用的时间（公共时钟）。",
    "Why it has no pair, or what does not fit in it.": "没有配对的原因，或其中不符之处。",
    "`position`: both have the same position in the group; `order`: the n-th from one to the other is "
    "the n-th that this one receives; `place`: the same, where the other side is not recorded, of two "
    "stages, as the ranks at one place in both: a guess that numbers and times of all calls of the step "
    "bear out. Null without a pair.": (
        "`position`：双方在通信组中的序号相同；`order`：一方发给另一方的第 n 次即后者收到的第 n 次；`place`："
        "同上，但另一方未记录，按两个阶段中位置相同的 rank 推测，且与该步所有调用的数量和时间相符。没有配对则"
        "为空。"
    ),
    # process_groups
    "Its ranks, in group order; null if not recorded.": "其 rank，按组内顺序；未记录则为空。",
    "Number of ranks that recorded it.": "记录了它的 rank 数。",
    "The same for people, e.g. `0-3`; null if not recorded.": "便于阅读的同一内容，例如 `0-3`；未记录则为空。",
    "What it is for, by its name, or as its members are those of such a group in `parallel_layout`.": (
        "用途：按其名称，或其成员与 `parallel_layout` 中的某组相同。"
    ),
    # queue_lengths
    "Mean number of waiting pieces in this time.": "这段时间内等待任务的平均数。",
    "Most pieces that wait in this time.": "这段时间内等待任务的最大数。",
    # queues
    "Mean number of waiting pieces, by time, from the first launch on.": "等待任务的平均数，按时间计，自首次下发起。",
    "Most pieces that wait.": "等待任务的最大数。",
    "Pieces of work launched to it.": "下发到其中的任务数。",
    "Share of the same time; null if unknown.": "占同一时间的比例；未知则为空。",
    "Share of the time from its first launch to its last start.": "占从首次下发到最后开始的时间的比例。",
    "Time in which at least one waits.": "至少有一个任务等待的时间。",
    "Time in which the queue is full, so that calls block; null if unknown.": (
        "队列已满而调用被阻塞的时间；未知则为空。"
    ),
    # ranges
    "Pieces of device work launched in it on its thread; null if unknown.": (
        "在其线程上于区间内下发的设备任务数；未知则为空。"
    ),
    "Time of this work; null if unknown.": "这些任务的时间；未知则为空。",
    "Where it was recorded: on the `host`, on the `device`, by the `framework` as well as on the host "
    "(mstx), or a `point` in time without a duration.": (
        "记录位置：`host`（主机）、`device`（设备）、`framework`（框架与主机，mstx），或没有时长的时间点 `point`。"
    ),
}
