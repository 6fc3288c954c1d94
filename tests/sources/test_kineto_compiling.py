"""What torch.compile's tracing leaves in a trace is no work, and the time that it takes is told apart."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.run import open_run
from tests.sources.test_kineto import Trace

MM = {"dims": [[64, 32], [32, 16]], "types": ["float", "float"]}
FLOPS = 2 * 64 * 32 * 16


def compiled(kind: str = "cpu_op", *, stage: str = "_compile.<locals>.compile_inner (dynamo_timed)") -> Trace:
    """Two steps of 1000 us; the first compiles for 800 us and multiplies in it three times on tensors without data."""
    trace = Trace()
    for number, start in ((1, 0), (2, 1000)):
        trace.add("user_annotation", f"ProfilerStep#{number}", start, 1000)
        trace.add("cpu_op", "Torch-Compiled Region: 0/0", start + 850, 100)
        trace.add("cpu_op", "aten::mm", start + 870, 50, external_id=number, **MM)
    trace.add(kind, stage, 10, 800)
    trace.add("cpu_op", "GraphLowering.run (dynamo_timed)", 300, 100)
    trace.add("user_annotation", "backend_compile_data: compile_id=0/0", 20, 5)
    for start in (100, 310, 700):
        trace.add("cpu_op", "aten::mm", start, 20, external_id=start, **MM)
    return trace


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        ("cpu_op", "_compile.compile_inner (dynamo_timed)"),
        ("user_annotation", "_compile.<locals>.compile_inner (dynamo_timed)"),
        ("cpu_op", "entire_frame_compile"),
    ],
)
def test_operators_of_tracing_are_not_operators_that_ran(tmp_path: Path, kind: str, stage: str) -> None:
    tables = compiled(kind, stage=stage).read(tmp_path)

    assert tables["operators"].filter(pl.col("name") == "aten::mm")["start_ns"].to_list() == [870_000, 1_870_000]
    traced = tables["slices"].filter(pl.col("category") == "compile")
    assert traced["name"].to_list().count("aten::mm") == 3
    assert "backend_compile_data: compile_id=0/0" in traced["name"].to_list()
    told = 5 if kind == "cpu_op" else 4  # an annotation is none of the operators
    assert next(p for p in tables.problems() if "compil" in p).startswith(
        f"{told} operators ran while torch.compile traced the model"
    )


def test_another_thread_goes_on_while_one_compiles(tmp_path: Path) -> None:
    trace = compiled().add("cpu_op", "aten::mm", 320, 30, tid=2, external_id=9, **MM)

    tables = trace.read(tmp_path)

    threads = tables["operators"].filter(pl.col("name") == "aten::mm")["thread"].to_list()
    assert sorted(threads) == ["1", "1", "2"]


def test_python_frames_tell_of_a_compiler_that_marks_nothing(tmp_path: Path) -> None:
    trace = Trace().add("user_annotation", "ProfilerStep#1", 0, 1000)
    trace.add("python_function", "torch/_dynamo/convert_frame.py(477): _convert_frame", 10, 800)
    trace.add("cpu_op", "aten::mm", 100, 20, **MM).add("cpu_op", "aten::mm", 870, 50, **MM)

    tables = trace.read(tmp_path)

    assert tables["operators"]["start_ns"].to_list() == [870_000]


def test_operations_count_without_those_of_tracing(tmp_path: Path) -> None:
    compiled().read(tmp_path)

    row = open_run([tmp_path]).analyse("model_flops").row(0, named=True)

    assert (row["step_flops"], row["known_ratio"]) == (FLOPS, 1.0)


def test_an_operator_within_itself_is_one(tmp_path: Path) -> None:
    trace = Trace().add("user_annotation", "ProfilerStep#1", 0, 100)
    trace.add("cpu_op", "aten::mm", 10, 50, **MM).add("cpu_op", "PythonDispatchMode", 12, 40)
    trace.add("cpu_op", "aten::mm", 20, 30, **MM).add("cpu_op", "aten::mm", 70, 20, **MM)
    trace.read(tmp_path)

    run = open_run([tmp_path])

    assert run.analyse("model_flops")["step_flops"].to_list() == [2 * FLOPS]
    assert run.analyse("operator_flops").select("count", "total_ns").row(0) == (2, 70_000)


def test_compiling_is_a_phase_and_a_cause_of_its_own(tmp_path: Path) -> None:
    compiled().read(tmp_path)

    run = open_run([tmp_path])

    assert run.analyse("step_trace")["compile_ns"].to_list() == [800_000, 0]
    assert run.analyse("breakdown")["computing_ns"].to_list() == [100_000, 100_000]
    causes = run.analyse("idle").filter(pl.col("cause") == "compile")
    assert causes.select("step", "idle_ns").rows() == [(1, 800_000)]


def test_an_operator_around_a_compiler_does_not_compute_meanwhile(tmp_path: Path) -> None:
    """The backward pass is compiled when it first runs, within its own operator."""
    trace = Trace().add("user_annotation", "ProfilerStep#1", 0, 1000).add("cpu_op", "CompiledFunctionBackward", 0, 1000)
    trace.add("cpu_op", "entire_backward_compile", 100, 700)
    trace.read(tmp_path)

    (row,) = open_run([tmp_path]).analyse("breakdown").iter_rows(named=True)

    assert (row["computing_ns"], row["free_ns"]) == (300_000, 700_000)


def test_compiling_once_is_told_as_a_total(tmp_path: Path) -> None:
    compiled().read(tmp_path)

    (finding,) = [f for f in advise(open_run([tmp_path])) if f.rule == "compile-time"]

    assert worded(finding).summary == "Rank 0 spends 800.0 us compiling in step 1 (40% of the recorded time), once."
    assert (finding.saving_ns, finding.severity) == (0, "low")


def test_a_real_compiled_model_counts_as_the_plain_one(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile, schedule

    counted = {}
    for backend in (None, "aot_eager"):
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        called = model if backend is None else torch.compile(model, backend=backend)
        path = tmp_path / str(backend) / "rank0.json"
        path.parent.mkdir()
        with profile(
            activities=[ProfilerActivity.CPU],
            record_shapes=True,
            schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
            on_trace_ready=lambda p, path=path: p.export_chrome_trace(str(path)),
        ) as profiler:
            profiler.step()
            for _ in range(2):
                called(torch.ones(32, 8)).sum().backward()
                profiler.step()
        run = open_run([path.parent])
        counted[backend] = run.analyse("model_flops").select("step_flops", "known_ratio").row(0)
        compiling = run.analyse("step_trace")["compile_ns"].to_list()
        assert compiling == [None, None] if backend is None else compiling[0] > compiling[1] == 0

    assert counted["aot_eager"] == counted[None]
    assert counted[None][1] == 1.0
