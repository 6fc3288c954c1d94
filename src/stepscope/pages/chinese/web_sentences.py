"""The Chinese of sentences that only pages and errors say, by their English forms; see `sentences`."""

from __future__ import annotations

_STEP = r"(?:step|iteration|recording)"
_PART = r"\d\S* (?:ns|us|ms|s) [a-z ]+?"

ERRORS: tuple[tuple[str, str], ...] = (
    (
        r"this could not be computed, by a fault of stepscope \((\w+)\)\. Its log has more",
        r"因 stepscope 的错误（\1），无法计算。其日志中有更多信息",
    ),
    (r"no ranks? (\S+) in (.+)\. It has ranks? (.+)", r"\2 中没有 rank \1，只有 rank \3"),
    (r"no steps? (\S+) in (.+)\. It has steps? (.+)", r"\2 中没有第 \1 步，只有第 \3 步"),
    (r"no stages? (\S+) in (.+)\. Its stages are (.+)", r"\2 中没有阶段 \1；其阶段为 \3"),
    (r"(.+?): there is no such (\w+) in (.+)\. There are (.+)", r"\1：\3 中没有这样的{2}；有 \4"),
    (r"(.+?): there is no such (\w+)\. There are (.+)", r"\1：没有这样的{2}；有 \3"),
    (r"(.+): there is no (\w+) (\S+)\. There are (?:\w+ )?(\S+)", r"\1：没有 {2} \3；有 \4"),
    (r"transport", "链路类型"),
    (r"host", "主机"),
    (r"group", "通信组"),
    (r"(.+): no row contains it\. There are (.+) and (\d+) more", r"\1：没有包含它的行。有 \2 以及另外 \3 个"),
    (r"(.+): no row contains it\. There are (.+)", r"\1：没有包含它的行。有 \2"),
    (
        r"(.+): no row contains it\. This table has no texts; choose rows with «--filter»",
        r"\1：没有包含它的行。此表没有文本，请用 «--filter» 选择行",
    ),
    (r"(.+): no row contains it", r"\1：没有包含它的行"),
    (r"(«--filter» .+): no row meets it\. (\S+) is (.+) to (.+)", r"\1：没有满足条件的行。\2 的范围是 \3 至 \4"),
    (r"(«--filter» .+): no row meets it(?:\. (.+))?", r"\1：没有满足条件的行。\2"),
    (r"there is no column (\S+)\. Columns: (.+)", r"没有列 \1。现有的列：\2"),
    (
        r"(?:--)?filter (.+): (unable to parse .+|.+)\. Write a condition in SQL, e\.g\. (.+)",
        r"«--filter» \1：无法理解。请写成 SQL 条件，例如 \3",
    ),
    (r"there is no step (\S+)\. Recorded: steps (\S+)", r"没有第 \1 步；已记录第 \2 步"),
    (r"(.+): (\S+) is not a number\. Write them like 0,3-5 or 7-", r"\1：\2 不是编号。请写成 0,3-5 或 7- 的形式"),
    (r"(.+): write numbers like 0,3-5 or 7-", r"\1：请写成 0,3-5 或 7- 这样的编号"),
    (r"(.+): give a whole number", r"\1：请给出整数"),
    (r"(.+): give a finite number of at least (\S+)", r"\1：请给出不小于 \2 的数"),
    (r"(.+): (\S+) is not a size\. Give sizes such as (\S+) .+", r"\1：\2 不是规模。请给出例如 \3 的规模"),
    (
        r"(.+): give a factor, e\.g\. 2x, or which communication as well: (.+)",
        r"\1：请给出倍数，例如 2x，也可指定通信：\2",
    ),
    (r"(.+): give which work and a factor, e\.g\. (.+)", r"\1：请给出工作和倍数，例如 \2"),
    (
        r"(.+): no kernel, call or operator has this in its name\. There are (.+)",
        r"\1：没有名称包含它的 kernel、调用或算子；有 \2",
    ),
    (
        r"no allocations are known at (.+)\. They are known by time, from (\d+) to (\d+) ns",
        r"\1 处没有已知的分配；已知的是 \2 至 \3 ns 之间的时刻",
    ),
    (r"no run is chosen\. Choose a base and a new run above", "尚未选择运行。请在上方选择基准和新的运行"),
)
"""What was asked for is not there, or not understood."""

REASONS: tuple[tuple[str, str], ...] = (
    (r"nothing differs: all (\w+) take the same time on both sides", r"没有差异：所有{1}在两侧的耗时相同"),
    (r"kernels", "kernel"),
    (r"operators", "算子"),
    (r"modules", "模块"),
    (r"communication", "通信"),
    (r"apis", "运行时调用"),
    (r"there is nothing to draw: (\w+) has no rows", r"没有可绘制的内容：\1 没有任何行"),
    (r"CPU usage was not sampled", "没有采样 CPU 使用率"),
    (r"CPU usage of (.+) was not sampled", r"没有采样 \1 的 CPU 使用率"),
    (r"the operators of a dataset pipeline were not recorded", "没有记录数据管道的算子"),
    (r"nothing went over links like these", "没有数据经过这样的链路"),
    (r"nothing is known of step (\d+)", r"对第 \1 步一无所知"),
    (r"no tensors or blocks are known there", "该处没有已知的张量或内存块"),
    (r"the time of operators was not recorded", "没有记录算子的耗时"),
    (r"no passes of step (\d+) are known", r"第 \1 步没有已知的前向或反向"),
    (r"no communication is known of step (\d+)", r"第 \1 步没有已知的通信"),
    (r"how many operations ranks run is not known", "各 rank 的运算量未知"),
    (r"the parts of a step are not known", "每步的组成部分未知"),
    (r"the steps of operators are unknown", "算子所属的步未知"),
    (r"how long steps took is not known of any rank", "没有任何 rank 的步耗时已知"),
    (r"neither parts nor phases of steps were recorded", "没有记录步的组成部分和阶段"),
    (r"the length of the steps is unknown", "各步的耗时未知"),
    (r"no graph with its parallel strategy was recorded", "没有记录带并行策略的图"),
    (r"no graph of stage (\d+) was recorded", r"没有记录阶段 \1 的图"),
)
"""Why a figure cannot be drawn."""

FORMS: tuple[tuple[str, str], ...] = (
    # pipelines and layouts
    (r"From ranges of forward and backward, with the waiting in them\.", "根据前向与反向的区间，含其中的等待。"),
    (
        r"No graph was recorded, so only the ranks of each stage are known\. MindSpore writes graphs with (`.+`) in (.+) mode\.",
        r"没有记录图，因此只知道各阶段的 rank。MindSpore 在 \2 模式下使用 \1 写出图。",
    ),
    (
        r"No graph was recorded, so only the ranks of each stage are known\. Only MindSpore writes such graphs; "
        r"«`stepscope layout`» and «`stepscope pipeline`» show the rest\.",
        "没有记录图，因此只知道各阶段的 rank。只有 MindSpore 写出此类图；其余见 «`stepscope layout`» 和 "
        "«`stepscope pipeline`»。",
    ),
    (
        r"No graph was recorded, so only the ranks of each stage are known\. .+",
        "没有记录图，因此只知道各阶段的 rank。MindSpore 会写出此类图。",
    ),
    (r"No graph was recorded of stages? (.+)\.", r"阶段 \1 没有记录图。"),
    (
        r"Unknown: (.+)\. Neither names of groups nor recorded sizes show them, .+",
        r"未知：\1。通信组名称和记录的规模都未表明，通信情况也不明确。请用 «--layout» 给出规模，例如 tp=2,pp=4,dp=8。",
    ),
    (
        r"What is known from communication follows from when and how groups of ranks call each other\.",
        "由通信得知的内容，根据各组 rank 何时及如何互相通信推断。",
    ),
    (
        r"Bandwidth between (\d+) ranks is too wide for a screen: choose up to (\d+) with «--ranks», or «--json»\.",
        r"\1 个 rank 之间的带宽表过宽：请用 «--ranks» 选择至多 \2 个。",
    ),
    # ranks and the chain of the job
    (
        r"Slack is by how much a rank could be later with its own work \(communication apart\) without making .+ longer\. .+",
        "余量是该 rank 的自身工作（通信除外）最多可推迟多久而不延长任何一步。余量为 0 us 时，该 rank 的任何延迟都是整个作业的延迟。",
    ),
    (
        rf"The chain of {_STEP} (\d+), the median \((\S+ \S+)\): (.+?)\.( The other \S+ \S+ are shorter pieces in "
        r"between\.)?",
        r"中位步（第 \1 步，\2）的链：{3}。{4}",
    ),
    (
        r"The chain \((\S+ \S+)\): (.+?)\.( The other \S+ \S+ are shorter pieces in between\.)?",
        r"链（\1）：{2}。{3}",
    ),
    (r" The other (\S+ \S+) are shorter pieces in between\.", r"其余 \1 为其间较短的各段。"),
    (r"(rank \d+) for (\S+ \S+) \(([^;]+)\); then (.+)", r"\1 用 \2（{3}）；然后 {4}"),
    (r"(rank \d+) for (\S+ \S+) \(([^;]+)\)", r"\1 用 \2（{3}）"),
    (rf"({_PART}), ({_PART}) and ({_PART})", r"{1}、{2}、{3}"),
    (rf"({_PART}) and ({_PART})", r"{1}、{2}"),
    (r"(\d\S* (?:ns|us|ms|s)) ([a-z ]+)", r"{2} \1"),
    (r"other work", "其他工作"),
    (
        r"· usual, ░ from (\S+), ▒ from (\S+), ▓ from (\S+), █ from (\S+) above what comparable ranks take .+",
        r"· 为通常，░ ▒ ▓ █ 分别表示比同类 rank 的自身工作多 \1、\2、\3、\4 以上。噪声范围内的不计；多余时间为各步平均。",
    ),
    (rf"No (?:compared )?rank is slower than its peers in any {_STEP}\.", "没有 rank 在任何一步比同类更慢。"),
    (
        r"No rank is clearly slower than its peers\. «--ideal» shows what all small differences cost together\.",
        "没有明显慢于同类的 rank。«--ideal» 显示所有微小差异合计的代价。",
    ),
    (rf"(«--without» .+) shows this (?:by {_STEP}|in the recording)\.", r"\1 可逐步显示。"),
    # work of a rank
    (r"Lists: (.+)\. To see only one: (.+)\.", r"列表：\1。只看其中一个：\2。"),
    (r"(\d+) curves, of which the highest is shown: (.+)\.", r"有 \1 条曲线，显示最高的一条：\2。"),
    (
        r"· nothing is copied, █ as fast as the rank ever does, as the mean of a cell\.",
        "· 没有拷贝，█ 为该 rank 的最高速率；取每格的平均。",
    ),
    (
        r"· none waits, █ up to (\d+): launched and not yet started, the most of each cell\.",
        r"· 没有等待，█ 为至多 \1 个已下发而未开始的任务；取每格的最大值。",
    ),
    (
        r"(\d+) of (\d+) pieces of device work \((\S+)\) take less time than their launch\.",
        r"\2 个设备任务中有 \1 个（\3）比其下发用时更短。",
    ),
    (r"The bottleneck is (.+)\.", r"瓶颈是{1}。"),
    (r"data processing", "数据处理"),
    (r"data transmission", "数据传输"),
    (r"data obtaining", "数据获取"),
    (r"Slowest operators of the pipeline: (.+)\.", r"数据管道中最慢的算子：\1。"),
    (r"FLOPs in total are the sum over all recorded calls\.", "总 FLOPs 为所有已记录调用之和。"),
    (
        r"FLOPs in total are those stated in the profile, for one run of the graph\.",
        "总 FLOPs 为 profile 标明的、图运行一次的数值。",
    ),
    (r"no kernel shorter than the limit was recorded", "没有记录短于上限的 kernel"),
    (
        r"no kernels of experts \(grouped matrix products\) and no uneven all-to-all calls were recorded",
        "没有记录专家的 kernel（分组矩阵乘）和不均衡的 all-to-all 调用",
    ),
    (
        r"there is no dump of PyTorch's flight recorder here, or it lists no call; PyTorch writes them where (\S+) is set",
        r"这里没有 PyTorch flight recorder 的转储，或其中没有调用；设置 \1 后 PyTorch 会写出转储",
    ),
    (
        r"no Python functions were recorded: record with `stepscope record --stacks` \(with_stack=True\)",
        "没有记录 Python 函数：请使用 `stepscope record --stacks`（with_stack=True）记录",
    ),
    (r"link (\S+)", r"链路 \1"),
    (
        r"neither hardware counters nor shapes and data types of operators with known operations show how many bytes they "
        r"move",
        "没有硬件计数器，运算量已知的算子也没有形状和数据类型，因此不知道它们搬运多少字节",
    ),
    (r"how much memory ranks use is not known", "不知道各 rank 使用多少内存"),
    (
        r"no pipeline stages are known: neither parallel sizes nor groups of pipeline parallelism were recorded, or there "
        r"is one stage",
        "没有已知的流水线阶段：没有记录并行规模和流水线并行组，或只有一个阶段",
    ),
    (
        r"in which parallel groups ranks are is not known, or there is only one rank",
        "不知道各 rank 属于哪些并行组，或只有一个 rank",
    ),
    (
        r"no graph with its parallel strategy and no parallel sizes were recorded",
        "没有记录带并行策略的图，也没有记录并行规模",
    ),
    (
        r"neither tensors of a graph nor blocks of an allocator were recorded",
        "没有记录图的张量，也没有记录分配器的内存块",
    ),
    (
        r"Ranks? (\S+) (?:is|are) marked but not among the slow ranks of analyze: .+",
        r"rank \1 已标记，但不在慢 rank 之列：只有一步时不能排除偶然，或对作业几乎没有代价。",
    ),
    (r"collective splits", "集合通信的切分"),
    (r"no batches of a data loader were recorded", "没有记录数据加载器的批次"),
)
