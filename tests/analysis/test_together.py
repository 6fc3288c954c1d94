"""Ranks that are asked together get the answers that each gets alone."""

from __future__ import annotations

import polars as pl
import pytest
from jobs import MS, job
from phases import marks as phase_marks
from phases import on_host
from phases import steps as phase_steps
from polars.testing import assert_frame_equal
from rank_tables import links

from stepscope.analysis import ANALYSES
from stepscope.errors import Unavailable
from stepscope.run import Run, Threads
from stepscope.tables import TABLES
from tests.analysis.bucketed import MIB
from tests.analysis.bucketed import rank_of as bucketed
from tests.analysis.device.cores import cube, on_ai_cpu, tables_of_cores, vector
from tests.analysis.device.launched import Range, Work, tables_of
from tests.analysis.inputs import batches, events, pipeline, samples, steps, usage_of
from tests.analysis.on_gpu import on_gpu
from tests.analysis.sharded import rank_of as sharded
from tests.analysis.test_fusible_operators import recurring
from tests.pipelines import Pipeline

TOGETHER = sorted(name for name, analysis in ANALYSES.items() if analysis.together)


def on_cpu(rank: int) -> dict[str, pl.DataFrame]:
    """A rank of the job without device: operators instead of kernels, one of them in the data loader."""
    whole = job(4, 3)
    kernels = whole.rank(rank).table("kernels").collect()
    columns = {name: kernels[name].to_list() for name in ("start_ns", "duration_ns", "name", "step")}
    operators = TABLES["operators"].frame(slice=list(range(kernels.height)), self_ns=columns["duration_ns"], **columns)
    slices = whole.rank(rank).table("slices").collect()
    product = pl.when(pl.col("slice") % 2 == 0).then(pl.lit("aten::mm")).otherwise("name")
    shifted = operators.with_columns(
        pl.col("start_ns") - MS // 2, name=product, input_shapes=pl.lit("[[2, 3], [3, 5]]")
    )
    calls = whole.rank(rank).table("collectives").collect().with_columns(on_device=False)
    steps = whole.rank(rank).table("steps").collect()
    return {"operators": shifted, "slices": slices, "collectives": calls, "steps": steps}


def on_device(rank: int, factor: float) -> dict[str, pl.DataFrame]:
    one = job(4, 3, compute={rank: factor}).rank(rank)
    return {name: one.table(name).collect() for name in one.rows if name != "ranks"}


def with_types(rank: int) -> dict[str, pl.DataFrame]:
    """A rank with operator types, experts, calls of the runtime and a clock rate; the last one without any."""
    tables = on_device(rank, 1.0 + rank)
    if rank == 2:
        return tables
    kernels = tables["kernels"].with_columns(type=pl.lit("GroupedMatmul"), input_shapes=pl.lit(f"{rank + 7},8"))
    clock = TABLES["counters"].frame(time_ns=[0, 5], name=["ai_core_frequency_mhz"] * 2, value=[1800.0, 900.0 + rank])
    names = ["Node@launch", "Node@launch", "AscendCL@aclrtMalloc", "AscendCL@aclopCompileAndExecute", "GC"]
    called = TABLES["slices"].frame(
        slice=list(range(5)),
        category=[*["runtime"] * 4, "gc"],
        name=names,
        start_ns=[0, 9, 20, 40, 60],
        duration_ns=[3, 5 + rank, 7 + rank, 9, 11],
    )
    return {**tables, "kernels": kernels, "slices": called, "counters": clock}


def stopping(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose host waits after each launch, synchronises batch normalisation, and does nothing for long; the last
    one launches nothing."""
    bounds = {name: [0, 100 * MS] for name in ("start_ns", "window_start_ns")}
    ends = {name: [100 * MS, 200 * MS] for name in ("end_ns", "window_end_ns")}
    steps = TABLES["steps"].frame(step=[1, 2], **bounds, **ends, window=["host"] * 2)
    starts = [20 * MS, 40 * MS, (120 + rank) * MS, 190 * MS]
    launch = {f"launch_{end}_ns": [start - MS * back for start in starts] for end, back in (("start", 2), ("end", 1))}
    kernels = TABLES["kernels"].frame(
        kernel=[0, 1, 2, 3], start_ns=starts, duration_ns=[9 * MS] * 4, name=["mm"] * 4, kind=["compute"] * 4,
        step=[1, 1, 2, 2], **({} if rank == 2 else launch),
    )  # fmt: skip
    slices = TABLES["slices"].frame(
        slice=[0, 1, 2, 3, 4],
        category=["runtime"] * 3 + ["operator"] * 2,
        name=["aclrtSynchronizeStream"] * 3 + ["SyncBatchNorm", "SyncBatchNormBackward"],
        thread=["1"] * 5,
        start_ns=[19 * MS, 39 * MS, (119 + rank) * MS, 5 * MS, 105 * MS],
        duration_ns=[10 * MS] * 3 + [MS] * 2,
        step=[1, 1, 2, 1, 2],
    )
    return {"steps": steps, "kernels": kernels, "slices": slices}


def unfused(rank: int) -> dict[str, pl.DataFrame]:
    """A rank with sequences of operators that a fused one replaces; the last one has none."""
    names = ["aten::group_norm", "aten::silu"] * (1 + rank) if rank < 2 else ["aten::relu"]
    timed = {"start_ns": [9 * k for k in range(len(names))], "duration_ns": [5 + rank] * len(names)}
    operators = TABLES["operators"].frame(slice=list(range(len(names))), name=names, thread=["1"] * len(names), **timed)
    return {"operators": operators}


def without_calls(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose collectives are of a group of its own, so that its steps are its segments."""
    tables = on_device(rank, 1.0)
    return {**tables, "collectives": tables["collectives"].with_columns(group=pl.lit("own"))}


def without_steps(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose steps are not marked and whose first kernel ran long before the others."""
    tables = on_device(rank, 1.0 + rank)
    first = pl.int_range(pl.len()) == 0
    early = pl.col("start_ns") - pl.when(first).then(10_000 * MS).otherwise(0)
    kernels = tables["kernels"].sort("start_ns").with_columns(early)
    start, end = kernels["start_ns"].min(), tables["steps"]["window_end_ns"].max()
    window = {"window_start_ns": [start], "window_end_ns": [end], "window": ["recording"]}
    steps = TABLES["steps"].frame(step=[0], start_ns=[start], end_ns=[end], **window)
    return {"kernels": kernels, "steps": steps}


def fed(rank: int) -> dict[str, pl.DataFrame]:
    """A rank with queues, a loader, samples of its host, and host events."""
    queues = [batches("device_queue", [rank, 1, 2]), batches("get_next", [0, rank, 2]), samples({"MapOp_1": [rank]})]
    loader = batches("Images", [1, 2, rank]).with_columns(step=pl.Series([1, 2, 3], dtype=pl.Int32))
    cpu = [usage_of("host", [0.1 * rank] * 3), usage_of("operator", [0.1] * 2, name="MapOp_1")]
    process = usage_of("process", [0.2]).with_columns(rss_bytes=pl.lit(100 + rank, pl.Int64))
    nodes = {"DataQueueOp_0": None, "MapOp_1": "DataQueueOp_0", "TFReaderOp_2": "MapOp_1"}
    return {
        "pipeline_operators": pipeline(nodes, capacity=10 + rank),
        "input_pipeline": pl.concat([*queues, loader]),
        "host_usage": pl.concat([*cpu, process]),
        "host_events": events([("graph", "compile", rank, 5)]),
        "steps": steps(3),
        "ranks": TABLES["ranks"].frame(start_ns=[0]),
    }


def in_phases(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose steps have phases, and its operators places, shapes that change, and operations."""
    whole = on_host(3).rank(0)
    tables = {name: whole.table(name).collect() for name in ("steps", "operators", "slices")}
    is_product, shared = pl.col("name") == "aten::mm", pl.col("step") + rank
    operators = tables["operators"].with_columns(
        name=pl.when(is_product).then(pl.lit("Default/net/MatMul-op1")).otherwise("name"),
        input_shapes=pl.when(is_product).then(pl.format("[[2, {}], [{}, 5]]", shared, shared)),
    )
    return {**tables, "operators": operators, "slices": _compiled(tables["slices"], rank)}


def remembering(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose memory grows from step to step by an amount of its own and that has little left; the first one has a
    graph and the second one no figures."""
    marked = steps(6)
    grown = [(1 + rank) * 100_000_000 * step for step in range(6)]
    times = marked["start_ns"].to_list()
    curve = TABLES["memory_curve"].frame(
        time_ns=times, device=[rank] * 6, allocated_bytes=grown, reserved_bytes=[2 * size + 10**9 for size in grown]
    )
    blocks = TABLES["allocations"].frame(
        name=[f"op {rank}"] * 6, device=[rank] * 6, size_bytes=[5_000_000] * 6, allocation_ns=times
    )
    size = TABLES["counters"].frame(
        time_ns=[0, 0], name=["memory_total_bytes"] * 2, device=[rank, 9], value=[max(grown) * 1.05, 1.0]
    )
    tables = {"steps": marked, "memory_curve": curve, "allocations": blocks, "counters": size.head(1 + rank)}
    if rank != 1:
        tables["rank_figures"] = TABLES["rank_figures"].frame(name=["memory_peak_bytes"], value=[7.0 + rank])
    if rank == 0:
        nodes = {"node": [0, 1, 2], "name": ["a", "b", "c"], "total_bytes": [1, 5, 5]}
        tables["graph_nodes"] = TABLES["graph_nodes"].frame(graph=[3] * 3, **nodes)
    return tables


def in_python(rank: int) -> dict[str, pl.DataFrame]:
    """A rank with Python functions on a thread of its own beside operators; the last one has none."""
    whole = on_cpu(rank)
    start = whole["steps"]["start_ns"][0]
    calls = ["train.py(1): main", f"train.py({rank}): step", "<built-in function sleep>", "queue.py(5): get"]
    if rank == 2:
        return whole
    functions = TABLES["slices"].frame(
        slice=[10_000 + place for place in range(4)],
        category=["python"] * 4,
        name=calls,
        thread=["0", "0", "0", "1"],
        depth=[2, 3, 4, 2],
        start_ns=[start, start + MS, start + 2 * MS, start],
        duration_ns=[(90 + rank) * MS, 50 * MS, (5 + rank) * MS, 10 * MS],
    )
    return {**whole, "slices": pl.concat([whole["slices"].drop("rank"), functions])}


def recompiling(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose compiled function runs in a version, is compiled for other sizes, each rank with its own, and then
    fits no more; the last one compiles nothing."""
    whole = on_cpu(rank)
    start = whole["steps"]["start_ns"][0]
    marks = [
        *(("TorchDynamo Cache Lookup", "operator", 0, 1), ("Torch-Compiled Region: 0/0", "operator", 2, 5)),
        *(("TorchDynamo Cache Lookup", "operator", 10, 1), ("dynamo", "compile", 12, 9 + rank)),
        *(("dynamo_data: compile_id=0/1", "compile", 13, 1), ("Torch-Compiled Region: 0/1", "operator", 30, 5)),
        ("TorchDynamo Cache Lookup", "operator", 40, 1),
    ]
    if rank == 2:
        return whole
    slices = TABLES["slices"].frame(
        slice=[20_000 + place for place in range(len(marks))],
        name=[name for name, *_ in marks],
        category=[category for _, category, *_ in marks],
        thread=["1"] * len(marks),
        start_ns=[start + at for _, _, at, _ in marks],
        duration_ns=[length for *_, length in marks],
        step=[whole["steps"]["step"][0]] * len(marks),
    )
    inputs = TABLES["operators"].frame(
        slice=[30_000, 30_001],
        name=["CompiledFunction"] * 2,
        thread=["1"] * 2,
        start_ns=[start + 3, start + 31],
        duration_ns=[1, 1],
        input_shapes=["[[8, 4]]", f"[[{9 + rank}, 4]]"],
    )
    return {**whole, "slices": slices, "operators": pl.concat([whole["operators"].drop("rank", strict=False), inputs])}


def waiting(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose thread waits for processors in its first step, each rank for another time; of the last it is
    unknown."""
    whole = on_cpu(rank)
    steps = whole["steps"]
    delay = pl.when(pl.col("step") == steps["step"][0]).then((1 + rank) * MS).otherwise(0)
    return {**whole, "steps": steps.with_columns(run_delay_ns=delay if rank < 2 else None)}


def limited(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose device lowers its clock, each for a time of its own; of the last it is unknown."""
    whole = on_device(rank, 1.0)
    start = whole["steps"]["start_ns"][0]
    if rank == 2:
        return whole
    names = ["clock_event_reasons"] * 3 + ["sm_clock_mhz"] * 3
    counters = TABLES["counters"].frame(
        time_ns=[start + place * (1 + rank) for place in range(3)] * 2,
        name=names,
        value=[0.0, 32.0, 4.0 * rank, 1900.0, 1200.0, 1800.0],
        device=[rank] * 6,
    )
    return {**whole, "counters": counters}


def repeating(rank: int) -> dict[str, pl.DataFrame]:
    """A rank that marks no steps and repeats its operators, as often as only it does; the last one repeats nothing."""
    once = ["aten::conv2d", "aten::mm", "MmBackward0"]
    names = once * (4 + rank) if rank < 2 else [f"aten::op{place}" for place in range(9)]
    start = [place * 2 * MS for place in range(len(names))]
    timed = {"start_ns": start, "duration_ns": [MS] * len(names), "thread": ["1"] * len(names)}
    bounds = {name: [value] for bound, value in (("start_ns", 0), ("end_ns", start[-1] + MS))
              for name in (bound, f"window_{bound}")}  # fmt: skip
    return {
        "operators": TABLES["operators"].frame(slice=list(range(len(names))), name=names, **timed),
        "steps": TABLES["steps"].frame(step=[0], window=["recording"], **bounds),
    }


def launching(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose operators launch kernels and copies, each rank with times of its own; the last one only copies."""
    ranges = [
        Range("aten::linear", 0, 50),
        Range("aten::mm", 10, 40, parent=0),
        Range("block", 60, 90, category="mark"),
    ]
    kernels = [
        Work("mm", 100 + rank, 120, (15, 20 + rank), operator=1),
        Work("add", 130, 140 + rank, (25, 26), operator=1),
        Work("bias", 150, 160, (41, 45), operator=0),
    ]
    copied = Work("Memcpy HtoD (Pinned -> Device)", 60, 70 + rank, (2, 3), operator=0, kind="memory", size=1_000_003)
    tables = tables_of([copied] if rank == 2 else [copied, *kernels], ranges)
    measured = {"aiv_vector_fops": [1000.0 + rank], "read_main_memory_bytes": [500.0]}
    return (
        tables if rank == 2 else {**tables, "kernel_counters": TABLES["kernel_counters"].frame(kernel=[1], **measured)}
    )


def partly_recorded(rank: int) -> dict[str, pl.DataFrame]:
    """A rank with operators in its first step only, and marked phases in all, each rank with a length of its own."""
    operators = on_host(1).rank(0).table("operators").collect().filter(pl.col("step") == 1)
    wanted = [("data: loader", 0, 100), ("forward: Net", 100, 500 + rank), ("backward", 500 + rank, 950)]
    some = phase_steps(3, recorded=[True, False, False])
    return {"operators": operators, "slices": phase_marks(wanted, 3), "steps": some}


def _compiled(slices: pl.DataFrame, rank: int) -> pl.DataFrame:
    """Slices of which one, of a length of its own on each rank, is a compiler's."""
    number = slices["slice"].max() + 1
    compiler = slices.head(1).with_columns(
        slice=pl.lit(number, pl.Int64), duration_ns=pl.lit(5 + rank, pl.Int64), category=pl.lit("compile")
    )
    return pl.concat([slices, compiler])


def with_links(rank: int) -> dict[str, pl.DataFrame]:
    """A rank with links and transports of single calls, the last one with links of all calls alone."""
    one = TABLES["transports"].frame(name=["call"], transport=["SDMA"], size_bytes=[7 + rank], duration_ns=[5])
    sent = {"transports": one} if rank < 2 else {}
    return {**on_device(rank, 1.0), "links": links({(rank, rank + 1): (10 + rank, MS)}, named=rank < 2), **sent}


def dumped(rank: int) -> dict[str, pl.DataFrame]:
    """A rank with calls in a dump of a flight recorder, the last one without any."""
    count = (3 + rank) if rank < 2 else 0
    numbers = {"record": list(range(count)), "sequence": list(range(count)), "created_ns": [MS] * count}
    named = {name: [name] * count for name in ("group", "operation", "name")}
    done = {"is_done": [place != rank for place in range(count)], "is_point_to_point": [False] * count}
    return {"recorded_calls": TABLES["recorded_calls"].frame(**numbers, **named, **done)}


def with_short_kernels(rank: int) -> dict[str, pl.DataFrame]:
    """A rank with kernels of a few us; those of the last one are longer."""
    lengths = [1000 * (1 + rank), 5000, 10**6] if rank < 2 else [10**6] * 3
    rows = {"kernel": [0, 1, 2], "start_ns": [0, MS, 2 * MS], "duration_ns": lengths}
    return {"kernels": TABLES["kernels"].frame(**rows, kind=["compute"] * 3, name=["add", "add", "mm"])}


def with_totals(rank: int) -> dict[str, pl.DataFrame]:
    """A rank whose operators are totals with stated FLOPs; those of the last one are not stated."""
    rows = {"unit": ["AI_CORE"], "level": ["operator"], "name": ["MatMul-op2"], "full_name": ["Default/MatMul-op2"]}
    flops = [None if rank == 2 else 2e9 + rank]
    return {"operator_totals": TABLES["operator_totals"].frame(**rows, count=[4], total_ns=[MS], cube_flops=flops)}


def on_cores(rank: int) -> dict[str, pl.DataFrame]:
    """A rank on the cores of a device; the last one without counters, states and blocks, the first without AI CPU."""
    works = [cube(300, aic_mac_ratio=0.5 + rank / 10), vector("Sum", 100, block_dim=7, state="dynamic")]
    if rank == 2:
        works = [cube(300, state=None, block_dim=None)]
    return tables_of_cores(
        [*works, *([on_ai_cpu(60)] if rank else [])], steps=2, clock=[(0, 1800.0), (400_000, 1450.0)]
    )


RUNS = {
    "cores": Run.from_frames({rank: on_cores(rank) for rank in range(3)}),
    "totals": Run.from_frames({rank: with_totals(rank) for rank in range(3)}),
    "pipeline": Pipeline(stages=2, micro_batches=2, copies=2).run(),
    "short kernels": Run.from_frames({rank: with_short_kernels(rank) for rank in range(3)}),
    "dumps": Run.from_frames({rank: dumped(rank) for rank in range(3)}),
    "without steps": Run.from_frames({rank: without_steps(rank) for rank in range(2)}),
    "phases": Run.from_frames({rank: in_phases(rank) for rank in range(3)}),
    "input": Run.from_frames({rank: fed(rank) for rank in range(3)}),
    "limited": Run.from_frames({rank: limited(rank) for rank in range(3)}),
    "waiting": Run.from_frames({rank: waiting(rank) for rank in range(3)}),
    "recompiling": Run.from_frames({rank: recompiling(rank) for rank in range(3)}),
    "repeating": Run.from_frames({rank: repeating(rank) for rank in range(3)}),
    "memory": Run.from_frames({rank: remembering(rank) for rank in range(4)}),
    "python": Run.from_frames({rank: in_python(rank) for rank in range(4)}),
    "device": Run.from_frames({rank: on_device(rank, 1 + rank) for rank in range(4)}),
    "types": Run.from_frames({rank: with_types(rank) for rank in range(3)}),
    "partly recorded": Run.from_frames({rank: partly_recorded(rank) for rank in range(3)}),
    "recurring": Run.from_frames({rank: recurring(rank) for rank in range(3)}),
    "unfused": Run.from_frames({rank: unfused(rank) for rank in range(3)}),
    "stopping": Run.from_frames({rank: stopping(rank) for rank in range(3)}),
    "launching": Run.from_frames({rank: launching(rank) for rank in range(3)}),
    "cpu": Run.from_frames({rank: on_cpu(rank) for rank in range(4)}),
    "gpus": Run.from_frames({rank: on_gpu(rank) for rank in range(3)}),
    "sharded": Run.from_frames({rank: sharded(modules=2 + rank, used=10**10) for rank in range(3)}),
    "buckets": Run.from_frames({rank: bucketed(rank, [MIB] * (1 + rank)).tables() for rank in range(3)}),
    "links": Run.from_frames({rank: with_links(rank) for rank in range(3)}),
    "without calls": Run.from_frames({0: on_device(0, 1.0), 1: without_calls(1), 2: on_device(2, 1.5)}),
}


def answer_of(run: Run, question: str) -> pl.DataFrame | None:
    try:
        return run.analyse(question)
    except Unavailable:
        return None


@pytest.mark.parametrize("question", TOGETHER)
def test_asked_together_or_alone(question: str) -> None:
    answered = 0
    for run in RUNS.values():
        together = answer_of(run, question)
        ones = [run.select(ranks=[rank.rank]) for rank in run.ranks]
        alone = [answer for one in ones if (answer := answer_of(one, question)) is not None]
        silent = {rank: str(why) for one in ones for rank, why in one.silent_ranks(question).items()}
        assert {rank: str(why) for rank, why in run.silent_ranks(question).items()} == silent
        if together is None:
            assert not alone
        else:
            assert_frame_equal(together, pl.concat(alone), check_exact=True)
            answered += together.height > 0

    assert answered


@pytest.mark.parametrize("threads", [1, 8])
def test_threads_that_ask_one_rank_at_a_time_get_the_answers_of_all_ranks_at_once(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in (RUNS[name] for name in ("phases", "memory", "python", "device")):
        expected = {question: answer_of(run, question) for question in TOGETHER}
        with monkeypatch.context() as changed:
            changed.setattr("stepscope.run.rank_groups.TOGETHER_ROWS", 0)
            other = Run(run.name, run.path, run.ranks, engine=Threads(threads))
            for question, answer in expected.items():
                again = answer_of(other, question)
                assert (again is None) == (answer is None)
                if again is not None and answer is not None:
                    assert_frame_equal(again, answer, check_exact=True)


def test_all_questions_about_ranks_may_be_asked_together_but_those_that_hold_all_calls_of_python() -> None:
    alone = {name for name, one in ANALYSES.items() if one.scope == "rank" and name not in TOGETHER}
    assert alone == {"call_tree", "module_operators", "module_steps", "modules"}


@pytest.mark.parametrize("whole_recording", [False, True])
def test_ranks_with_and_without_device_in_one_call(whole_recording: bool) -> None:
    tables = {0: on_device(0, 1.0), 1: on_cpu(1), 2: on_device(2, 2.0)}
    run = Run.from_frames(tables)
    arguments = {name: run.table(name) for name in ("steps", "kernels", "collectives", "operators")}
    marks = run.analyse("marks")

    activity = ANALYSES["activity"].function(**arguments, marks=marks, ranks=None)
    split = ANALYSES["breakdown"].function(arguments["steps"], activity, arguments["collectives"], whole_recording)
    gaps = ANALYSES["idle_pieces"].function(arguments["steps"], activity, arguments["kernels"])
    causes = ANALYSES["idle"].function(gaps)

    sort = ["rank", "what", "start_ns"]
    assert_frame_equal(activity.sort(sort), run.analyse("activity").sort(sort))
    assert_frame_equal(split, run.analyse("breakdown", whole_recording=whole_recording))
    assert_frame_equal(causes, run.analyse("idle"))
