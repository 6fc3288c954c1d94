"""What columns about kernels and operators as evidence of findings mean, in Chinese."""

from __future__ import annotations

MEANINGS = {
    # roofline and shapes
    "Operator that launches the kernels; null if not known.": "下发这些 kernel 的算子；未知时为空。",
    "Name of the kernel; null if not recorded.": "kernel 名称；未记录时为空。",
    "Kernels.": "kernel 数。",
    "Operations that the device counted; null where tensor cores ran.": "设备计数的运算量；使用 Tensor Core 时为空。",
    "Bytes read from and written to main memory.": "读写主存的字节数。",
    "Operations for each byte: low means bound by memory.": "每字节的运算量：低表示受内存限制。",
    "Time of the kernels; null if unknown.": "kernel 的时间；未知时为空。",
    "Operations over time; null if unknown.": "运算量除以时间；未知时为空。",
    "Bytes over time; null if unknown.": "字节数除以时间；未知时为空。",
    "List that it belongs to, e.g. `AI_CORE`, `AI_CPU`, `CUDA`, `HOST_CPU`, `CPU`.": (
        "所属的列表，例如 `AI_CORE`、`AI_CPU`、`CUDA`、`HOST_CPU`、`CPU`。"
    ),
    "Full name: the position in the model; null if not recorded.": "全名：在模型中的位置；未记录时为空。",
    "Number of different shapes.": "不同形状的个数。",
    "Number of shapes that occur once.": "只出现一次的形状数。",
    "Mean time of the fastest shape.": "最快形状的平均耗时。",
    "Mean time of the slowest shape.": "最慢形状的平均耗时。",
    "Extra time over all calls at the fastest shape; null if a step has several.": (
        "与所有调用都用最快形状相比多用的时间；一步中有多个形状时为空。"
    ),
    "Extra time of each shape's first call over the median of its later calls.": "每种形状首次调用比之后调用的中位数多用的时间。",
    "Calls with dynamic shapes.": "动态形状的调用数。",
    "Calls with static shapes.": "静态形状的调用数。",
    "Calls of which neither was recorded.": "未记录属于哪一种的调用数。",
    "Time of the calls with dynamic shapes.": "动态形状调用的时间。",
    "Number of different input shapes of these; 0 if shapes were not recorded.": "其不同输入形状的个数；未记录形状时为 0。",
    # cores, pipes, clocks
    "Data formats of the inputs, as recorded.": "记录的输入数据格式。",
    "Shapes of the outputs, as recorded.": "记录的输出形状。",
    "Blocks, i.e. cores that its work is divided over.": "块数，即任务所分到的核数。",
    "The same of the vector cores of a kernel that runs on both kinds.": "同时使用两种核的 kernel 的向量核块数。",
    "`static` or `dynamic` shape; null if not recorded.": "`static`（静态）或 `dynamic`（动态）形状；未记录时为空。",
    "Cores of this kind that the device has.": "设备中这种核的个数。",
    "Share of these cores that have nothing to do, mean over its rounds: blocks beyond the number of cores run in further rounds.": (
        "没有任务的核所占比例，按轮次平均：超出核数的块在后续轮次运行。"
    ),
    "This share of its time: what even work on all cores could save at most.": "该比例对应的时间：任务均分到所有核最多可节省的时间。",
    "True if calls take long and many cores are idle.": "调用耗时长且许多核空闲时为真。",
    "Share of the rank's time in such operators.": "占该 rank 此类算子时间的比例。",
    "Calls with counters of the pipes.": "有流水计数的调用数。",
    "Share of the time in which the matrix unit is busy. Mean by time; null if not counted.": (
        "矩阵单元忙碌的时间比例，按时间平均；未计数时为空。"
    ),
    "The same of the vector unit. Mean by time; null if not counted.": "向量单元的该比例，按时间平均；未计数时为空。",
    "The same of the scalar unit. Mean by time; null if not counted.": "标量单元的该比例，按时间平均；未计数时为空。",
    "The same of moves inside the core (L1 to L0). Mean by time; null if not counted.": (
        "核内搬运（L1 到 L0）的该比例，按时间平均；未计数时为空。"
    ),
    "The same of moves into the core. Mean by time; null if not counted.": "搬入核的该比例，按时间平均；未计数时为空。",
    "The same of moves out of the core. Mean by time; null if not counted.": "搬出核的该比例，按时间平均；未计数时为空。",
    "The same of moves of matrix results. Mean by time; null if not counted.": "矩阵结果搬运的该比例，按时间平均；未计数时为空。",
    "The pipe that limits it; `none` if no pipe is busy enough.": "限制它的流水；没有足够忙碌的流水时为 `none`。",
    "Share of the time in which its busiest pipe is busy.": "最忙的流水的忙碌时间比例。",
    "Share of its time that it would save at most, were its busiest pipe as busy as pipes that limit are.": (
        "若最忙的流水与限制性流水一样忙，最多可节省的时间比例。"
    ),
    "This share of its time.": "该比例对应的时间。",
    "True if calls take long and no pipe limits it.": "调用耗时长且没有流水限制时为真。",
    "Share of the rank's time in operators with counters.": "占该 rank 有计数算子时间的比例。",
    "Kind of operator.": "算子种类。",
    "Sizes that are no multiple of `multiple`: inner axes of matrices, head and sequence of attention; null if shapes do not show them.": (
        "不是 `multiple` 整数倍的大小：矩阵内轴、注意力的头维和序列长度；形状中看不出时为空。"
    ),
    "What these sizes should be multiples of; null for vector operators.": "这些大小应为其整数倍的数；向量算子为空。",
    "True if a pipe is as busy as it can be; null without counters.": "有流水已达到最忙时为真；没有计数时为空。",
    "Share of its time that it would save at most, were the pipe nearest to its limit there; null without counters.": (
        "若最接近上限的流水达到上限，最多可节省的时间比例；没有计数时为空。"
    ),
    "Counter of the clock, with its unit.": "时钟计数器及其单位。",
    "How far below the rate the clock was, mean by time.": "时钟低于该频率的程度，按时间平均。",
    "Mean clock rate while it ran.": "运行期间的平均频率。",
    "Lowest clock rate at the start or end of a call.": "调用开始或结束时的最低频率。",
    "Highest clock rate at the start or end of a call.": "调用开始或结束时的最高频率。",
    "The rate that the recording states of the device, else the usual highest while it computes.": (
        "记录中标明的设备频率，否则为计算时通常的最高频率。"
    ),
    "True if the recording states that rate.": "该频率由记录标明时为真。",
    "What it would be shorter at that rate, as far as computing limits it; null if unknown.": (
        "若为该频率可缩短的时间（只计受计算限制的部分）；未知时为空。"
    ),
    # GPUs
    "Its calls with fewer blocks than multiprocessors.": "线程块少于多处理器的调用数。",
    "All of its calls.": "其全部调用数。",
    "Mean blocks for each multiprocessor, of those with few.": "块数不足的调用中，每个多处理器的平均块数。",
    "Time of those with few.": "块数不足的调用的时间。",
    "Share of the time of all kernels that compute.": "占所有计算 kernel 时间的比例。",
    "Share of multiprocessors without work meanwhile, mean by time.": "期间没有任务的多处理器比例，按时间平均。",
    "Where it runs.": "运行在哪里。",
    "Why not on tensor cores: `single precision` (of a device that takes none there), `single precision without TF32`, `sizes` that are no multiples of 8 (of 4 in TF32), or `other`; null if it does, or if that is unknown.": (
        "未使用 Tensor Core 的原因：单精度（设备的 Tensor Core 不支持）、未启用 TF32 的单精度、大小不是 8 的倍数（TF32 为 4），或其他；"
        "使用了或未知时为空。"
    ),
    "Operator that launched it; null if not known.": "下发它的算子；未知时为空。",
    "Data types of the operator's inputs; null if not recorded.": "算子输入的数据类型；未记录时为空。",
    "Shapes of the operator's inputs; null if not recorded.": "算子输入的形状；未记录时为空。",
    "Greatest power of two, up to 16, that divides the sizes; null if unknown.": "能整除各大小的最大 2 的幂（不超过 16）；未知时为空。",
    "Number of kernels.": "kernel 个数。",
    "Line of code that calls the operator; null if no stacks were recorded.": "调用该算子的代码行；未记录调用栈时为空。",
    "Ten times the compute capability of the device; null if unknown.": "设备计算能力（compute capability）的十倍；未知时为空。",
    # sequences
    "Its kernels in order; `(x2)`: two in a row.": "依次的 kernel；`(x2)` 表示连续两个。",
    "Operators that launch them, in order; null if not known.": "依次下发它们的算子；未知时为空。",
    "Number of its kernels.": "其 kernel 个数。",
    "How often it occurs; no kernel counts twice.": "出现次数；每个 kernel 只计一次。",
    "How often it occurs in a step.": "每步出现的次数。",
    "Time of all occurrences, from the start of their first kernel to the end of the last.": (
        "所有出现的总时间，从首个 kernel 开始到最后一个结束。"
    ),
    "Time of their kernels.": "其 kernel 的时间。",
    "Time between them in which their stream runs nothing.": "kernel 之间其流上没有任务的时间。",
    "Share of the kernels' time with moves of data; null if not counted.": "kernel 时间中搬运数据的比例；未计数时为空。",
    "What limits it.": "受什么限制。",
    "Shapes of the inputs of its first kernel; null if not recorded.": "首个 kernel 的输入形状；未记录时为空。",
    "User's function that called the first one, with file and line; null if not recorded.": (
        "调用首个的用户函数及其文件和行号；未记录时为空。"
    ),
    "When the first one began.": "首个的开始时刻。",
    "What the sequence computes.": "该序列所计算的内容。",
    "Names of the operators in order; `(x3)`: three in a row.": "依次的算子名称；`(x3)` 表示连续三个。",
    "How often it occurs.": "出现次数。",
    "Operators of all occurrences, without those that they call.": "所有出现中的算子数，不含它们调用的算子。",
    "Number of the compiled function; null of passes that ran none.": "编译函数的编号；未运行任何编译函数的执行为空。",
    "Versions of it that ran; 0 of passes that ran none.": "运行过的版本数；未运行任何编译函数的执行为 0。",
    "Calls in steps.": "各步中的调用数。",
    # comparisons
    "Number of the row, from 0: each is followed by those in it.": "行号，从 0 起：每一行之后是它所包含的行。",
    "Row of the call around it; null at the top.": "外层调用的行号；最外层为空。",
    "Calls around it.": "外层调用的层数。",
    "What it is, as in `call_tree`.": "种类，同 `call_tree`。",
    "Time of the base on the host in a step, mean of its steps and ranks.": "基准每步的主机时间，各步和各 rank 的平均。",
    "Part of it outside of the calls in them.": "其中不在内层调用中的部分。",
    "Device work that the base launches in a step, mean of its steps and ranks.": "基准每步下发的设备任务，各步和各 rank 的平均。",
    "Device work itself of the base.": "基准自身的设备任务。",
    "Time of the new side on the host in a step, mean of its steps and ranks.": "新的一侧每步的主机时间，各步和各 rank 的平均。",
    "Device work that the new side launches in a step, mean of its steps and ranks.": (
        "新的一侧每步下发的设备任务，各步和各 rank 的平均。"
    ),
    "Device work itself of the new side.": "新的一侧自身的设备任务。",
    "What the slower kernels have in common, as in `kernel_patterns`.": "变慢的 kernel 的共同点，同 `kernel_patterns`。",
    "How many times as long calls of equal shapes take as on the base; null if it is not about equal calls.": (
        "形状相同的调用耗时为基准的多少倍；不是相同调用时为空。"
    ),
    "The classes that explain most of the difference, largest first; none if all do.": (
        "解释大部分差异的类别，最大的在前；所有类别都如此时为空。"
    ),
    "Their part of the difference, in a step.": "每步差异中它们的部分。",
    "Time of all kernels in a step less that of the base.": "每步所有 kernel 的时间减去基准的时间。",
    "Time of the base's kernels in a step.": "基准每步的 kernel 时间。",
}
