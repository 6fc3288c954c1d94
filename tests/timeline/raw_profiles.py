"""Classic profiles with two graphs that take turns, in three layouts; the same work in each.

Four steps of 10 ms, of graphs 1, 2, 1, 2. Each has two kernels of 2 ms, after 1 and 4 ms, a call of communication of
2 ms after 7 ms, and a call of the host after 0.5 ms.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

EPOCH_US, DEVICE_US = 1_714_528_800_000_000, 45_000_000_000
GRAPHS = (1, 2, 1, 2)
STEP_US = 10_000
KERNEL_NAMES = ("Default/net-Net/fc-Dense/MatMul-op1", "Gradients/Default/net-Net/fc-Dense/MatMul-op2")
KERNELS_US, KERNEL_US = (1_000, 4_000), 2_000
CALL_US, HOST_US = 7_000, 500
STREAM, THREAD, PLANE = 3, 8, 1
PROF = "PROF_000001_20240501100000000_ABCDEFGHIJKLMNOP"
HARDWARE, HCCL, CANN, OVERLAP, MARKS = 10, 11, 12, 13, 14
DEVICE = {"rank_id": 0, "DeviceInfo": [{"ai_core_num": 32, "aic_frequency": "1000"}]}
Event = dict[str, Any]


def labelled(pid: int, name: str, threads: dict[int, str]) -> list[Event]:
    """Names of a process and its threads."""
    named = [("thread_name", thread, title) for thread, title in threads.items()]
    return [
        {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": title}}
        for kind, tid, title in [("process_name", 0, name), *named]
    ]


def ranged(name: str, pid: int, tid: int, start: int, length: int, **more: Any) -> Event:
    """A range; times in us."""
    return {"name": name, "ph": "X", "pid": pid, "tid": tid, "ts": f"{start}.000", "dur": length, "args": {}} | more


def iteration_of(step: int) -> int:
    """The number of a step among those of its graph."""
    return GRAPHS[:step].count(GRAPHS[step]) + 1


def marks(graph: int, pid: int = MARKS, start: int = EPOCH_US) -> list[Event]:
    """The step trace of a graph."""
    events = labelled(pid, "Step Trace", {graph: f"Step Trace(Model ID:{graph})"})
    for step in (step for step, of in enumerate(GRAPHS) if of == graph):
        number, first = iteration_of(step), start + step * STEP_US
        points = {"Iteration ID": number, "FP Start": first, "BP End": first + 6_500, "Iteration End": first + STEP_US}
        events += [
            ranged(f"Iteration {number}", pid, graph, first, STEP_US, cat="Iteration Time", args=points),
            ranged(f"FP_BP Time {number}", pid, graph, first, 6_500, cat="FP_BP Time"),
            ranged(f"Iteration Refresh {number}", pid, graph, first + 6_500, 3_500, cat="Iteration Refresh"),
        ]
    return events


def work(steps: Sequence[int], start: int = EPOCH_US) -> list[Event]:
    """What device and host did in some steps."""
    events = labelled(HARDWARE, "Ascend Hardware", {STREAM: f"Stream {STREAM}"})
    events += labelled(HCCL, "HCCL", {PLANE: f"Plane {PLANE}", 9: "Communication"})
    events += labelled(CANN, "CANN", {THREAD: f"Thread {THREAD}"})
    events += labelled(OVERLAP, "Overlap Analysis", {0: "Computing"})
    for step in steps:
        first = start + step * STEP_US
        task = {"Model Id": GRAPHS[step], "Task Type": "AI_CORE", "Stream Id": STREAM, "Task Id": step}
        for name, after in zip(KERNEL_NAMES, KERNELS_US, strict=True):
            events.append(ranged(name, HARDWARE, STREAM, first + after, KERNEL_US, args=task))
        events += [
            ranged(f"hcom_allReduce__{step}_1", HCCL, 9, first + CALL_US, 2_000, args={"Model Id": GRAPHS[step]}),
            ranged("Memcpy", HCCL, PLANE, first + CALL_US, 1_500, args={"size(Byte)": 4096, "transport type": "SDMA"}),
            ranged("AscendCL@aclrtLaunch", CANN, THREAD, first + HOST_US, 100),
            ranged("Computing", OVERLAP, 0, first + 1_000, 5_000),
        ]
    return events


def written(directory: Path, files: dict[str, object]) -> Path:
    """Files by their names: texts as they are, all else as JSON."""
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return directory


def raw_only(directory: Path) -> Path:
    """A raw profile with one trace of all."""
    output = f"{PROF}/mindstudio_profiler_output"
    return written(
        directory,
        {
            f"{PROF}/device_0/info.json.0": DEVICE,
            f"{output}/msprof_20240501100050.json": work(range(4)),
            f"{output}/step_trace_20240501100050.json": [*marks(1), *marks(2)],
        },
    )


def old_raw_only(directory: Path) -> Path:
    """A raw profile with a trace an iteration."""
    device = f"{PROF}/device_0"
    files: dict[str, object] = {f"{device}/info.json.0": DEVICE}
    for step, graph in enumerate(GRAPHS):
        files[f"{device}/timeline/msprof_0_{graph}_{iteration_of(step)}.json"] = work([step])
    for graph in (1, 2):
        files[f"{device}/timeline/step_trace_0_{graph}_2.json"] = marks(graph)
    return written(directory, files)


def beside(directory: Path) -> Path:
    """MindSpore's own files, which have no graphs, with a raw profile that has another clock."""
    header = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
    rows = [header]
    for step in range(4):
        first = (DEVICE_US + step * STEP_US) * 100  # ticks of 10 ns
        rows.append(f"{step + 1},{first},{first + 1_000_000},1000000,{first},{first + 650_000},0,650000,350000")
    middle = (DEVICE_US + 3 * STEP_US // 2) * 100
    rows.append(f"-,{middle},{middle + 1_000_000},1000000,{middle},{middle + 650_000},0,650000,350000")
    kernels = ["kernel_name,stream_id,start_time(us),duration(ms)"]
    for step in range(4):
        for name, after in zip(KERNEL_NAMES, KERNELS_US, strict=True):
            kernels.append(f"{name},{STREAM},{DEVICE_US + step * STEP_US + after}.0,{KERNEL_US / 1000}")
    raw_only(directory)
    return written(
        directory,
        {
            "profiler_info_0.json": {"context_mode": "graph", "rank_id": "0", "rank_size": 1, "ms_version": "2.3.1"},
            "step_trace_raw_0_detail_time.csv": "\n".join(rows) + "\n",
            "output_timeline_data_0.txt": "\n".join(kernels) + "\n",
        },
    )
