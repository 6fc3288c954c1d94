"""Words for why a rank is slow, as recorded: which kernels or host calls, by which factor, at which clock."""

from __future__ import annotations

from stepscope.advice.finding import CPU, CUDA, MINDSPORE, NPU, PYTORCH, ROCM, Platform
from stepscope.advice.messages import Choices, Message, Text, fields_of, framed

GENERAL = (None, None)
ON_CPU = (None, CPU)

_CLOCK = Text(
    "[ Its clock is {level:number .0f} MHz, against {typical_level:number .0f} MHz.]"
    "[ The clock fell in {since:steps}.]",
    "[其频率为 {level:number .0f} MHz，其他 rank 为 {typical_level:number .0f} MHz。][频率在{since:steps}下降。]",
)

_UNSIZED = Text(
    "[{unsized:one  Input shapes were not recorded, so it may also have more work.}]",
    "[{unsized:one 没有记录输入形状，因此也可能是它的工作量更大。}]",
)

_ONLY_HERE = Text(
    "Find what only this rank does (logging, evaluation, another algorithm), and move it out of the step.",
    "找出只有该 rank 才做的事（日志、评估、其他算法），并移出训练步。",
)
_PROCESSORS = Text(
    "Check other processes on its processors, their frequency, the number of threads (OMP_NUM_THREADS) and NUMA "
    "binding.",
    "检查处理器上的其他进程、频率、线程数（OMP_NUM_THREADS）和 NUMA 绑定。",
)

_KERNELS: dict[str, tuple[Text | Choices, Text | Choices]] = {
    "alike": (
        {
            GENERAL: Text(
                " All its kernels take {factor:number .2f}x as long as on other ranks.",
                "它的所有 kernel 耗时均为其他 rank 的 {factor:number .2f} 倍。",
            )
            + _CLOCK
            + _UNSIZED,
            ON_CPU: Text(
                " All its operators take {factor:number .2f}x as long as on other ranks.",
                "它的所有算子耗时均为其他 rank 的 {factor:number .2f} 倍。",
            )
            + _UNSIZED,
        },
        {
            ON_CPU: _PROCESSORS,
            **framed(
                Text(
                    "Check clock, power cap, temperature and other processes of that device",
                    "检查该设备的频率、功耗上限、温度以及其他进程",
                ),
                {
                    GENERAL: Text("; replace it if it stays slow.", "；若仍然慢，则更换该设备。"),
                    (None, CUDA): Text(
                        " (`nvidia-smi -q -d CLOCK,POWER,TEMPERATURE,PERFORMANCE`); replace it if it stays slow.",
                        "（`nvidia-smi -q -d CLOCK,POWER,TEMPERATURE,PERFORMANCE`）；若仍然慢，则更换该设备。",
                    ),
                    (None, ROCM): Text(
                        " (`rocm-smi --showclocks --showpower --showtemp`); replace it if it stays slow.",
                        "（`rocm-smi --showclocks --showpower --showtemp`）；若仍然慢，则更换该设备。",
                    ),
                    (None, NPU): Text(
                        " (`npu-smi info -t common -i ID`); replace it if it stays slow.",
                        "（`npu-smi info -t common -i ID`）；若仍然慢，则更换该设备。",
                    ),
                },
            ),
        },
    ),
    "matrix": (
        {
            GENERAL: Text(
                " Its matrix kernels, mostly {names:list}, take {factor:number .2f}x as long as on other ranks; "
                "the other kernels are as fast.",
                "它的矩阵 kernel（主要是 {names:list}）耗时为其他 rank 的 {factor:number .2f} 倍，其余 kernel 一样快。",
            )
            + _CLOCK
            + _UNSIZED,
            ON_CPU: Text(
                " Its matrix operators, mostly {names:list}, take {factor:number .2f}x as long as on other ranks.",
                "它的矩阵算子（主要是 {names:list}）耗时为其他 rank 的 {factor:number .2f} 倍。",
            )
            + _UNSIZED,
        },
        {
            GENERAL: Text(
                "Check clock, power cap and temperature of that device: they slow down matrix products first.",
                "检查该设备的频率、功耗上限和温度：它们首先拖慢矩阵乘。",
            ),
            ON_CPU: _PROCESSORS,
        },
    ),
    "vector": (
        {
            GENERAL: Text(
                " Its kernels without matrix products, mostly {names:list}, take {factor:number .2f}x as long as on "
                "other ranks; matrix kernels are as fast.",
                "它的非矩阵 kernel（主要是 {names:list}）耗时为其他 rank 的 {factor:number .2f} 倍，"
                "矩阵 kernel 一样快。",
            )
            + _CLOCK
            + _UNSIZED,
            ON_CPU: Text(
                " Its operators without matrix products, mostly {names:list}, take {factor:number .2f}x as long as on "
                "other ranks.",
                "它的非矩阵算子（主要是 {names:list}）耗时为其他 rank 的 {factor:number .2f} 倍。",
            )
            + _UNSIZED,
        },
        {
            GENERAL: Text(
                "Check the memory of that device: memory clock, corrected memory errors (ECC), and other processes.",
                "检查该设备的显存：显存频率、已纠正的内存错误（ECC）以及其他进程。",
            ),
            ON_CPU: Text(
                "Check the NUMA placement of that rank and what else uses the memory of its host.",
                "检查该 rank 的 NUMA 位置，以及主机上还有什么在使用内存。",
            ),
        },
    ),
    "some": (
        Text(
            " Mostly {names:list}: {factor:number .2f}x as long as on other ranks[{equal_shapes:one  for equal shapes}]"
            "[{equal_grids:one  for equal grids}][{equal_tokens:one  for as many tokens}]"
            ", {named_ns:ms} more {per:each}.",
            "主要是 {names:list}：[{equal_shapes:one 形状相同，}][{equal_grids:one 网格相同，}]"
            "[{equal_tokens:one 词元数相同，}]"
            "耗时为其他 rank 的 {factor:number .2f} 倍，{per:each}多 {named_ns:ms}。",
        )
        + _UNSIZED,
        Text(
            "Compare them with another rank: input shapes and values (uneven sequences, masks), the algorithm chosen "
            "(autotuning, versions of libraries), and what runs beside them.",
            "与另一个 rank 对比：输入形状和取值（序列长短不均、掩码）、所选算法（自动调优、库版本）"
            "以及同时运行的作业。",
        ),
    ),
    "calls": (
        Text(
            " It runs {names:list} {calls:number .0f} times {per:each}, against {typical_calls:number .0f} on the "
            "median rank: {named_ns:ms} more.",
            "它{per:each}运行 {names:list} {calls:number .0f} 次，中位 rank 为 {typical_calls:number .0f} 次："
            "多 {named_ns:ms}。",
        ),
        Text(
            "Even out the work of ranks: the number of samples, tokens, experts or micro-batches that each gets. If "
            "that is even, find what only this rank does (logging, evaluation), and move it out of the step.",
            "均衡各 rank 的工作量：各自分到的样本、词元、专家或微批数量。若已均衡，找出只有该 rank 才做的事"
            "（日志、评估），并移出训练步。",
        ),
    ),
    "shapes": (
        Text(
            " {names:list} get other [{equal_shapes:one shapes}][{unsized:one grids or sizes}] than on other "
            "ranks: {named_ns:ms} more {per:each}.",
            "{names:list} 的[{equal_shapes:one 输入形状}][{unsized:one 网格或大小}]与其他 rank 不同："
            "{per:each}多 {named_ns:ms}。",
        ),
        Text(
            "Even out the sizes of batches between ranks: sort samples by length, pack or pad sequences.",
            "均衡各 rank 的批次大小：按长度排序样本、拼接或补齐序列。",
        ),
    ),
    "only": (
        Text(
            " Only this rank runs {names:list}: {named_ns:ms} {per:each}.",
            "只有该 rank 运行 {names:list}：{per:each} {named_ns:ms}。",
        ),
        _ONLY_HERE,
    ),
    "ai_cpu": (
        {
            GENERAL: Text(
                " Only this rank runs {names:list}: {named_ns:ms} {per:each}.",
                "只有该 rank 运行 {names:list}：{per:each} {named_ns:ms}。",
            ),
            (None, NPU): Text(
                " Only this rank runs {names:list}, and on the AI CPU: {named_ns:ms} {per:each}.",
                "只有该 rank 运行 {names:list}，且在 AI CPU 上：{per:each} {named_ns:ms}。",
            ),
        },
        {
            GENERAL: Text(
                "Use a data type or an operator that the cores of the device support (often not 64-bit).",
                "改用设备计算核心支持的数据类型或算子（通常不是 64 位）。",
            ),
            ON_CPU: _ONLY_HERE,
        },
    ),
}


def _mostly(en: str, zh: str) -> Text:
    """The cause that host calls take the time, given what they do."""
    return Text(
        f" Mostly {en}: {{names:list}}, {{named_ns:ms}} {{per:each}}[, called by {{place}}]"
        "[; one call takes {longest_ns:ms} in {longest:steps}].",
        f"主要是{zh}：{{names:list}}，{{per:each}} {{named_ns:ms}}[，调用者 {{place}}]"
        "[；其中一次在{longest:steps}耗时 {longest_ns:ms}]。",
    )


_CALLS: dict[str, tuple[Text | Choices, Text | Choices | None]] = {
    "every_call": (
        Text(
            " Every call of the framework takes {factor:number .1f}x as long as on other ranks: the host is slow.",
            "框架的每次调用耗时均为其他 rank 的 {factor:number .1f} 倍：主机慢。",
        ),
        Text(
            "Check that host: other processes on its CPUs, CPU frequency and power profile, NUMA binding, and limits "
            "of its container.",
            "检查该主机：CPU 上的其他进程、CPU 频率和电源策略、NUMA 绑定以及容器限制。",
        ),
    ),
    "garbage_collection": (
        _mostly("garbage collection", "垃圾回收"),
        Text(
            "Call gc.freeze() after warm-up, or gc.disable() and collect on all ranks in the same step; find what only "
            "that rank keeps.",
            "在预热后调用 gc.freeze()，或 gc.disable() 并让所有 rank 在同一步回收；找出只有该 rank 才保留的内容。",
        ),
    ),
    "compile": (
        _mostly("compiling", "编译"),
        {
            GENERAL: Text(
                "Compile in advance and keep sizes constant: only that rank compiles, so its shapes or its compiler's "
                "cache differ.",
                "提前编译并保持大小不变：只有该 rank 在编译，说明它的形状或编译缓存不同。",
            ),
            (PYTORCH, NPU): Text(
                "Turn off compiling while running: `torch_npu.npu.set_compile_mode(jit_compile=False)`; keep sizes "
                "constant.",
                "关闭运行时编译：`torch_npu.npu.set_compile_mode(jit_compile=False)`；保持大小不变。",
            ),
        },
    ),
    "checkpoint": (_mostly("writing checkpoints", "写检查点"), None),
    "device_memory": (
        {
            GENERAL: _mostly("allocating and freeing device memory", "分配和释放设备内存"),
            ON_CPU: _mostly("allocating and freeing memory", "分配和释放内存"),
        },
        {
            GENERAL: Text(
                "Find what that rank allocates anew in each step: sizes that change, or memory that is nearly full.",
                "找出该 rank 每步重新分配的内容：变化的大小，或接近用尽的内存。",
            ),
            (PYTORCH, CUDA): Text(
                "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, keep sizes constant, leave out "
                "torch.cuda.empty_cache(), and free memory if it is nearly full.",
                "设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True，保持大小不变，去掉 torch.cuda.empty_cache()，"
                "内存接近用尽时减少占用。",
            ),
            (PYTORCH, ROCM): Text(
                "Keep sizes constant, leave out torch.cuda.empty_cache(), and free memory if it is nearly full. From "
                "PyTorch 2.11 with ROCm 7 on, set PYTORCH_HIP_ALLOC_CONF=expandable_segments:True.",
                "保持大小不变，去掉 torch.cuda.empty_cache()，内存接近用尽时减少占用。自 PyTorch 2.11 和 ROCm 7 起，"
                "设置 PYTORCH_HIP_ALLOC_CONF=expandable_segments:True。",
            ),
            (PYTORCH, NPU): Text(
                "Set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, keep sizes constant, leave out "
                "torch.npu.empty_cache(), and free memory if it is nearly full.",
                "设置 PYTORCH_NPU_ALLOC_CONF=expandable_segments:True，保持大小不变，去掉 torch.npu.empty_cache()，"
                "内存接近用尽时减少占用。",
            ),
        },
    ),
    "synchronisation": (
        {
            GENERAL: Text(
                " It waits for its device {calls:number .0f} times {per:each}, against {typical_calls:number .0f} on "
                "the median rank: {names:list}[, called by {place}].",
                "它{per:each}等待设备 {calls:number .0f} 次，中位 rank 为 {typical_calls:number .0f} 次：{names:list}"
                "[，调用者 {place}]。",
            ),
            ON_CPU: Text(
                " It waits {calls:number .0f} times {per:each}, against {typical_calls:number .0f} on the median rank: "
                "{names:list}[, called by {place}].",
                "它{per:each}等待 {calls:number .0f} 次，中位 rank 为 {typical_calls:number .0f} 次：{names:list}"
                "[，调用者 {place}]。",
            ),
        },
        {
            GENERAL: Text(
                "Remove what reads results in the step, or read them some steps later.",
                "去掉在训练步中读取结果的操作，或推迟几步再读取。",
            ),
            (PYTORCH, None): Text(
                "Remove `.item()`, `.cpu()` and prints of tensors that only this rank does, or do them steps later.",
                "去掉只有该 rank 才做的 `.item()`、`.cpu()` 和打印张量，或推迟几步再做。",
            ),
            (MINDSPORE, None): Text(
                "Remove `.asnumpy()` and prints of tensors that only this rank does, or do them some steps later.",
                "去掉只有该 rank 才做的 `.asnumpy()` 和打印张量，或推迟几步再做。",
            ),
        },
    ),
    "logging": (
        _mostly("logging", "日志"),
        Text(
            "Log less often, from a thread of its own, or in the same step on all ranks.",
            "降低日志频率、放到单独的线程，或让所有 rank 在同一步写日志。",
        ),
    ),
    "python": (
        _mostly("Python code", "Python 代码"),
        Text(
            "Move this code out of the step, into a thread or to all ranks alike.",
            "把这段代码移出训练步、放到单独的线程，或让所有 rank 一致执行。",
        ),
    ),
    "outside": (
        _mostly("time in which no call was recorded, within", "没有记录到任何调用的时间，位于"),
        {
            GENERAL: Text(
                "Record Python functions on that rank to see what it does: `stepscope record --stacks`.",
                "在该 rank 上记录 Python 函数以查明它在做什么：`stepscope record --stacks`。",
            ),
            (MINDSPORE, None): Text(
                "Look at that rank with py-spy to see what it does.", "用 py-spy 查看该 rank 在做什么。"
            ),
        },
    ),
    "call": (_mostly("these calls", "以下调用"), None),
}

_LOADING = _mostly("in the loader", "加载器中的"), None

_OF_MEMORY = ("some", "calls", "shapes")

_HOST_STOPS = ("garbage_collection", "compile", "checkpoint")

OF_KIND: dict[str, dict[str, tuple[Text | Choices, Text | Choices | None]]] = {
    "computing": {**_KERNELS},
    "memory": {reason: (_KERNELS[reason][0], None) for reason in _OF_MEMORY},
    "dispatch": {**_CALLS},
    **{kind: {kind: (_CALLS[kind][0], _CALLS[kind][1])} for kind in _HOST_STOPS},
    "data_loading": {"data_loading": _LOADING},
}
"""By kind of work and reason: the cause, and the action if it differs from that of the kind."""

INSTEAD = {
    "memory": {"alike": "some", "matrix": "some", "vector": "some", "only": "calls", "ai_cpu": "calls"},
    "dispatch": {"data_loading": "call"},
}
"""Reasons without words of their own at a kind of work, and those whose words fit."""


def with_reasons(messages: dict[str, Message]) -> dict[str, Message]:
    """The messages of kinds of work, and for each recorded reason one more: `computing/alike`."""
    found = dict(messages)
    for kind, reasons in OF_KIND.items():
        base = messages[kind]
        for reason, (cause, action) in reasons.items():
            found[f"{kind}/{reason}"] = Message(
                summary=base.summary,
                short=base.short,
                cause=_joined(base.cause, cause),
                action=_joined(base.action, Text("", "")) if action is None else action,
                basis=base.basis,
            )
    return found


def _joined(first: Text | Choices, second: Text | Choices) -> Choices:
    """Two texts one after the other, each as it is on a platform."""
    texts: list[Choices] = [{GENERAL: text} if isinstance(text, Text) else text for text in (first, second)]
    places = dict.fromkeys(place for text in texts for place in text)
    return {place: Platform(*place).pick(texts[0]) + Platform(*place).pick(texts[1]) for place in places}


def parameters_of(message: Message) -> set[str]:
    """The names of all parameters in a message's texts."""
    found: set[str] = set()
    for text in vars(message).values():
        for one in [] if text is None else [text] if isinstance(text, Text) else text.values():
            found.update(field.name for template in (one.en, one.zh) for field in fields_of(template))
    return found - {"per"}
