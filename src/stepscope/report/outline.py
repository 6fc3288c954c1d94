"""What a report consists of: its modules and parts, in the order of the Ascend advisor's report, and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stepscope.advice.finding import CPU, CUDA, MINDSPORE, NPU, PYTORCH, ROCM
from stepscope.advice.messages import Text
from stepscope.advice.registry import Dimension

Advice = Mapping[tuple[str | None, str | None], Text]
"""A text by framework and device; see `Platform.pick`."""


@dataclass(frozen=True)
class PartOutline:
    """A part of a report.

    Args:
        key: Its name in links, unique.
        heading: Its heading.
        about: What it shows and how to read it.
        tables: Its tables, as `page/section`; those of a page about one rank are shown of all ranks.
        rules: Rules whose findings it shows, besides those of its dimension.
        dimension: Findings of rules of this dimension belong here.
        optional: Those of its tables that only some kinds of recordings can fill: they are not missed in others.
        record: How to record what its tables need, if none of them has an answer.
        figures: Its figures.
        compares: It has what the page `compare` shows: the run against another, or its slow rank against a typical one.
    """

    key: str
    heading: Text
    about: Text
    tables: Sequence[str]
    rules: Sequence[str] = ()
    dimension: Dimension | None = None
    record: Advice = field(default_factory=dict)
    optional: Sequence[str] = ()
    figures: Sequence[str] = ()
    compares: bool = False


@dataclass(frozen=True)
class ModuleOutline:
    """A module of a report: its parts."""

    key: str
    heading: Text
    parts: Sequence[PartOutline]


STEPS: Advice = {
    (None, None): Text(
        "Record steps with operators and the device: call the profiler's step() after each training step.",
        "请记录训练步及其算子和设备：每个训练步之后调用 profiler 的 step()。",
    ),
    (MINDSPORE, None): Text(
        "Record steps and operators for some steps: `stepscope record`, or MindSpore's profiler with its step() called "
        "after each training step.",
        "请记录若干步的训练步和算子：使用 `stepscope record`，或在每个训练步之后调用 MindSpore profiler 的 step()。",
    ),
}
RANKS: Advice = {
    (None, None): Text("Record all ranks of the job, with marked steps.", "请记录作业的所有 rank，并标记训练步。")
}
LINKS: Advice = {
    (None, None): Text("Only Ascend profilers record links.", "只有昇腾的 profiler 会记录链路。"),
    (None, NPU): Text(
        "Record all ranks at profiler level 1 or above; MindSpore: with profile_communication=True.",
        "请以 profiler level 1 及以上记录所有 rank；MindSpore 还需 profile_communication=True。",
    ),
}
ENVIRONMENT: Advice = {
    (None, None): Text(
        "`stepscope record` records the variables that matter.", "`stepscope record` 会记录有影响的环境变量。"
    ),
    (PYTORCH, NPU): Text(
        "Recent versions of torch_npu write them to profiler_metadata.json; `stepscope record` records them as well.",
        "较新版本的 torch_npu 会将其写入 profiler_metadata.json；`stepscope record` 也会记录。",
    ),
}
TWO_SIDES: Advice = {
    (None, None): Text(
        "A comparison needs at least two ranks of a job, or another run to compare with (--bench).",
        "比对至少需要同一作业的两个 rank，或另一次运行（--bench）。",
    )
}
_DEVICES = {
    CUDA: Text(
        "Record the device as well: activities=[CPU, CUDA] of PyTorch's profiler, or `stepscope record`.",
        "请同时记录设备：PyTorch profiler 的 activities=[CPU, CUDA]，或使用 `stepscope record`。",
    ),
    NPU: Text(
        "Record the device as well: activities=[CPU, NPU] of torch_npu's profiler, or `stepscope record`.",
        "请同时记录设备：torch_npu profiler 的 activities=[CPU, NPU]，或使用 `stepscope record`。",
    ),
}
DEVICE: Advice = {
    (None, None): Text("Record operators, and the device if there is one.", "请记录算子；如果有设备，也请记录设备。"),
    (None, CPU): Text("Record operators on the host.", "请记录主机上的算子。"),
    (PYTORCH, CUDA): _DEVICES[CUDA],
    (PYTORCH, ROCM): _DEVICES[CUDA],
    (PYTORCH, NPU): _DEVICES[NPU],
    (MINDSPORE, None): Text(
        "Record operators and the device for some steps, with MindSpore's profiler or `stepscope record`.",
        "请用 MindSpore 的 profiler 或 `stepscope record` 记录若干步的算子和设备。",
    ),
}
LAUNCHES: Advice = {
    (None, None): Text(
        "Record host and device in one profile, so that the launch of each kernel is known.",
        "请在同一个 profile 中记录主机和设备，以便得知每个 kernel 的下发。",
    ),
    (None, CPU): Text(
        "A job without a device launches nothing; its operators are in Computation.",
        "没有设备的作业不下发任务；其算子见“计算”。",
    ),
}
SEVERAL_RANKS: Advice = {(None, None): Text("Record a job of several ranks.", "请记录多个 rank 的作业。")}
MEMORY: Advice = {
    (None, None): Text(
        "Record memory: profile_memory=True of the profiler, or `stepscope record --memory`.",
        "请记录内存：profiler 的 profile_memory=True，或 `stepscope record --memory`。",
    )
}
DATA: Advice = {
    (None, None): Text("`stepscope record` records the data loader.", "`stepscope record` 会记录数据加载。"),
    (PYTORCH, None): Text(
        "PyTorch's profiler marks torch.utils.data.DataLoader by itself; `stepscope record` records other loaders too.",
        "PyTorch 的 profiler 会自行标记 torch.utils.data.DataLoader；`stepscope record` 还会记录其他加载器。",
    ),
    (MINDSPORE, None): Text(
        "Record MindSpore's dataset with data_process=True, or use `stepscope record`.",
        "请使用 data_process=True 记录 MindSpore 的数据集，或使用 `stepscope record`。",
    ),
}

OVERALL = ModuleOutline(
    "overall",
    Text("Overall performance", "总体性能"),
    (
        PartOutline(
            "summary",
            Text("Overall summary", "总体概况"),
            Text(
                "What the mean step consists of, and where each rank's time goes. Much computing: read Computation "
                "below. Much idle time: Schedule, Memory and Data loading. Much exposed communication: Communication, "
                "and Slow ranks, for which others wait.",
                "平均一步的构成，以及每个 rank 的时间去向。计算占比高：看“计算”；空闲占比高：看“下发”“内存”和"
                "“数据加载”；未掩盖的通信占比高：看“通信”和“慢 rank”（其他 rank 在等待它们）。",
            ),
            ("summary/mean_summary", "analyze/steps", "summary/rank_summaries", "analyze/idle"),
            dimension="overall",
            record=STEPS,
            figures=("job-time", "savings", "time-by-rank"),
        ),
        PartOutline(
            "slow-ranks",
            Text("Slow ranks", "慢 rank"),
            Text(
                "The first table names ranks that hold the job up, by a replay of the job without their extra time. "
                "The second has every step of each rank: compare computing and idle time between ranks.",
                "第一个表列出拖慢作业的 rank（根据去掉其多余时间后的作业重放）。第二个表是每个 rank 每一步的时间："
                "可比较各 rank 的计算和空闲时间。",
            ),
            ("analyze/slow_ranks", "ranks/rank_steps", "slowdowns/slowdown_causes"),
            ("slow-rank", "fast-rank", "slowed-steps", "late-start", "uneven-work", "long-step"),
            record=RANKS,
            optional=("slowdowns/slowdown_causes",),
            figures=("heat-map", "step-times"),
        ),
        PartOutline(
            "slow-links",
            Text("Slow links", "慢链路"),
            Text(
                "Links and groups that are slower than comparable ones, and what each link moved.",
                "比同类更慢的链路和通信组，以及每条链路传输的数据。",
            ),
            ("analyze/slow_links", "analyze/slow_groups", "links/link_totals", "links/transport_totals"),
            ("slow-link", "slow-group", "cluster-link"),
            record=LINKS,
            figures=("link-matrix", "bandwidth"),
        ),
        PartOutline(
            "environment",
            Text("Environment", "环境变量"),
            Text(
                "Environment variables and settings as recorded.",
                "记录到的环境变量和设置。",
            ),
            ("/environment_variables",),
            ("environment", "environment-variables"),
            record=ENVIRONMENT,
        ),
    ),
)

COMPARISON = ModuleOutline(
    "comparison",
    Text("Comparison of slow and fast ranks", "快慢 rank 比对"),
    (
        PartOutline(
            "compared",
            Text("Where ranks differ", "rank 之间的差异"),
            Text(
                "What the ranks that take longest do otherwise than the others.",
                "耗时最长的 rank 与其他 rank 的不同之处。",
            ),
            ("ranks/rank_means", "slowdowns/slowdowns"),
            record=TWO_SIDES,
            optional=("slowdowns/slowdowns",),
            compares=True,
        ),
    ),
)

WITH_BENCH = replace(
    COMPARISON,
    heading=Text("Comparison with another run", "与另一次运行比对"),
    parts=[
        replace(
            part,
            heading=Text("What differs from the base", "与基准的差异"),
            about=Text(
                "This run is the new side. The base is the run that was given to compare with.",
                "本次运行为新的一侧；基准为指定的比对运行。",
            ),
        )
        for part in COMPARISON.parts
    ],
)
"""In place of the comparison of ranks, if there is a run to compare with."""

PROBLEMS = ModuleOutline(
    "problems",
    Text("Performance problem analysis", "性能问题分析"),
    (
        PartOutline(
            "computation",
            Text("Computation", "计算"),
            Text(
                "What the device computes: which kernels and operators take the time, and how well they use the "
                "device.",
                "设备的计算：哪些 kernel 和算子耗时，以及对设备的利用程度。",
            ),
            (
                *("analyze/kernels", "kernels/kernel_type_statistics", "analyze/operators", "ranks/rank_flops"),
                *("frequencies/frequencies", "counters/roofline", "shapes/shape_costs"),
            ),
            dimension="computation",
            record=DEVICE,
            optional=("counters/roofline", "shapes/shape_costs"),
            figures=("operator-tree", "operator-bars", "roofline"),
        ),
        PartOutline(
            "schedule",
            Text("Schedule", "下发"),
            Text(
                "What keeps the host from giving the device work in time: dispatch, compilation, synchronisation, "
                "garbage collection.",
                "使主机无法及时向设备下发任务的原因：算子下发、编译、同步、垃圾回收。",
            ),
            ("gaps/recurring_gaps", "gaps/gaps", "launches/launch_summary", "api/api_statistics", "host/host_time"),
            dimension="schedule",
            record=LAUNCHES,
            optional=("host/host_time",),
        ),
        PartOutline(
            "communication",
            Text("Communication", "通信"),
            Text(
                "Calls between ranks: how long they take, how much of it is waiting, and what bandwidth they reach.",
                "rank 之间的通信：耗时、其中的等待，以及达到的带宽。",
            ),
            (
                *("analyze/communication", "communication/rank_communication", "overlap/overlap"),
                *("bandwidth/bus_bandwidth", "calls/longest_calls"),
            ),
            dimension="communication",
            record=SEVERAL_RANKS,
            figures=("pipeline",),
        ),
        PartOutline(
            "memory",
            Text("Memory", "内存"),
            Text(
                "How much device memory is used, and copies between host and device.",
                "设备内存的使用量，以及主机与设备之间的拷贝。",
            ),
            ("ranks/rank_memory", "memory/memory_breakdown", "copies/copies", "host/host_memory"),
            dimension="memory",
            record=MEMORY,
            optional=("host/host_memory",),
            figures=("memory",),
        ),
        PartOutline(
            "dataloader",
            Text("Data loading", "数据加载"),
            Text(
                "How long training waits for data, and which operator of the pipeline is the slowest.",
                "训练等待数据的时间，以及数据管道中最慢的算子。",
            ),
            ("input/input_stages", "input/loader", "input/input_queues", "input/input_operators"),
            dimension="dataloader",
            record=DATA,
            optional=("input/input_stages", "input/loader", "input/input_queues", "input/input_operators"),
            figures=("queues",),
        ),
    ),
)

MODULES = (OVERALL, COMPARISON, PROBLEMS)
