"""Chinese headings of tables, and reasons why they are missing, by the English ones."""

from __future__ import annotations

HEADINGS = {
    "Operators in {a_step}": "{a_step}的算子",
    "Modules in {a_step}": "{a_step}的模块",
    "Calls on the host in {a_step}": "{a_step}的主机调用",
    "Operators in {a_step} that wait or communicate": "{a_step}中等待或通信的算子",
    "Calls on the host in {a_step} that wait or communicate": "{a_step}中等待或通信的主机调用",
    "Communication in {a_step}": "{a_step}的通信",
    "Memory": "内存",
    "Operators by type, whole recording": "按类型统计的算子（整段记录）",
    "Garbage collections": "垃圾回收",
    "Host patterns": "主机多余时间的构成",
    "Kernel patterns": "变慢的 kernel 的共同点",
    "Rank kernels": "各 rank 的 kernel 类别",
    "Rank host calls": "各 rank 的主机调用",
    "Launch waits": "下发之后的等待",
    "Ai cpu operators": "AI CPU 算子",
    "Compared": "比较的两侧",
    "Environment variables": "环境变量",
    "Kernels in {a_step}": "{a_step}的 kernel",
    "Late starts": "起步晚",
    "Lost time": "损失的时间",
    "Python functions while the rank is idle, by cause": "rank 空闲时的 Python 函数（按原因）",
    "Ranks": "各 rank",
    "Slow rank causes": "慢 rank 的原因",
    "Time of {a_step} by part": "{a_step}各组成部分的时间",
    "Transmission": "传输",
    "Waits": "等待",
    "What is beyond simple limits": "超出简单上限的项",
    "What else differs": "其他差异",
    "Time by rank": "各 rank 的时间",
    "Idle time by cause, all ranks{and_steps}": "按原因统计的空闲时间（所有 rank{and_steps}）",
    "Slow ranks": "慢 rank",
    "Slow links": "慢链路",
    "Slow groups": "慢通信组",
    "Links": "链路",
    "Transports": "链路类型",
    "Small transfers": "小块传输",
    "Calls beside matrix products and alone": "与矩阵乘同时及单独进行的通信",
    "Transfers of unaligned sizes": "大小未对齐的传输",
    "Calls with packets sent again": "发生重传的通信",
    "{Steps} of each rank": "各 rank 的每一{step}",
    "{Steps} of each rank by activity": "各 rank 的每一{step}（按活动）",
    "{Steps} of each rank by phase": "各 rank 的每一{step}（按阶段）",
    "Mean {step} of each rank": "各 rank 的平均{step}时间",
    "Mean {step} of each rank by activity": "各 rank 的平均{step}时间（按活动）",
    "Mean {step} of each rank by activity, averages that the profile states": "各 rank 的平均{step}时间（按活动，profile 标明的平均）",
    "Mean {step} of each rank by phase": "各 rank 的平均{step}时间（按阶段）",
    "Mean {step} of each rank by phase, averages that the profile states": "各 rank 的平均{step}时间（按阶段，profile 标明的平均）",
    "What makes {steps} longer": "使{step}变长的原因",
    "Slowdown by kind of operation, data-parallel rank (replica), stage and rank": (
        "按操作种类、数据并行副本、阶段和 rank 统计的变慢"
    ),
    "Kernels": "Kernel",
    "Kernels of all ranks by operator type": "所有 rank 的 kernel（按算子类型）",
    "Operators": "算子",
    "Floating point operations of each rank": "各 rank 的浮点运算",
    "Clock rates of each rank": "各 rank 的时钟频率",
    "Operations and bytes, by operator and kernel": "各算子和 kernel 的运算量与访存量",
    "Operators by how much their shapes change": "算子形状变化的代价",
    "Gaps between the same work {in_most_steps}": "{in_most_steps}相同任务之间的空闲段",
    "Longest gaps": "最长的空闲段",
    "Launches by kind of work": "按任务种类统计的下发",
    "Calls of the runtime, all ranks": "运行时接口调用（所有 rank）",
    "Host time by module, event and stage": "主机时间（按模块、事件和阶段）",
    "Host memory by module, event and stage": "主机内存（按模块、事件和阶段）",
    "Communication": "通信",
    "Communication of each rank": "各 rank 的通信",
    "Communication by parallelism, from the timeline, mean of the ranks": "按并行方式统计的通信（时间线，rank 平均）",
    "Bandwidth of collectives": "集合通信的带宽",
    "Longest calls of each rank": "各 rank 最长的通信",
    "Peak memory of each rank": "各 rank 的内存峰值",
    "Allocated at the peak": "峰值时刻的内存分配",
    "Copies and fills by direction": "按方向统计的拷贝和填充",
    "Stages of the input": "数据输入的各阶段",
    "Data loaders": "数据加载器",
    "Dataset operators": "数据集算子",
    "Queues": "队列",
}

REASONS = {
    "kernels were recorded by name, without operator types": "kernel 只记录了名称，没有算子类型",
    "neither operators nor the source itself state floating point operations": "算子和数据源均未给出浮点运算量",
    "neither tensors of a graph nor blocks of an allocator were recorded there": "该处没有记录图的张量或分配器的内存块",
    "no batches of a data loader were recorded": "没有记录数据加载器的批次",
    "no calls of a runtime or driver were recorded": "没有记录运行时或驱动的调用",
    "no collective was seen on all ranks of its group: open the recordings of all ranks together": (
        "没有任何集合通信在其通信组的所有 rank 上都有记录：请一起打开所有 rank 的记录"
    ),
    "no all-gather is launched inside of marks of FSDP": "没有在 FSDP 的标记内下发的 all-gather",
    "no copies or fills of memory were recorded on a device": "没有记录设备上的内存拷贝或填充",
    "no hardware counters of kernels were recorded: record with aic_metrics (Ascend) or with CUPTI's range profiler "
    "(profiler_metrics of PyTorch)": (
        "没有记录 kernel 的硬件计数器：请使用 aic_metrics（昇腾）或 CUPTI range profiler（PyTorch 的 "
        "profiler_metrics）记录"
    ),
    "no host memory was recorded": "没有记录主机内存",
    "no launches of device work were recorded": "没有记录设备任务的下发",
    "no memory was recorded": "没有记录内存",
    "no queue between dataset and device was recorded": "没有记录数据集与设备之间的队列",
    "operator shapes were not recorded, so there are no dynamic shapes to show": "没有记录算子形状，因此无法显示动态形状",
    "operators have the same shapes throughout, so there are no dynamic shapes to show": (
        "算子形状始终不变，因此没有动态形状"
    ),
    "ranks can only be compared if the recordings of at least two ranks of one job are opened together": (
        "只有一起打开同一作业至少两个 rank 的记录，才能比较 rank"
    ),
    "the recorded counters do not have both operations and bytes of main memory": (
        "记录的计数器没有同时包含运算量和主存访问字节数"
    ),
    "the recording has no accelerator work; a CPU-only job, or recorded without accelerator activities": (
        "记录中没有加速器任务；作业只使用 CPU，或未记录加速器活动"
    ),
    "the recording has no batches and queues of the input pipeline; PyTorch traces do not contain them": (
        "记录中没有数据管道的批次和队列；PyTorch trace 不包含它们"
    ),
    "the recording has no batches and queues of the input pipeline; only MindSpore's dataset profiling records it": (
        "记录中没有数据管道的批次和队列；只有 MindSpore 的数据集 profiling 会记录"
    ),
    "the recording does not hold the environment variables of the processes": "记录中没有进程的环境变量",
    "the recording has no counters": "记录中没有计数器",
    "the recording has no counters; PyTorch traces do not contain them": "记录中没有计数器；PyTorch trace 不包含它们",
    "the recording has no framework operators; MindSpore's own profiler kept only totals of them, or nothing": (
        "记录中没有框架算子；MindSpore 的 profiler 只保留了总计，或没有保留"
    ),
    "the recording has no link figures": "记录中没有链路数据",
    "the recording has no link figures; PyTorch traces do not contain them": "记录中没有链路数据；PyTorch trace 不包含它们",
    "the recording has no operators of a dataset pipeline": "记录中没有数据管道的算子",
    "the recording has no ranges that the framework marks on the host": "记录中没有框架在主机上标记的区间",
    "the recording has no timed ranges": "记录中没有带时间的区间",
    "the recordings do not state the micro-batch of any work, so its ideal time is unknown": (
        "记录没有标明任务所属的 micro-batch，因此其理想时间未知"
    ),
    "there is nothing to compare the recorded shapes with, so it is unknown whether they change": (
        "没有可比较的形状，因此不知道形状是否变化"
    ),
}

ADDED = {
    "position from 0 in each dimension": "各维度中从 0 开始的位置",
    "all ranks": "所有 rank",
    "by host self time": "按主机自身时间",
    "bytes over time": "字节数除以时间",
    "from the timeline": "来自时间线",
    "in part stated by the profile": "部分由 profile 标明",
    "mean of all its steps": "所有步平均",
    "mean of its steps": "各步平均",
    "mean of the ranks": "rank 平均",
    "share of all device work": "占所有设备任务的比例",
    "share of all device work (communication kernels: see Communication)": "占所有设备任务的比例（通信 kernel 见“通信”）",
    "stated by the profile": "由 profile 标明",
    "times since the first": "时间自第一项起",
    "times since the first of each clock": "时间自各时钟的第一项起",
    "times since the start of the recording": "时间自记录开始起",
    "whole recording": "整段记录",
}
"""What headings add, after a comma."""
