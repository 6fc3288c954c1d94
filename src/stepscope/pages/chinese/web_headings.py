"""Chinese headings of sections, and what options do, that only pages and the command line show, not reports."""

from __future__ import annotations

HEADINGS = {
    "Parallel dimensions": "并行维度",
    "Place of each rank": "各 rank 的位置",
    "Contradictions": "矛盾之处",
    "{Steps} with these changes": "更改后的{steps}",
    "What mending each slow rank or link would save": "修复每个慢 rank 或链路可节省的时间",
    "What changes can name here": "更改时可指定的内容",
    "What decides the length of {a_step}": "决定{a_step}耗时的工作",
    "The critical path, piece by piece": "关键路径逐段",
    "Ranks on the critical path": "关键路径上的 rank",
    "Slowdown of each rank {by_step}": "各 rank 的减速（{by_step}）",
    "Own work above that of peers": "自身工作超出同类 rank 的时间",
    "Schedule": "调度方式",
    "Stages {by_step}": "各阶段（{by_step}）",
    "Waiting of each rank {by_step}": "各 rank 的等待（{by_step}）",
    "Transfers between stages": "阶段间的传输",
    "Sends and receives": "发送与接收",
    "Passes of each rank in time": "各 rank 的前反向时序",
    "Forward and backward of each micro-batch": "各微批的前向与反向",
    "Operators of {a_step} on the ranks of each stage": "{a_step}中各阶段 rank 的算子",
    "Operators of each stage, by type": "各阶段的算子（按类型）",
    "Graphs by pipeline stage": "各流水线阶段的图",
    "Nodes with their parallel strategy": "节点及其并行策略",
    "Edges, those between stages first": "边（阶段间的在前）",
    "Mean {step} of each pipeline stage": "各流水线阶段的平均{step}时间",
    "Mean {step} of each pipeline stage by phase": "各流水线阶段的平均{step}时间（按阶段划分）",
    "Mean {step} of each pipeline stage by activity": "各流水线阶段的平均{step}时间（按活动）",
    "Mean {step} of each pipeline stage by phase, averages that the profile states": (
        "各流水线阶段的平均{step}时间（按阶段划分，profile 标明的平均）"
    ),
    "Mean {step} of each pipeline stage by activity, averages that the profile states": (
        "各流水线阶段的平均{step}时间（按活动，profile 标明的平均）"
    ),
    "Communication of all ranks together by group, operation and size": "所有 rank 的通信合计（按通信组、操作和大小）",
    "Operators of each rank": "各 rank 的通信算子",
    "Links of each operator": "各通信算子的链路",
    "Bandwidth between ranks": "rank 之间的带宽",
    "All-to-all calls, the least even first": "All-to-all 调用（最不均衡的在前）",
    "What each rank sends to each other one": "各 rank 向其他 rank 发送的数据",
    "Rates by rank and {step}, inside of hosts (SDMA) and between them (RDMA)": (
        "各 rank 每一{step}的速率：主机内（SDMA）与主机间（RDMA）"
    ),
    "Calls of all ranks by operation": "所有 rank 的通信调用（按操作）",
    "Calls of each rank by operation": "各 rank 的通信调用（按操作）",
    "Longest calls, compared over their ranks": "最长的调用在各 rank 上的对比",
    "Who waits for whom, in {the_median_step}": "{the_median_step}中谁等待谁",
    "Process groups": "进程组",
    "Communication by parallelism, from the timeline, each rank": "各 rank 的通信（按并行方式，来自时间线）",
    "Mean {step} of each rank, from the timeline, most exposed communication first": (
        "各 rank 的平均{step}时间（来自时间线，未掩盖通信多的在前）"
    ),
    "{Steps} of each rank, from the timeline": "各 rank 的每一{step}（来自时间线）",
    "Kernels of all ranks by name and shapes": "所有 rank 的 kernel（按名称和形状）",
    "Framework operators of all ranks": "所有 rank 的框架算子",
    "Operators of all ranks by type": "所有 rank 的算子（按类型）",
    "Kernels of each rank by operator type": "各 rank 的 kernel（按算子类型）",
    "Kernels of each rank by name and shapes": "各 rank 的 kernel（按名称和形状）",
    "Calls of the runtime, each rank": "各 rank 的运行时调用",
    "Calls of experts, in order": "专家通信调用（按时间顺序）",
    "What even experts would save": "专家均衡后可节省的时间",
    "Counters compared with other ranks, means of {the_steps}": "计数器与其他 rank 的对比（{the_steps}平均）",
    "Calls of each rank by group": "各 rank 的调用（按通信组）",
    "Statistics of {the_steps}": "{the_steps}的统计",
    "Statistics by phase": "按阶段划分的统计",
    "Statistics of the parts between these points": "所选位置之间各部分的统计",
    "Communication of the device by stream": "设备通信（按 stream）",
    "Communication of the device, mean of {the_steps}": "设备通信（{the_steps}平均）",
    "Marked ranges, all ranks together": "标记区间（所有 rank 合计）",
    "Marked ranges of each rank": "各 rank 的标记区间",
    "Rate of copies over time": "拷贝速率随时间的变化",
    "Operators by type": "按类型统计的算子",
    "Launched work that waits, by stream": "已下发而等待的任务（按 stream）",
    "Launched work that waits, over time": "已下发而等待的任务（随时间）",
    "Idle time of each stream": "各 stream 的空闲时间",
    "Launches by kernel": "按 kernel 统计的下发",
    "Kernels that operators launch themselves": "算子直接下发的 kernel",
    "Longest calls and delays": "最长的调用与延迟",
    "Sequences of kernels, by kernel time": "kernel 序列（按 kernel 时间）",
    "Counters by operator and kernel": "按算子和 kernel 统计的计数器",
    "Kernels by length": "按时长统计的 kernel",
    "Short kernels by name": "短 kernel（按名称）",
    "Python functions, by self time": "Python 函数（按自身时间）",
    "Calls, each with the calls in it": "调用树：每个调用及其内部调用",
    "Modules, each with the modules in it": "模块树：每个模块及其内部模块",
    "Operators and kernels by module": "按模块统计的算子和 kernel",
    "Operations by operator, FLOPs per call": "按算子统计的运算（每次调用的 FLOPs）",
    "Operations in the recording": "整段记录的运算",
    "Operations of {a_step}": "{a_step}的运算",
    "Share of the peak by operator": "按算子统计的峰值占比",
    "Operations by scope, FLOPs in total": "按作用域统计的运算（总 FLOPs）",
    "Types of operators {by_step}": "算子类型（{by_step}）",
    "Operators {by_step_and} shape": "算子（{by_step_and}形状）",
    "Batches by queue": "按队列统计的批次",
    "Samples of the operators' queues": "算子队列的采样",
    "Memory in use": "内存用量",
    "Host memory over time": "主机内存随时间的变化",
    "Samples of the CPU": "CPU 采样",
    "Own work difference": "自身工作的差异",
}

OPTIONS = {
    "Parallel sizes of the job, e.g. tp=2,pp=4,dp=8, if they were not recorded.": (
        "作业的并行规模，例如 tp=2,pp=4,dp=8；仅在未记录时需要。"
    ),
    "Show only these ranks, e.g. 0,3-5.": "只显示这些 rank，例如 0,3-5。",
    "Show only these steps, e.g. 10-12.": "只显示这些步，例如 10-12。",
    "Take away what these take longer than usual, e.g. rank=6 or link=0-4.": (
        "去除它们比通常多用的时间，例如 rank=6 或 link=0-4。"
    ),
    "Work that takes another time, e.g. op=FlashAttention,0.7.": "改变耗时的工作，例如 op=FlashAttention,0.7。",
    "Communication moves data faster, e.g. 2x or transport=RDMA,2x.": "通信传输更快，例如 2x 或 transport=RDMA,2x。",
    "No rank takes longer than its peers for its own work.": "没有 rank 的自身工作比同类 rank 更久。",
    "List the pieces of the path in order of time.": "按时间顺序列出路径的各段。",
    "Show each step, not only the mean step.": "显示每一步，而不只是平均。",
    "Show only ranks of these pipeline stages, from 0, e.g. 0,2-3.": (
        "只显示这些流水线阶段的 rank，从 0 开始，例如 0,2-3。"
    ),
    "Show only ranks of these hosts, parted by commas.": "只显示这些主机的 rank，以逗号分隔。",
    "Show only ranks of this process group, by its name.": "只显示该进程组的 rank，给出组名。",
    "Count start-up steps in means too, as MindSpore Insight does.": "平均值计入启动步，与 MindSpore Insight 相同。",
    "Show only links from these ranks, e.g. 0,2-3.": "只显示从这些 rank 发出的链路，例如 0,2-3。",
    "Show only links to these ranks.": "只显示到这些 rank 的链路。",
    "Show only links of this transport, e.g. HCCS.": "只显示该类型的链路，例如 HCCS。",
    "Show the statistics of each rank instead of all ranks together.": "分别显示各 rank 的统计，而不是合计。",
    "Operator or kernel at which the forward pass starts.": "前向从该算子或 kernel 开始。",
    "Operator or kernel at which the backward pass ends.": "反向到该算子或 kernel 结束。",
    "Rank to show. Default: the lowest.": "要显示的 rank；默认为编号最小者。",
    "Show only this step (numbered as in the recording).": "只显示该步（按记录中的编号）。",
    "Gaps to find on each rank. Default: 20.": "每个 rank 查找的空隙数；默认 20。",
    "Calls and delays to find. Default: 50 each.": "查找的调用数和延迟数；默认各 50。",
    "Kernels of a sequence to write out; 0 for all. Default: 20.": "序列中写出的 kernel 数，0 为全部；默认 20。",
    "Operator under which to look. Default: those that no other calls.": (
        "在该算子之下查找；默认为不被其他算子调用的算子。"
    ),
    "Leave out sequences of fewer kernels. Default: 1.": "略去 kernel 少于该数的序列；默认 1。",
    "Count kernels to the outermost operator around their launch.": "把 kernel 计入包含其下发的最外层算子。",
    "Length below which a kernel is short, in us. Default: 10.": "短于该时长（us）的为短 kernel；默认 10。",
    "What is above operators: python, module or operator (nothing). Default: Python functions if they were recorded.": (
        "算子之上的层：python、module 或 operator（无）；若已记录，默认为 Python 函数。"
    ),
    "Whose time is drawn: host or device. Default: all that there is.": "绘制 host 或 device 的时间；默认为全部。",
    "Peak of the device, in TFLOP/s. Default: as stated or known for the device.": (
        "设备的峰值（TFLOP/s）；默认为记录标明或已知的值。"
    ),
    "Show what is allocated in this graph.": "显示该图中分配的内容。",
    "Show what is allocated at this node of the graph.": "显示图的该节点处分配的内容。",
    "Show what is allocated at this time, in ns as in «--json».": "显示该时刻（ns）分配的内容。",
    "Compare kernels by type, name, shape, class (of work) or the operator that launched them. Default: the type, or "
    "what both sides have most in common.": (
        "按 type（类型）、name（名称）、shape（形状）、class（工作类别）或 operator（下发算子）比较 kernel；"
        "默认为类型，或两侧共同点最多的一种。"
    ),
    "Ranks of the base. Default: those of «--ranks»; in one run, a typical rank.": (
        "基准的 rank；默认与另一侧相同，同一运行内则为典型 rank。"
    ),
    "Steps of the base. Default: those of «--steps».": "基准的步；默认与另一侧相同。",
}
"""What options do; fields of forms say so."""
