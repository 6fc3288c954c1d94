"""Chinese meanings of columns about memory, copies, the input and the host, by the English ones."""

from __future__ import annotations

MEANINGS = {
    "Allocator as recorded, e.g. `PTA`; null for the framework's own allocator.": (
        "记录的分配器，例如 `PTA`；框架自身的分配器则为空。"
    ),
    "Allocator as recorded; null for the framework's own.": "记录的分配器；框架自身的则为空。",
    "Batches that found the queue empty; null if its size is unknown.": "遇到队列为空的批数；队列长度未知则为空。",
    "Batches that found the queue full; null if its size or capacity is unknown.": (
        "遇到队列已满的批数；队列长度或容量未知则为空。"
    ),
    "Bottlenecks from the readers to the root, joined by `/`; null if there are none.": (
        "从读取算子到根的各瓶颈，用 `/` 连接；没有则为空。"
    ),
    "Bytes of known size over the time of these copies; null if unknown.": "已知大小的字节数除以这些拷贝的时间；未知则为空。",
    "Bytes of those with a known size; null if none is known.": "其中已知大小者的字节数；都未知则为空。",
    "Capacity of the queue; null if there is no queue or it is unknown.": "队列容量；没有队列或未知则为空。",
    "Copies of unknown size.": "大小未知的拷贝。",
    "Copies or fills.": "拷贝或填充。",
    "Copies shorter than a tick, whose rate is unknown.": "短于一个时钟单位、速率未知的拷贝。",
    "Data loader.": "数据加载器。",
    "Dataset operator: type and number, e.g. `MapOp_3`.": "数据集算子：类型和编号，例如 `MapOp_3`。",
    "Device index; null for host memory.": "设备编号；主机内存则为空。",
    "Distance from the root.": "与根的距离。",
    "Event of the module; null if it has none.": "模块的事件；没有则为空。",
    "First node at which it is alive.": "它存活的第一个节点。",
    "From where to where; `fill` sets memory.": "从哪里到哪里；`fill` 为填充内存。",
    "Highest memory.": "最高内存。",
    "Highest of the three over that of the rank with the most.": "三者中最高者与最多的 rank 之比。",
    "Highest of the three over the capacity.": "三者中最高者与容量之比。",
    "Highest point of the memory curve.": "内存曲线的最高点。",
    "Highest rate of a single one; null if unknown.": "单次的最高速率；未知则为空。",
    "How long it lives, as stated, e.g. `LifeLongGraphAll`.": "标明的生命期，例如 `LifeLongGraphAll`。",
    "Judgement of the stage.": "对该阶段的判断。",
    "Kind of tensor as stated, e.g. `OUTPUT`.": "标明的张量种类，例如 `OUTPUT`。",
    "Last node at which it is alive.": "它存活的最后一个节点。",
    "Longest wait of a step.": "单步的最长等待。",
    "Lowest rate of a single one; null if unknown.": "单次的最低速率；未知则为空。",
    "Mean cost of a batch.": "每批的平均代价。",
    "Mean growth of a range; null for samples.": "每个区间的平均增长；采样则为空。",
    "Mean idle share of the host's processors; null if not sampled.": "主机处理器的平均空闲比例；未采样则为空。",
    "Mean number of batches still ready after one was taken; null if not recorded.": (
        "取走一批之后仍就绪的平均批数；未记录则为空。"
    ),
    "Mean number of items in the queue.": "队列中的平均项数。",
    "Mean number of processors that a worker kept busy.": "每个 worker 平均占用的处理器数。",
    "Mean number of processors that it kept busy; null if not sampled.": "它平均占用的处理器数；未采样则为空。",
    "Mean of `get_ns` of a batch.": "每批 `get_ns` 的平均。",
    "Mean of `push_ns` of a batch.": "每批 `push_ns` 的平均。",
    "Mean processors that all workers kept busy; null if not sampled.": "所有 worker 平均占用的处理器数；未采样则为空。",
    "Mean rate of a single one; null if unknown.": "单次的平均速率；未知则为空。",
    "Mean time from batch to batch; null for a single batch.": "批与批之间的平均时间；只有一批则为空。",
    "Mean wait of a step.": "每步的平均等待。",
    "Median rate of a single one; null if unknown.": "单次速率的中位数；未知则为空。",
    "Median wait of a step.": "每步等待的中位数。",
    "Memory at the first point.": "第一个点的内存。",
    "Memory at the last point.": "最后一个点的内存。",
    "Memory of the device; null if unknown.": "设备的内存；未知则为空。",
    "Module of the framework, or `process` for samples of the whole process.": (
        "框架的模块；对整个进程的采样为 `process`。"
    ),
    "Most memory reserved by the allocator.": "分配器预留的最多内存。",
    "Name of the tensor, or of the operator that allocated the block.": "张量的名称，或分配该内存块的算子的名称。",
    "Node of the compiled graph; null for memory over time.": "编译图的节点；按时间的内存则为空。",
    "Node that produced the tensor.": "产生该张量的节点。",
    "Number of batches.": "批数。",
    "Number of batches; null if not recorded.": "批数；未记录则为空。",
    "Number of marks without a duration: instants, and starts without an end.": (
        "没有时长的标记数：瞬时标记，以及没有结束的开始。"
    ),
    "Number of ranges.": "区间数。",
    "Number of rows of `host_memory_curve`.": "`host_memory_curve` 的行数。",
    "Number of the compiled graph (model); null if there is none.": "编译图（模型）的编号；没有则为空。",
    "Number of the operator in its pipeline.": "算子在其管道中的编号。",
    "Number of the pipeline, from 0.": "管道编号，从 0 开始。",
    "Number of the tensor in its graph.": "张量在图中的编号。",
    "Observations by MindSpore's own limits, e.g. `workers overloaded`.": (
        "按 MindSpore 自身的上限得出的观察，例如 `workers overloaded`。"
    ),
    "Operator that takes its output; null for the root.": "接收其输出的算子；根则为空。",
    "Operators that provide its input.": "提供其输入的算子。",
    "Peak as the source states it.": "数据源标明的峰值。",
    "Point in time shown; null for a graph.": "所显示的时刻；图则为空。",
    "Process of the host thread that these are about; null if none was recorded.": "所指主机线程的进程；没有记录则为空。",
    "Queue: `get_next` on the device, `device_queue` or `dataset_iterator` on the host.": (
        "队列：设备上的 `get_next`，主机上的 `device_queue` 或 `dataset_iterator`。"
    ),
    "Shape as recorded.": "记录的形状。",
    "Share of batches that found the queue empty.": "遇到队列为空的批的比例。",
    "Share of batches that found the queue full.": "遇到队列已满的批的比例。",
    "Share of samples with an empty queue.": "队列为空的采样比例。",
    "Share of the memory in use there, or of the rows' sum if that is unknown or less.": (
        "占该处已用内存的比例；已用内存未知或更小时，占各行之和的比例。"
    ),
    "Share of the steps' time spent waiting for batches.": "等待数据占各步时间的比例。",
    "Stage of the event, or an operator; null if it has none.": "事件的阶段或算子；没有则为空。",
    "Stage of the input.": "输入的阶段。",
    "Standard deviation of the rate of a single one; null if unknown.": "单次速率的标准差；未知则为空。",
    "Sum over ranges of memory at the end minus at the start; for samples: last minus first.": (
        "各区间结束时与开始时内存之差的总和；采样则为最后减最初。"
    ),
    "Time between allocation and release.": "从分配到释放的时间。",
    "Time between samples.": "采样之间的时间。",
    "Time in which the training loop waited for its batches, all steps.": "训练循环等待数据的时间（所有步）。",
    "Total time of all batches.": "所有批的总时间。",
    "Total time spent passing batches on; null if not recorded.": "传递批的总时间；未记录则为空。",
    "Total time spent waiting for the dataset pipeline; null if not recorded.": "等待数据管道的总时间；未记录则为空。",
    "True if it slows the pipeline down.": "若它拖慢管道则为真。",
    "Type, e.g. `Map`.": "类型，例如 `Map`。",
    "When it was allocated.": "何时分配。",
    "When it was released; null if that is not in the recording.": "何时释放；记录中没有则为空。",
    "Worker processes or threads.": "worker 进程或线程。",
    "`empty` without the first batch, which can never be ready in advance.": "不计首批的 `empty`：首批不可能提前就绪。",
    "`mean_size` over `queue_capacity`; null if there is no queue.": "`mean_size` 与 `queue_capacity` 之比；没有队列则为空。",
    "Share of the waiting for batches that certainly were ready; null if it is unknown which were.": (
        "等待时间中数据确定已就绪的占比；不知道哪些已就绪则为空。"
    ),
    "`no workers`, `handover` (batches were ready), `worker CPU`, `host CPU` or `reading`; null if none is evident.": (
        "`no workers`（没有 worker）、`handover`（数据已就绪，用于接收）、`worker CPU`、`host CPU` 或 `reading`（读取）；"
        "均不明显则为空。"
    ),
    "`pinned` or `pageable` memory of the host; null if not recorded.": (
        "主机内存为锁页（`pinned`）或可分页（`pageable`）；未记录则为空。"
    ),
}
