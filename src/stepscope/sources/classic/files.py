"""Files of a classic profile: kind and rank by name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from stepscope.paths import natural
from stepscope.recording_format.reading import read_export_list

LABEL = "rank "
"""What labels of inputs begin with, before the number of the rank."""

KINDS: Mapping[str, str] = {
    "profiler_info": r"profiler_info_(\d+)\.json",
    "step_trace": r"step_trace_raw_(\d+)_detail_time\.csv",
    "step_points": r"step_trace_point_info(?:_(\d+))?\.json",
    "cluster_steps": r"(?:ascend|gpu)_cluster_analyse_[a-z-]+_\d+_\d+_(\d+)\.csv",
    "device_types": r"aicore_intermediate_(\d+)_type\.csv",
    "device_operators": r"aicore_intermediate_(\d+)_detail\.csv",
    "pynative_types": r"pynative_op_intermediate_(\d+)_type\.csv",
    "pynative_operators": r"pynative_op_intermediate_(\d+)_detail\.csv",
    "ai_cpu": r"aicpu_intermediate_(\d+)\.csv",
    "framework": r"framework_raw_(\d+)\.csv",
    "flops": r"flops_(\d+)\.txt",
    "flops_summary": r"flops_summary_(\d+)\.json",
    "flops_scope": r"flops_scope_(\d+)\.json",
    "timeline": r"output_timeline_data_(\d+)\.txt",
    "timeline_display": r"(?:ascend_|gpu_|cpu_)?timeline_display_(\d+)\.json",
    "timeline_summary": r"(?:ascend_|gpu_|cpu_)?timeline_summary_(\d+)\.json",
    "calls": r"hccl_raw_(\d+)\.csv",
    "cpu_types": r"cpu_op_type_info_(\d+)\.csv",
    "cpu_operators": r"cpu_op_detail_info_(\d+)\.csv",
    "cpu_times": r"cpu_op_execute_timestamp_(\d+)\.txt",
    "cpu_framework": r"cpu_framework_(\d+)\.txt",
    "cpu_memory": r"cpu_ms_memory_record_(\d+)\.txt",
    "gpu_types": r"gpu_op_type_info_(\d+)\.csv",
    "gpu_operators": r"gpu_op_detail_info_(\d+)\.csv",
    "gpu_activities": r"gpu_activity_data_(\d+)\.csv",
    "dynamic_shapes": r"dynamic_shape_info_(\d+)\.json",
    "pipeline_raw": r"minddata_pipeline_raw_(\d+)\.csv",
    "pipeline": r"pipeline_profiling_(\d+)\.json",
    "ai_cpu_queue": r"minddata_aicpu_(\d+)\.txt",
    "get_next": r"minddata_getnext_profiling_(\d+)\.txt",
    "device_queue": r"device_queue_profiling_(\d+)\.txt",
    "iterator": r"dataset_iterator_profiling_(\d+)\.txt",
    "cpu_usage": r"minddata_cpu_utilization_(\d+)\.json",
    "memory_summary": r"memory_usage_summary_(\d+)\.json",
    "memory_details": r"memory_usage_details_(\d+)\.json",
    "memory_proto": r"memory_usage_(\d+)\.pb",
    "operator_memory": r"operator_memory_(\d+)\.csv",
    "strategy": r"parallel_strategy_(\d+)\.json",
    "host_info": r"host_info/host_info_(\d+)\.csv",
    "host_dataset": r"host_info/dataset_(\d+)\.csv",
    "recommendation": r"msadvisor/device_(\d+)/recommendation/.*\.json",
    "device_info": r"(?:PROF_[^/]*/)?device_(\d+)/info\.json\.\d+",
    "device_steps": r"(?:PROF_[^/]*/)?(?:mindstudio_profiler_output|device_(\d+)/summary)/step_trace_[\d_]+\.csv",
    "device_step_events": (
        r"(?:PROF_[^/]*/)?(?:mindstudio_profiler_output|device_(\d+)/(?:timeline|summary))/step_trace_[\d_]+\.json"
    ),
    "iterations": r"(?:PROF_[^/]*/)?device_(\d+)/timeline/(?:msprof|task_time|hccl)_\d+_\d+_\d+(?:_\d+)?\.json",
    "device_trace": r"(?:PROF_[^/]*/)?mindstudio_profiler_output/msprof_(?:slice_\d+_)?\d{14,}\.json",
    "device_summary": r"(?:PROF_[^/]*/)?mindstudio_profiler_output/op_summary_(?:slice_\d+_)?\d{14,}\.csv",
}
"""Kind of file to its name relative to the profile; the group is the rank (of a device in the oldest layout)."""

KNOWN = (
    r"minddata_pipeline_summary_\d+\.(csv|json)",  # what MindSpore made of other files
    r"flops_utilization_step_\d+\.json",
    r"output_op_compute_time(_detail)?_\d+\.txt",
    r"output_format_data_hwts_\d+\.txt",
    r"output_data_preprocess_aicpu_\d+\.txt",
    r"min_cycle_counter_\d+\.txt",
    r"gpu_framework_\d+\.txt",
    r"gpu_op_execute_timestamp_\d+\.txt",
    r"activity_execute_timestamp_\d+\.txt",
    r"step_trace_profiling_\d+\.txt",
    r"start_time_\d+\.txt",
    r"host_info/(timeline|host_memory)_\d+\.(json|csv)",
)
"""Names of files of a profile that only repeat the others."""

_ANY = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items())
_KNOWN = "|".join(KNOWN)


@dataclass(frozen=True)
class Seat:
    """Which rank a device of a host is.

    Args:
        rank: The rank.
        device: Number of the device on its host.
        host: Address of the host; None if the table has none.
        world_size: Ranks of the job, if known.
        problem: Why the rank had to be guessed; None if it is recorded.
        nic: Address of the device's network interface, if known.
        contradicted: Whether there are tables that lack this device, and not only none.
    """

    rank: int
    device: int
    host: str | None
    world_size: int | None
    problem: str | None
    nic: str | None = None
    contradicted: bool = False


@dataclass(frozen=True)
class RankFiles:
    """The files of one rank, by kind; several of a kind in the order of their names, numbers in theirs.

    Args:
        path: The profile, for issues about what is missing.
        rank: The rank.
        kinds: Kind to files.
        seat: Where files are numbered by device: whose they are.
        table: Where they are numbered by rank: the rank table beside them, if there is one.
    """

    path: Path
    rank: int
    kinds: Mapping[str, list[Path]] = field(default_factory=dict)
    seat: Seat | None = None
    table: Path | None = None

    @property
    def every(self) -> list[Path]:
        """The files of all kinds."""
        return [file for kind in self.kinds.values() for file in kind]

    def one(self, kind: str) -> Path | None:
        """The file of a kind, the last (newest by name) of several; None if there is none."""
        found = self.kinds.get(kind)
        return found[-1] if found else None

    def all(self, kind: str) -> list[Path]:
        """All files of a kind."""
        return self.kinds.get(kind, [])


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern, compiled when a name is first compared with it: most commands read no classic profile."""
    return re.compile(pattern)


def kind_of(name: str) -> tuple[str, int | None] | None:
    """Kind and number of a file by its name relative to the profile; None if it is none of a profile's."""
    match = _compiled(_ANY).fullmatch(name)
    if match is None or match.lastgroup is None or match.lastindex is None:
        return None
    inner = match.lastindex + 1  # the group of the number, or of the next kind, which has matched nothing
    number = match[inner] if inner <= match.re.groups else None
    return match.lastgroup, None if number is None else int(number)


def is_known(name: str) -> bool:
    """Whether a file belongs to a profile without saying anything that the others do not."""
    return _compiled(_KNOWN).fullmatch(name) is not None


def sort_files(files: Iterable[tuple[str, Path]]) -> dict[int, list[tuple[str, Path]]]:
    """Sort the files of a profile (by names relative to it) by the number in their names, in the order of numbers.

    Files without a number belong to every number without one of its own.
    """
    sorted_in: dict[int | None, dict[str, list[tuple[str, Path]]]] = defaultdict(lambda: defaultdict(list))
    for name, file in files:
        if found := kind_of(name):
            sorted_in[found[1]][found[0]].append((name, file))
    numbers = sorted(number for number in sorted_in if number is not None)
    kinds = {number: {**sorted_in[None], **sorted_in[number]} for number in numbers}
    return {number: [one for named in kinds[number].values() for one in named] for number in numbers}


def rank_files(path: Path, rank: int, named: Iterable[tuple[str, Path]], seat: Seat | None = None) -> RankFiles:
    """The files of one rank, by names relative to the profile, with any number in them."""
    kinds: dict[str, list[Path]] = defaultdict(list)
    for name, file in sorted(named, key=lambda one: natural(one[0])):
        if found := kind_of(name):
            kinds[found[0]].append(file)
    return RankFiles(path, rank, dict(kinds), seat)


def recorded_steps(listed: Path) -> tuple[int, ...]:
    """The recorded number of each step of exported files; empty if they were not exported, or it is unknown."""
    content = read_export_list(listed)
    return () if content is None else content.steps


def entries_of(directory: Path) -> list[Path]:
    """What a directory holds, in order; nothing if it cannot be read."""
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []
