"""A small classic profile of a device, file by file: 3 steps of 2 ms, each with two kernels and an all-reduce."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.sources.classic import ClassicSource
from stepscope.store.sinks import MemorySink
from stepscope.tables import ISSUES, RANK_FIGURES

TICK_NS = 10
START = 1_000_000
"""Start of the first step in ticks."""
STEP = 200_000
CONV = "Default/network/conv-Conv2d/Conv2D-op1"
MATMUL = "Gradients/Default/network/fc-Dense/gradMatMul/MatMul-op2"
CALL = "stream_11_0_AllReduce-op9"
TRACE_HEADER = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"


def starts(steps: int = 3) -> list[int]:
    """Start of each step in ticks."""
    return [START + STEP * step for step in range(steps)]


def lines(*rows: object) -> str:
    """Text of rows; a row that is no text is joined with commas."""
    told = [row if isinstance(row, str) else ",".join(map(str, row)) for row in rows]  # type: ignore[call-overload]
    return "\n".join(told) + "\n"


def trace_row(number: object, start: int, *calls: object) -> list[object]:
    """A row of the step trace; the first step has no interval."""
    first = start + (0 if start == START else 10_000)
    last, end = start + 150_000, start + STEP
    return [number, start, end, end - start, first, last, first - start, last - first, end - last, *calls]


def call_cells(start: int) -> list[int]:
    """Length, start and end of the call in a step."""
    return [20_000, start + 100_000, start + 120_000]


def trace_text() -> str:
    """The step trace, with the mean of all steps as its last row."""
    rows = [trace_row(step + 1, start, *call_cells(start)) for step, start in enumerate(starts())]
    middle = starts()[1]
    average = trace_row("-", middle, *call_cells(middle))
    average[6:9] = [20_000 // 3, 140_000 + 10_000 // 3, 50_000]
    return lines(f"{TRACE_HEADER},{CALL},{CALL}_start_point,{CALL}_end_point", *rows, average)


def kernels(unit: float) -> list[tuple[str, int, float, float]]:
    """Name, stream, start in a unit of ns, duration in ms."""
    rows = []
    for start in starts():
        rows.append((CONV, 3, (start + 20_000) * TICK_NS / unit, 0.3))
        rows.append((MATMUL, 4, (start + 60_000) * TICK_NS / unit, 0.2))
    return rows


def display_events(base_us: float = 0.0) -> list[dict[str, Any]]:
    """The timeline: steps, scopes, kernels, calls, the AI CPU and the host."""
    events: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": 100000, "args": {"name": "Steps"}}
    ]

    def add(name: str, pid: object, tid: object, ts: float, dur: float, **args: str) -> None:
        event = {"name": name, "ph": "X", "pid": pid, "tid": tid, "ts": ts - base_us, "dur": dur}
        events.append({**event, "args": args} if args else event)

    for step, start in enumerate(starts()):
        at = start / 100
        add(str(step + 1), 0, 100000, at, 2000.0)
        add("Default", 0, 100001, at, 1500.0)
        add("Conv2D-op1", 0, 3, at + 200, 300.0, type="Conv2D", fullname=CONV)
        add("MatMul-op2", 0, "4", at + 600, 200.0, type="MatMul", fullname=MATMUL)
        add(CALL, 10000, 11, at + 1000, 200.0)
        add("GetNext", 9000, 0, at + 20, 40.0)
        add("Cast-op7", 11000, 100003, at + 30, 10.0)
        add("free_time", 12000, 8002, at, 200.0)
    return events


def cell(content: Any) -> str:
    """A CSV cell that holds JSON."""
    return '"' + json.dumps(content).replace('"', '""') + '"'


def shapes(shape: str) -> str:
    """The operator's inputs as a CSV cell."""
    return cell({"Input_0": {"format": "ND", "data_type": "FLOAT16", "shape": shape}})


def whole_profile() -> dict[str, str]:
    """Kind of file (as the source names it) to its text; `NAMES` has the files' names."""
    us = kernels(1e3)
    nodes, link = [{"name": "Total"}, {"name": "Default"}], {"source": "Total", "target": "Default", "value": 600.0}
    return {
        "step_trace": trace_text(),
        "step_points": json.dumps({"fp_start": CONV, "bp_end": MATMUL}),
        "cluster_steps": lines(
            "computation_time,communication_alone_time", (1.8, 0.2), (1.7, 0.3), (1.5, 0.5), (1.6, 0.4)
        ),
        "device_types": lines(
            "kernel_type,total_time,execution_frequency,percent", "Conv2D,0.9,3,0.6", "MatMul,0.6,3,0.4"
        ),
        "device_operators": lines(
            "full_kernel_name,task_duration,execution_frequency,task_type",
            f"{CONV},0.3,3,AI_CORE",
            f"{MATMUL},0.2,3,AI_CORE",
        ),
        "framework": lines(
            "task_id,stream_id,block_dim,full_kernel_name,op_name,kernel_name,kernel_type,subgraph,op_info,model_id,task_type",
            f"1,3,32,{CONV},{CONV},Conv2D-op1,Conv2D,Default,{shapes('32,3,8,8')},1,AI_CORE",
            f"2,4,16,{MATMUL},{MATMUL},MatMul-op2,MatMul,Gradients,{shapes('32,10')},1,AI_CORE",
        ),
        "flops": lines(
            "full_kernel_name,MFLOPs(10^6 cube),GFLOPS(10^9 cube),MFLOPs(10^6 vector),GFLOPS(10^9 vector)",
            f"{CONV},600.0,2000.0,3.0,10.0",
            f"{MATMUL},200.0,1000.0,0.0,0.0",
        ),
        "ai_cpu": lines(
            "serial_number,kernel_type,total_time,dispatch_time,execution_time,run_start,run_end",
            "1,GetNext,0.05,0.01,0.04,10.02,10.07",
            "2,GetNext,0.07,0.03,0.04,12.02,12.09",
            "3,InitData,0.1,0.05,0.05,9.0,9.1",
        ),
        "pynative_types": lines(
            "op_type,execution_time,execution_frequency,percent", "Add,0.4,4,40.0", "Mul,0.6,2,60.0"
        ),
        "pynative_operators": lines(
            "op_name,op_type,avg_execution_time,subgraph,full_op_name",
            "Add-op1,Add,0.1,Default,Default/Add-op1",
            "Mul-op2,Mul,0.3,Default,Default/Mul-op2",
        ),
        "gpu_types": lines(
            "op_type,type_occurrences,total_time(us),total_proportion,avg_time(us)",
            "Conv2D,2,800.0,0.8,400.0",
            "Add,1,200.0,0.2,200.0",
        ),
        "gpu_operators": lines(
            "op_side,op_type,op_name,op_full_name,op_occurrences,op_total_time(us),op_avg_time(us),total_proportion,"
            "cuda_activity_cost_time(us),cuda_activity_call_count",
            "Device,Conv2D,Conv2D-op1,Default/Conv2D-op1,2,800.0,400.0,0.8,700.5,4",
            "Device,Add,Add-op2,Default/Add-op2,1,200.0,200.0,0.2,150.0,1",
        ),
        "gpu_activities": lines(
            "name,type,op_full_name,stream_id,block_dim,grid_dim,occurrences,total_duration(us),avg_duration(us),"
            "max_duration(us),min_duration(us)",
            '"void f<float, 3>(f)",cuLaunchKernel,Default/Conv2D-op1,7,"256,1,1","32,1,1",4,700.5,175.125,200.0,150.0',
            'gemm,cuLaunchKernel,Default/Add-op2,7,"128,1,1","8,1,1",1,150.0,150.0,150.0,150.0',
        ),
        "timeline": lines("kernel_name,stream_id,start_time(us),duration(ms)", *us),
        "timeline_display": json.dumps(display_events()),
        "timeline_summary": json.dumps(
            {"total_time": 1.5, "num_of_streams": 2, "num_of_ops": 2, "op_exe_times": 6, "max_scope_name_num": 4}
        ),
        "flops_summary": json.dumps({"cube_FLOPs": 800.0, "cube_FLOPS": 1600.0, "vec_FLOPs": 3.0, "vec_FLOPS": 6.0}),
        "flops_scope": json.dumps({"data": {"nodes": nodes, "links": [link]}, "max_scope_num": 2}),
    }


NAMES: Mapping[str, str] = {
    "step_trace": "step_trace_raw_0_detail_time.csv",
    "step_points": "step_trace_point_info_0.json",
    "cluster_steps": "ascend_cluster_analyse_data-parallel_1_1_0.csv",
    "device_types": "aicore_intermediate_0_type.csv",
    "device_operators": "aicore_intermediate_0_detail.csv",
    "framework": "framework_raw_0.csv",
    "flops": "flops_0.txt",
    "ai_cpu": "aicpu_intermediate_0.csv",
    "pynative_types": "pynative_op_intermediate_0_type.csv",
    "pynative_operators": "pynative_op_intermediate_0_detail.csv",
    "gpu_types": "gpu_op_type_info_0.csv",
    "gpu_operators": "gpu_op_detail_info_0.csv",
    "gpu_activities": "gpu_activity_data_0.csv",
    "timeline": "output_timeline_data_0.txt",
    "timeline_display": "ascend_timeline_display_0.json",
    "timeline_summary": "ascend_timeline_summary_0.json",
    "flops_summary": "flops_summary_0.json",
    "flops_scope": "flops_scope_0.json",
}


class Read:
    """The tables of a rank, and what was told of its files."""

    def __init__(self, directory: Path, rank: int = 0) -> None:
        source = ClassicSource()
        found = source.find(directory, sorted(entry.name for entry in directory.iterdir()))
        assert found is not None
        item = next(item for item in found.inputs if item.label == f"rank {rank}")
        sink = MemorySink("classic")
        source.read(item, sink)
        self.tables = sink.close()

    def table(self, name: str) -> pl.DataFrame:
        """A table; no rows and no columns if it has none."""
        return self.tables.get(name, pl.DataFrame())

    def totals(self, unit: str, level: str) -> pl.DataFrame:
        """One list of `operator_totals`."""
        rows = self.table("operator_totals")
        return rows.filter(unit=unit, level=level) if rows.height else rows

    def stated(self) -> dict[str, Any]:
        """Name to figure or text; the graph in front where there is one."""
        rows = self.tables.get("rank_figures", RANK_FIGURES.frame()).select("name", "graph", "value", "text").rows()
        return {
            name if graph is None else f"{graph}:{name}": text if value is None else value
            for name, graph, value, text in rows
        }

    def told(self, severity: str = "error") -> list[tuple[str, str]]:
        """File and problem of the issues of a severity."""
        rows = self.tables.get("issues", ISSUES.frame()).filter(severity=severity)
        return [(Path(file).name, problem) for file, problem in rows.select("file", "problem").rows()]


def write(directory: Path, **texts: str | bytes | None) -> Path:
    """Write files by kind; None leaves one out."""
    directory.mkdir(exist_ok=True)
    for kind, text in texts.items():
        if text is not None:
            (directory / NAMES[kind]).write_bytes(text.encode() if isinstance(text, str) else text)
    return directory
