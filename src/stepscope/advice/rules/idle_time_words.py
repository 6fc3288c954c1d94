"""The words of `idle-time`, by the cause of idle time."""

from __future__ import annotations

from stepscope.advice.finding import CUDA, MINDSPORE, NPU, PYTORCH
from stepscope.advice.messages import Choices, Message, Text, framed
from stepscope.advice.rules.data_loader import ACTIONS
from stepscope.analysis.input.loader import HANDOVER

_WHO = Text(
    "{job_ranks:one This rank|Each of the two ranks|The median rank} ",
    "{job_ranks:one 该 rank |两个 rank 都|中位 rank }",
)
_HOW_MUCH = Text(
    ": {job_ranks:one |at least |}[{idle_ns:ms} of {step_ns:whole}][{lost_ns:ms} of {recorded_ns:ms}] ({ratio:percent})"
    "[, most of it {mostly:when}][, {when:when}][, not counting {left_out:windows} at start and end].",
    "：[{step_ns:whole} 中{job_ranks:one |至少|}有 {idle_ns:ms}]"
    "[{recorded_ns:ms} 中{job_ranks:one |至少|}有 {lost_ns:ms}]（{ratio:percent}）"
    "[，大部分{mostly:when}出现][，{when:when}出现][，不计首尾的 {left_out:windows}]。",
)
_RUNS = Text(
    "[ It runs {functions:functions}.][ It runs {functions_each:functions}, {per:each}.]",
    "[其间运行的是 {functions:functions}。][其间运行的是 {functions_each:functions}（{per:each}）。]",
)
_GAP = Text(
    "[ Its greatest gap takes {gap_ns:ms} {per:each}, before `{gap_next}`.][ In that gap, the host is in "
    "`{gap_during}`.]",
    "[最大的空隙{per:each} {gap_ns:ms}，在 `{gap_next}` 之前。][在该空隙中，主机在执行 `{gap_during}`。]",
)
_BASIS = Text(
    "between what an ordinary (median) {per:noun} loses and what the average one does, and at least 5% either way",
    "下限为普通（中位）{per:noun}的损失，上限为平均每{per:noun}的损失，且至少 ±5%",
)
_BASIS_OF_LATE = _BASIS + Text(
    "[; down by {recording_ns:ms} of recording]", "[；下限再减去记录所用的 {recording_ns:ms}]"
)


def _message(verb: Text, cause: Text, action: Text | Choices, basis: Text = _BASIS) -> Message:
    return Message(_WHO + verb + _HOW_MUCH, cause + _RUNS + _GAP, action, basis=basis)


_NOTHING_RAN = Text(
    "No operator, data loader, checkpoint or garbage collection ran; most likely the training thread runs Python code "
    "or waits (logging, evaluation, locks, sleep).",
    "其间没有算子、数据加载、检查点或垃圾回收在运行；训练线程很可能在运行 Python 代码或在等待"
    "（日志、评估、锁、休眠）。",
)
_OTHER = Text("does nothing that was recorded", "没有任何被记录的活动")

_LATE = Text("is idle because the host launches work too late", "因主机下发过晚而空闲")
_SLOWER = Text(
    "The host needs longer to launch the next kernel than the device needs to run the last one."
    "[ {short_ratio:percent} of its kernels take less time than their launch.]"
    "[ Recording itself takes about {recording_ns:ms} of it.]",
    "主机下发下一个核函数所需的时间，比设备执行上一个核函数还长。"
    "[{short_ratio:percent} 的核函数的执行时间短于其下发时间。][其中约有 {recording_ns:ms} 用于记录本身。]",
)
_FEWER = Text("Launch less and larger work: bigger batches, ", "减少下发次数、增大每次的工作量：更大的批次、")
_OUT = Text("; move Python work and logging out of the step.", "；把 Python 代码和日志移出训练步。")

_NOT_READY = Text(
    "The training loop waits in its data loader while there is nothing to compute.",
    "训练循环在数据加载器中等待，此时没有可计算的内容。",
)
_TAKEN_OVER = Text(
    "The training loop takes its next batch over from a worker, which had it ready, while there is nothing to compute.",
    "训练循环从工作进程接收已就绪的下一批数据，此时没有可计算的内容。",
)

MESSAGES = {
    **{
        f"data_loading/{limited_by}": _message(
            Text("waits for input data", "在等待输入数据"),
            _TAKEN_OVER if limited_by == HANDOVER else _NOT_READY,
            action,
        )
        for limited_by, action in ACTIONS.items()
    },
    "dispatch": _message(
        _LATE,
        _SLOWER,
        framed(
            _FEWER,
            {
                (PYTORCH, CUDA): Text(
                    "fused or compiled operators (torch.compile, CUDA graphs), fused optimizers",
                    "融合或编译的算子（torch.compile、CUDA graph）、融合优化器",
                ),
                (PYTORCH, None): Text(
                    "fused or compiled operators (torch.compile), fused optimizers",
                    "融合或编译的算子（torch.compile）、融合优化器",
                ),
                (MINDSPORE, None): Text(
                    "a compiled graph in place of single operators (mindspore.jit), several steps sunk at once "
                    "(sink_size)",
                    "用编译的图代替单个算子（mindspore.jit）、一次下沉多步（sink_size）",
                ),
                (None, None): Text("fused or compiled operators", "融合或编译的算子"),
            },
            _OUT,
        ),
        _BASIS_OF_LATE,
    ),
    "dispatch/compiled": _message(
        _LATE,
        _SLOWER + Text(" Compiled code runs in it already.", "其中已在运行编译后的代码。"),
        framed(
            _FEWER,
            {
                (PYTORCH, CUDA): Text(
                    "mode='reduce-overhead' of torch.compile, which replays CUDA graphs in place of single launches, "
                    "and optimizers that are compiled as well or fused",
                    "torch.compile 的 mode='reduce-overhead'（用 CUDA graph 重放代替逐个下发），"
                    "以及同样编译或融合的优化器",
                ),
                (PYTORCH, None): Text(
                    "larger parts compiled as one, without graph breaks, and optimizers that are compiled as well or "
                    "fused",
                    "没有断点、整体编译的更大部分，以及同样编译或融合的优化器",
                ),
                (None, None): Text("larger parts compiled as one", "整体编译的更大部分"),
            },
            _OUT,
        ),
        _BASIS_OF_LATE,
    ),
    "dependency": Message(
        Text(
            "The device is idle for {idle_ns:ms} of {step_ns:whole} ({ratio:percent})[ on {ranks:ranks}] although its "
            "next work was launched in time[, mostly between `{gap_before}` and `{gap_next}`].",
            "[{ranks:ranks} 上]设备在{step_ns:whole}中空闲 {idle_ns:ms}（{ratio:percent}），尽管后续任务已及时下发"
            "[，主要在 `{gap_before}` 与 `{gap_next}` 之间]。",
        ),
        Text(
            "It waits for something other than the host: work on another stream or device, an event, or another rank."
            "[ The longest recurring gap takes {gap_ns:ms} {per:each}][; the work after it was launched {ahead_ns:ms} "
            "before it began][. Its stream waits meanwhile: `{waits_for}`].",
            "它等待的不是主机：而是其他流或设备上的任务、事件或其他 rank。[反复出现的最长空隙{per:each} {gap_ns:ms}]"
            "[；其后的任务在开始前 {ahead_ns:ms} 就已下发][。其间它的流在等待：`{waits_for}`]。",
        ),
        framed(
            Text(
                "Find what that work waits for: streams that wait for each other, events, copies between devices, "
                "collectives of another group",
                "找出该任务在等待什么：相互等待的流、事件、设备之间的拷贝、其他通信组的集合通信",
            ),
            {
                (PYTORCH, CUDA): Text(
                    ". Record waits of streams to see it "
                    "(torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True)).",
                    "。记录流的等待即可看到（torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True)）。",
                ),
                (None, None): Text(" («`stepscope gaps`»).", "（«`stepscope gaps`»）。"),
            },
        ),
        basis=Text("what ends these gaps is not known, so it may be nothing", "这些空隙因何结束未知，可能无节省"),
    ),
    "synchronisation": _message(
        Text("is idle around synchronising calls", "在同步调用前后空闲"),
        Text(
            "The host waits for the device (values read back, copies to the host, explicit synchronisation) and only "
            "then launches further work.",
            "主机先等待设备（读回数值、拷贝到主机、显式同步），之后才下发后续任务。",
        ),
        framed(
            Text(
                "Remove synchronising calls from the step, or do them every N steps",
                "去掉训练步中的同步调用，或每隔若干步才做一次",
            ),
            {
                (PYTORCH, None): Text(
                    " (`.item()`, prints of tensors); use non-blocking copies.",
                    "（`.item()`、打印张量）；使用非阻塞拷贝。",
                ),
                (MINDSPORE, None): Text(" (`.asnumpy()`, prints of tensors).", "（`.asnumpy()`、打印张量）。"),
                (None, None): Text(".", "。"),
            },
        ),
    ),
    "python": _message(
        Text("runs Python code outside any operator", "在算子之外运行 Python 代码"),
        Text(
            "Between the framework's operators the training thread runs plain Python.",
            "在框架算子之间，训练线程运行普通的 Python 代码。",
        ),
        Text(
            "Profile the script's own code in the step («`stepscope functions`»); move work out of the loop or into "
            "the loader's workers.",
            "分析训练步中脚本自身的代码（«`stepscope functions`»）；把工作移出循环，或移到数据加载的工作进程中。",
        ),
    ),
    "other": _message(
        _OTHER,
        _NOTHING_RAN,
        {
            (MINDSPORE, NPU): Text(
                "Record Python functions to see which one it is: `stepscope record --stacks` (with_stack=True of "
                "MindSpore's profiler, if this version has it), then «`stepscope functions`»; or run a sampling "
                "profiler such as py-spy on the job.",
                "记录 Python 函数以查看是哪一个：`stepscope record --stacks`（MindSpore 分析器的 with_stack=True，"
                "若该版本支持），然后运行 «`stepscope functions`»；或对训练进程运行 py-spy 之类的采样分析器。",
            ),
            (MINDSPORE, None): Text(
                "Run a sampling profiler such as py-spy on the job to see which Python function it is: MindSpore "
                "records none here.",
                "对训练进程运行 py-spy 之类的采样分析器，查看是哪个 Python 函数：MindSpore 在此不记录它们。",
            ),
            (None, None): Text(
                "Record Python functions to see which one it is: `stepscope record --stacks` (with_stack=True of the "
                "framework's profiler), then «`stepscope functions`».",
                "记录 Python 函数以查看是哪一个：`stepscope record --stacks`（框架分析器的 with_stack=True），"
                "然后运行 «`stepscope functions`»。",
            ),
        },
    ),
    "other/no function": _message(
        _OTHER,
        _NOTHING_RAN,
        Text(
            "No Python function ran either: check what stops the process itself (swapping, other processes on its "
            "processors, a suspended container), and work on threads that were not recorded.",
            "其间也没有 Python 函数在运行：检查是什么让进程本身停顿（换页、处理器上的其他进程、被挂起的容器），"
            "以及未被记录的线程上的工作。",
        ),
    ),
    "not_recorded": _message(
        Text("is idle for a cause that was not recorded", "空闲，原因未被记录"),
        Text(
            "Only the device was recorded: neither what its host ran nor when it launched work is known.",
            "只记录了设备：主机运行了什么、何时下发任务都未知。",
        ),
        framed(
            Text(
                "Record the host as well, for a few steps: `stepscope record`, or ",
                "对若干步同时记录主机：`stepscope record`，或",
            ),
            {
                (MINDSPORE, None): Text(
                    "MindSpore's profiler with profile_framework='all' or, in versions that have it, "
                    "ProfilerActivity.CPU together with the device's activity.",
                    " MindSpore 分析器的 profile_framework='all'，或（若该版本支持）同时启用 ProfilerActivity.CPU "
                    "与设备活动。",
                ),
                (None, None): Text(
                    "the framework's profiler with ProfilerActivity.CPU together with the device's activity.",
                    "在框架分析器中同时启用 ProfilerActivity.CPU 与设备活动。",
                ),
            },
        ),
    ),
}
"""Messages by cause (of `idle`); if the action depends on another fact, this follows a slash."""
