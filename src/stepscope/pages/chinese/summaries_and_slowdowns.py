"""What columns of summaries, slowdowns, pipelines and steps mean, in Chinese."""

from __future__ import annotations

MEANINGS = {
    # summaries
    "What the part belongs to; communication and memory are exposed.": "该部分所属的大类；通信和内存操作只计未掩盖的部分。",
    "Computing by class: fused `attention`, `matmul`, `convolution`, other work of `cube` cores, `vector`, `ai_cpu`, `other` (on a host). Exposed communication: `wait` for other ranks, `transmit`, or `communication` if these are not known apart. Exposed `memory` operations. `idle`.": (
        "计算按类别：融合注意力、矩阵乘、卷积、其他 cube 核任务、向量、AI CPU、其他（在主机上）。未掩盖的通信：等待其他 rank、传输，"
        "无法区分时为通信。未掩盖的内存操作。空闲。"
    ),
    "Its mean time in a step; the parts add up to the mean step.": "平均每步的时间；各部分之和等于平均一步。",
    "Share of the mean step.": "占平均一步的比例。",
    "Sum of its kernels in a step, also of those that run at once; null for idle time.": (
        "每步中其 kernel 的时间之和，同时运行的也分别计入；空闲为空。"
    ),
    "Number of its kernels in a step; null for idle time and waiting.": "每步中其 kernel 的个数；空闲和等待为空。",
    "Rank with most of it; of several, the lowest.": "该项最多的 rank；有多个时取编号最小的。",
    "Number of steps averaged.": "参与平均的步数。",
    "Fused attention.": "融合注意力。",
    "Products of matrices.": "矩阵乘。",
    "Convolutions.": "卷积。",
    "Other work of cube cores.": "cube 核的其他任务。",
    "Element-wise operators, reductions and other vector work.": "逐元素算子、归约等向量任务。",
    "Operators on the device's own CPU.": "在设备自身 CPU（AI CPU）上执行的算子。",
    "Computing of no known class, e.g. on a host.": "类别未知的计算，例如在主机上。",
    "Exposed communication: waiting for other ranks.": "未掩盖的通信：等待其他 rank。",
    "Exposed communication without waiting.": "未掩盖的通信，不含等待。",
    "Exposed communication; how much of it is waiting is unknown.": "未掩盖的通信；其中等待的比例未知。",
    # slowdowns of recordings of operations
    "What it is.": "原因。",
    "Which: ranks, data-parallel ranks, the slowest stage, or a kind of call.": "具体对象：rank、数据并行 rank、最慢的阶段或某类调用。",
    "The ranks that this is about, e.g. `4, 5`; null if it is all.": "涉及的 rank，例如 `4, 5`；全部时为空。",
    "How many times as long as usual these compute, in the mean: ranks as others of their stage, stages as the mean stage; of micro-batches, the longest in a step as the mean one.": (
        "平均计算时间是通常的多少倍：rank 与同阶段其他 rank 相比，阶段与平均阶段相比；micro-batch 为一步中最长的与平均相比。"
    ),
    "Of forward and backward times of micro-batches, the median rank: near 1 if their lengths differ.": (
        "micro-batch 前向与反向时间的相关系数（中位 rank）：长度不同时接近 1。"
    ),
    "Whether the stage has only one recorded rank, so the machine may be the reason.": "该阶段是否只有一个被记录的 rank（原因也可能是机器）。",
    "Whether it is the last stage, which has the layers that compute the loss.": "是否为最后一个阶段（包含计算损失的层）。",
    "Whether it explains enough to be called the cause.": "能否解释足够多的时间而被称为原因。",
    "`saving_ns` over `lost_ns`.": "`saving_ns` 除以 `lost_ns`。",
    "What a step is shorter without it: its share if there are several causes.": "没有它时每步缩短的时间；有多个原因时为其份额。",
    "Lower quartile of that over the steps.": "该值在各步中的下四分位。",
    "Upper quartile of that over the steps.": "该值在各步中的上四分位。",
    "Of a stage with one recorded rank: what a step is shorter if its device is at fault, and is mended.": (
        "只有一个被记录 rank 的阶段：若问题在其设备且已修复，每步缩短的时间。"
    ),
    "What all of them cost together: the sum of `saving_ns`.": "所有原因合计：`saving_ns` 之和。",
    "Mean time of a step without delays between operations.": "不含操作之间延迟的平均步时间。",
    "`replayed_ns` over the recorded time, minus 1: what was not recorded, or delays operations.": (
        "`replayed_ns` 除以记录时间再减 1：未被记录或使操作延迟的部分。"
    ),
    "`replayed_ns` over its ideal time, as `slowdowns` has it.": "`replayed_ns` 除以其理想时间，与 `slowdowns` 一致。",
    "What is looked at; a `replica` is a data-parallel rank.": "考察的对象；`replica` 是一个数据并行 rank。",
    "Which one; several ranks separated by commas; null for the job.": "具体对象；多个 rank 以逗号分隔；整个作业为空。",
    "The data-parallel rank, of replicas and ranks.": "数据并行 rank（副本和 rank 才有）。",
    "The pipeline stage, of stages and ranks.": "流水线阶段（阶段和 rank 才有）。",
    "`alone_ns` over `ideal_ns`.": "`alone_ns` 除以 `ideal_ns`。",
    "Share of the job's slowdown that is gone if it is ideal; negative if steps then take longer, above 1 if less.": (
        "它为理想状态时作业变慢中消失的比例；若步反而变长则为负，若短于理想则大于 1。"
    ),
    "Time of a step if only it took as long as recorded; of a rank the shorter one of its replica and its stage.": (
        "只有它保持记录时间时的步时间；rank 取其副本与阶段中较短者。"
    ),
    "Time of a step if it were ideal and all else took as long as recorded; null for ranks.": (
        "它为理想状态而其余保持记录时间时的步时间；rank 为空。"
    ),
    "Time of a step if all were ideal.": "全部为理想状态时的步时间。",
    "Time of a step without delays between operations.": "不含操作之间延迟的步时间。",
    "Time of a step as recorded.": "记录的步时间。",
    "`recorded_ns` over `replayed_ns`: what delays between operations cost.": (
        "`recorded_ns` 除以 `replayed_ns`：操作之间的延迟造成的代价。"
    ),
    "How far a replay with the recorded delays is off: the recording contradicts the order of operations.": (
        "带记录延迟的重放误差：记录与操作顺序矛盾的程度。"
    ),
    "Calls of which members were not recorded: their time includes waiting for these.": (
        "有成员未被记录的调用数：其时间包含等待这些成员。"
    ),
    # steps
    "Rank that spends most extra time on other things than communication.": "除通信外多用时间最多的 rank。",
    "What most of the extra time is spent on.": "多用时间的主要去向。",
    "Number of ranks that spend at least half as much extra time on it.": "在该项上多用时间至少为其一半的 rank 数。",
    "Length of the step on this rank.": "该 rank 上该步的时长。",
    "Length of the rank's median step; of two steps, of the shorter one.": "该 rank 中位步的时长；只有两步时取较短者。",
    "`window_ns` less `median_ns`.": "`window_ns` 减 `median_ns`。",
    "Extra time of this kind, compared with the rank's median step.": "与该 rank 的中位步相比，这一类多用的时间。",
    "Share of the rank's recorded time.": "占该 rank 记录时间的比例。",
    "True for the first recorded step, and the first after a pause: these start things up.": (
        "记录的第一步以及停顿后的第一步为真：它们包含启动工作。"
    ),
    "The steps in which all ranks take longer for it.": "所有 rank 在该项上都变慢的步。",
    "Number of compared ranks.": "参与比较的 rank 数。",
    "How many times as long as in other steps it takes, on the median rank.": "中位 rank 上耗时为其他步的多少倍。",
    "Extra time of the median rank in the mean slow step.": "中位 rank 在平均慢步中多用的时间。",
    "What the mean of all steps would be shorter without it, by replay.": "没有它时所有步平均缩短的时间（重放）。",
    "Lower quartile of that over the slow steps, averaged over all steps.": "该值在慢步中的下四分位，平均到所有步。",
    "Upper quartile of that.": "该值的上四分位。",
    "Length of the whole recording.": "整段记录的时长。",
    # ranks that are fast, or do more
    "The lowest of the fast ranks.": "较快的 rank 中编号最小的。",
    "All fast ranks.": "所有较快的 rank。",
    "Number of the ranks that it is compared with.": "与之比较的 rank 数。",
    "How long it computes in the median step.": "其中位步的计算时间。",
    "How long the median of the others computes in the median step.": "其他 rank 的中位数在中位步的计算时间。",
    "What the mean step would be shorter if all computed as fast, by replay. It is unknown whether they can.": (
        "若所有 rank 都同样快，平均步可缩短的时间（重放）；是否能做到未知。"
    ),
    "`if_alike_ns` over the mean step.": "`if_alike_ns` 占平均步的比例。",
    "The lowest of these ranks.": "这些 rank 中编号最小的。",
    "All ranks that do it, e.g. `6, 7`.": "所有这样做的 rank，例如 `6, 7`。",
    "The pipeline stage that they are; null if they are none.": "它们所在的流水线阶段；没有时为空。",
    "Whether that is the last stage.": "是否为最后一个阶段。",
    "Kernels that take most of it, longest first.": "占用最多的 kernel，最长的在前。",
    "Whether others never run these kernels; else they run them less often.": "其他 rank 是否从不运行这些 kernel；否则是运行得更少。",
    "Whether others run these kernels as often, on smaller shapes.": "其他 rank 是否同样多次运行这些 kernel，但形状更小。",
    "Extra work in the mean step, on the mean of these ranks.": "平均步中的额外工作（这些 rank 的平均）。",
    "All that they compute in the mean step.": "它们在平均步中的全部计算。",
    "What the other ranks compute in the mean step, that run mostly the same kernels.": (
        "运行大致相同 kernel 的其他 rank 在平均步中的计算。"
    ),
    "What the mean step would be shorter if all these ranks computed as long: its share if several do extra work.": (
        "若这些 rank 的计算时间都相同，平均步可缩短的时间；有多个时为其份额。"
    ),
    "What dividing it evenly would save while slow ranks stay as slow.": "慢 rank 保持不变时，平均分配它可节省的时间。",
    "What the mean step would be shorter without this extra work.": "没有这项额外工作时平均步可缩短的时间。",
    "The mean step.": "平均一步。",
    "Number of replayed steps.": "重放的步数。",
    # pipelines
    "Number of stages.": "阶段数。",
    "Those with recorded ranks.": "有记录的阶段数。",
    "Micro-batches of a step; null if unknown, or not the same in all.": "每步的 micro-batch 数；未知或各步不同时为空。",
    "Micro-batches at most, where they are unknown: transfers between two stages leave open how many model chunks each rank has. Null if they are known, or nothing is.": (
        "未知时 micro-batch 数的上限：两个阶段之间的传输无法确定每个 rank 有多少模型块。已知或完全未知时为空。"
    ),
    "Virtual stages of each rank (interleaving); null if unknown.": "每个 rank 的虚拟阶段数（交错调度）；未知时为空。",
    "`operations`: the recording states them; `transfers`: by what each stage sends to the next; `marks`: of several numbers that fit the transfers of two stages, the one that ranges of forward and backward show.": (
        "`operations`：记录中标明；`transfers`：根据每个阶段向下一阶段发送的次数；`marks`：有多个数符合两个阶段的传输时，"
        "取前向和反向区间所显示的那个。"
    ),
    "Share of a step that even stages wait: (stages - 1) / (micro-batches x chunks + stages - 1). Null if unknown, or if they wait less than that.": (
        "各阶段均衡时等待占一步的比例：(阶段数 - 1) / (micro-batch 数 * 模型块数 + 阶段数 - 1)。未知或实际等待更少时为空。"
    ),
    "Whether stages wait for clearly less than even ones have to in a schedule with whole backward passes: the schedule is another one, such as zero bubble, and how long they have to wait in it is unknown.": (
        "各阶段的等待是否明显少于完整反向调度下均衡阶段必需的等待：说明调度方式不同（如 zero bubble），其必需的等待未知。"
    ),
    "Share that they wait, mean of all recorded ranks and steps.": "等待所占比例，所有记录的 rank 和步的平均。",
    "The same in the mean step.": "平均步中的等待时间。",
    "Mean length of a step.": "平均步时长。",
    "Work of the stage that works longest over that of the mean stage.": "工作最久的阶段与平均阶段工作量之比。",
    "That stage; null with one recorded stage.": "该阶段；只记录一个阶段时为空。",
    "The same if stages are uneven (`uneven_factor`); else null.": "阶段不均衡时为该阶段（`uneven_factor`）；否则为空。",
    "Sends and receives between stages, pairs and single ones.": "阶段之间的发送和接收，成对和单个的都计入。",
    "Those without a pair.": "其中没有配对的。",
    "Calls that send and receive at once, which are in no pair: how many transfers they are is unknown.": (
        "同时发送和接收的调用，不计入配对：其中的传输次数未知。"
    ),
    "Pipeline stage, from 0.": "流水线阶段，从 0 起。",
    "Its recorded ranks.": "该阶段有记录的 rank。",
    "Ranks of the stage that were not recorded.": "该阶段未记录的 rank。",
    "Length of the step's window, mean of its ranks.": "步时长，其各 rank 的平均。",
    "Computing of its median rank (of an even number the lower one), so that a slow rank does not count as work of the stage; of step tables without it, all but exposed communication.": (
        "其中位 rank 的计算时间（偶数个时取较低者），使慢 rank 不算作阶段的工作；步表中没有时为除未掩盖通信外的全部时间。"
    ),
    "`work_ns` over the mean of all recorded stages.": "`work_ns` 与所有记录阶段平均值之比。",
    "Waiting for other stages, mean of its ranks.": "等待其他阶段的时间，其各 rank 的平均。",
    "The same over the step.": "占一步的比例。",
    "How it is known, as in `pipeline_bubbles`; `mixed` if that differs.": "如何得知，同 `pipeline_bubbles`；不一致时为 `mixed`。",
    "Waiting for other stages as the source states it, mean of its ranks.": "数据源标明的等待其他阶段的时间，其各 rank 的平均。",
    "Kernels that compute in a step, mean of its ranks.": "每步的计算 kernel 数，其各 rank 的平均。",
    "FLOPs of a step, mean of its ranks.": "每步的 FLOPs，其各 rank 的平均。",
    "Rate of its operators, mean of its ranks.": "其算子的速率，各 rank 的平均。",
    "Highest memory in use on any of its ranks.": "其任一 rank 上内存使用的最高值。",
    "Memory of their devices.": "其设备的内存容量。",
    "Steps that are left out as start-up (`left_out_steps`) of any rank, on all its ranks.": (
        "因任一 rank 处于启动阶段而在其所有 rank 上都不计入的步（`left_out_steps`）。"
    ),
}
