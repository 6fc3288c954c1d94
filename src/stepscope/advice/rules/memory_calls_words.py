"""Words of the rule about calls that allocate and free device memory."""

from __future__ import annotations

from stepscope.advice.finding import CUDA, MINDSPORE, NPU, PYTORCH, ROCM
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.stopping import BASIS

_SUMMARY = Text(
    "{ranks:Ranks} {ranks:one allocates|allocate} and {ranks:one frees|free} device memory while training: "
    "{total_ns:ms} in {calls:number .0f} calls {per:each}, with the device idle for {idle_ns:ms} of {step_ns:whole} "
    "({ratio:percent})[ on rank {worst_rank}].",
    "{ranks:ranks} 在训练中申请和释放设备内存：{per:each} {calls:number .0f} 次调用，共 {total_ns:ms}，"
    "其间设备空闲 {idle_ns:ms}，占 {step_ns:whole} 的 {ratio:percent}[（rank {worst_rank}）]。",
)
_CALLS = Text(
    "Mostly {names:list}. The framework keeps what it frees, so after warm-up it should not need the driver. ",
    "主要是 {names:list}。框架会保留已释放的内存，预热之后不应再需要驱动。",
)


_EMPTYING = {
    (PYTORCH, NPU): ("torch.npu.empty_cache()", "torch.npu.empty_cache()"),
    (PYTORCH, CUDA): ("torch.cuda.empty_cache()", "torch.cuda.empty_cache()"),
    (PYTORCH, ROCM): ("torch.cuda.empty_cache()", "torch.cuda.empty_cache()"),
    (PYTORCH, None): ("calls of empty_cache()", "empty_cache() 调用"),
    (MINDSPORE, NPU): ("mindspore.hal.empty_cache()", "mindspore.hal.empty_cache()"),
    (None, None): ("what gives cached memory back", "归还缓存内存的操作"),
}


def _steady(keep: str) -> Choices:
    """To keep sizes constant, and do without what gives cached memory back; the first word is given."""
    return {
        place: Text(
            f"{keep} sizes constant, and take {call} out of the training loop.",
            f"保持大小不变，并从训练循环中去掉 {zh}。",
        )
        for place, (call, zh) in _EMPTYING.items()
    }


_KEEP = _steady("Keep")
_SETTINGS = {
    (PYTORCH, NPU): Text(
        "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True", "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"
    ),
    (PYTORCH, CUDA): Text(
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    ),
    (PYTORCH, ROCM): Text(
        "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True (from PyTorch 2.11 with ROCm 7 on; before, "
        "max_split_size_mb:512)",
        "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True（自 PyTorch 2.11 和 ROCm 7 起；此前用 max_split_size_mb:512）",
    ),
    (MINDSPORE, NPU): Text("MS_ALLOC_CONF=enable_vmm:true", "MS_ALLOC_CONF=enable_vmm:true"),
}
"""What lets segments of memory grow, so that what is freed serves other sizes."""

_UNBROKEN: Choices = {
    place: Text("Set ", "设置 ") + _SETTINGS[place] + Text(", ", "，") + text if place in _SETTINGS else _KEEP[place]
    for place, text in _steady("keep").items()
}
_SMALLER = Text(
    "make the job smaller: a smaller micro-batch with gradient accumulation, activations recomputed in the backward "
    "pass, optimizer states and parameters sharded over ranks",
    "减小作业的占用：减小微批次并累积梯度、在反向传播中重计算激活、把优化器状态和参数切分到各 rank",
)
_SHARDED = Text(" (FSDP, ZeRO).", "（如 fully_shard()）。")
_FULL: Choices = {
    **{
        place: Text("Set ", "设置 ")
        + setting
        + Text(" if it is not set, and ", "（若尚未设置），并")
        + _SMALLER
        + (_SHARDED if place[0] == PYTORCH else Text(".", "。"))
        for place, setting in _SETTINGS.items()
    },
    (PYTORCH, None): Text("If memory stays as full, ", "若内存仍然这么满，") + _SMALLER + _SHARDED,
    (None, None): Text("If memory stays as full, ", "若内存仍然这么满，") + _SMALLER + Text(".", "。"),
}
_PERHAPS_FULL = Text(
    " If that does not help, memory may be nearly full, which was not recorded: use a smaller micro-batch.",
    "若无效，可能是内存几乎用尽（未被记录）：减小微批次。",
)

MESSAGES = {
    "full": Message(
        _SUMMARY,
        _CALLS
        + Text(
            "Memory is nearly full ({used_ratio:percent} at the peak), so it gives memory back to get some of another "
            "size.",
            "内存几乎用尽（峰值 {used_ratio:percent}），因此要归还内存才能得到其他大小的内存。",
        ),
        _FULL,
        basis=BASIS,
    ),
    "room": Message(
        _SUMMARY,
        _CALLS
        + Text(
            "There is room ({used_ratio:percent} in use or reserved at the peak), so sizes that vary, or calls that "
            "empty the cache, are the usual reasons.",
            "内存仍有余量（峰值占用或预留 {used_ratio:percent}），通常是因为大小变化或清空缓存的调用。",
        ),
        _UNBROKEN,
        basis=BASIS,
    ),
    "mapped": Message(
        _SUMMARY,
        _CALLS
        + Text(
            "Its segments of memory grow and shrink already (calls that map memory), so sizes that vary, or calls that "
            "empty the cache, are the usual reasons.",
            "其内存段已经可以伸缩（有映射内存的调用），因此通常是因为大小变化或清空缓存的调用。",
        ),
        _KEEP,
        basis=BASIS,
    ),
    "unknown": Message(
        _SUMMARY,
        _CALLS
        + Text(
            "Sizes that vary, calls that empty the cache, or memory that is nearly full are the usual reasons.",
            "通常是因为大小变化、清空缓存的调用，或内存几乎用尽。",
        ),
        {place: text + _PERHAPS_FULL for place, text in _UNBROKEN.items()},
        basis=BASIS,
    ),
}
