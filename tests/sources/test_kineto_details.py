"""What is rarely asked of a trace: names of threads, waits of streams, resources of kernels."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fuzz import differential
from stepscope.run import open_run
from stepscope.sources import spool
from stepscope.sources.kineto import reading, segments
from stepscope.sources.kineto.layout import COLUMNS, LAYOUT
from stepscope.sources.native import library
from tests.sources.test_kineto import Tables, Trace


def labelled(trace: Trace, what: str, pid: int | str, tid: int | str, **args: Any) -> None:
    trace.events.append({"ph": "M", "name": what, "ts": 0, "pid": pid, "tid": tid, "args": args})


def test_threads_have_the_names_of_the_trace(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::mm", 1_000_000, 5)
    labelled(trace, "process_name", 9, 0, name="python")
    labelled(trace, "process_labels", 9, 0, labels="CPU")
    labelled(trace, "process_sort_index", 9, 0, sort_index=2**63 - 1)
    labelled(trace, "thread_name", 9, 1, name="thread 1")
    labelled(trace, "thread_name", 9, 1, name="thread 1 (python)")
    labelled(trace, "thread_sort_index", 9, 1, sort_index=1)
    labelled(trace, "process_name", "Spans", 0, name="Spans")
    labelled(trace, "other", 9, 1, name="left out")

    tables = trace.read(tmp_path)

    assert tables["threads"].rows() == [
        ("9", "1", "thread 1 (python)", 1, "python", "CPU", 2**63 - 1),
        ("Spans", None, None, None, "Spans", None, None),
    ]
    assert "issues" not in tables.frames  # labels are at any time, 0 as well


def test_waits_say_for_what(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::mm", 0, 100)
    known = {"device": 0, "stream": 7, "correlation": 12}
    waited = {"wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 11, "wait_on_cuda_event_id": 3}
    trace.add("cuda_sync", "Stream Wait Event", 10, 5, tid=7, **known, **waited)
    trace.add("cuda_sync", "Context Sync", 20, 5, tid=-1, device=0, stream=-1, wait_on_stream=-1)
    trace.add("overhead", "CUPTI", 30, 5, tid=3, correlation=4)

    tables = trace.read(tmp_path)

    assert tables["synchronizations"].drop("slice").rows() == [
        (10_000, 5_000, "Stream Wait Event", 0, 7, 12, 20, 11, 3),
        (20_000, 5_000, "Context Sync", 0, -1, None, None, None, None),
    ]
    slices = dict(tables["slices"].select("slice", "name").rows())
    assert [slices[number] for number in tables["synchronizations"]["slice"]] == ["Stream Wait Event", "Context Sync"]
    assert tables["slices"]["correlation"].null_count() == 4


def test_kernels_have_their_resources(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::mm", 0, 100)
    used = {"blocks per SM": 0.8, "warps per SM": 3.2, "registers per thread": 72, "shared memory": 13824}
    trace.launch("a", 10, 20, 5, 1, **used).launch("b", 11, 30, 5, 2)

    tables = trace.read(tmp_path)

    assert tables["kernel_resources"].rows() == [(0, 0.8, 3.2, 72, 13824)]


def test_a_trace_without_details_has_no_tables_of_them(tmp_path: Path) -> None:
    tables = Trace().add("cpu_op", "aten::mm", 0, 100).launch("a", 10, 20, 5, 1).read(tmp_path)

    details = {
        "threads",
        "synchronizations",
        "kernel_resources",
        "operator_details",
        "python_calls",
        "collective_splits",
    }
    assert not details & tables.frames.keys()


def test_details_of_a_real_trace(shared: Path) -> None:
    run = open_run([shared / "data" / "pytorch" / "dlrm_8rank_v100" / "worker0_step_12.1694128201545.pt.trace.json.gz"])
    kernels = run.table("kernels").collect()

    resources = run.table("kernel_resources").collect()

    compute = kernels.filter(kernels["kind"] != "memory")
    assert resources["kernel"].to_list() == compute["kernel"].to_list()
    assert resources.drop("rank").null_count().row(0) == (0, 0, 0, 0, 0)
    threads = run.table("threads").collect()
    assert threads.filter(threads["thread_name"].str.contains("stream"))["process_labels"].unique().to_list() == [
        "GPU 0"
    ]


def test_operators_have_strides_and_the_launch_of_a_compiled_kernel(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::mm", 0, 5, Input__Strides=[[4, 1], []]).add("cpu_op", "aten::add", 10, 5)
    compiled = {"kernel_name": "triton_poi_0", "kernel_file": "/tmp/a.py", "kernel_hash": "a1", "grid": "grid(100,)"}
    launch = {"kernel_backend": "triton", "kernel_kwargs": "XBLOCK=16", "stream": 2**40, "num_warps": 4}
    estimated = {"num_stages": 1, "kernel_num_gb": 0.5, "kernel_flop": 2000}
    trace.add("cpu_op", "triton_poi_0", 20, 5, **compiled, **launch, **estimated)

    tables = trace.read(tmp_path)

    assert tables["operator_details"].rows() == [
        (0, "[[4, 1], []]", *[None] * 11),
        (2, None, "triton_poi_0", "/tmp/a.py", "a1", "triton", "XBLOCK=16", "grid(100,)", 2**40, 4, 1, 0.5, 2000.0),
    ]
    assert tables["slices"].filter(name="triton_poi_0")["stream"].to_list() == [None]


def test_lists_of_an_indented_trace_are_as_those_of_any_other(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::mm", 0, 5, Input__Strides=[[4, 1], []], dims=[[2, 4], []])
    plain = trace.read(tmp_path)
    path = tmp_path / "indented.json"
    path.write_text(json.dumps({**trace.header, "traceEvents": trace.events}, indent=2))

    tables = Tables(path)

    assert tables["operator_details"]["input_strides"].to_list() == ["[[4, 1], []]"]
    for name in ("operator_details", "operators"):
        assert tables[name].rows() == plain[name].rows()


def test_python_functions_have_their_numbers(tmp_path: Path) -> None:
    trace = Trace().add("python_function", "f.py(1): f", 0, 10, Python__id=7, Python__parent__id=3)
    trace.add("python_function", "nn.Module: Linear_0", 2, 5, Python__id=8, Python__parent__id=7, Python__module__id=0)
    trace.add("cpu_op", "aten::mm", 3, 1).add("user_annotation", "gloo:all_reduce", 20, 1)

    tables = trace.read(tmp_path)

    slices = {name: number for number, name in tables["slices"].select("slice", "name").rows()}
    assert tables["python_calls"].rows() == [
        (slices["f.py(1): f"], 7, 3, None),
        (slices["nn.Module: Linear_0"], 8, 7, 0),
    ]


def test_collectives_say_how_they_split_their_payload(tmp_path: Path) -> None:
    said = {"Collective name": "all_to_allv", "Process Group Name": "0", "Group size": 2, "dtype": "Float"}
    even = {"In split size": "[]", "Out split size": "[]"}
    uneven = {"In split size": "[3, 5]", "Out split size": "[1, 2]"}
    trace = Trace()
    for number, split in enumerate((even, uneven, {})):
        start = 100 * number
        trace.add("cpu_op", "record_param_comms", start, 20, external_id=number + 1, **said, **split)
        trace.launch("ncclDevKernel_SendRecv", start + 5, start + 30, 9, number + 1)

    tables = trace.read(tmp_path)

    assert tables["collectives"]["collective"].to_list() == [0, 1, 2]
    assert tables["collective_splits"].rows() == [(1, "[3, 5]", "[1, 2]")]


def test_what_only_some_chunks_have_is_null_in_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of the text and of time, spooled in memory and in files, with ranges that go on in the next chunk."""
    trace = Trace().add("cpu_op", "outer", 0, 4000, Input__Strides=[[7]])
    for number in range(600):
        late = {"Input__Strides": [[number]]} if number > 400 else {}
        trace.add("cpu_op", "aten::mm", 1 + 6 * number, 5, **late)
        if number < 300:
            trace.add("python_function", "f", 2 + 6 * number, 3)
        else:
            trace.add("python_function", "f", 2 + 6 * number, 3, Python__id=number)
    whole = trace.read(tmp_path)
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 100)
    monkeypatch.setattr(reading, "TraceEvents", partial(reading.TraceEvents, chunk_bytes=4096))
    monkeypatch.setattr(spool, "MEMORY_BYTES", 10_000)
    monkeypatch.setattr(spool, "_PART_BYTES", 5_000)

    cut = trace.read(tmp_path, "cut.json")

    expected = [[7], *([number] for number in range(401, 600))]
    for tables in (whole, cut):
        of = dict(tables["slices"].select("slice", "start_ns").rows())
        rows = tables["operator_details"].select("slice", "input_strides").rows()
        strides = [text for _, text in sorted(rows, key=lambda row: of[row[0]])]
        assert strides == [f"[[{number}]]" for [number] in expected]
        assert sorted(tables["python_calls"]["python_id"]) == list(range(300, 600))
        starts = {of[number] for number in tables["python_calls"]["slice"]}
        assert starts == {1000 * (2 + 6 * number) for number in range(300, 600)}
    assert tables["slices"].height == 1201


@pytest.mark.skipif(not library.is_available(), reason="no compiled decoder here")
def test_both_decoders_leave_out_what_no_event_has() -> None:
    event = b'{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":2,"args":{%s}}'
    plain = differential.decoders(LAYOUT)

    for args, rare in (
        (b"", []),
        (b'"Input Strides":null', []),
        (b'"num_warps":"?"', []),
        (b'"num_warps":8,"Input Strides":[[1]]', ["input_strides", "kernel_warps"]),
    ):
        found = [decoder.decode(event % args).frames["operator"].columns for decoder in plain]
        assert found == [[*COLUMNS["operator"], *rare]] * 2
