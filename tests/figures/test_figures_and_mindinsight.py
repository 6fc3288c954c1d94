"""Figures of a rank draw the numbers that MindInsight answers on the same directories, where it is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.figures import figure_named
from stepscope.figures.base import Drawn
from stepscope.run import open_run

SHARED = Path(__file__).parents[3] / "shared"
GOLDEN, DATA = SHARED / "golden" / "mindinsight", SHARED / "data" / "mindspore"
RANKS = range(4)

pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason="no folder of reference answers beside the repository")


def answered(name: str, job: str = "synthetic_dp4") -> Any:
    return json.loads((GOLDEN / job / f"{name}.json").read_text())["response"]


def drawn(name: str, rank: int, job: str = "synthetic_dp4", **options: Any) -> Drawn:
    return figure_named(name).drawn(open_run(DATA / job / "profiler"), rank=rank, **options)


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("step", [0, 1, 2])  # 0 is the average
def test_a_step_has_the_same_parts_at_the_same_places(rank: int, step: int) -> None:
    theirs = answered(f"training_trace_graph_step{step}_dev{rank}")["training_trace_graph"]
    data = drawn("step-trace", rank, step=step or None).spec["data"]
    bars = [trace for trace in data if trace["type"] == "bar"]

    parts = [(bar["base"][0], bar["x"][0]) for bar in bars[:4]]
    expected = [(part["start"], part["duration"]) for row in theirs[:2] for part in row]
    assert [value for part in parts for value in part] == pytest.approx(
        [value for part in expected for value in part], abs=1.1e-4
    )
    calls = sorted(pair for bar in bars[4:] for pair in zip(bar["base"], bar["x"], strict=True))
    named = sorted((call["start"], call["duration"]) for row in theirs[2:] for call in row if call["name"])
    assert len(calls) == len(named) > 0
    assert [value for call in calls for value in call] == pytest.approx(
        [value for call in named for value in call], abs=1.1e-4
    )


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize(
    ("part", "theirs"), [("interval", "iteration_interval"), ("forward_backward", "fp_and_bp"), ("tail", "tail")]
)
def test_curves_of_parts_are_the_same(rank: int, part: str, theirs: str) -> None:
    expected = answered(f"target_time_{theirs}_dev{rank}")["info"][theirs]
    one = drawn("step-parts", rank)
    rows = one.of.data(open_run(DATA / "synthetic_dp4" / "profiler"), rank=rank).main

    assert (rows.filter(pl.col("piece") == part)["length_ns"] / 1e6).to_list() == pytest.approx(expected, abs=5.1e-5)


@pytest.mark.parametrize("rank", RANKS)
def test_types_have_their_total_times_in_the_order_of_these(rank: int) -> None:
    types = {row[0]: row[1] for row in answered(f"ops_aicore_type_dev{rank}")["object"]}
    pie = drawn("operator-types", rank, unit="AI_CORE").spec["data"][0]
    costliest = sorted(types, key=lambda name: -types[name])

    assert [row[0] for row in pie["customdata"]] == [*costliest[:19], None]
    expected = [*(types[name] for name in costliest[:19]), sum(types[name] for name in costliest[19:])]
    assert [value / 1e3 for value in pie["values"]] == pytest.approx(expected, rel=5e-6)


@pytest.mark.parametrize("rank", RANKS)
def test_queues_of_the_pipeline_are_filled_alike(rank: int) -> None:
    listed = answered(f"minddata_pipeline_op_queue_dev{rank}")["object"]
    queues = drawn("input-pipeline", rank).spec["data"][1]
    ours = {row[1]: text for row, text in zip(queues["customdata"], queues["text"], strict=True)}

    assert ours == {f"{kind}_{number}": f"{usage:.1%}" for number, kind, _, _, usage, *_ in listed if number}


@pytest.mark.parametrize("rank", RANKS)
def test_the_curve_of_a_queue_is_the_same(rank: int) -> None:
    theirs = answered(f"minddata_pipeline_queue_op1_dev{rank}")
    name = f"{theirs['current_op']['op_type']}_1"
    line, room = drawn("input-curves", rank, operator=name).spec["data"]

    assert line["y"] == theirs["queue_info"]["output_queue_size"]
    assert {*room["y"]} == {theirs["queue_info"]["output_queue_length"]}


@pytest.mark.parametrize("rank", RANKS)
def test_the_curve_of_memory_has_the_same_points_and_marks(rank: int) -> None:
    (graph,) = answered(f"memory_graphics_dev{rank}").values()
    one = drawn("memory", rank)
    curve = one.of.data(open_run(DATA / "synthetic_dp4" / "profiler"), rank=rank).main

    assert (curve["total_bytes"] / 2**30).to_list() == pytest.approx(graph["lines"], abs=1e-6)
    lines = one.spec["layout"]["shapes"]
    assert [line["x0"] for line in lines] == [graph["fp_start"], graph["bp_end"]]
    assert [row[:2] for row in one.spec["data"][0]["customdata"]] == [[1, node] for node in range(len(graph["lines"]))]


@pytest.mark.parametrize("rank", RANKS)
def test_processors_are_as_busy(rank: int) -> None:
    theirs = answered(f"minddata_cpu_utilization_dev{rank}")
    host = {trace["legendgroup"]: trace["y"] for trace in drawn("cpu-usage", rank, of="host").spec["data"]}

    for part, name in (("user", "user"), ("system", "sys"), ("io", "io"), ("idle", "idle")):
        metrics = theirs["device_info"][f"{name}_utilization"]["metrics"][1:]  # the first sample measures nothing
        assert host[f"{part}_ratio"] == pytest.approx(metrics)
    process = theirs["process_info"]["user_utilization"]["metrics"][1:]
    own = drawn("cpu-usage", rank, of="process").spec["data"][0]["y"]
    assert own == pytest.approx([share / 100 for share in process[: len(own)]], rel=1e-3)


def test_times_of_types_with_changing_shapes_are_the_same() -> None:
    theirs = answered("dynamic_shape_detail_dev0", "synthetic_dynamic1")
    (operator,) = theirs["Add"][0].values()
    trace = drawn("shape-curves", 0, "synthetic_dynamic1", types="Add").spec["data"][0]

    assert [value / 1e3 for value in trace["y"]] == pytest.approx(operator["op_exe_time"], rel=1e-5)
