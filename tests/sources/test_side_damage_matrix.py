"""Every damage to files beside an export, of raw profiles, of the runtime profiler and of clusters of folders.

Each is named, and costs no more than if the file were not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from ascend_files import EPOCH_NS, EPOCH_US, rank_directory, write_kernels

from damages import DAMAGES
from stepscope.errors import UnreadableInput
from stepscope.sources.discover import discover
from stepscope.sources.registry import SOURCES
from stepscope.store.sinks import MemorySink

Files = Mapping[str, bytes | None]
"""Name to content; None is a folder of that name."""
Pieces = dict[tuple[object, ...], list[tuple[Any, ...]]]
KEYS = {"operator_totals": ["unit", "level"], "input_pipeline": ["operator"], "rank_figures": ["name"]}
"""Tables that several files make, with the columns that tell their parts apart."""
TABLES = ("hccl.json", "host_ips_mapping.txt")
"""Files of a cluster; issues of its ranks name them in their text."""
ISSUE = {"severity": pl.String, "file": pl.String, "problem": pl.String}
UNTOLD = {
    ("empty", "cpu_framework_0.txt"): "PyNative leaves it empty",
    ("other_header", "minddata_aicpu_0.txt"): "its columns go by their places",
}
"""Damage to files that is none."""
UNUSED = {"large", "utf_16", "cut_early"}
"""Damage that leaves numbers as they may be, and kinds of it that others stand for."""
WITHOUT_DETAIL = {"rank_4"}
"""Folders of the runtime profiler that lack its detail."""
RAW = "PROF_000001_20251009163000000_ABC"
CPU_TYPES = "op_type,type_occurrences,total_compute_time\nMatMul,2,{}.0\n"


def lines(*rows: str) -> bytes:
    """Rows as lines."""
    return "".join(f"{row}\n" for row in rows).encode()


def export() -> dict[str, bytes]:
    """Files beside kernels: operators of the CPU, dataset stages, AI CPU operators and dataset profiling."""
    batches = [
        f"{kind} {extra} {batch} {value} {100 + 20 * batch}"
        for batch in (1, 2, 3)
        for kind, extra, value in ((0, 0, 4), (0, 1, 3), (0, 2, 7), (1, 16, batch))
    ]
    queue = {"output_queue": {"length": 64, "size": [64, 1, 32]}}
    leaf = {"op_id": 1, "op_type": "TFReader", "num_workers": 4, "children": None, "metrics": queue}
    root = {"op_id": 0, "op_type": "Batch", "num_workers": 4, "children": [1], "metrics": None}
    usage = {"user_utilization": [10, 20, 30], "sys_utilization": [10, 20, 30]}
    times = {"cpu_processor_num": 2, "sampling_interval": 20, "time_stamp": [120, 140, 160]}
    per_operator = [{"op_id": at, "metrics": usage} for at in (0, 1)]
    used = times | {"system_info": usage, "process_info": usage, "op_info": per_operator}
    details = "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time(ms)"
    return {
        "FRAMEWORK/cpu_op_execute_timestamp_0.txt": lines(
            f"Default/fc/MatMul-op1;HostCpuOps;{EPOCH_NS},0.5,0 {EPOCH_NS + 9000},0.25,0",
            f"Default/Add-op3;HostCpuOps;{EPOCH_NS + 1000},0.001,7",
        ),
        "FRAMEWORK/cpu_framework_0.txt": lines(
            "MatMul;MatMul-op1;1;input_1:[2, 3];", "MatMul;MatMul-op1;1;input_1:[2, 3];", "Add;Add-op3;1;input_1:[2];"
        ),
        "FRAMEWORK/cpu_op_type_info_0.csv": lines(
            "op_type,type_occurrences,execution_frequency(per-step),total_compute_time,avg_time(ms),percent",
            "MatMul,4,2,3.0,0.75,0.75",
            "Add,2,1,1.0,0.5,0.25",
        ),
        "FRAMEWORK/cpu_op_detail_info_0.csv": lines(
            details, "Host,MatMul,MatMul-op1,Default/fc/MatMul-op1,4,3.0", "Host,Add,Add-op3,Default/Add-op3,2,1.0"
        ),
        "FRAMEWORK/cpu_ms_memory_record_0.txt": lines(
            "Timestamp(ns),Total Allocated(Byte)", f"{EPOCH_NS},7", f"{EPOCH_NS + 1000},5"
        ),
        "ASCEND_PROFILER_OUTPUT/dataset.csv": lines(
            "Operation,Stage,Occurrences,Avg. time (us),Custom Info", "Pipeline,getNext,4,2.5,", "Map,run,8,1.5,"
        ),
        "ASCEND_PROFILER_OUTPUT/data_preprocess.csv": lines(
            "Device_id,Timestamp(us),Node,Dispatch_time(us),Total_time(us),Stream ID",
            f"3,{EPOCH_US}.5,GetNext,1,9.5,2",
            f"3,{EPOCH_US + 5}.5,GetNext,1,9.5,2",
        ),
        "ASCEND_PROFILER_OUTPUT/device_queue_profiling_0.txt": lines(*batches),
        "ASCEND_PROFILER_OUTPUT/minddata_aicpu_0.txt": lines(
            "node_name start_time end_time queue_size", "GetNext_1 1000 1400 1", "GetNext_2 2000 2400 2"
        ),
        "ASCEND_PROFILER_OUTPUT/pipeline_profiling_0.json": json.dumps(
            {"op_info": [root, leaf], "sampling_interval": 20}
        ).encode(),
        "ASCEND_PROFILER_OUTPUT/minddata_cpu_utilization_0.json": json.dumps(used).encode(),
    }


def iterations() -> dict[str, bytes]:
    """A raw profile that was exported by iteration."""
    names = ((30, "process_name", 0, "Task Scheduler"), (40, "process_name", 0, "HCCL"))
    threads = ((40, "thread_name", 0, "Communication"), (40, "thread_name", 1, "Plane 0"))
    meta = [
        {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
        for pid, kind, tid, name in (*names, *threads)
    ]

    def event(pid: int, name: str, start: int, length: int, **args: object) -> dict[str, object]:
        at = f"{EPOCH_US + start}.000"
        return {"ph": "X", "name": name, "pid": pid, "tid": 0, "ts": at, "dur": length, "args": args}

    files = {}
    for number in (1, 2):
        at = 500 * number
        kernel = event(30, "MatMul-op1", at, 40, **{"Task Type": "AI_CORE", "Stream Id": 5})
        call = event(40, "hcom_allReduce__653_0_1", at + 50, 20)
        files[f"{RAW}/device_3/timeline/task_time_3_1_{number}.json"] = json.dumps([*meta, kernel]).encode()
        files[f"{RAW}/device_3/timeline/hccl_3_1_{number}.json"] = json.dumps([*meta, call]).encode()
    steps = [f"{k},{EPOCH_US + 500 * k},{EPOCH_US + 500 * k + 50},{EPOCH_US + 500 * k + 90},100,10,1" for k in (1, 2)]
    header = "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),Data Aug Bound(us),Model ID"
    info = {"rank_id": 4, "DeviceInfo": [{"ai_core_num": 2, "aic_frequency": 9}]}
    return files | {
        f"{RAW}/device_3/summary/step_trace_3_1_1.csv": lines(header, *steps),
        f"{RAW}/device_3/info.json.3": json.dumps(info).encode(),
    }


def runtime() -> dict[str, bytes]:
    """The runtime profiler's files; `Json` counts where the detail is missing."""
    events = []
    for step in (1, 2):
        start = EPOCH_NS + 1000 * step
        times = f"start_time:{start}, end_time:{start + 300}, dur_time:,300,ns, tid:7, pid:42"
        events += [
            f"[Step:{step} step_time:1000ns, module_total_time:1ns]",
            f"module:Kernel, event:KernelLaunch, op:Add, {times}",
        ]
    event = {"name": "Kernel::KernelLaunch::Add", "ph": "X", "pid": "42", "tid": "7", "ts": EPOCH_US + 1, "dur": 0.3}
    return {
        "rank_3/RuntimeProfilerDetail1.csv": lines(*events),
        "rank_4/RuntimeProfilerJson2.json": json.dumps([event, {**event, "ts": EPOCH_US + 2}]).encode(),
    }


def cluster() -> dict[str, bytes]:
    """Two hosts of two devices each, with their tables."""
    ranks = {"10.0.0.1": (5, 3), "10.0.0.2": (2, 7)}
    servers = [
        {"server_id": host, "device": [{"device_id": str(at), "rank_id": str(rank)} for at, rank in enumerate(own)]}
        for host, own in ranks.items()
    ]
    totals = {
        f"cluster_profiler/{host}/profiler/cpu_op_type_info_{device}.csv": CPU_TYPES.format(10 * host + device).encode()
        for host in (2, 10)
        for device in (0, 1)
    }
    tables = {"hccl.json": json.dumps({"server_list": servers}).encode()}
    return totals | tables | {"host_ips_mapping.txt": b"10.0.0.2 2\n10.0.0.1 10\n"}


LAYOUTS: Mapping[str, Callable[[], dict[str, bytes]]] = {
    function.__name__: function for function in (export, iterations, runtime, cluster)
}


def read(layout: str, files: Files) -> tuple[Pieces, dict[str, set[str]]]:
    """What a directory says, in pieces, and the files of its issues by severity; checks that nothing is written."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        if layout == "export":
            directory = rank_directory(directory, "host_a_77_20251009163000000_ascend_ms").parent
            write_kernels(directory / "ASCEND_PROFILER_OUTPUT")
        for file, content in files.items():
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            (directory / file).mkdir() if content is None else (directory / file).write_bytes(content)
        before = _state(directory)
        found = discover([directory])
        told: dict[str, set[str]] = {"error": set(), "warning": set(), "note": set()}
        for problem in found.problems:
            assert problem.trace is None, problem.trace
            told[problem.severity].add(_name(problem.file, directory))
        pieces: Pieces = {}
        for item in found.inputs:
            sink = MemorySink(item.source)
            try:
                next(source for source in SOURCES if source.name == item.source).read(item, sink)
            except UnreadableInput as error:
                told["error"].add(_name(str(error.path), directory))
                continue
            tables = sink.close()
            issues = tables.pop("issues", pl.DataFrame(schema=ISSUE))
            for severity, file, problem in issues.select(*ISSUE).iter_rows():
                told[severity].add(_name(file, directory))
                told["note"] |= {table for table in TABLES if table in problem}
            pieces |= _pieces(item.path.relative_to(directory).as_posix() + item.label, tables)
        assert _state(directory) == before
        return pieces, told


def _name(file: str, directory: Path) -> str:
    return Path(file).relative_to(directory).as_posix() if Path(file).is_relative_to(directory) else file


def _state(directory: Path) -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() if path.is_file() else b"" for path in directory.rglob("*")}


def _pieces(item: str, tables: dict[str, pl.DataFrame]) -> Pieces:
    pieces: Pieces = {}
    for name, table in tables.items():
        parts = table.group_by(KEYS[name], maintain_order=True) if name in KEYS else [((), table)]
        pieces |= {(item, name, *key): sorted(part.rows(), key=repr) for key, part in parts}
    return pieces


@cache
def sound(layout: str) -> tuple[dict[str, bytes], Pieces]:
    """The undamaged files of a layout, and what they say."""
    files = LAYOUTS[layout]()
    pieces, told = read(layout, files)
    assert told["error"] | told["warning"] <= WITHOUT_DETAIL
    return files, pieces


@cache
def costs(layout: str, file: str) -> frozenset[tuple[object, ...]]:
    """What is lost, or said otherwise, where a file is missing."""
    files, pieces = sound(layout)
    return differing(pieces, read(layout, {name: text for name, text in files.items() if name != file})[0])


def differing(one: Pieces, other: Pieces) -> frozenset[tuple[object, ...]]:
    """Pieces that are not the same; a trace file is only read, and listed, where other files leave something open."""
    keys = {key for key in one.keys() | other.keys() if "timelines" not in key}
    return frozenset(key for key in keys if one.get(key) != other.get(key))


ROUNDS = [
    (layout, tuple(files[part]))
    for layout, parts in {
        "export": (slice(0, None, 2), slice(1, None, 2)),
        "iterations": (slice(0, None, 2), slice(1, None, 2)),
        "runtime": (slice(None),),
        "cluster": (slice(4), slice(4, 5), slice(5, 6)),
    }.items()
    for files in (list(LAYOUTS[layout]()),)
    for part in parts
]
"""Files that are damaged together; related ones, which stand side by side, are in different rounds."""
FOLDER = "folder"
"""A directory in the place of each file."""


def damaged(layout: str, damage: str, names: Iterable[str]) -> dict[str, bytes | None]:
    """The files that a damage changes, None for a folder in the place of one."""
    if damage == FOLDER:
        return dict.fromkeys(names)
    files = sound(layout)[0]
    changed = {name: DAMAGES[damage](Path(name).name, files[name]) for name in names}
    return {name: text for name, text in changed.items() if text is not None and text != files[name]}


@pytest.mark.parametrize(("layout", "names"), ROUNDS)
def test_a_missing_file_costs_something_and_is_no_error(layout: str, names: tuple[str, ...]) -> None:
    assert all(costs(layout, name) for name in names)


@pytest.mark.parametrize(("layout", "names"), ROUNDS)
@pytest.mark.parametrize("damage", [*sorted(DAMAGES.keys() - UNUSED), FOLDER])
def test_damage_is_named_and_costs_no_more_than_the_file(damage: str, layout: str, names: tuple[str, ...]) -> None:
    files, expected = sound(layout)
    hurt = damaged(layout, damage, names)

    pieces, told = read(layout, {**files, **hurt})

    if "host_ips_mapping.txt" not in hurt:  # the ranks that its other lines tell are kept
        assert differing(expected, pieces) <= frozenset().union(*(costs(layout, name) for name in hurt))
    may_hide = {name for name in hurt if (damage, Path(name).name) in UNTOLD}
    assert hurt.keys() - may_hide <= set().union(*told.values())
    # without its line in the mapping, a folder is that of an unknown host
    folders = {f"cluster_profiler/{number}/profiler" for number in (2, 10)} if "host_ips_mapping.txt" in hurt else set()
    assert told["error"] | told["warning"] <= hurt.keys() | WITHOUT_DETAIL | folders


def test_a_host_without_a_line_in_the_mapping_costs_its_own_ranks_alone() -> None:
    files, pieces = sound("cluster")

    found, told = read("cluster", {**files, "host_ips_mapping.txt": b"10.0.0.1 10\n"})

    kept = {key[0] for key in pieces if found.get(key) == pieces[key]}
    assert kept >= {"cluster_profilerrank 5", "cluster_profilerrank 3"}
    assert "cluster_profilerrank 2" not in kept
    assert "host_ips_mapping.txt" in told["note"]
