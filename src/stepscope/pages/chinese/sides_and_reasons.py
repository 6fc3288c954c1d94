"""The Chinese of comparisons of operators, calls and memory, and of the evidence behind slow ranks and waits."""

from __future__ import annotations

MEANINGS: dict[str, str] = {
    # comparisons
    "The operators around it, outermost first, and itself; or its name.": "它外层的各算子（由外到内）及其自身；或其名称。",
    "Whether the outermost operator belongs to a backward pass.": "最外层算子是否属于反向。",
    "What is compared: time of the kernels that it launched, or its own host time, if kernels are unknown on a side or "
    "idle time of the device differs more than computing.": (
        "比较的内容：它下发的 kernel 的时间；若一侧不知道 kernel，或设备空闲时间的差异大于计算，则为其主机自身时间。"
    ),
    "What most of its time is: `work`; `wait` for the device, as in `aten::item` or `cudaStreamSynchronize`; or "
    "`communication`. What a rank waits less is no gain of it if another one waits for it instead.": (
        "其大部分时间是什么：工作（`work`）、等待设备（`wait`，如 `aten::item`、`cudaStreamSynchronize`），或通信"
        "（`communication`）。若另一个 rank 转而等待它，则它少等待的时间不是收益。"
    ),
    "How it was found on both sides: by its whole `path`, or by the `inner` part of it where one side has other "
    "operators around it; null if it is on one side only.": (
        "如何在两侧找到它：按整个路径（`path`），或在一侧另有外层算子时按内层部分（`inner`）；只在一侧则为空。"
    ),
    "Its path on the new side, if that is another one.": "新的一侧的路径（若不同）。",
    "Part of the base's time in which calls wait for the device.": "基准侧的时间中调用等待设备的部分。",
    "How it was found on both sides: by its `path`; by the `inner` part of it, as it is wrapped or numbered otherwise on "
    "one side; with `several` of its class, as one side has more of them; null if it is on one side only.": (
        "如何在两侧找到它：按路径（`path`）；在一侧被包装或编号不同时按内层部分（`inner`）；一侧有更多同类模块时与同类一起"
        "（`several`）；只在一侧则为空。"
    ),
    "How probable so large a difference of the steps' figures is without any; null if not tested.": (
        "若并无差异，各步数值出现如此大差异的概率；未检验则为空。"
    ),
    "Whether the difference is more than noise: of peaks, by the peaks of the steps; `untested` if these are not known "
    "or do not differ as the peaks of the whole recordings do.": (
        "差异是否超出噪声：峰值按各步的峰值检验；若未知，或与整段记录的峰值差异方向不同，则为 `untested`。"
    ),
    "Own time of the base: its step less exposed communication.": "基准侧自身的时间：步时间减去未掩盖的通信。",
    "`new_own_ns` less `base_own_ns`.": "`new_own_ns` 减去 `base_own_ns`。",
    "What differs.": "不同之处。",
    "On the base; null if not recorded.": "基准侧；未记录则为空。",
    "On the new side; null if not recorded.": "新的一侧；未记录则为空。",
    "What it may change.": "它可能影响什么。",
    "Own host time of the base in a step.": "基准侧每步的主机自身时间。",
    "Own host time of the new side.": "新的一侧的主机自身时间。",
    "Name of the operator or call.": "算子或调用的名称。",
    "`framework` for operators; else the layer of the runtime as recorded, e.g. `AscendCL`, or null.": (
        "算子为 `framework`（框架）；否则为记录的运行时层，例如 `AscendCL`，或为空。"
    ),
    "Of the base's time, outside of other calls within.": "基准侧的时间中不含内层调用的部分。",
    "Operation of the calls, e.g. `all_reduce`.": "通信操作，例如 `all_reduce`。",
    "Name of their group; null if the sides do not name groups alike.": "通信组名称；两侧命名不同则为空。",
    "Payload of one call, of different ones about alike their mean; null if not recorded.": (
        "一次调用的数据量；大小相近的取平均；未记录则为空。"
    ),
    "Part of `base_ns`; null if unknown.": "`base_ns` 的一部分；未知则为空。",
    "Part of `new_ns`; null if unknown.": "`new_ns` 的一部分；未知则为空。",
    "Payload over transmission; null if unknown.": "数据量除以传输时间；未知则为空。",
    "List that it belongs to, e.g. `AI_CORE`, `HOST_CPU`.": "所属列表，例如 `AI_CORE`、`HOST_CPU`。",
    "Operator type.": "算子类型。",
    "Mean time of a call on the base; null if the base has none.": "基准侧一次调用的平均时间；基准侧没有则为空。",
    "`new_call_ns` over `base_call_ns`.": "`new_call_ns` 与 `base_call_ns` 之比。",
    "Time of all calls of the base, mean of its ranks.": "基准侧所有调用的时间（各 rank 平均）。",
    "Calls of the base, mean of its ranks.": "基准侧的调用次数（各 rank 平均）。",
    "Not tested over steps.": "未按步检验。",
    "Module, with the modules around it; a `*` stands for all numbers of a class.": (
        "模块及其外层模块；`*` 代表一类的所有编号。"
    ),
    "Of the base's time, outside of modules within.": "基准侧的时间中不含内层模块的部分。",
    "What is compared.": "比较的内容。",
    "Allocator, or the operator that allocates; null for the framework's own allocator.": (
        "分配器，或分配内存的算子；框架自身的分配器为空。"
    ),
    "On the base: of peaks, in the whole recording, the rank that needs most; else mean of its steps and ranks.": (
        "基准侧：峰值取整段记录中需要最多的 rank；其余为各步、各 rank 平均。"
    ),
    "On the new side.": "新的一侧。",
    "`new_bytes` less `base_bytes`.": "`new_bytes` 减去 `base_bytes`。",
    "`new_bytes` over `base_bytes`; null if the base has none.": "`new_bytes` 与 `base_bytes` 之比；基准侧没有则为空。",
    # garbage collection
    "Number of calls, without those inside another one.": "调用次数，不含嵌套在其他调用中的。",
    "Their time on the host.": "它们在主机上的时间。",
    "Idle time of the device (of the framework, on a CPU) during them; null if unknown.": (
        "期间设备（CPU 作业为框架）的空闲时间；未知则为空。"
    ),
    "The longest of them.": "其中最长的一次。",
    "When that one began.": "该次的开始时刻。",
    "User's function that made it, with file and line; null if not recorded.": (
        "触发它的用户函数，含文件和行号；未记录则为空。"
    ),
    # evidence behind slow ranks
    "What its extra host time consists of.": "其多余的主机时间由什么构成。",
    "What the named calls are for, or those of which the factor is; null if there are none.": (
        "所列调用（或倍数所指的调用）的用途；没有则为空。"
    ),
    "The calls that explain most of it, largest first.": "最能解释它的调用，从大到小。",
    "Python function that made the first of them; null if not recorded.": "发出其中第一个的 Python 函数；未记录则为空。",
    "How many times as long as on the peers every call takes; null for other patterns.": (
        "每次调用耗时为同类 rank 的多少倍；其他情形为空。"
    ),
    "Calls of the named ones in a step.": "所列调用每步的次数。",
    "Time of the named calls in a step beyond the median peer's.": "所列调用每步比同类中位 rank 多用的时间。",
    "Time of all longer calls in a step beyond the median peer's.": "所有变长的调用每步比同类中位 rank 多用的时间。",
    "The longest of the named calls; null if there are none.": "所列调用中最长的一次；没有则为空。",
    "Step of the longest; null if there are none.": "最长的一次所在的步；没有则为空。",
    "Kind of work.": "任务种类。",
    "What its slow kernels have in common.": "其变慢的 kernel 的共同点。",
    "How many times as long as on the peers the kernels take that the pattern is about; null if it is not about equal "
    "calls.": "所指 kernel 的耗时为同类 rank 的多少倍；若与相同调用无关则为空。",
    "The classes that explain most of the excess, largest first; none if all do.": (
        "最能解释多余时间的类别，从大到小；若全部都是则不列。"
    ),
    "Cores of these classes, if recorded.": "这些类别使用的核（如有记录）。",
    "Excess of these classes, or of all, in a step.": "这些类别（或全部）每步多用的时间。",
    "Time of all kernels in a step beyond the median peer's.": "所有 kernel 每步比同类中位 rank 多用的时间。",
    "Time of all kernels in a step.": "所有 kernel 每步的时间。",
    "Operator type of the kernels, else their name; on a CPU, of operators.": (
        "kernel 的算子类型，没有则为名称；CPU 作业为算子。"
    ),
    "What mostly decides how fast they are.": "主要决定其速度的单元。",
    "Number of other ranks that run this class.": "执行此类的其他 rank 数。",
    "Calls in a step.": "每步的调用次数。",
    "Calls in a step on the median peer.": "同类中位 rank 每步的调用次数。",
    "Time in a step.": "每步的时间。",
    "Time in a step on the median peer.": "同类中位 rank 每步的时间。",
    "Mean time of a call; null without calls.": "一次调用的平均时间；没有调用则为空。",
    "Mean time of a call on the median peer; null without peers.": "同类中位 rank 一次调用的平均时间；没有则为空。",
    "How many times as long as on the peers calls of equal shapes take; null if there are few.": (
        "形状相同的调用耗时为同类 rank 的多少倍；太少则为空。"
    ),
    "Time in a step beyond the median peer's: the sum of the next three.": (
        "每步比同类中位 rank 多用的时间：后三项之和。"
    ),
    "Part of it because calls of equal shapes take longer.": "其中因形状相同的调用变慢的部分。",
    "Part of it because there are more calls.": "其中因调用更多的部分。",
    "Part of it because calls have other shapes or sizes.": "其中因调用的形状或大小不同的部分。",
    "Number of different shapes on this rank; null if not recorded.": "该 rank 上不同形状的数量；未记录则为空。",
    "What tells the size of all its calls; null if nothing does.": "依据什么得知所有调用的大小；没有依据则为空。",
    "What the calls are for.": "调用的用途。",
    "Name of the call, without numbers of steps and addresses.": "调用的名称，不含步编号和地址。",
    "Number of other ranks that make this call.": "有此调用的其他 rank 数。",
    "Time in a step, outside of the calls inside.": "每步的时间，不含内层调用。",
    "Mean time of a call.": "一次调用的平均时间。",
    "Time in a step beyond the median peer's.": "每步比同类中位 rank 多用的时间。",
    "The longest call.": "最长的一次调用。",
    "Step of the longest call.": "最长的一次调用所在的步。",
    "Python function that made the longest call, with file and line; null if not recorded.": (
        "发出最长一次调用的 Python 函数，含文件和行号；未记录则为空。"
    ),
    "Number of recorded steps of the rank.": "该 rank 记录的步数。",
    # waits after launches
    "Pieces of device work whose launch was recorded.": "记录了下发的设备任务数。",
    "Waits of the host for its device after a launch, before the next one.": "主机在一次下发之后、下一次之前等待设备的次数。",
    "`followed` over `launches`.": "`followed` 与 `launches` 之比。",
    "Launched kernels that are long enough to see whether their launch waits.": "足够长、可判断其下发是否等待的 kernel 数。",
    "Of these, those whose launch returned only after the kernel had ended.": "其中下发调用直到 kernel 结束才返回的个数。",
    "Time of these waits, and of launches that wait.": "这些等待以及会等待的下发所用的时间。",
    "Idle time of the device, launched too late or around waits; null if unknown.": (
        "设备因下发过晚或因等待而空闲的时间；未知则为空。"
    ),
    "Call that waits most often; null if launches wait themselves.": "最常等待的调用；若下发本身等待则为空。",
    "When the longest of these waits began; null if there are none.": "其中最长的等待的开始时刻；没有则为空。",
    "How long it took.": "其耗时。",
    "User's function around it, with file and line; null if not recorded.": (
        "其外层的用户函数，含文件和行号；未记录则为空。"
    ),
    # functions
    "Name of the function.": "函数名称。",
    "File that defines it; null for a built-in function.": "定义它的文件；内置函数为空。",
    "Its first line; null for a built-in function.": "其首行；内置函数为空。",
    "For a built-in function, its caller with file and line; else null.": "内置函数为其调用者，含文件和行号；否则为空。",
    "Idle time while it was the innermost function.": "它为最内层函数时的空闲时间。",
}
"""What columns mean."""
