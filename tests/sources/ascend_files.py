"""Small Ascend recordings, written by hand: one rank of two, two steps, two kernels and a call in each."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.sources.ascend import AscendDb, AscendText
from stepscope.sources.base import Input, Source
from stepscope.store.sinks import MemorySink

EPOCH_US = 1_760_000_000_000_000
EPOCH_NS = EPOCH_US * 1000
PYTHON, CANN, HARDWARE, CALLS = 4242, 4343875, 4344067, 4344131
PROCESSES = {PYTHON: "Python", CANN: "CANN", HARDWARE: "Ascend Hardware", CALLS: "Communication"}
"""Processes in trace_view.json."""
COMMUNICATOR = "10.0.0.1%eth0_60000_0_1760000000000000"
GROUP = "7192693837155207653"
CALL = "hcom_allReduce__653_{}_1"
RANK_DIRECTORY = "host_a_4242_20251009163000000_ascend_pt"

KERNEL_HEADER = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats,Context ID,aicore_time(us),aic_mac_ratio,cube_utilization(%)"
)


Tables = dict[str, tuple[str, list[tuple[Any, ...]]]]
"""Tables of a database: columns and rows."""


def rank_directory(parent: Path, name: str = RANK_DIRECTORY, rank: int = 0) -> Path:
    """A rank directory with its side files and an empty output folder."""
    root = parent / name
    output = root / "ASCEND_PROFILER_OUTPUT"
    device = root / "PROF_000001_20251009163000000_ABC" / "device_3"
    output.mkdir(parents=True)
    device.mkdir(parents=True)
    info = {
        "config": {"common_config": {"with_stack": False}, "experimental_config": {"_aic_metrics": "PipeUtilization"}},
        "torch_npu_version": "2.7.1",
        "cann_version": "8.3.0",
        "rank_id": rank,
    }
    metadata = {
        "ENV_VARIABLES": {"HCCL_ALGO": ""},
        "parallel_group_info": {COMMUNICATOR: {"group_name": "dp", "group_rank": rank, "global_ranks": [4, 7]}},
        "distributed_args": {"world_size": 8, "data_parallel_size": 2},
    }
    (root / f"profiler_info_{rank}.json").write_text(json.dumps(info))
    (root / "profiler_metadata.json").write_text(json.dumps(metadata))
    (device / "info.json.3").write_text(
        json.dumps({"DeviceInfo": [{"id": 3, "ai_core_num": "24", "aiv_num": 48, "aic_frequency": "1800"}]})
    )
    return output


def kernel_row(step: int, start_us: float, name: str = "MatMul_1", *, tab: str = "\t") -> str:
    """A row of kernel_details.csv for a compute kernel of 100.5 us."""
    start = f"{EPOCH_US + int(start_us)}.{round(start_us % 1 * 1000):03d}{tab}"
    shapes = '"""8,16;16,4"""'
    return (
        f"{step},3,1,7,2,{name},MatMulV3,static,AI_CORE,{start},100.5,1.25,24,0,NO,{shapes},DT_BF16;DT_BF16,ND;ND,"
        f'"""8,4""",DT_BF16,ND,N/A,97.123,0.86,75.5'
    )


def call_row(step: int, start_us: int, number: int) -> str:
    """A row of kernel_details.csv for a communication call of 500 us."""
    return (
        f"{step},3,1,N/A,N/A,{CALL.format(number)},hcom_allReduce_,N/A,COMMUNICATION,{EPOCH_US + start_us}.000\t,500,"
        "0,0" + ",N/A" * 12
    )


def write_kernels(output: Path, *, header: str = KERNEL_HEADER, rows: list[str] | None = None) -> Path:
    """kernel_details.csv with two steps of two kernels and a call; returns its folder."""
    if rows is None:
        starts = ((step, 1000 + 10_000 * step) for step in (0, 1))
        kernels = [
            (kernel_row(step + 5, at + 0.125), kernel_row(step + 5, at + 200), call_row(step + 5, at + 400, step))
            for step, at in starts
        ]
        rows = [row for step in kernels for row in step]
    (output / "kernel_details.csv").write_text("\n".join([header, *rows]) + "\n")
    return output


class TraceEvents:
    """Events of a trace_view.json, whose processes and tracks have names.

    Args:
        epoch_us: What times count from.
        sides: Whether processes are labelled with their side.
    """

    def __init__(self, epoch_us: int = EPOCH_US, *, sides: bool = True) -> None:
        self.epoch_us = epoch_us
        self.events: list[dict[str, Any]] = []
        for pid, name in PROCESSES.items():
            self._label("process_name", pid, name=name)
            if sides:
                self._label("process_labels", pid, labels="CPU" if pid in (PYTHON, CANN) else "NPU 3")
        self._label("thread_name", CALLS, name="Group 0 Communication")
        self._label("thread_name", CALLS, 1, name="Plane 0")

    def _label(self, kind: str, pid: int, tid: int = 0, **label: str) -> None:
        self.events.append({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": label})

    def add(self, name: str, pid: int, tid: int, at: float, dur: float, cat: str = "", **args: Any) -> None:
        """Add a range that starts `at` us after the epoch."""
        ts = f"{self.epoch_us + int(at)}.{round(at % 1 * 1000):03d}"
        event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        self.events.append({**event, "cat": cat} if cat else event)

    def write(self, output: Path) -> Path:
        """Write the file; returns its folder."""
        (output / "trace_view.json").write_text(json.dumps(self.events))
        return output


def write_trace(output: Path) -> Path:
    """trace_view.json for the same two steps; returns its folder."""
    trace = TraceEvents()
    add = trace.add
    for step in (0, 1):
        at = 1000 + 10_000 * step
        add(f"ProfilerStep#{step + 5}", PYTHON, 1, at - 1000, 9000, "cpu_op")
        for number, shift in enumerate((0.125, 200)):
            connection = 10 * step + number + 1
            host = at - 500 + 100 * number
            operator = {"Sequence number": 3, "Fwd thread id": 0, "Input Dims": "8,16;16,4"}
            add("aten::mm", PYTHON, 1, host, 50, "cpu_op", **operator, **{"Call stack": "a.py(1): f;\r\nb.py(2): g"})
            add("Enqueue@aclnnMatmul", PYTHON, 1, host + 10, 5, "enqueue", correlation_id=connection)
            add("Dequeue@aclnnMatmul", PYTHON, 2, host + 20, 5, "dequeue", correlation_id=connection)
            add("Node@launch", CANN, 2, host + 30, 4, level="node", connection_id=connection)
            task = {"Task Type": "AI_CORE", "Stream Id": 2, "connection_id": connection}
            add("MatMul_1", HARDWARE, 2, at + shift, 100.5, **task)
        copy = {"Task Type": "MEMCPY_ASYNC", "size(B)": 4096, "operation": "device to host"}
        add("MEMCPY_ASYNC", HARDWARE, 2, at - 100, 20, **copy)
        call = {"connection_id": 99 + step, "data_type": "BFP16", "count": 1000}
        add(CALL.format(step), CALLS, 0, at + 400, 500, **call)
        add("Notify_Wait", CALLS, 1, at + 400, 300, **{"transport type": "LOCAL"})
    frequency = {"ph": "C", "name": "AI Core Freq", "pid": 4344099, "tid": 0, "ts": f"{EPOCH_US}.000"}
    trace.events.append({**frequency, "args": {"MHz": 1800}})
    return trace.write(output)


def write_communication(output: Path, *, bandwidth: float = 20.0) -> Path:
    """communication.json and communication_matrix.json for the same two calls; returns their folder."""
    steps: dict[str, Any] = {}
    links: dict[str, Any] = {}
    for step in (0, 1):
        unused = {"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Bandwidth(GB/s)": 0, "Size Distribution": {}}
        moved = {"Transit Size(MB)": 4.0, "Transit Time(ms)": 0.2, "Bandwidth(GB/s)": bandwidth}
        moved["Size Distribution"] = {"1.0": [4, 0.2]}
        times = {
            "Start Timestamp(us)": float(EPOCH_US + 1400 + 10_000 * step),
            "Elapse Time(ms)": 0.5,
            "Transit Time(ms)": 0.2,
            "Wait Time(ms)": 0.29,
            "Synchronization Time(ms)": 0.25,
        }
        call = {"Communication Time Info": times, "Communication Bandwidth Info": {"SDMA": moved, "RDMA": unused}}
        calls = {f"{CALL.format(step)}@{GROUP}": call, "Total Op Info": call}
        steps[f"step{step + 5}"] = {"p2p": {}, "collective": calls}
        link = {"Transport Type": "HCCS", "Transit Size(MB)": 4.0, "Transit Time(ms)": 0.2, "Bandwidth(GB/s)": 20.0}
        named = {**link, "Op Name": CALL.format(step)}
        kinds = {f"allreduce-total@{GROUP}": {"0-1": link}, f"allreduce-top1@{GROUP}": {"0-1": named}}
        kinds[f"allreduce-bottom1@{GROUP}"] = {"0-1": named}
        links[f"step{step + 5}"] = {"p2p": {}, "collective": kinds}
    (output / "communication.json").write_text(json.dumps(steps))
    (output / "communication_matrix.json").write_text(json.dumps(links))
    return output


def write_texts(output: Path) -> Path:
    """All of these; returns their folder."""
    return write_communication(write_trace(write_kernels(output)))


def write_database(output: Path, *, leave_out: tuple[str, ...] = ()) -> Path:
    """A database with one operator, its kernel and its call, without the tables in `leave_out`."""
    path = output / "ascend_pytorch_profiler_0.db"
    texts = ["aten::mm", "MatMul_1", "MatMulV3", "AI_CORE", "launch", "8,16;16,4", CALL.format(0), COMMUNICATOR]
    texts += ["N/A", "static", "aic_total_time", "KERNEL_AICORE", "ProfilerStep#5"]
    number = {text: at for at, text in enumerate(texts)}
    kernel = [number[text] for text in ("MatMul_1", "AI_CORE", "MatMulV3", "8,16;16,4", "N/A")]
    t = EPOCH_NS
    thread = (4242 << 32) | 1
    tables: Tables = {
        "STRING_IDS": ("id, value", list(enumerate(texts))),
        "TASK": (
            "startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId, globalPid",
            [(t + 5000, t + 6500, 3, 1, 100, number["KERNEL_AICORE"], 2, 4242)],
        ),
        "COMPUTE_TASK_INFO": (
            "name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputShapes, opState",
            [(*kernel[:1], 100, 24, 0, *kernel[1:])],
        ),
        "TASK_PMU_INFO": ("globalTaskId, name, value", [(100, number["aic_total_time"], 1.25)]),
        "COMMUNICATION_OP": (
            "opName, startNs, endNs, connectionId, groupName, dataType, count",
            [(number[CALL.format(0)], t + 7000, t + 9000, 2, number[COMMUNICATOR], 11, 1000)],
        ),
        "ENUM_HCCL_DATA_TYPE": ("id, name", [(11, "BFP16")]),
        "CANN_API": (
            "startNs, endNs, type, globalTid, connectionId, name",
            [(t + 3000, t + 4000, 10000, thread, 1, number["launch"])],
        ),
        "PYTORCH_API": (
            "startNs, endNs, globalTid, connectionId, name, sequenceNumber, fwdThreadId, inputShapes,"
            " callchainId, type",
            [
                (str(t + 1000), str(t + 2000), thread, 7, number["aten::mm"], 3, 0, number["8,16;16,4"], None, 50001),
                (str(t), str(t + 9500), thread, None, number["ProfilerStep#5"], -1, 0, None, None, 50001),
            ],
        ),
        "CONNECTION_IDS": ("id, connectionId", [(7, 1)]),
        "STEP_TIME": ("id, startNs, endNs", [(5, t, t + 9500)]),
    }
    return make_database(path, {name: table for name, table in tables.items() if name not in leave_out})


def make_database(path: Path, tables: Tables) -> Path:
    """Write a SQLite file; returns its path."""
    with closing(sqlite3.connect(path)) as connection:
        for name, (columns, rows) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ",".join("?" * (columns.count(",") + 1))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        connection.commit()
    return path


def sql(path: Path, *statements: str) -> None:
    """Change a database."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def found(source: Source, directory: Path) -> Input | None:
    """What `source` makes of a directory."""
    found = source.find(directory, sorted(path.name for path in directory.iterdir()))
    return None if found is None else found.inputs[0]


def read(source: Source, directory: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """The tables of the recording in a directory, and the facts of its rank."""
    item = found(source, directory)
    assert item is not None
    sink = MemorySink(source.name)
    source.read(item, sink)
    facts = sink.facts
    return sink.close(), facts


def read_text(directory: Path) -> dict[str, pl.DataFrame]:
    """The tables of a text export."""
    return read(AscendText(), directory)[0]


def read_db(directory: Path) -> dict[str, pl.DataFrame]:
    """The tables of a database export."""
    return read(AscendDb(), directory)[0]
