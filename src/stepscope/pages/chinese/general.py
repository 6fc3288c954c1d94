"""Chinese meanings of columns that many answers share, and of those about time and ranks, by the English ones."""

from __future__ import annotations

MEANINGS = {
    "95th percentile (an observed value).": "95 分位数（实际观测值）。",
    "All ranks that are slow together, e.g. `4, 5, 6, 7`.": "一起变慢的所有 rank，例如 `4, 5, 6, 7`。",
    "Cause of most of the idle time.": "大部分空闲时间的原因。",
    "Cause of most of their time.": "其大部分时间的原因。",
    "Cause of the idle time.": "空闲时间的原因。",
    "Communicating and computing at once.": "同时在通信和计算。",
    "Communicating but not computing.": "在通信但没有计算。",
    "Communication that no computing hides.": "未被计算掩盖的通信。",
    "Device of the rank on its host; null if not recorded.": "该 rank 在其主机上的设备；未记录则为空。",
    "Exposed communication other than receiving; null as `receiving_ns`.": "除接收之外的未掩盖通信；何时为空同 `receiving_ns`。",
    "Extra time of the rank compared with the typical rank, in the median of its slow steps; of ranks late in turn, of "
    "the latest one.": "该 rank 比典型 rank 多用的时间（其变慢各步的中位数）；若各 rank 轮流迟到，则为最晚者。",
    "From the end of backward to the end of the step.": "从反向结束到该步结束。",
    "From the start of forward to the end of backward.": "从前向开始到反向结束。",
    "From the start of the step to the start of forward.": "从该步开始到前向开始。",
    "From the step's start on the host to its first device task; null without one.": (
        "从该步在主机上开始到其第一个设备任务；没有设备任务则为空。"
    ),
    "Global rank.": "全局 rank。",
    "Host of the rank; null if not recorded.": "该 rank 所在主机；未记录则为空。",
    "How far a replay of the recording without changes is from it.": "不作改动地重放记录时与记录的偏差。",
    "How far a replay of the recording without changes is from it; null if nothing was replayed.": (
        "不作改动地重放记录时与记录的偏差；没有重放则为空。"
    ),
    "How far it stands out, in robust standard deviations.": "偏离其他值的程度（稳健标准差的倍数）。",
    "How far it stands out, in robust standard deviations; null if there are only two links.": (
        "偏离其他值的程度（稳健标准差的倍数）；只有两条链路时为空。"
    ),
    "How long these take in comparable groups, or in its usual steps.": "在同类通信组中、或在其正常的步中所需的时间。",
    "How much that is.": "其时间。",
    "How the window of the step was determined.": "步的时间窗口如何确定。",
    "Idle time with this cause.": "由此原因造成的空闲时间。",
    "Key of the process group, the same on every member; null if not recorded.": "通信组的键，各成员相同；未记录则为空。",
    "Key of the process group.": "通信组的键。",
    "Length of the longest of them.": "其中最长一段的长度。",
    "Length of the step's window.": "步的时间窗口长度。",
    "Length.": "长度。",
    "Longest.": "最长。",
    "Mean.": "平均。",
    "Median.": "中位数。",
    "Name of the kernel.": "kernel 的名称。",
    "Name of the operator.": "算子的名称。",
    "Name of the process group; null if it has none.": "通信组的名称；没有则为空。",
    "Neither computing nor communicating, copies included; null as `computing_ns`.": "既不计算也不通信，含拷贝；何时为空同 `computing_ns`。",
    "Number of calls.": "调用次数。",
    "Number of collectives in which it arrived last.": "它最后到达的集合通信次数。",
    "Number of collectives in which it took part.": "它参与的集合通信次数。",
    "Number of compared steps.": "参与比较的步数。",
    "Number of its steps.": "它的步数。",
    "Number of pieces.": "段数。",
    "Number of ranks of the job (at least) that were not recorded. All may be waiting for one of these instead.": (
        "作业中（至少）未被记录的 rank 数。所有 rank 也可能是在等待其中之一。"
    ),
    "Number of ranks that have any.": "有此项的 rank 数。",
    "Number of recorded ranks.": "已记录的 rank 数。",
    "Number of steps in the mean; 1 for a step, and where no step is known.": "计入平均的步数；单步或步未知时为 1。",
    "Number of steps in the mean; null if stated.": "计入平均的步数；由数据源标明时为空。",
    "Number of steps in which it is late.": "它迟到的步数。",
    "Number of steps in which there is such a gap.": "出现这种空闲段的步数。",
    "Number of steps in which they lie; null if unknown.": "它们所在的步数；未知则为空。",
    "Number of steps of the rank.": "该 rank 的步数。",
    "Number of steps whose mean the savings are, as in `suspect_costs`.": "计算平均节省所用的步数，同 `suspect_costs`。",
    "Number of steps.": "步数。",
    "Number of such gaps.": "这种空闲段的数量。",
    "Number of the step as recorded; 0 if no steps are marked.": "记录中的步编号；没有标记步则为 0。",
    "Number of the step; null for the mean of the steps, and where no step is known.": (
        "步编号；各步平均或步未知时为空。"
    ),
    "Number of the step; null if not recorded.": "步编号；未记录则为空。",
    "Number of those of which the parts are known, which means of parts are of; null if stated.": (
        "已知其构成的步数，各部分的平均即基于它们；由数据源标明时为空。"
    ),
    "Part in which the rank does not compute, mean of these ranks.": "该 rank 没有计算的部分（这些 rank 的平均）。",
    "Pipeline stage of the rank, from 0; null without a pipeline, or if it is unknown.": (
        "该 rank 的流水线阶段，从 0 开始；没有流水线或未知则为空。"
    ),
    "Receiving from another stage: alone if a step table states it, else all receive calls; null if no rank of the job "
    "receives.": "从其他阶段接收：步表标明时仅计单独接收，否则为所有接收调用；作业中没有接收则为空。",
    "Share of `count`.": "占 `count` 的比例。",
    "Share of the rank's steps.": "占该 rank 各步的比例。",
    "Share of the step, mean of these ranks.": "占步的比例（这些 rank 的平均）。",
    "Shortest.": "最短。",
    "Size.": "大小。",
    "Standard deviation (of a sample); null for a single call.": "（样本）标准差；只有一次调用则为空。",
    "Start of the longest of them, which is the one explained.": "其中最长一段的起点，即所解释的那一段。",
    "Start of the step's window.": "步的时间窗口起点。",
    "Start.": "开始时刻。",
    "Step of the longest of them.": "其中最长一段所在的步。",
    "Steps between recurrences; null if irregular.": "重复出现的间隔步数；不规律则为空。",
    "Steps that the mean leaves out, e.g. `1`; null if none.": "平均时未计入的步，例如 `1`；没有则为空。",
    "Stream of that work; null if unknown.": "该任务所在的流；未知则为空。",
    "The rest: what MindSpore calls the communication cost; null as `wait_ns`.": (
        "其余部分：MindSpore 所称的通信代价；何时为空同 `wait_ns`。"
    ),
    "The slow rank; of several, the one that takes longest.": "慢 rank；有多个时为耗时最长者。",
    "The step less `receiving_ns`: what the rank's own stage takes.": "步时间减去 `receiving_ns`：该 rank 自身阶段的时间。",
    "The step less exposed communication; a step table of MindSpore leaves the interval out as well.": (
        "步时间减去未掩盖的通信；MindSpore 的步表还会减去间隔。"
    ),
    "Their time in a step, on average.": "它们每步的平均时间。",
    "Their time.": "其时间。",
    "Their total time.": "其总时间。",
    "These steps.": "这些步。",
    "Third quartile (an observed value).": "上四分位数（实际观测值）。",
    "First quartile (an observed value).": "下四分位数（实际观测值）。",
    "This thread: the one that launched the next work, unless that one was idle.": (
        "所指的线程：下发了下一个任务的线程，除非它处于空闲。"
    ),
    "Those in which it is slow.": "它变慢的那些步。",
    "Time in receive calls (pipeline bubbles).": "接收调用的时间（流水线空泡）。",
    "Time in which only memory operations run.": "只有内存操作在执行的时间。",
    "Time spent communicating.": "通信时间。",
    "Time spent computing.": "计算时间。",
    "Time spent computing; null if the source does not tell it from idle time.": (
        "计算时间；数据源不区分计算与空闲时为空。"
    ),
    "Time spent copying or filling memory.": "拷贝或填充内存的时间。",
    "Time spent waiting for the next batch; may overlap the others.": "等待下一批数据的时间；可能与其他项重叠。",
    "Time that the typical rank needs for this kind of work in a step.": "典型 rank 每步做此类工作所需的时间。",
    "Time without computing, communicating or memory operations.": "没有计算、通信和内存操作的时间。",
    "Total time.": "总时间。",
    "What is faster: `others`, or its own other `steps`.": "更快的一方：`others`（其他），或它自己的其他 `steps`（步）。",
    "What it is slow at.": "它慢在哪里。",
    "What it may be at least, as in `suspect_costs`.": "至少可能是多少，同 `suspect_costs`。",
    "What it may be at least: the lower quartile over the slow steps, averaged over all, or `alone_ns` if less; 0 if "
    "ranks are missing or the replay is far from the recording.": (
        "至少可能是多少：变慢各步的下四分位数，按所有步平均；若 `alone_ns` 更小则取它；缺少 rank 或重放与记录"
        "相差很大时为 0。"
    ),
    "What it may be at most, as in `suspect_costs`.": "至多可能是多少，同 `suspect_costs`。",
    "What it may be at most: the upper quartile over the slow steps, averaged over all, or `alone_ns` if more.": (
        "至多可能是多少：变慢各步的上四分位数，按所有步平均；若 `alone_ns` 更大则取它。"
    ),
    "What mending this alone would save.": "仅解决这一项可节省的时间。",
    "What mending this alone would save: less, if another is as late.": (
        "仅解决这一项可节省的时间：若另有 rank 同样迟到则更少。"
    ),
    "What the mean step takes longer because of it: its share of what mending all would save.": (
        "平均每步因它变长的时间：解决全部问题所得节省中它的份额。"
    ),
    "What these ranks are: `rank`, or e.g. `host`, `stage`, `tensor parallel`.": (
        "这些 rank 是什么：`rank`，或例如 `host`、`stage`、`tensor parallel`。"
    ),
    "When it is slow, as in `late_ranks`.": "何时变慢，同 `late_ranks`。",
    "When it is slow: `steady`, `since`, `until`, `periodic`, `sometimes`, `once`, `rotating`.": (
        "何时变慢：`steady`（始终）、`since`（自某步起）、`until`（到某步止）、`periodic`（周期性）、`sometimes`"
        "（有时）、`once`（一次）、`rotating`（轮流）。"
    ),
    "When it is slow: `steady`, `since`, `until`, `periodic`, `sometimes`, `once`.": (
        "何时变慢：`steady`（始终）、`since`（自某步起）、`until`（到某步止）、`periodic`（周期性）、`sometimes`"
        "（有时）、`once`（一次）。"
    ),
    "Where the parts come from: `stated` in the source's step table, or its `timeline`; null likewise.": (
        "各部分的来源：数据源的步表（`stated`）或时间线（`timeline`）；空值含义同前。"
    ),
    "Where the points of the step come from: `stated` by the source, or its `timeline`; null if unknown, or both.": (
        "步的分界点的来源：数据源标明（`stated`）或时间线（`timeline`）；未知或两者都有则为空。"
    ),
    "Which of them.": "具体是哪一个。",
    "`communication_not_overlapped_ns` minus `bubble_ns`, at least 0.": (
        "`communication_not_overlapped_ns` 减去 `bubble_ns`，不小于 0。"
    ),
    "`cost_ns` over the mean step.": "`cost_ns` 与平均步时间之比。",
    "`steps`: the mean of the recorded steps. `stated`: of a profile that states means of more steps than it holds, "
    "these.": "`steps`：已记录各步的平均。`stated`：profile 标明了比其所含更多步的平均时，为这些平均。",
    "`window_ns` minus `bubble_ns`.": "`window_ns` 减去 `bubble_ns`。",
}
