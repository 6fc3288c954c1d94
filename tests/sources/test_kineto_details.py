"""What is rarely asked of a trace: names of threads, waits of streams, resources of kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepscope.run import open_run
from tests.sources.test_kineto import Trace


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

    assert not {"threads", "synchronizations", "kernel_resources"} & tables.frames.keys()


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
