"""A classic profile that has every kind of file: those of `device_files`, and all others of the same rank."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from device_files import NAMES as DEVICE_NAMES
from device_files import cell, lines, starts, whole_profile

RAW = "PROF_000001_20240501100000000_ABCDEFGHIJKLMNO0"
NAMES: Mapping[str, str] = {
    **DEVICE_NAMES,
    "profiler_info": "profiler_info_0.json",
    "calls": "hccl_raw_0.csv",
    "cpu_types": "cpu_op_type_info_0.csv",
    "cpu_operators": "cpu_op_detail_info_0.csv",
    "cpu_times": "cpu_op_execute_timestamp_0.txt",
    "cpu_framework": "cpu_framework_0.txt",
    "cpu_memory": "cpu_ms_memory_record_0.txt",
    "dynamic_shapes": "dynamic_shape_info_0.json",
    "pipeline_raw": "minddata_pipeline_raw_0.csv",
    "pipeline": "pipeline_profiling_0.json",
    "ai_cpu_queue": "minddata_aicpu_0.txt",
    "get_next": "minddata_getnext_profiling_0.txt",
    "device_queue": "device_queue_profiling_0.txt",
    "iterator": "dataset_iterator_profiling_0.txt",
    "cpu_usage": "minddata_cpu_utilization_0.json",
    "memory_summary": "memory_usage_summary_0.json",
    "memory_details": "memory_usage_details_0.json",
    "memory_proto": "memory_usage_0.pb",
    "operator_memory": "operator_memory_0.csv",
    "host_info": "host_info/host_info_0.csv",
    "host_dataset": "host_info/dataset_0.csv",
    "strategy": "parallel_strategy_0.json",
    "recommendation": "msadvisor/device_0/recommendation/ecosystem.json",
    "device_info": f"{RAW}/device_0/info.json.0",
    "device_steps": f"{RAW}/mindstudio_profiler_output/step_trace_20240501100050.csv",
}
"""Kind of file to its name; the exports of a raw profile stand alone and have tests of their own."""
ALTERNATIVES = {
    "timeline_display": ("timeline",),
    "device_steps": ("step_trace",),
    "pipeline": ("pipeline_raw",),
    "memory_proto": ("memory_details",),
    "host_dataset": ("host_info",),
}
"""Kind of file to those that are read in its place where they are there."""
T0_US = 1_714_528_800_000_000
STEPS_HEADER = (
    "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
    "Iteration Refresh(us),Data Aug Bound(us),Model ID"
)
CPU_TYPES_HEADER = "op_type,type_occurrences,execution_frequency(per-step),total_compute_time,avg_time(ms),percent\n"
CPU_TYPES = CPU_TYPES_HEADER + "MatMul,4,2,3.0,0.75,0.75\nAdd,2,1,1.0,0.5,0.25\n"
CPU_OPERATORS_HEADER = (
    "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time(ms),op_avg_time(ms),total_proportion,"
    "subgraph,pid\n"
)
CPU_MEMORY_HEADER = "Timestamp(ns),Total Allocated(Byte),Total Reserved(Byte),Total Active(Byte)\n"
PIPELINE_HEADER = (
    "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
)
HOST_HEADER = "tid,pid,parent_pid,module_name,event,stage,level,start_end,custom_info,memory_usage(kB),time_stamp(us)\n"
MEMORY_TOTALS = {"capacity": 31.0, "allocations": 2, "deallocations": 1, "peak_mem": 0.75, "static_mem": 0.25}


def iteration(number: int, start: int, *, model: int = 1, reduce: str = "") -> str:
    """A row of a raw profile's steps: 10 us of data, 60 us forward and backward, 30 us of updates."""
    at = T0_US + start
    return f"{number},{at + 10}.25,{at + 70},{at + 100},100,60,30,10.25,{model}{reduce}\n"


def pipeline_json(*operators: dict[str, Any]) -> str:
    """A `pipeline_profiling` file."""
    return json.dumps({"op_info": list(operators), "sampling_interval": 10})


def operator(
    number: int, kind: str, children: list[int] | None = None, sizes: list[Any] | None = None
) -> dict[str, Any]:
    """One of its operators."""
    metrics = None if sizes is None else {"output_queue": {"length": 8, "size": sizes}}
    return {"op_id": number, "op_type": kind, "num_workers": 2, "children": children, "metrics": metrics}


def usage_json(count: int = 3, **parts: Any) -> str:
    """A `minddata_cpu_utilization` file of 2 processors with samples every 20 ms from 100 ms on."""
    times = [100 + 20 * k for k in range(count)]
    return json.dumps({"cpu_processor_num": 2, "sampling_interval": 20, "time_stamp": times, **parts})


def tensor(number: int, start: int, end: int, size: float = 0.25, lifetime: str = "LifeLongNone") -> dict[str, Any]:
    """A tensor of a node of a memory plan."""
    known = {"type": "output", "shape": "2,3", "format": "ND", "data_type": "FLOAT16", "life_long": lifetime}
    return known | {
        "tensor_name": f"t{number}",
        "tensor_id": number,
        "size": size,
        "life_start": start,
        "life_end": end,
    }


def graph(number: int = 1, **changed: Any) -> dict[str, Any]:
    """A memory plan of a graph of two nodes with a tensor each, and all that lives at each node."""
    tensors = [tensor(5, 0, 1), tensor(6, 1, 1, lifetime="LifeLongGraphEnd")]
    same = {"allocations": 1, "size": 0.25, "inputs": []}
    nodes = [
        {"name": f"op{k}", "fullname": f"Default/op{k}", "node_id": k, "allocated": 0.25 - k, "outputs": [tensors[k]]}
        for k in range(2)
    ]
    plan = {"graph_id": number, "static_mem": 0.25, "nodes": [same | node for node in nodes], "lines": [0.5, 0.75]}
    return plan | {"fp_start": 0, "bp_end": 1} | changed | {"breakdowns": [[tensors[0]], tensors]}


def texts() -> dict[str, bytes]:
    """Kind of file to its content."""
    told = {**whole_profile(), **_calls(), **_cpu(), **_data(), **_memory(), **_host(), **_raw()}
    told["profiler_info"] = json.dumps(
        {"rank_id": 0, "rank_size": 2, "device_id": 0, "ms_version": "2.0.0", "context_mode": "graph"}
    )
    told["pynative_operators"] = lines(
        "op_name,op_type,avg_execution_time,execution_frequency,subgraph,full_op_name",
        "Add-op1,Add,0.1,4,Default,Default/Add-op1",
        "Mul-op2,Mul,0.3,2,Default,Default/Mul-op2",
    )
    return {kind: text.encode() for kind, text in told.items()} | {"memory_proto": _proto()}


def write_every_kind(directory: Path, files: Mapping[str, bytes]) -> Path:
    """Write files by kind."""
    for kind, content in files.items():
        path = directory / NAMES[kind]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return directory


def _calls() -> dict[str, str]:
    """Communication by step, in ms: 100 KB in half a ms are 200,000 KB/s."""
    links = {"0-1": {"SDMA": [0.5, 100.0, 200_000.0]}}
    rows = [
        f"{step},0.5,0.25,{cell(links)},{cell({'stream_11_0_AllReduce-op9': [str(step), 0.5, 0.25, links]})}"
        for step in (1, 2, 3, "-")
    ]
    return {"calls": lines("step_num,communication_cost,wait_cost,link_info,communication_operator_cost", *rows)}


def _cpu() -> dict[str, str]:
    """Operators on the host."""
    return {
        "cpu_types": CPU_TYPES,
        "cpu_operators": CPU_OPERATORS_HEADER
        + lines(
            "Host,MatMul,MatMul-op1,Default/fc/MatMul-op1,4,3.0,0.75,0.75,Default,77",
            "Host,Add,Add-op3,Default/Add-op3,2,1.0,0.5,0.25,Default,77",
        ),
        "cpu_times": lines(
            "Default/fc/MatMul-op1;HostCpuOps;1000,0.5,0 9000,0.25,0 ", "Default/Add-op3;HostCpuOps;5000,0.001,7 "
        ),
        "cpu_framework": "MatMul;MatMul-op1;1;input_1:[2, 3];\nAdd;Add-op3;1;input_1:[2];\n",
        "cpu_memory": CPU_MEMORY_HEADER + lines((1000, 7, 8, 9), (2000, 5, 8, 9)),
    }


def _data() -> dict[str, str]:
    """Data preparation: two operators, three batches every 20 ms, samples every 20 ms."""
    batches = [
        f"{kind} {extra} {batch} {value} {100 + 20 * batch}"
        for batch in (1, 2, 3)
        for kind, extra, value in ((0, 0, 4), (0, 1, 3), (0, 2, 7), (1, 16, batch))
    ]

    def got(unit: int) -> str:
        rows = [f"GetNext_{k} {(100 + 20 * k) * unit} {(104 + 20 * k) * unit} {k}" for k in (1, 2, 3)]
        return lines("node_name start_time end_time queue_size", *rows)

    values = [10, 20, 30]
    usage = {"user_utilization": values, "sys_utilization": values}
    return {
        "pipeline_raw": PIPELINE_HEADER
        + lines("0,Batch,4,,,,0,20,,[1]", '1,TFReader,4,"[64, 0, 32]",32.0,64,0.5,20,0,'),
        "pipeline": pipeline_json(operator(0, "Batch", [1]), operator(1, "TFReader", None, [64, 0, 32])),
        "ai_cpu_queue": got(1000),
        "get_next": got(1_000_000),
        "device_queue": lines(*batches),
        "iterator": lines(*batches),
        "cpu_usage": usage_json(
            device_info=usage | {"io_utilization": values, "idle_utilization": values},
            process_info=usage,
            op_info=[{"op_id": 1, "metrics": usage}],
        ),
    }


def _memory() -> dict[str, str]:
    return {
        "memory_summary": json.dumps(MEMORY_TOTALS),
        "memory_details": json.dumps({"1": graph()}),
        "operator_memory": lines(
            "Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us),Device Type",
            f"MatMul,4,{T0_US}.125,{T0_US + 10}.5,10.375,NPU:3",
            f"Add,1,{T0_US + 1}.5,{T0_US + 2}.5,1,NPU:3",
        ),
    }


def _proto() -> bytes:
    """A plan of one graph with a node and a tensor of 1 KiB, in the wire format."""

    def part(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    node = part(1, b"Default/op0") + part(4, b"\x05")
    tensor = b"\x08\x05\x10\x80\x08" + part(3, b"Common") + part(6, b"LifeLongNone")
    graph = b"\x08\x01\x10\x80\x08" + part(3, node) + part(4, tensor) + part(5, b"Default/op0")
    return part(1, graph) + b"\x10\x80\x80\x04"


def _host() -> dict[str, str]:
    rows = [f"101,100,1,graph,Compile,pass,1,{edge},info,4,{T0_US + 9 * edge}" for edge in (0, 1)]
    shapes = [{"MatMul-op2": {"op_exe_time": [0.2, 0.3], "op_shape": ["[2, 3]", "[4, 3]"], "op_exe_occurrences": 2}}]
    return {
        "host_info": HOST_HEADER + lines(*rows),
        "host_dataset": lines("Operation,Stage,Occurrences,Avg. time (us),Custom Info", "Pipeline,getNext,8,900.5,"),
        "dynamic_shapes": json.dumps({"MatMul": shapes, "op_type": {"MatMul": [0.2, 0.3]}}),
        "strategy": json.dumps(
            {
                "config": {"rankId": 0, "stageId": 0, "parallelType": "data_parallel"},
                "graph": {"node": [{"name": "1", "opType": "MatMul", "fullName": "Default/MatMul-op1"}]},
            }
        ),
        "recommendation": json.dumps({"model": {"AICPUModel": {"extend": []}}}),
    }


def _raw() -> dict[str, str]:
    info = {"id": 0, "ai_core_num": 30, "aic_frequency": "1650"}
    rows = "".join(iteration(step, 100 * (step - 1)) for step in range(1, len(starts()) + 1))
    return {
        "device_info": json.dumps({"rank_id": "0", "DeviceInfo": [info]}),
        "device_steps": f"{STEPS_HEADER}\n{rows}",
    }
