"""One job in three formats gives one answer: as the PyTorch profiler's trace, as Ascend text, as Ascend database."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ascend_files import CALLS, CANN, COMMUNICATOR, HARDWARE, KERNEL_HEADER, PYTHON, Tables, TraceEvents, make_database
from polars.testing import assert_frame_equal

from stepscope import Run, open_run
from stepscope.sources.ascend.groups import group_key
from traces import COLLECTIVE, COPY, ELEMENTS, EPOCH_NS, RankTrace, Span, Work, write_kineto

US = 1000
RANKS, STEPS, STEP_NS = 4, 3, 4_000_500
COMPUTES_SLOWLY, DISPATCHES_LATE = 2, 1
WAIT = "cudaStreamSynchronize"
TAG = str(int(group_key(COMMUNICATOR)[-3:]))

Writer = Callable[[Path, RankTrace], object]


def job() -> list[RankTrace]:
    """Each step computes, reduces and waits twice; one rank computes longer, one launches its second kernel late."""
    work: dict[int, list[Work]] = {rank: [] for rank in range(RANKS)}
    waits: dict[int, list[Span]] = {rank: [] for rank in work}
    steps = []
    for step in range(STEPS):
        now = EPOCH_NS + step * STEP_NS
        steps.append((step + 3, Span(f"ProfilerStep#{step + 3}", now, STEP_NS - US)))
        for part in range(2):
            ready, launched = dict.fromkeys(range(RANKS), now), dict.fromkeys(range(RANKS), now)
            for rank, done in work.items():
                late = 400 * US if (rank, part) == (DISPATCHES_LATE, 1) else 0
                length = (1300 if rank == COMPUTES_SLOWLY else 1000) * US - 7 * rank
                launch = Span("cudaLaunchKernel", now + 10 * US + late, 4 * US)
                kernel = Work("compute", "gemm", launch.end_ns + 1625, length, 7, launch)
                copy = Span("cudaMemcpyAsync", now + 30 * US + late, 2 * US)
                done += [kernel, Work("memory", COPY, kernel.end_ns - 3 * US, 9 * US, 8, copy)]
                ready[rank], launched[rank] = kernel.end_ns + 2 * US, copy.end_ns + 20 * US
            now = max(ready.values()) + 200 * US
            for rank, done in work.items():
                call = Span("cudaLaunchKernelExC", launched[rank], 4 * US)
                done.append(Work("communication", COLLECTIVE, ready[rank], now - ready[rank], 20, call, "0"))
                waits[rank].append(Span(WAIT, call.end_ns + US, now - call.end_ns - US))
    return [
        RankTrace(
            rank=rank,
            world_size=RANKS,
            steps=steps,
            operators=[Span("aten::mm", w.launch.start_ns - 3 * US, 10 * US) for w in done if w.launch is not None],
            runtime=waits[rank],
            work=done,
            groups={"0": range(RANKS)},
        )
        for rank, done in work.items()
    ]


def call_names(trace: RankTrace) -> dict[Work, str]:
    """What HCCL calls each collective: with the tail of its group's key and its place in the group."""
    calls = [work for work in trace.work if work.kind == "communication"]
    return {call: f"hcom_allReduce__{TAG}_{number}_1" for number, call in enumerate(calls)}


def rank_directory(directory: Path, trace: RankTrace) -> Path:
    """The output folder of a rank directory, with the side files beside it."""
    root = directory / f"host_{PYTHON + trace.rank}_2025100916300000{trace.rank}_ascend_pt"
    output = root / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    members = list(range(trace.world_size))
    group = {"group_name": "dp", "group_rank": trace.rank, "global_ranks": members}
    metadata = {"parallel_group_info": {COMMUNICATOR: group}, "distributed_args": {"world_size": trace.world_size}}
    (root / f"profiler_info_{trace.rank}.json").write_text(json.dumps({"rank_id": trace.rank}))
    (root / "profiler_metadata.json").write_text(json.dumps(metadata))
    return output


def write_text(directory: Path, trace: RankTrace) -> None:
    """Write kernel_details.csv and trace_view.json."""
    output = rank_directory(directory, trace)
    columns = KERNEL_HEADER.split(",")
    steps = {work: number for work in trace.work for number, span in trace.steps if _launched_in(work, span)}
    lines = [KERNEL_HEADER]
    for work in trace.work:
        if work.kind != "memory":
            is_call = work.kind == "communication"
            row = dict.fromkeys(columns, "N/A") | {
                "Step Id": steps.get(work, ""),
                "Device_id": trace.rank,
                "Name": call_names(trace).get(work, work.name),
                "Type": "hcom_allReduce_" if is_call else "MatMulV3",
                "Accelerator Core": "COMMUNICATION" if is_call else "AI_CORE",
                "Start Time(us)": _us(work.start_ns) + "\t",
                "Duration(us)": _us(work.duration_ns),
                "Wait Time(us)": 0,
            }
            lines.append(",".join(str(row[column]) for column in columns))
    (output / "kernel_details.csv").write_text("\n".join(lines) + "\n")
    _view(trace).write(output)


def _view(trace: RankTrace) -> TraceEvents:
    """Events of trace_view.json."""
    events = TraceEvents(EPOCH_NS // 1000, sides=False)

    def add(span: Span | Work, process: int, thread: int, name: str = "", cat: str = "", **args: Any) -> None:
        start_us = (span.start_ns - EPOCH_NS) / 1000
        events.add(name or span.name, process, thread, start_us, span.duration_ns / 1000, cat, **args)

    for span in [*(span for _, span in trace.steps), *trace.operators]:
        add(span, PYTHON, span.thread, cat="cpu_op")
    for span in trace.runtime:
        add(span, CANN, 2, f"AscendCL@{span.name}")
    names = call_names(trace)
    for connection, work in enumerate(trace.work, start=1):
        if work.launch is not None:
            add(work.launch, CANN, 2, "Node@launch", level="node", connection_id=connection)
        if work in names:
            add(work, CALLS, 0, names[work], connection_id=connection, data_type="FP32", count=ELEMENTS)
        else:
            task = "MEMCPY_ASYNC" if work.kind == "memory" else "AI_CORE"
            add(work, HARDWARE, work.stream, **{"Task Type": task, "connection_id": connection})
    return events


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _launched_in(work: Work, step: Span) -> bool:
    return work.launch is not None and step.start_ns <= work.launch.start_ns < step.end_ns


def write_database(directory: Path, trace: RankTrace) -> None:
    """Write ascend_pytorch_profiler_<rank>.db."""
    output = rank_directory(directory, trace)
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    names = call_names(trace)
    thread = PYTHON << 32 | 1
    tables: Tables = {
        "TASK": ("startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId", []),
        "COMPUTE_TASK_INFO": ("name, globalTaskId, taskType, opType", []),
        "COMMUNICATION_OP": ("opName, startNs, endNs, connectionId, groupName, dataType, count", []),
        "ENUM_HCCL_DATA_TYPE": ("id, name", [(4, "FP32")]),
        "CANN_API": ("startNs, endNs, type, globalTid, connectionId, name", []),
        "PYTORCH_API": ("startNs, endNs, globalTid, connectionId, name, type", []),
    }
    rows = {name: found for name, (_, found) in tables.items()}
    for span in [*(span for _, span in trace.steps), *trace.operators]:
        rows["PYTORCH_API"].append((span.start_ns, span.end_ns, thread, None, text(span.name), 50001))
    for span in trace.runtime:
        rows["CANN_API"].append((span.start_ns, span.end_ns, 20000, thread + 1, 0, text(span.name)))
    for connection, work in enumerate(trace.work, start=1):
        if work.launch is not None:
            times = (work.launch.start_ns, work.launch.end_ns)
            rows["CANN_API"].append((*times, 10000, thread + 1, connection, text("launch")))
        if work in names:
            call = (text(names[work]), work.start_ns, work.end_ns, connection, text(COMMUNICATOR), 4, ELEMENTS)
            rows["COMMUNICATION_OP"].append(call)
            continue
        kind = "MEMCPY_ASYNC" if work.kind == "memory" else "KERNEL_AICORE"
        place = (trace.rank, connection, connection, text(kind), work.stream)
        rows["TASK"].append((work.start_ns, work.end_ns, *place))
        if work.kind == "compute":
            rows["COMPUTE_TASK_INFO"].append((text(work.name), connection, text("AI_CORE"), text("MatMulV3")))
    tables["STRING_IDS"] = ("id, value", [(number, value) for value, number in texts.items()])
    make_database(output / f"ascend_pytorch_profiler_{trace.rank}.db", tables)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The job in each format."""
    writers: dict[str, Writer] = {"kineto": write_kineto, "ascend_text": write_text, "ascend_db": write_database}
    opened = {}
    for name, write in writers.items():
        folder = tmp_path_factory.mktemp(name) / "job"
        for trace in job():
            write(folder, trace)
        opened[name] = open_run(folder, use_store=False)
    return opened


def test_each_format_is_read_as_itself_and_whole(runs: dict[str, Run]) -> None:
    for name, run in runs.items():
        assert {rank.facts["format"] for rank in run.ranks} == {name}
        assert [rank.rows["kernels"] for rank in run.ranks] == [STEPS * 6] * RANKS
        assert run.unread == []


def test_the_slow_ranks_are_those_of_the_job(runs: dict[str, Run]) -> None:
    slow = runs["kineto"].analyse("slow_ranks")

    assert sorted(slow.select("rank", "kind").rows()) == [
        (DISPATCHES_LATE, "dispatch"),
        (COMPUTES_SLOWLY, "computing"),
    ]
    assert dict(slow.select("kind", "excess_ns").rows())["computing"] == pytest.approx(2 * 300 * US, rel=0.01)


@pytest.mark.parametrize("export", ["ascend_text", "ascend_db"])
@pytest.mark.parametrize("question", ["breakdown", "slow_ranks", "idle", "segments", "communication"])
def test_all_formats_give_the_same_answer(runs: dict[str, Run], export: str, question: str) -> None:
    answers = [runs[name].analyse(question) for name in ("kineto", export)]

    # A group's key, and with it its name, is the format's own; there is but one group here.
    assert_frame_equal(*(answer.select(pl.exclude("group", "group_name")) for answer in answers))
