"""The files of operators on the host and on a GPU, FLOPs, dynamic shapes and the query for one operator."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from export_samples import BASE, MS, US, exported, lines, make_export, make_recording, read, torch_frames

from stepscope.errors import StepscopeError
from stepscope.export.classic.cpu_operators import write_cpu_operators, write_launches
from stepscope.export.classic.dynamic_shapes import write_dynamic_shapes
from stepscope.export.classic.flops import write_flops
from stepscope.export.classic.gpu_operators import write_gpu_operators
from stepscope.export.classic.operator_query import analyse_operators
from stepscope.export.classic.timeline import write_timeline
from stepscope.run import Run
from unordered import shuffled_polars

ADDMM = "Default/Net_0/aten::linear/aten::addmm"


def mindspore_frames() -> dict[str, pl.DataFrame]:
    """Two steps of a matrix product, forward and backward, as MindSpore's windows give them."""
    rows = []
    for n in range(4):
        step, backward = 4 + n // 2, n % 2
        rows.append(
            {
                "slice": n,
                "start_ns": BASE + (n // 2) * 10 * MS + (3 + backward) * MS,
                "duration_ns": (1 + backward) * MS,
                "self_ns": (1 + backward) * MS,
                "name": ("Gradients/Default/Grad_MatMul/" if backward else "Default/net-Net/") + f"MatMul-op{backward}",
                "thread": "0",
                "step": step,
                "input_shapes": "[[8, 16], [32, 16], null]",
            }
        )
    frames = torch_frames(2)
    ranks = pl.DataFrame({"framework": ["mindspore"], "device_kind": ["cpu"], "process": [77]})
    operators = pl.DataFrame(rows, schema_overrides={"step": pl.Int32})
    return {"steps": frames["steps"], "operators": operators, "ranks": ranks}


def gpu_frames() -> dict[str, pl.DataFrame]:
    """The torch job with one kernel for each `aten::addmm` and one that nobody launched."""
    frames = torch_frames()
    kernels = [
        {
            "kernel": n,
            "start_ns": BASE + n * 10 * MS + 3 * MS,
            "duration_ns": (1 + n) * MS,
            "kind": "compute",
            "name": "sgemm" if n < 3 else "stray/kernel",
            "stream": 7,
            "external_id": 10 * n + 2 if n < 3 else None,
            "grid": "[8, 1, 1]",
            "block": "[128, 1, 1]",
            "step": 4 + min(n, 2),
        }
        for n in range(4)
    ]
    ranks = frames["ranks"].with_columns(device_kind=pl.lit("cuda"))
    types = {"step": pl.Int32, "stream": pl.Int32, "external_id": pl.Int64}
    return {**frames, "kernels": pl.DataFrame(kernels, schema_overrides=types), "ranks": ranks}


def test_equal_times_of_kernels_are_always_in_the_same_order(tmp_path: Path) -> None:
    frames = gpu_frames()
    streams = [
        frames["kernels"].with_columns(pl.col("kernel") + 10 * n, pl.lit(n, pl.Int32).alias("stream")) for n in range(6)
    ]
    frames["kernels"] = pl.concat(streams)
    per_step = pl.format("[[{}, 8]]", "step")
    frames["operators"] = frames["operators"].with_columns(input_shapes=per_step)
    names = ("gpu_activity_data_1.csv", "gpu_timeline_display_1.json", "dynamic_shape_info_1.json")

    texts = []
    for seed in range(3):
        with shuffled_polars(seed):
            export = make_export(tmp_path / str(seed), frames, device_kind="cuda")
            exported(export, write_gpu_operators, write_timeline, write_dynamic_shapes)
        texts.append([read(export, name) for name in names])

    assert texts[0] == texts[1] == texts[2]


def test_times_of_operators_count_once(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_cpu_operators)

    types = lines(export, "cpu_op_type_info_1.csv")
    assert types[0] == "op_type,type_occurrences,execution_frequency(per-step),total_compute_time,avg_time(ms),percent"
    assert types[1] == "aten::addmm,3,1,6.0,2.0,0.44444444"
    assert sum(float(line.rsplit(",", 1)[1]) for line in types[1:]) == pytest.approx(1)
    details = lines(export, "cpu_op_detail_info_1.csv")
    assert details[0] == (
        "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time(ms),op_avg_time(ms),"
        "total_proportion,subgraph,pid"
    )
    assert details[1] == f"Host,aten::addmm,aten::addmm,{ADDMM},3,6.0,2.0,0.44444444,Default,77"
    assert details[2] == "Host,aten::mm,aten::mm,Gradients/AddmmBackward0/aten::mm,3,4.5,1.5,0.33333333,Gradients,77"


def test_names_of_mindspore_carry_scopes_and_instance_numbers(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, mindspore_frames(), framework="mindspore"), write_cpu_operators)

    assert lines(export, "cpu_op_type_info_1.csv")[1:] == ["MatMul,4,2,6.0,1.5,1.0"]
    assert lines(export, "cpu_op_detail_info_1.csv")[1:] == [
        "Host,MatMul,MatMul-op1,Gradients/Default/Grad_MatMul/MatMul-op1,2,4.0,2.0,0.66666667,Gradients,77",
        "Host,MatMul,MatMul-op0,Default/net-Net/MatMul-op0,2,2.0,1.0,0.33333333,Default,77",
    ]


def test_launches_say_when_and_on_what(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_launches)

    times = lines(export, "cpu_op_execute_timestamp_1.txt")
    starts = [BASE + n * 10 * MS + 2200 * US for n in range(3)]
    assert times[1] == f"{ADDMM};HostCpuOps;" + "".join(f"{start},2.0,0 " for start in starts)
    launches = lines(export, "cpu_framework_1.txt")
    assert len(launches) == 12
    inputs = "input_1:[32];input_2:[8, 16];input_3:[16, 32];input_4:NoShape;input_5:NoShape;"
    assert launches[1] == f"aten::addmm;aten::addmm;0;{inputs}"


def test_missing_shapes_of_mindspore_are_spelt_as_it_does(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, mindspore_frames(), framework="mindspore"), write_launches)

    assert (
        lines(export, "cpu_framework_1.txt")[0]
        == "MatMul;MatMul-op0;0;input_1:[8, 16];input_2:[32, 16];input_3:NoShape;"
    )


def test_device_work_counts_for_the_operator_that_launched_it(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, gpu_frames(), device_kind="cuda"), write_gpu_operators)

    assert lines(export, "gpu_op_type_info_1.csv") == [
        "op_type,type_occurrences,total_time(us),total_proportion,avg_time(us)",
        "aten::addmm,3,6000.0,0.6,2000.0",
        "stray/kernel,1,4000.0,0.4,4000.0",
    ]
    details = lines(export, "gpu_op_detail_info_1.csv")
    assert details[0] == (
        "op_side,op_type,op_name,op_full_name,op_occurrences,op_total_time(us),op_avg_time(us),total_proportion,"
        "cuda_activity_cost_time(us),cuda_activity_call_count"
    )
    assert details[1] == f"Device,aten::addmm,aten::addmm,{ADDMM},3,6000.0,2000.0,0.6,6000.0,3"
    activity = lines(export, "gpu_activity_data_1.csv")
    assert activity[0] == (
        "name,type,op_full_name,stream_id,block_dim,grid_dim,occurrences,total_duration(us),avg_duration(us),"
        "max_duration(us),min_duration(us)"
    )
    assert activity[1] == f'sgemm,cuLaunchKernel,{ADDMM},7,"128,1,1","8,1,1",3,6000.0,2000.0,3000.0,1000.0'


def test_gpu_jobs_have_no_file_that_makes_readers_think_of_cpu_operators(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, gpu_frames(), device_kind="cuda"), write_cpu_operators)

    assert not export.written
    assert "cpu_op_type_info_1.csv" in export.left_out


def test_flops_are_those_of_the_shapes_over_the_time_spent(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_flops)

    each = 2 * 8 * 16 * 32
    rows = lines(export, "flops_1.txt")
    assert rows[0] == "full_kernel_name,MFLOPs(10^6 cube),GFLOPS(10^9 cube),MFLOPs(10^6 vector),GFLOPS(10^9 vector)"
    assert rows[1:] == [
        f"{ADDMM},{each / 1e6},{round(each / (2 * MS), 6)},0.0,0.0",
        f"Gradients/AddmmBackward0/aten::mm,{each / 1e6},{round(each / (1.5 * MS), 6)},0.0,0.0",
    ]
    summary = json.loads(read(export, "flops_summary_1.json"))
    assert summary == {
        "cube_FLOPs": round(6 * each / 1e6, 6),
        "cube_FLOPS": round(6 * each / (10.5 * MS), 6),
        "vec_FLOPs": 0.0,
        "vec_FLOPS": 0.0,
    }


def test_calls_that_count_but_have_no_shapes_are_told(tmp_path: Path) -> None:
    frames = torch_frames()
    bare = pl.when((pl.col("name") != "aten::mm") | (pl.col("step") == 4)).then("input_shapes")
    export = exported(
        make_export(tmp_path, {**frames, "operators": frames["operators"].with_columns(input_shapes=bare)}), write_flops
    )

    told = export.left_out["flops_1.txt (operators)"]
    assert told == "2 calls of aten::mm have no recorded shapes, so they are not counted"
    assert len(lines(export, "flops_1.txt")) == 3


def test_without_any_shapes_no_file_is_made_and_the_calls_are_told(tmp_path: Path) -> None:
    frames = torch_frames()
    bare = frames["operators"].with_columns(input_shapes=pl.lit(None, pl.String))
    export = exported(make_export(tmp_path, {**frames, "operators": bare}), write_flops)

    assert not export.written
    assert export.left_out["flops_1.txt (operators)"].startswith("6 calls of aten::addmm, aten::mm have no")


def test_with_all_shapes_no_call_is_missing(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_flops)

    assert not export.left_out


def test_flops_on_a_gpu_are_over_the_time_of_the_device(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, gpu_frames(), device_kind="cuda"), write_flops)

    each = 2 * 8 * 16 * 32
    assert lines(export, "flops_1.txt")[1] == f"{ADDMM},{each / 1e6},{round(3 * each / (6 * MS), 6)},0.0,0.0"


def test_equal_shapes_in_all_steps_make_no_dynamic_job(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_dynamic_shapes)

    assert not export.written


def test_shapes_that_change_are_told_step_by_step(tmp_path: Path) -> None:
    frames = torch_frames()
    grown = pl.when((pl.col("step") == 6) & (pl.col("name") == "aten::mm")).then(pl.lit("[[32, 9], [9, 16]]"))
    changed = frames["operators"].with_columns(input_shapes=grown.otherwise("input_shapes"))
    export = exported(make_export(tmp_path, {**frames, "operators": changed}), write_dynamic_shapes)

    info = json.loads(read(export, "dynamic_shape_info_1.json"))
    (found,) = info["aten::mm"]
    assert found["Gradients/AddmmBackward0/aten::mm"] == {
        "op_exe_time": [1.5, 1.5, 1.5],
        "op_shape": ["[[32, 8], [8, 16]]", "[[32, 8], [8, 16]]", "[[32, 9], [9, 16]]"],
        "op_exe_occurrences": 3,
    }
    assert info["op_type"]["aten::mm"] == [1.5, 1.5, 1.5]


def test_a_query_keeps_shapes_and_scopes_apart(tmp_path: Path) -> None:
    recording = make_recording(tmp_path, about={"device_id": 3, "framework": "mindspore"})
    frames = mindspore_frames()

    answer = json.loads(analyse_operators(recording, ["MatMul", "MatMul-op0"], lambda _: Run.from_frames({1: frames})))

    assert answer["device_id"] == "3"
    shape = "[8, 16],[32, 16],null"
    assert answer["MatMul"] == [
        {
            "op_side": "Host",
            "input_shape": shape,
            "op_occurrences": 4,
            "op_total_time(us)": 6000.0,
            "op_avg_time(us)": 1500.0,
        }
    ]
    assert answer["MatMul-op0"][0]["op_occurrences"] == 2


def test_a_query_for_an_unknown_operator_says_which_there_are(tmp_path: Path) -> None:
    recording = make_recording(tmp_path)

    with pytest.raises(StepscopeError, match=r"no operator 'Conv2D'.*aten::addmm"):
        analyse_operators(recording, ["Conv2D"], lambda _: Run.from_frames({1: torch_frames()}))


def test_a_query_without_operators_says_so(tmp_path: Path) -> None:
    recording = make_recording(tmp_path)

    with pytest.raises(StepscopeError, match="op_time"):
        analyse_operators(recording, ["Conv2D"], lambda _: Run.from_frames({1: {"steps": torch_frames()["steps"]}}))
