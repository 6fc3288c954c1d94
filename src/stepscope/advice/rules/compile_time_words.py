"""Words of the rule about compile time."""

from __future__ import annotations

from stepscope.advice.finding import MINDSPORE, NPU, PYTORCH
from stepscope.advice.messages import Choices, Message, Text, framed
from stepscope.advice.stopping import BASIS

ANYTHING: Choices = {
    (PYTORCH, None): Text(
        "Find what changed with TORCH_LOGS=recompiles. If sizes vary, use torch.compile(dynamic=True) or "
        "torch._dynamo.mark_dynamic, or pad batches to a few sizes and set drop_last=True in the loader; keep "
        "Python numbers and flags that change out of the compiled function.",
        "用 TORCH_LOGS=recompiles 查看变化的原因。若大小变化，使用 torch.compile(dynamic=True) 或 "
        "torch._dynamo.mark_dynamic，或把批次补齐到少数几种大小并在加载器中设置 drop_last=True；"
        "不要让会变化的 Python 数值和标志进入被编译的函数。",
    ),
    (MINDSPORE, None): Text(
        "If sizes vary, declare them as dynamic (Cell.set_inputs with None in the shape), or pad batches to a "
        "few sizes and leave out the last, smaller one (batch(drop_remainder=True)); pass numbers that change "
        "as Tensor; create compiled cells and functions once, before the loop.",
        "若大小变化，把它们声明为动态（Cell.set_inputs，形状中用 None），或把批次补齐到少数几种大小并去掉"
        "最后较小的一批（batch(drop_remainder=True)）；会变化的数值以 Tensor 传入；"
        "被编译的 Cell 和函数在循环之前只创建一次。",
    ),
    (None, None): Text(
        "If sizes vary, declare them as dynamic, or pad batches to a few sizes and leave out the last, smaller "
        "batch; keep Python numbers and flags that change out of the compiled function.",
        "若大小变化，把它们声明为动态，或把批次补齐到少数几种大小并去掉最后较小的一批；"
        "不要让会变化的 Python 数值和标志进入被编译的函数。",
    ),
}
"""What to do if it is unknown what varies."""

SIZES: Choices = {
    (PYTORCH, None): Text(
        "Use torch.compile(dynamic=True), or leave `dynamic=False` out and mark the sizes that vary with "
        "torch._dynamo.mark_dynamic; or pad batches to a few sizes and set drop_last=True in the loader. "
        "TORCH_LOGS=recompiles names each size that did not fit.",
        "使用 torch.compile(dynamic=True)，或去掉 `dynamic=False` 并用 torch._dynamo.mark_dynamic 标记会变化的大小；"
        "或把批次补齐到少数几种大小，并在加载器中设置 drop_last=True。TORCH_LOGS=recompiles 会列出每个不匹配的大小。",
    ),
    (None, None): Text(
        "Declare these sizes as dynamic, or pad batches to a few sizes.",
        "把这些大小声明为动态，或把批次补齐到少数几种大小。",
    ),
}
"""What to do if sizes of tensors vary."""

TYPES: Choices = {
    (PYTORCH, None): Text(
        "Give the compiled function inputs of one data type: convert them before the call, and call it under the same "
        "torch.autocast each time.",
        "让被编译函数的输入保持同一数据类型：在调用前转换，并且每次都在相同的 torch.autocast 下调用。",
    ),
    (None, None): Text(
        "Give the compiled function inputs of one data type: convert them before the call.",
        "让被编译函数的输入保持同一数据类型：在调用前转换。",
    ),
}

VALUES: Choices = {
    (PYTORCH, None): Text(
        "TORCH_LOGS=recompiles names what did not fit. Pass Python numbers that change as tensors, keep flags and "
        "counters that change out of the compiled function, and call it in one mode (training, gradients on) in "
        "the loop.",
        "TORCH_LOGS=recompiles 会列出不匹配之处。把会变化的 Python 数值以张量传入，不要让会变化的标志和计数器进入"
        "被编译的函数，并在循环中以同一模式（训练、开启梯度）调用它。",
    ),
    (None, None): Text(
        "Pass numbers that change as tensors, and keep flags and counters that change out of the compiled function.",
        "把会变化的数值以张量传入，不要让会变化的标志和计数器进入被编译的函数。",
    ),
}

_AGAIN = Text(
    "{ranks:Ranks} {ranks:one compiles|compile} again in {step_count:windows} after the first[ on rank "
    "{worst_rank}]: {compile_ns:duration} in total, {ratio:percent} of the recorded time.",
    "{ranks:ranks} 在首次之后又有 {step_count:windows}重新编译[（rank {worst_rank}）]："
    "共 {compile_ns:duration}，占记录时间的 {ratio:percent}。",
)
_MADE_ANEW = Text(
    "The compiled code did not fit what came later in {steps:steps}, so it was made anew {times:count time|times}",
    "已编译的代码不适用于后来的{steps:steps}，因此重新编译了 {times} 次",
)
_USUALLY = Text(". Sizes of batches that vary are the usual reason.", "。通常是因为批次大小变化。")
_SIZES_VARY = Text(
    ": sizes of its inputs vary, e.g. from {before} to {after}.", "：输入的大小有变化，例如从 {before} 变为 {after}。"
)
_TYPES_VARY = Text(
    ": data types of its inputs vary, e.g. from {before} to {after}.",
    "：输入的数据类型有变化，例如从 {before} 变为 {after}。",
)
_VALUES_VARY = Text(
    ". Sizes and types of its tensors are the same, so something else changed: a Python number, a flag, or the mode "
    "in which it is called.",
    "。其张量的大小和类型不变，因此是别的变化：Python 数值、标志，或调用时的模式。",
)

_ENDED = Text(
    "from nothing, as the compiler has given up by the last step and costs no more after it",
    "下限为零：到最后一步编译器已放弃，此后不再有开销",
)

MESSAGES = {
    "once": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one spends|spend} {compile_ns:duration} compiling[ in {steps:steps}][ and outside of "
            "{outside:nouns}][ on rank {worst_rank}] ({ratio:percent} of the recorded time), once.",
            "{ranks:ranks} 编译耗时 {compile_ns:duration}[（{steps:steps}）][{outside:one ，以及训练步之外|}]"
            "[（rank {worst_rank}）]，占记录时间的 {ratio:percent}，只发生一次。",
        ),
        cause=Text(
            "A compiled function is traced and compiled when it first runs; training waits meanwhile.",
            "被编译的函数在首次运行时跟踪并编译，其间训练等待。",
        ),
        action=framed(
            Text(
                "Nothing needs to change if the job runs long enough: this time is paid at each start. To pay less, "
                "keep the compiler's cache between starts",
                "如果训练时间足够长，无需改动：这段时间每次启动只付出一次。想减少它，可在多次启动之间保留编译缓存",
            ),
            {
                (PYTORCH, None): Text(
                    " (TORCHINDUCTOR_CACHE_DIR on a disk that stays), compile one repeated block instead of the whole "
                    "model, and avoid mode='max-autotune'.",
                    "（把 TORCHINDUCTOR_CACHE_DIR 指到持久磁盘），只编译重复的模块而不是整个模型，"
                    "并避免 mode='max-autotune'。",
                ),
                (MINDSPORE, None): Text(
                    " (MS_COMPILER_CACHE_ENABLE=1, and MS_COMPILER_CACHE_PATH on a disk that stays).",
                    "（MS_COMPILER_CACHE_ENABLE=1，并把 MS_COMPILER_CACHE_PATH 指到持久磁盘）。",
                ),
                (None, None): Text(".", "。"),
            },
            Text(" Begin to record later to see training alone.", "更晚开始记录即可只看训练本身。"),
        ),
    ),
    "anew": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one compiles|compile} a function anew[ in {steps:steps}][ and outside of "
            "{outside:nouns}][ on rank {worst_rank}]: {compile_ns:duration}, {ratio:percent} of the recorded time.",
            "{ranks:ranks} 重新编译了某个函数[（{steps:steps}）][{outside:one ，以及训练步之外|}]"
            "[（rank {worst_rank}）]：{compile_ns:duration}，占记录时间的 {ratio:percent}。",
        ),
        cause=Text(
            "No version of it fitted this call[: sizes of its inputs vary, e.g. from {before} to {after}].",
            "已有的版本都不适用于这次调用[：输入的大小有变化，例如从 {before} 变为 {after}]。",
        ),
        action=ANYTHING,
    ),
    "again": Message(summary=_AGAIN, cause=_MADE_ANEW + _USUALLY, action=ANYTHING, basis=_ENDED),
    "again_sizes": Message(summary=_AGAIN, cause=_MADE_ANEW + _SIZES_VARY, action=SIZES, basis=_ENDED),
    "again_types": Message(summary=_AGAIN, cause=_MADE_ANEW + _TYPES_VARY, action=TYPES, basis=_ENDED),
    "again_values": Message(summary=_AGAIN, cause=_MADE_ANEW + _VALUES_VARY, action=VALUES, basis=_ENDED),
    "launch": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one compiles|compile} operators as they are launched: {calls:number .0f} times "
            "{per:each}, for {total_ns:ms}[ on rank {worst_rank}]; the device is idle meanwhile for {idle_ns:ms} of "
            "{step_ns:whole} ({ratio:percent}).",
            "{ranks:ranks} 在下发算子时编译：{per:each} {calls:number .0f} 次，共 {total_ns:ms}"
            "[（rank {worst_rank}）]；其间设备空闲 {idle_ns:ms}，占 {step_ns:whole} 的 {ratio:percent}。",
        ),
        cause=Text(
            "The host calls {names:list}, which looks for or builds a kernel for the sizes at hand before it launches "
            "it.",
            "主机调用 {names:list}：下发之前先为当前形状查找或编译核函数。",
        ),
        action={
            (PYTORCH, NPU): Text(
                "Add to the start of the script, in every process: torch_npu.npu.set_compile_mode(jit_compile=False) "
                "and torch_npu.npu.config.allow_internal_format=False. Then operators use kernels that are compiled "
                "in advance.",
                "在脚本开头（每个进程）加入 torch_npu.npu.set_compile_mode(jit_compile=False) 和 "
                "torch_npu.npu.config.allow_internal_format=False，让算子使用预先编译的核函数。",
            ),
            (MINDSPORE, NPU): Text(
                "Call mindspore.set_context(ascend_config=dict(jit_compile=False)) at the start of the script, in "
                "every process, so that operators use kernels that are compiled in advance.",
                "在脚本开头（每个进程）调用 mindspore.set_context(ascend_config=dict(jit_compile=False))，"
                "让算子使用预先编译的核函数。",
            ),
            (PYTORCH, None): Text(
                "Keep the caches of compiled kernels between starts (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR on a "
                "disk that stays), and pad batches to a few sizes.",
                "在多次启动之间保留已编译核函数的缓存（TORCHINDUCTOR_CACHE_DIR、TRITON_CACHE_DIR 指到持久磁盘），"
                "并把批次补齐到少数几种大小。",
            ),
            (None, None): Text(
                "Use kernels that are compiled in advance, and pad batches to a few sizes.",
                "使用预先编译的核函数，并把批次补齐到少数几种大小。",
            ),
        },
        basis=BASIS,
    ),
}
