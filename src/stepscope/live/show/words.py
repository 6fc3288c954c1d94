"""The words of verdicts, in English and Chinese: who is slow at what, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stepscope.live.verdicts import Cause
from stepscope.present import Language


@dataclass(frozen=True)
class Text:
    """A text in each language; `{name}` is a parameter."""

    en: str
    zh: str

    def of(self, language: Language, **parameters: object) -> str:
        """The text in one language with its parameters."""
        return (self.zh if language == "zh" else self.en).format(**parameters)


Choices = Mapping[tuple[str | None, str | None], Text]
"""Texts by framework and device; None is any. Each has a general one."""


@dataclass(frozen=True)
class CauseWords:
    """What is said of a cause.

    Args:
        one: What one rank or host does; follows its name.
        many: The same of several.
        action: What to do next, the most likely fix first.
        explained: The same once a capture has explained the verdict; None if that changes nothing.
    """

    one: Text
    many: Text
    action: Choices
    explained: Choices | None = None


_COMPUTE: Choices = {
    (None, None): Text(
        "Check clocks, temperature and other processes on its device and cores, then profile it: "
        "stepscope live capture --ranks {ranks}",
        "检查其设备与核的频率、温度和其他进程，然后采集该 rank：stepscope live capture --ranks {ranks}",
    ),
    (None, "cuda"): Text(
        "Run nvidia-smi -q -d CLOCK,TEMPERATURE,PERFORMANCE on its host and look for throttling or another process; "
        "then profile it: stepscope live capture --ranks {ranks}",
        "在其主机上运行 nvidia-smi -q -d CLOCK,TEMPERATURE,PERFORMANCE，检查降频或其他进程；然后采集该 rank："
        "stepscope live capture --ranks {ranks}",
    ),
    (None, "npu"): Text(
        "Run npu-smi info -t common on its host and look for a lower AI Core frequency or another process; then "
        "profile it: stepscope live capture --ranks {ranks}",
        "在其主机上运行 npu-smi info -t common，检查 AI Core 频率下降或其他进程；然后采集该 rank："
        "stepscope live capture --ranks {ranks}",
    ),
    (None, "cpu"): Text(
        "Look for other processes on its cores (top -H), a lower clock, or a CPU quota; then profile it: "
        "stepscope live capture --ranks {ranks}",
        "检查其核上的其他进程（top -H）、降频或 CPU 配额；然后采集该 rank：stepscope live capture --ranks {ranks}",
    ),
}

_PROFILED: Choices = {
    (None, None): Text(
        "Compare the profiles in detail: stepscope compare HEALTHY SLOW (their directories). For time outside "
        "operators: stepscope live stacks --ranks {ranks}. If everything takes longer, check clocks and other "
        "processes on its device and cores",
        "详细比较两份 profile：stepscope compare 正常 慢（各自的目录）。算子之外的时间：stepscope live stacks --ranks "
        "{ranks}。若全都变慢，检查其设备与核的频率和其他进程",
    ),
}

WORDS: dict[Cause, CauseWords] = {
    Cause.COMPUTE: CauseWords(
        Text("computes slowly", "计算慢"),
        Text("compute slowly", "计算慢"),
        _COMPUTE,
        _PROFILED,
    ),
    Cause.HOST: CauseWords(
        Text("is slow on the host side", "主机侧慢"),
        Text("are slow on the host side", "主机侧慢"),
        {
            (None, None): Text(
                "Look for other processes, swapping or a CPU quota on the host (top, vmstat 1); raise the quota or "
                "move the ranks",
                "检查主机上的其他进程、换页或 CPU 配额（top、vmstat 1）；提高配额或迁移这些 rank",
            )
        },
    ),
    Cause.DATA: CauseWords(
        Text("waits for data", "等待数据"),
        Text("wait for data", "等待数据"),
        {
            (None, None): Text(
                "Give its data loader more workers and prefetching (DataLoader num_workers, prefetch_factor), and "
                "check the storage it reads from",
                "为其数据加载增加 worker 与预取（DataLoader 的 num_workers、prefetch_factor），并检查所读的存储",
            ),
            ("mindspore", None): Text(
                "Give its dataset more workers (num_parallel_workers) and prefetching (prefetch_size), and check the "
                "storage it reads from",
                "为其数据集增加并行度（num_parallel_workers）与预取（prefetch_size），并检查所读的存储",
            ),
        },
    ),
    Cause.CHECKPOINT: CauseWords(
        Text("saves checkpoints slowly", "保存检查点慢"),
        Text("save checkpoints slowly", "保存检查点慢"),
        {
            (None, None): Text(
                "Check the storage that checkpoints are written to; save asynchronously "
                "(torch.distributed.checkpoint.async_save) or less often",
                "检查检查点所在的存储；改为异步保存（torch.distributed.checkpoint.async_save）或降低频率",
            ),
            ("mindspore", None): Text(
                "Check the storage that checkpoints are written to; save asynchronously (save_checkpoint with "
                "async_save=True) or less often",
                "检查检查点所在的存储；改为异步保存（save_checkpoint 的 async_save=True）或降低频率",
            ),
        },
    ),
    Cause.LINK: CauseWords(
        Text("has a slow link", "的链路慢"),
        Text("have a slow link between them", "之间的链路慢"),
        {
            (None, None): Text(
                "Check the network interface, cable and switch port between the hosts for errors and lower speed "
                "(ethtool, ibstat)",
                "检查主机之间的网卡、线缆与交换机端口是否有错误或降速（ethtool、ibstat）",
            ),
            (None, "cuda"): Text(
                "Check nvidia-smi nvlink -s inside a host, and network interface, cable and switch port between hosts "
                "(ibstat, ethtool)",
                "主机内检查 nvidia-smi nvlink -s；主机间检查网卡、线缆与交换机端口（ibstat、ethtool）",
            ),
            (None, "npu"): Text(
                "Check hccn_tool -i DEVICE -stat -g and the optical module on both hosts for errors and lower speed",
                "在两端主机用 hccn_tool -i DEVICE -stat -g 检查光模块是否有错误或降速",
            ),
        },
    ),
    Cause.SEND: CauseWords(
        Text("sends slowly", "发送慢"),
        Text("send slowly", "发送慢"),
        {
            (None, None): Text(
                "Check the outgoing network interface of its host for errors, lower speed and other traffic (ethtool, "
                "ibstat)",
                "检查其主机发送侧网卡是否有错误、降速或其他流量（ethtool、ibstat）",
            )
        },
    ),
    Cause.JOB: CauseWords(
        Text("is slower than before", "比之前慢"),
        Text("are slower than before, and none can be blamed", "都比之前慢，无法归咎于某个 rank"),
        {
            (None, None): Text(
                "Check what all ranks share: storage, network, batch size and sequence length; compare profiles from "
                "before and now: stepscope live capture",
                "检查所有 rank 共用的部分：存储、网络、批大小与序列长度；对比前后的采集：stepscope live capture",
            )
        },
    ),
    Cause.HANG: CauseWords(
        Text("makes no progress", "没有进展"),
        Text("make no progress", "没有进展"),
        {
            (None, None): Text(
                "See where all ranks are: stepscope live stacks; restart the job from its last checkpoint if it does "
                "not recover",
                "查看所有 rank 停在何处：stepscope live stacks；若不恢复，从最近的检查点重启作业",
            )
        },
    ),
}

KINDS: dict[str, Text] = {
    "step": Text("step", "步"),
    "fp": Text("forward", "前向"),
    "dataloader": Text("data loading", "数据加载"),
    "checkpoint": Text("checkpoints", "检查点"),
    "communication": Text("communication", "通信"),
}
"""Names of switches in sentences."""

CALM = {
    "no_detector": Text(
        "Nobody looks for slow ranks: the manager runs without a detector", "没有查找慢 rank：管理器未启用检测器"
    ),
    "no_steps": Text(
        "No steps have been reported yet, so nothing is known of slow ranks",
        "尚未收到任何一步，因此还不知道是否有慢 rank",
    ),
    "no_rank": Text(
        "No rank takes part any more: the job has ended, or none of its hosts can be reached",
        "已没有 rank 参与：作业已结束，或其主机均无法访问",
    ),
    "idle": Text(
        "Nothing happens in training: a long step, checkpoint or compilation, or a hang. See: stepscope live stacks",
        "训练没有进展：可能是步、检查点或编译耗时很长，也可能已挂起。请查看：stepscope live stacks",
    ),
    "none_slow": Text("OK: no rank is slow, as far as the light records show", "正常：从轻量记录来看，没有慢 rank"),
}
"""What it means that nothing is found."""
