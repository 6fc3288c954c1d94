"""`step_trace_raw`, `step_trace_point_info` and `profiler_info`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from export_samples import BASE, MS, US, exported, lines, make_export, operators, read, steps, torch_frames

from stepscope.export.classic.profiler_info import write_profiler_info
from stepscope.export.classic.step_trace import write_step_trace

RAW = "step_trace_raw_1_detail_time.csv"
POINTS = "step_trace_point_info_1.json"
TICKS = BASE // 10
HEADER = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"


def test_phases_and_reduces_are_told_in_ticks_of_10_ns(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_step_trace)

    rows = lines(export, RAW)
    reduce = "stream_0_0_AllReduce"
    assert rows[0] == f"{HEADER},{reduce},{reduce}_start_point,{reduce}_end_point"
    own = [1, TICKS, TICKS + 1_000_000, 1_000_000, TICKS + 200_000, TICKS + 900_000, 200_000, 700_000, 100_000]
    assert rows[1] == ",".join(map(str, [*own, 100_000, TICKS + 700_000, TICKS + 800_000]))
    assert len(rows) == 1 + 3 + 1
    assert json.loads(read(export, POINTS)) == {
        "fp_start": "Default/Net_0/aten::linear",
        "bp_end": "Gradients/AddmmBackward0",
    }


def test_without_operators_no_points_are_named(tmp_path: Path) -> None:
    frames = {name: frame for name, frame in torch_frames().items() if name in ("steps", "ranks")}
    export = exported(make_export(tmp_path, frames), write_step_trace)

    assert RAW in export.written
    assert POINTS not in export.written
    assert "op_time" in export.left_out[POINTS]


def test_rows_count_from_1_whatever_the_numbers_of_the_steps(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_step_trace)

    assert export.step_numbers == [4, 5, 6]
    assert [row.split(",")[0] for row in lines(export, RAW)] == ["step_num", "1", "2", "3", "-"]


def test_a_call_that_a_step_lacks_has_no_length_and_lies_at_its_end(tmp_path: Path) -> None:
    frames = torch_frames()
    first = frames["collectives"].filter(pl.col("step") == 4)
    export = exported(make_export(tmp_path, {**frames, "collectives": first}), write_step_trace)

    rows = [line.split(",") for line in lines(export, RAW)]
    assert [row[-3:] for row in rows[2:-1]] == [["0", row[2], row[2]] for row in rows[2:-1]]
    assert rows[-1][-3:] == ["0", rows[-1][2], rows[-1][2]]


def test_the_average_leaves_out_the_first_step(tmp_path: Path) -> None:
    frames = torch_frames()
    later = frames["steps"].with_columns(
        forward_start_ns=pl.when(pl.col("step") == 4)
        .then(pl.col("forward_start_ns") + 3 * MS)
        .otherwise("forward_start_ns")
    )
    export = exported(make_export(tmp_path, {**frames, "steps": later}), write_step_trace)

    rows = [line.split(",") for line in lines(export, RAW)]
    assert rows[1][6] == "500000"
    assert rows[-1][:9] == [
        "-",
        *map(str, (TICKS + 1_500_000, TICKS + 2_500_000, 1_000_000)),
        *rows[-1][4:6],
        "200000",
        "700000",
        "100000",
    ]


@pytest.mark.parametrize(
    ("recorded", "counted"),
    [([3, 4, 5, 6], [4, 5, 6]), ([4, 5, 6], [5, 6]), ([5, 6], [6]), ([4, 6, 8], [5]), ([0, 4, 5, 6], [5, 6])],
)
def test_of_chosen_steps_the_average_leaves_out_those_without_a_predecessor(
    tmp_path: Path, recorded: list[int], counted: list[int]
) -> None:
    export = make_export(tmp_path)
    export.recorded = recorded

    write_step_trace(export)

    mean = sum(TICKS + 1_000_000 * (step - 4) for step in counted) // len(counted)
    assert int(lines(export, RAW)[-1].split(",")[1]) == mean


def test_one_step_is_its_own_average(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, torch_frames(1)), write_step_trace)

    rows = lines(export, RAW)
    assert rows[2].split(",")[1:] == rows[1].split(",")[1:]


def test_what_lies_between_two_steps_is_in_neither(tmp_path: Path) -> None:
    frames = torch_frames()
    late = pl.Series([0, MS, MS + US])
    spread = frames["steps"].with_columns(pl.col("start_ns", "end_ns") + late, pl.col("forward_start_ns") + 2 * late)
    export = exported(make_export(tmp_path, {**frames, "steps": spread}), write_step_trace)

    rows = [[int(cell) for cell in line.split(",")[:7]] for line in lines(export, RAW)[1:4]]
    assert [row[1] for row in rows] == [TICKS, TICKS + 1_100_000, TICKS + 2_100_100]
    assert [row[3] for row in rows] == [1_000_000] * 3


def test_a_step_without_a_call_of_the_others_has_it_without_length_at_its_end(tmp_path: Path) -> None:
    frames = torch_frames()
    sometimes = frames["collectives"].filter(pl.col("step") != 5)
    export = exported(make_export(tmp_path, {**frames, "collectives": sometimes}), write_step_trace)

    rows = [line.split(",")[-3:] for line in lines(export, RAW)[1:]]
    assert rows[1] == ["0", str(TICKS + 2_000_000), str(TICKS + 2_000_000)]
    average = TICKS + 1_500_000
    assert rows[-1] == ["100000", str(average + 700_000), str(average + 800_000)]


def test_calls_of_one_kind_are_matched_by_their_order(tmp_path: Path) -> None:
    frames = torch_frames()
    first = (
        frames["collectives"]
        .head(1)
        .with_columns(
            pl.col("start_ns") - 5 * MS,
            collective=pl.lit(9, pl.Int64),
            operation=pl.lit("broadcast"),
            name=pl.lit("gloo:broadcast"),
        )
    )
    export = exported(
        make_export(tmp_path, {**frames, "collectives": pl.concat([first, frames["collectives"]])}), write_step_trace
    )

    names = lines(export, RAW)[0].split(",")[9:]
    assert names[::3] == ["stream_0_0_Broadcast", "stream_0_1_AllReduce"]
    assert lines(export, RAW)[1].split(",")[12] == "100000"


def test_without_a_backward_pass_it_is_inference(tmp_path: Path) -> None:
    frames = torch_frames()
    forward = operators(frames["slices"].filter(~pl.col("name").str.contains("autograd|aten::mm")))
    bare = frames["steps"].with_columns(backward_end_ns=pl.lit(None, pl.Int64))
    export = make_export(tmp_path, {"steps": bare, "operators": forward, "ranks": frames["ranks"]})
    (export.recording / "marks.csv").unlink()

    write_step_trace(export)

    rows = lines(export, RAW)
    assert rows[0] == "step_num,start_point,end_point,total,fp_point,iteration_interval,fp"
    assert rows[1].split(",")[-2:] == ["200000", "800000"]
    assert json.loads(read(export, POINTS)) == {"fp_start": "Default/aten::linear"}


def test_the_user_may_name_the_operators_of_both_points(tmp_path: Path) -> None:
    export = exported(
        make_export(tmp_path, environment={"PROFILING_FP_START": "aten::addmm", "PROFILING_BP_END": "aten::mm"}),
        write_step_trace,
    )

    first = lines(export, RAW)[1].split(",")
    assert first[4:6] == [str(TICKS + 220_000), str(TICKS + 770_000)]
    assert json.loads(read(export, POINTS))["fp_start"] == "Default/Net_0/aten::linear/aten::addmm"


def pynative(update: str) -> dict[str, pl.DataFrame]:
    """Three steps whose backward mark ends at 4 ms; operators of it run until 9 ms, then an update."""
    frames = torch_frames()
    names = pl.col("name").replace({"aten::linear": "Default/AssignAdd-op0", "aten::mm": "MatMul"})
    calls = frames["operators"].filter(pl.col("name").is_in(["aten::linear", "aten::mm"])).with_columns(names)
    late = pl.when(pl.col("name") == "MatMul").then(pl.col("duration_ns") + 1_300_000).otherwise("duration_ns")
    last = calls.filter(pl.col("name") == "MatMul").with_columns(
        pl.col("start_ns") + 3_100_000, duration_ns=pl.lit(100 * US, pl.Int64), name=pl.lit(update)
    )
    marked = frames["steps"].with_columns(backward_end_ns=pl.col("start_ns") + 4 * MS)
    marks = marked.select(
        "start_ns",
        "step",
        slice=pl.int_range(100, 100 + pl.len()),
        duration_ns=pl.lit(4 * MS, pl.Int64),
        category=pl.lit("annotation"),
        name=pl.lit("backward: grad"),
    )
    calls = pl.concat([calls.with_columns(duration_ns=late), last])
    return {"steps": marked, "slices": marks, "operators": calls, "ranks": frames["ranks"]}


@pytest.mark.parametrize("update", ["Default/Adam-op0", "Default/optimizer-Own/Mul-op3", "Default/ApplyMomentum-op1"])
def test_in_pynative_backward_ends_with_the_last_operator_before_the_update(tmp_path: Path, update: str) -> None:
    export = exported(make_export(tmp_path, pynative(update), framework="mindspore", mode="pynative"), write_step_trace)

    assert [int(line.split(",")[5]) - TICKS for line in lines(export, RAW)[1:3]] == [900_000, 1_900_000]
    assert json.loads(read(export, POINTS))["bp_end"] == "MatMul"


@pytest.mark.parametrize(("update", "mode"), [("Default/Mul-op1", "pynative"), ("Default/Adam-op0", "graph")])
def test_without_an_update_or_elsewhere_the_mark_tells_the_end(tmp_path: Path, update: str, mode: str) -> None:
    export = exported(make_export(tmp_path, pynative(update), framework="mindspore", mode=mode), write_step_trace)

    assert int(lines(export, RAW)[1].split(",")[5]) - TICKS == 400_000


def test_a_named_operator_that_never_ran_changes_nothing(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, environment={"PROFILING_FP_START": "aten::nothing"}), write_step_trace)

    assert lines(export, RAW)[1].split(",")[4] == str(TICKS + 200_000)


def test_without_steps_the_reason_is_told(tmp_path: Path) -> None:
    export = exported(
        make_export(tmp_path, {name: frame for name, frame in torch_frames().items() if name != "steps"}),
        write_step_trace,
    )

    assert not export.written
    assert "no step" in export.left_out[RAW]


def test_profiler_info_says_who_and_when(tmp_path: Path) -> None:
    export = exported(
        make_export(tmp_path, mode="pynative", framework="mindspore", parallel={"parallel_mode": "semi_auto_parallel"}),
        write_profiler_info,
    )

    info = json.loads(read(export, "profiler_info_1.json"))
    assert info["context_mode"] == "pynative"
    assert info["rank_id"] == "1"
    assert info["rank_size"] == 2
    assert info["parallel_mode"] == "semi_auto_parallel"
    assert info["stage_num"] == 1
    assert info["is_heterogeneous"] is False
    assert info["profiling_start_time"] == info["profiling_stop_time"]
    assert info["system_time"] == BASE
    assert len(info["analyse_end_time"]) == len("2026-11-21 10:00:00")


def test_steps_of_the_helper_are_as_long_as_the_tests_say() -> None:
    assert (steps()["end_ns"] - steps()["start_ns"]).to_list() == [10 * MS] * 3
