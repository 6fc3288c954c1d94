"""Kineto traces become the tables that they describe."""

from __future__ import annotations

import gzip
import json
from math import inf, nan
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.errors import UnreadableInput
from stepscope.recording_format.element_types import element_bytes
from stepscope.sources.head import read_head
from stepscope.sources.kineto import KinetoSource
from stepscope.sources.kineto.communication import operation_of, size_bytes, tensor_bytes
from stepscope.store import MemorySink
from stepscope.tables import TABLES

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}


class Tables:
    """What the source makes of one file."""

    def __init__(self, path: Path) -> None:
        source = KinetoSource()
        item = source.sniff(path, read_head(path) or b"")
        assert item is not None
        sink = MemorySink(source.name)
        source.read(item, sink)
        self.rank = sink.facts
        self.frames = sink.close()

    def __getitem__(self, name: str) -> pl.DataFrame:
        return self.frames.get(name, pl.DataFrame(schema=TABLES[name].stored_schema))

    def problems(self) -> list[str]:
        return self["issues"]["problem"].to_list()


class Trace:
    """A small trace in the making; times in us."""

    def __init__(self, **header: Any) -> None:
        self.header: dict[str, Any] = {"schemaVersion": 1, **header}
        self.events: list[dict[str, Any]] = []

    def add(self, cat: str, name: str, ts: float, dur: float, *, tid: int | str = 1, **args: Any) -> Trace:
        keys = {"external_id": "External id", "dims": "Input Dims", "types": "Input type"}
        named = {keys.get(key, key.replace("__", " ")): value for key, value in args.items()}
        event = {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": tid, "ts": ts, "dur": dur, "args": named}
        self.events.append(event)
        return self

    def launch(self, name: str, start: float, kernel: float, dur: float, number: int, **args: Any) -> Trace:
        """A kernel on stream 7 and the call that launches it."""
        self.add("cuda_runtime", "cudaLaunchKernel", start, 1, correlation=number)
        return self.add("kernel", name, kernel, dur, tid=7, device=0, stream=7, correlation=number, **args)

    def read(self, directory: Path, name: str = "trace.json") -> Tables:
        path = directory / name
        path.write_text(json.dumps({**self.header, "traceEvents": self.events}))
        return Tables(path)


def test_steps_end_where_the_device_work_of_the_next_begins(tmp_path: Path) -> None:
    trace = Trace().add("user_annotation", "ProfilerStep#3", 100, 50).add("user_annotation", "ProfilerStep#4", 150, 50)
    trace.add("gpu_user_annotation", "ProfilerStep#3", 130, 2, tid=7)
    trace.launch("a", 110, 130, 5, 1).launch("b", 120, 160, 20, 2).launch("c", 160, 190, 40, 3)

    tables = trace.read(tmp_path)

    steps = tables["steps"].select("step", "window", "window_start_ns", "window_end_ns").rows()
    assert steps == [(3, "device", 130_000, 190_000), (4, "device", 190_000, 230_000)]
    assert tables["kernels"]["step"].to_list() == [3, 3, 4]


def test_steps_of_a_host_only_trace_are_their_own_ranges(tmp_path: Path) -> None:
    trace = Trace().add("user_annotation", "ProfilerStep#1", 100, 50).add("cpu_op", "aten::mm", 110, 5)
    trace.add("cpu_op", "outside", 200, 5)

    tables = trace.read(tmp_path)

    steps = tables["steps"].select("step", "window", "window_start_ns", "window_end_ns")
    assert steps.row(0) == (1, "host", 100_000, 150_000)
    assert tables["operators"].select("name", "step").rows() == [("aten::mm", 1), ("outside", None)]
    assert tables.rank["device_kind"] == "cpu"


def test_a_trace_without_steps_is_one_step(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::mm", 100, 5).launch("a", 101, 120, 10, 1)

    tables = trace.read(tmp_path)

    steps = tables["steps"].select("step", "window", "start_ns", "end_ns", "window_start_ns", "window_end_ns")
    assert steps.row(0) == (0, "recording", 100_000, 130_000, 120_000, 130_000)
    assert tables["slices"]["step"].to_list() == [0, 0, 0]


def test_slices_know_parent_and_self_time(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "outer", 0, 100, external_id=5, dims=[[2, 3]], types=["float"])
    trace.add("cpu_op", "inner", 10, 20).add("python_function", "f.py(1): f", 12, 5).launch("k", 40, 200, 9, 8)

    tables = trace.read(tmp_path)

    slices = tables["slices"].select("slice", "name", "category", "parent", "depth", "self_ns").rows()
    assert slices == [
        (0, "outer", "operator", None, 0, 79_000),
        (1, "inner", "operator", 0, 1, 15_000),
        (2, "f.py(1): f", "python", 1, 2, 5_000),
        (3, "cudaLaunchKernel", "runtime", 0, 1, 1_000),
        (4, "k", "kernel", None, None, 9_000),
    ]
    operator = tables["operators"].row(0, named=True)
    assert (operator["input_shapes"], operator["input_types"], operator["external_id"]) == ("[[2, 3]]", '["float"]', 5)


def test_the_base_time_behind_the_events_is_added(tmp_path: Path) -> None:
    trace = Trace(baseTimeNanoseconds=10**18).add("cpu_op", "aten::mm", 4371802516983.563, 1)

    tables = trace.read(tmp_path)

    assert tables["operators"]["start_ns"].to_list() == [10**18 + 4371802516983563]
    assert tables.rank["base_ns"] == 10**18


NCCL = {
    "Collective name": "_allgather_base",
    "Process Group Name": "3",
    "Process Group Description": "dp",
    "Process Group Ranks": "[0, 2]",
    "In msg nelems": 10,
    "Out msg nelems": 20,
    "Group size": 2,
    "dtype": "BFloat16",
}


def test_a_collective_is_told_by_the_arguments_of_its_kernel(tmp_path: Path) -> None:
    trace = Trace().launch("ncclDevKernel_Generic", 1, 10, 5, 1, **{**NCCL, "Seq": 41})

    tables = trace.read(tmp_path)

    call = tables["collectives"].row(0, named=True)
    assert call["operation"] == "all_gather"
    assert (call["group"], call["group_size"], call["sequence"]) == ("3", 2, 41)
    assert (call["size_bytes"], call["element_type"], call["on_device"]) == (40, "BFloat16", True)
    assert tables["groups"].rows() == [("3", "dp", [0, 2])]
    assert tables["kernels"]["kind"].to_list() == ["communication"]


def test_a_collective_without_arguments_is_told_by_what_encloses_its_launch(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "record_param_comms", 0, 20)
    trace.add("user_annotation", "nccl:all_to_all", 1, 10, dims=[[6, 4]], types=["long int"])
    trace.launch("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWork*)", 2, 50, 5, 1)

    call = trace.read(tmp_path)["collectives"].row(0, named=True)

    assert (call["operation"], call["size_bytes"], call["group"]) == ("all_to_all", 192, None)


def test_a_collective_takes_what_the_frameworks_record_of_the_call_says(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "record_param_comms", 0, 20, **NCCL)
    trace.launch("ncclDevKernel_AllGather_RING_LL(x)", 2, 50, 5, 1)

    call = trace.read(tmp_path)["collectives"].row(0, named=True)

    assert (call["operation"], call["size_bytes"], call["group"]) == ("all_gather", 40, "3")


def test_host_communication_is_counted_in_the_only_group(tmp_path: Path) -> None:
    group = {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]}
    trace = Trace(distributedInfo={"rank": 1, "world_size": 2, "backend": "gloo", "pg_config": [group]})
    for start in (300, 100):
        trace.add("user_annotation", "gloo:all_reduce", start, 10, dims=[[8]], types=["float"])

    tables = trace.read(tmp_path)

    calls = tables["collectives"].select("start_ns", "group", "sequence", "size_bytes", "group_size", "on_device")
    assert calls.rows() == [(100_000, "0", 0, 32, 2, False), (300_000, "0", 1, 32, 2, False)]
    assert (tables.rank["rank"], tables.rank["rank_origin"], tables.rank["backend"]) == (1, "content", "gloo")


def test_the_other_side_of_a_host_transfer_is_an_input_of_its_operator(tmp_path: Path) -> None:
    """gloo names no side; the operator that made the transfer has it where shapes were recorded."""
    trace = Trace()
    for at, name, inputs in ((0, "send", ["", "", "2", "0"]), (100, "recv_", ["", "", "0", "0"]), (200, "send", None)):
        concrete = {} if inputs is None else {"Concrete__Inputs": inputs}
        trace.add("cpu_op", f"c10d::{name}", at, 20, **concrete)
        trace.add("user_annotation", f"gloo:{name.strip('_')}", at + 15, 50)
    trace.add("user_annotation", "gloo:send", 400, 50)  # long after the last operator

    calls = trace.read(tmp_path)["collectives"]

    assert calls.select("operation", "peer").rows() == [("send", 2), ("recv", 0), ("send", None), ("send", None)]


def test_the_other_side_of_a_device_transfer_is_in_its_annotation(tmp_path: Path) -> None:
    trace = Trace().add("user_annotation", "nccl:recv 3<-2", 0, 20)
    trace.launch("ncclDevKernel_SendRecv(x)", 2, 50, 5, 1)

    call = trace.read(tmp_path)["collectives"].row(0, named=True)

    assert (call["operation"], call["peer"]) == ("recv", 2)


def test_an_annotation_tells_one_members_part_of_a_gather(tmp_path: Path) -> None:
    trace = Trace()
    for at, name in enumerate(("gloo:all_reduce", "gloo:all_gather", "gloo:scatter")):
        trace.add("user_annotation", name, 100 * at, 10, dims=[[8]], types=["float"])

    assert trace.read(tmp_path)["collectives"]["size_of"].to_list() == ["whole", "part", None]


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("nccl:_reduce_scatter_base", "reduce_scatter"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWork*)", "all_reduce"),
        ("allgather_into_tensor_coalesced", "all_gather"),
        ("alltoall_base", "all_to_all"),
        ("ncclDevKernel_SendRecv(x)", "send_recv"),
        ("nccl:send 0->1", "send"),
        ("recvAnySource", "recv"),
        ("gloo:broadcast", "broadcast"),
        ("nccl:reduce", "reduce"),
        ("ncclDevKernel_Generic(x)", "generic"),
    ],
)
def test_operations_have_one_name_whoever_made_the_call(name: str, operation: str) -> None:
    found = pl.DataFrame({"name": [name]}).select(operation_of(pl.col("name"))).item()

    assert found == operation


def test_sizes_come_from_shapes_and_types() -> None:
    assert tensor_bytes("[[2, 3]]", '["c10::BFloat16"]') == (12, "c10::BFloat16")
    assert tensor_bytes("[[[2], [3]], []]", '["double"]') == (40, "double")
    assert tensor_bytes("[[2]]", '["TensorList"]') == (None, "TensorList")
    assert tensor_bytes(None, "[") == (None, None)
    assert tensor_bytes("[[4294967296, 4294967296]]", '["float"]') == (None, "float")  # beyond what tables hold
    assert tensor_bytes("[[-1, 8]]", '["float"]') == (None, "float")
    assert size_bytes(2**62, 1, "Float") is None
    assert [element_bytes(t) for t in ("Float8_e4m3fn", "ComplexHalf", "unsigned char", None)] == [1, 4, 1, None]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-3.123.pt.trace.json", 3),
        ("worker12_step_3.json", 12),
        ("sampled_rank-1.json", 1),
        ("r2.json", 2),
        ("host_rank_0.json", 0),
        ("local_rank0.json", None),
        ("run_r2/trace.json", 2),
        ("r1rec/trace.json", None),  # a word that only begins like one
        ("resnet50_num_workers_4.json", None),
        ("iter5.json", None),
    ],
)
def test_a_rank_that_the_trace_does_not_state_comes_from_its_name(tmp_path: Path, name: str, rank: int | None) -> None:
    folder = tmp_path / "traces"
    (folder / name).parent.mkdir(parents=True)

    tables = Trace().add("cpu_op", "a", 1, 1).read(folder, name)

    assert tables.rank["rank"] == rank
    assert tables.rank["rank_origin"] == (None if rank is None else "file name")


def test_memory_events_give_a_curve_and_blocks(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::empty", 0, 10)
    for time, size, total in ((1, 64, 64), (2, 32, 96), (20, -64, 32), (30, 16, 48)):
        address = 5 if size != 32 else 6
        args = {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size, "Total Allocated": total}
        trace.events.append({"ph": "i", "name": "[memory]", "pid": 9, "tid": 1, "ts": time, "args": args})

    tables = trace.read(tmp_path)

    assert tables["memory_curve"]["allocated_bytes"].to_list() == [64, 96, 32, 48]
    blocks = tables["allocations"].sort("allocation_ns").select("name", "device", "size_bytes", "release_ns")
    assert blocks.rows() == [("aten::empty", 0, 64, 20_000), ("aten::empty", 0, 32, None), (None, 0, 16, None)]


def test_forward_and_backward_are_tied_by_flows(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "a", 0, 1)
    for phase, time, thread in (("s", 1, 1), ("f", 5, 2)):
        trace.events.append({"ph": phase, "cat": "fwdbwd", "id": 4, "ts": time, "pid": 9, "tid": thread, "name": "x"})

    flows = trace.read(tmp_path)["flows"]

    assert flows.select("flow", "from_ns", "from_thread", "to_ns", "to_thread").rows() == [("4", 1000, "1", 5000, "2")]


def test_old_traces_are_read_alike(tmp_path: Path) -> None:
    trace = Trace().add("Operator", "ProfilerStep#2", 0, 100, tid="1")
    stack = {"Call stack": "a.py(1): f;b.py(2): g"}
    trace.add("Operator", "aten::mm", 10, 20, external_id=7, **stack).add("Operator", "aten::mm", 40, 5, **stack)
    trace.add("Runtime", "cudaMemsetAsync", 12, 1, correlation=3, **{"external id": 7})
    trace.add(
        "Memset", "Memset (Device)", 50, 2, tid=7, device=0, stream=7, correlation=3, bytes=16, **{"external id": 7}
    )

    tables = trace.read(tmp_path)

    assert tables["steps"]["step"].to_list() == [2]
    assert tables["operators"]["name"].to_list() == ["aten::mm", "aten::mm"]
    assert tables["operators"]["stack"].to_list() == [0, 0]
    assert tables["stacks"].rows() == [(0, "a.py(1): f\nb.py(2): g")]
    kernel = tables["kernels"].row(0, named=True)
    assert (kernel["kind"], kernel["size_bytes"], kernel["external_id"], kernel["step"]) == ("memory", 16, 7, 2)
    assert tables["slices"].filter(pl.col("parent") == 1)["name"].to_list() == ["cudaMemsetAsync"]


def test_ids_of_kernels_that_only_repeat_the_correlation_are_replaced(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::mm", 0, 50, external_id=12).launch("k", 10, 60, 5, 900, external_id=900)

    tables = trace.read(tmp_path)

    assert tables["kernels"]["external_id"].to_list() == [12]


@pytest.mark.parametrize("base", [True, [1], 10**25, 1.7e18, "soon", nan, -inf], ids=str)
def test_a_time_base_that_is_no_whole_number_is_reported(tmp_path: Path, base: object) -> None:
    tables = Trace(baseTimeNanoseconds=base).add("cpu_op", "a", 1, 1).read(tmp_path)

    assert tables["operators"]["start_ns"].to_list() == [1000]
    assert "is not a whole number of ns in 64 bits; 0 is used" in tables.problems()[0]
    assert tables["issues"]["file"].to_list() == [str(tmp_path / "trace.json")]


@pytest.mark.parametrize("written", ["NaN", "nan", "-Infinity"])
def test_a_time_base_behind_the_events_that_is_no_number_is_reported(tmp_path: Path, written: str) -> None:
    text = json.dumps({"traceEvents": Trace().add("cpu_op", "a", 1, 1).events})
    (tmp_path / "trace.json").write_text(f'{text[:-1]}, "baseTimeNanoseconds": {written}}}')

    tables = Tables(tmp_path / "trace.json")

    assert tables["operators"]["start_ns"].to_list() == [1000]
    problem = "the time base of the trace, 'NaN', is not a whole number of ns in 64 bits; 0 is used"
    assert tables["issues"].select("problem", "place").rows() == [(problem, "baseTimeNanoseconds")]


@pytest.mark.parametrize("base", [{}, {"baseTimeNanoseconds": None}])
def test_a_trace_needs_no_time_base(tmp_path: Path, base: dict[str, None]) -> None:
    assert Trace(**base).add("cpu_op", "a", 1, 1).read(tmp_path).problems() == []


def test_device_times_that_cannot_be_true_are_left_out_and_told(tmp_path: Path) -> None:
    start = 3 * 3600 * 10**6
    trace = Trace(baseTimeNanoseconds=1_700_000_000 * 10**9).add("cpu_op", "a", start, 1000)
    trace.launch("good", start + 1, start + 5, 5, 1)
    trace.launch("too long", start + 2, start + 6, 10**9, 2).launch("unset", start + 3, 0, 5, 3)
    trace.launch("empty", start + 4, start + 20, 0, 4).launch("overlapping", start + 5, start + 7, 1, 5)

    tables = trace.read(tmp_path)

    assert set(tables["kernels"]["name"]) == {"good", "empty", "overlapping"}
    reported = " ".join(tables.problems())
    damage = (
        "left out: no start time",
        "left out: longer than the whole recording",
        "with a duration of 0",
        "overlapping",
    )
    assert all(f"1 device event {what}" in reported for what in damage)


@pytest.mark.parametrize("spooled", [False, True])
@pytest.mark.parametrize("time", [0, -1e15])
def test_events_at_impossible_times_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: float, spooled: bool
) -> None:
    if spooled:
        monkeypatch.setattr("stepscope.sources.spool.MEMORY_BYTES", 0)
    trace = Trace()
    start = 1_700_000_000_000_000
    for number in range(21):
        trace.launch("k", start + 10 * number, start + 10 * number + 5, 2, number + 1)
    for event in trace.events[::7]:
        event["ts"] = time

    tables = trace.read(tmp_path)

    assert tables.problems()[0] == "6 events left out: more than a week from the middle of the recording"
    assert tables["issues"]["lost"][0] == 6
    assert tables["slices"]["slice"].sort().to_list() == list(range(36))
    window = tables["steps"].row(0, named=True)
    assert window["window_end_ns"] - window["window_start_ns"] < 1_000_000


def test_a_recording_whose_device_times_are_all_wrong_has_no_steps_to_compare(tmp_path: Path) -> None:
    trace = Trace().add("user_annotation", "ProfilerStep#1", 10**15, 500)
    for number in range(20):
        trace.launch("k", 10**15 + 10 * number, 5 + number, 2, number + 1)
        trace.add("cpu_op", "aten::mm", 10**15 + 10 * number, 4)

    tables = trace.read(tmp_path)

    assert "steps" not in tables.frames
    assert tables["operators"].height == 20
    assert ("error", "steps") in tables["issues"].select("severity", "place").rows()


def test_launches_without_device_work_are_told(tmp_path: Path) -> None:
    trace = Trace().launch("k", 0, 10, 1, 1)
    for number in range(20):
        trace.add("cuda_runtime", "cudaLaunchKernel", 20 + number, 1, correlation=100 + number)

    tables = trace.read(tmp_path)

    assert any("20 of 21 launches have no device event" in problem for problem in tables.problems())


@pytest.mark.parametrize(
    "header",
    [
        {"distributedInfo": None, "deviceProperties": 3, "baseTimeNanoseconds": "x"},
        {"distributedInfo": {"rank": "a", "world_size": [], "pg_config": [1, {"pg_name": 0, "ranks": "[0, ..., 9]"}]}},
        {"distributedInfo": [], "deviceProperties": [1, {"name": 3}], "host_name": 5},
    ],
)
def test_a_header_of_another_shape_does_no_harm(tmp_path: Path, header: dict[str, Any]) -> None:
    tables = Trace(**header).add("cpu_op", "a", 1, 1).launch("k", 2, 3, 1, 1).read(tmp_path)

    assert tables["kernels"].height == 1
    assert tables.rank["rank"] is None


def test_numbers_and_names_that_no_column_can_hold_become_unknown(tmp_path: Path) -> None:
    trace = Trace(
        distributedInfo={"rank": 2**40, "world_size": 2**40, "pg_config": [{"pg_name": "0", "ranks": [2**40]}]}
    )
    trace.launch("ncclKernel", 1, 5, 1, 1, **{"Group size": 2**40}).launch("k", 2, 9, 1, 2)
    trace.events[-1]["args"].update(device=-(2**63), stream=2**40)
    trace.events.append({"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1})

    tables = trace.read(tmp_path)

    assert tables["kernels"]["device"].to_list() == [0, None]
    assert tables["operators"]["name"].to_list() == [""]
    assert (tables.rank["rank"], tables["groups"]["members"].to_list()) == (None, [None])


def test_a_trace_of_metadata_only_says_so(tmp_path: Path) -> None:
    trace = Trace(distributedInfo={"rank": 0})
    trace.events.append({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}})

    tables = trace.read(tmp_path)

    assert tables.problems() == ["the trace has no timed events"]
    assert tables["steps"].height == 0


@pytest.mark.parametrize(
    ("head", "taken"),
    [
        (b'{"schemaVersion": 1, "traceEvents": [', True),
        (b'{"traceEvents": [{"ph": "X", "cat": "cpu_op"', True),
        (b'\xef\xbb\xbf {"schemaVersion": 1, "deviceProperties": [', True),
        (b'[{"ph": "X", "cat": "cpu_op"', False),
        (b'{"traceEvents": [{"ph": "X", "name": "chrome"', False),
        (b'{"version": 1}', False),
        (b"", False),
    ],
)
def test_a_trace_is_recognised_by_its_content(head: bytes, taken: bool) -> None:
    assert (KinetoSource().sniff(Path("any"), head) is not None) == taken


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"schemaVersion": 1, "deviceProperties": []}')

    with pytest.raises(UnreadableInput, match="traceEvents"):
        Tables(path)


def test_sums_agree_with_a_plain_reading_of_every_sample(shared: Path) -> None:
    files = sorted((shared / "data" / "pytorch").rglob("*.json.gz"))
    assert files

    for file in files:
        events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
        ranges = [e for e in events if e["ph"] == "X"]
        work = [e for e in ranges if e["cat"].lower() in DEVICE]

        tables = Tables(file)

        assert tables["slices"].height == len(ranges), file.name
        kernels = tables["kernels"]
        assert kernels.height == len(work), file.name
        assert kernels["duration_ns"].sum() == round(sum(e["dur"] for e in work) * 1000), file.name
        # children in a row may overhang, but never by more than they are long
        assert tables["slices"].filter(pl.col("self_ns") < 0).height == 0
        assert not tables["issues"].filter(pl.col("severity") == "error").height


def test_the_slow_rank_of_a_gloo_job_shows_in_its_calls(shared: Path) -> None:
    files = sorted((shared / "data" / "pytorch" / "cpu_gloo_4rank_straggler_r2").glob("*.gz"))

    calls = pl.concat([Tables(f)["collectives"].with_columns(file=pl.lit(i)) for i, f in enumerate(files)])

    last = calls.sort("start_ns").group_by("sequence").last()
    assert last["file"].mode().to_list() == [2]
    assert calls.group_by("sequence").len()["len"].unique().to_list() == [4]


def test_the_ranks_of_a_dlrm_job_make_the_same_calls(shared: Path) -> None:
    files = sorted((shared / "data" / "pytorch" / "dlrm_8rank_v100").glob("*.gz"))

    calls = pl.concat([Tables(f)["collectives"].select("sequence", "operation") for f in files])

    assert calls.group_by("sequence").agg(pl.n_unique("operation"), pl.len()).select(
        "operation", "len"
    ).unique().rows() == [(1, 8)]


def test_shapes_of_an_indented_trace_are_those_of_any_other(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::mm", 0, 9, dims=[[2, 3], [3, 4], []], types=["float", "float", ""])
    compact = trace.read(tmp_path)["operators"].row(0, named=True)
    path = tmp_path / "indented.json"
    path.write_text(json.dumps({**trace.header, "traceEvents": trace.events}, indent=1))

    indented = Tables(path)["operators"].row(0, named=True)

    assert (indented["input_shapes"], indented["input_types"]) == (compact["input_shapes"], compact["input_types"])
    assert indented["input_shapes"] == "[[2, 3], [3, 4], []]"
