"""Figures about one rank: their marks are the answers, a click gets what to ask next, and names stay names."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest

from stepscope.errors import StepscopeError, Unavailable
from stepscope.figures import figure_named, fragment, to_json
from stepscope.figures.axes import whole_ticks
from stepscope.figures.base import Drawn
from stepscope.run import Run
from stepscope.tables import (
    ALLOCATIONS,
    COLLECTIVES,
    GRAPH_NODES,
    GRAPH_TENSORS,
    GRAPHS,
    KERNELS,
    MEMORY_CURVE,
    OPERATOR_STEPS,
    RANK_FIGURES,
    STEPS,
)
from tests.analysis.inputs import chain, events, pipeline, samples, usage_of
from tests.analysis.jobs import MS

HOSTILE = "</script><script>alert(1)</script><b>%{x}</b> $x^2$ &amp; {name} [{0}] \x1b[31m " + "n" * 300

Tables = dict[str, pl.DataFrame]


def drawn(name: str, run: Run, **options: Any) -> Drawn:
    return figure_named(name).drawn(run, **options)


def of_rank(tables: Tables, *more: Tables) -> Run:
    return Run.from_frames(dict(enumerate([tables, *more])))


def bars(one: Drawn) -> list[dict[str, Any]]:
    return [trace for trace in one.spec["data"] if trace["type"] == "bar"]


# --- steps -----------------------------------------------------------------------------------------------------------


def stated_steps(
    parts: Sequence[tuple[int, int, int]], *, graph: int | None = None, name: str = "Net/Conv2D-op1", first: int = 1
) -> Tables:
    """Steps with stated points: before forward, forward and backward, after it, in ms each; a call in each of them."""
    rows, calls, now = [], [], 1000 * MS
    for number, (interval, both, tail) in enumerate(parts, first):
        end = now + (interval + both + tail) * MS
        rows.append((number, now, end, now + interval * MS, now + (interval + both) * MS))
        calls.append((number, now + (interval + 1) * MS))
        now = end
    count = len(rows)
    steps = STEPS.frame(
        graph=[graph] * count,
        step=[row[0] for row in rows],
        start_ns=[row[1] for row in rows],
        end_ns=[row[2] for row in rows],
        window_start_ns=[row[1] for row in rows],
        window_end_ns=[row[2] for row in rows],
        window=["stated"] * count,
        forward_start_ns=[row[3] for row in rows],
        backward_end_ns=[row[4] for row in rows],
    )
    collectives = COLLECTIVES.frame(
        collective=list(range(count)),
        step=[call[0] for call in calls],
        name=[name] * count,
        operation=["all_reduce"] * count,
        stream=[11] * count,
        start_ns=[call[1] for call in calls],
        duration_ns=[MS // 2] * count,
        sequence=list(range(count)),
        on_device=[True] * count,
    )
    named = RANK_FIGURES.frame(
        name=["forward_start_operator", "backward_end_operator"],
        graph=[graph] * 2,
        text=[name, name],
    )
    return {"steps": steps, "collectives": collectives, "rank_figures": named}


PARTS = [(1, 6, 3), (2, 8, 2), (3, 7, 2)]


def test_a_step_is_drawn_to_scale_from_its_start() -> None:
    one = drawn("step-trace", of_rank(stated_steps(PARTS)), step=2)
    whole, interval, both, tail, calls = bars(one)

    assert [(trace["base"], trace["x"]) for trace in (whole, interval, both, tail)] == [
        ([0], [12]),
        ([0], [2]),
        ([2], [8]),
        ([10], [2]),
    ]
    assert (calls["base"], calls["x"]) == ([3], [0.5])
    assert both["text"] == ["forward and backward 8.00 ms · 66.7%"]
    points = [trace for trace in one.spec["data"] if trace["type"] == "scatter"]
    assert [(trace["name"], trace["x"]) for trace in points] == [("forward starts", [2]), ("backward ends", [10])]
    assert [shape["x0"] for shape in one.spec["layout"]["shapes"]] == [2, 10]
    assert one.spec["layout"]["yaxis"]["ticktext"] == ["step", "parts", "forward starts", "backward ends", "stream 11"]


def test_a_click_on_a_part_or_call_says_when_it_was() -> None:
    one = drawn("step-trace", of_rank(stated_steps(PARTS)), step=2)
    both, calls = bars(one)[2], bars(one)[-1]

    assert both["customdata"][0][:4] == ["part", "forward_backward", str((1000 + 10 + 2) * MS), 8 * MS]
    assert calls["customdata"][0][:4] == ["call", 11, str((1000 + 10 + 3) * MS), MS // 2]


def test_without_a_step_the_mean_of_all_is_drawn_as_the_answer_says() -> None:
    run = of_rank(stated_steps(PARTS))
    one = drawn("step-trace", run)
    means = {row["phase"]: row["mean_ns"] for row in run.analyse("step_statistics").to_dicts()}

    assert [trace["x"][0] for trace in bars(one)[:4]] == pytest.approx(
        [means[name] / 1e6 for name in ("step", "interval", "forward_backward", "tail")], rel=1e-5
    )
    assert bars(one)[1]["customdata"][0][2] is None
    assert "Mean of 3 steps." in one.notes
    assert bars(one)[-1]["x"] == [0.5]


def test_an_unknown_step_or_graph_is_an_error_that_lists_what_there_is() -> None:
    run = of_rank(stated_steps(PARTS))

    with pytest.raises(StepscopeError, match=r"no step 9.*1-3"):
        drawn("step-trace", run, step=9)
    with pytest.raises(StepscopeError, match="no graph 5"):
        drawn("step-parts", run, graph=5)
    with pytest.raises(StepscopeError):
        drawn("step-trace", run, rank=7)


def test_of_several_graphs_the_one_with_most_time_is_drawn_unless_one_is_chosen() -> None:
    small, large = stated_steps([(1, 1, 1)] * 2, graph=1), stated_steps(PARTS, graph=2)
    both = {name: pl.concat([small[name], large[name]]) for name in small}
    run = of_rank(both)

    assert drawn("step-trace", run).spec["data"][0]["x"] == pytest.approx([34 / 3], rel=1e-5)
    assert drawn("step-trace", run, graph=1).spec["data"][0]["x"] == [3]
    assert "Graph 2, whose steps take most time; there are 2 graphs." in drawn("step-trace", run).notes


def test_a_rank_is_chosen_or_the_first_is_shown() -> None:
    run = of_rank(stated_steps(PARTS), stated_steps([(1, 1, 1)] * 3))

    assert drawn("step-trace", run, rank=1).spec["data"][0]["x"] == [3]
    assert drawn("step-trace", run).notes[0] == "Rank 0."
    assert drawn("step-trace", run.select(ranks=[1])).notes[0] == "Rank 1."


def test_of_many_calls_the_longest_are_drawn_and_the_rest_is_counted() -> None:
    tables = stated_steps([(1, 900, 1)])
    count = 5000
    tables["collectives"] = COLLECTIVES.frame(
        collective=list(range(count)),
        step=[1] * count,
        name=[f"call{k}" for k in range(count)],
        operation=["all_gather"] * count,
        stream=[k % 40 for k in range(count)],
        start_ns=[1002 * MS + k * 100_000 for k in range(count)],
        duration_ns=[1000 + k for k in range(count)],
        sequence=list(range(count)),
        on_device=[True] * count,
    )
    one = drawn("step-trace", of_rank(tables), step=1)

    assert sum(len(trace["x"]) for trace in bars(one)[4:]) == 400
    assert len(bars(one)[4:]) == 12
    assert "400 of 5000 communication calls, the longest, on 12 of 40 streams." in one.notes
    assert len(to_json(one)) < 120_000


def test_parts_are_curves_with_their_means_and_outliers() -> None:
    parts = [(1, 6, 3)] * 30
    parts[12] = (1, 60, 3)
    run = of_rank(stated_steps(parts))
    one = drawn("step-parts", run, step=13)
    curves = {trace["name"]: trace for trace in one.spec["data"] if trace["mode"] != "markers"}

    assert list(curves) == ["interval", "forward_backward", "tail"]
    assert curves["forward_backward"]["y"] == [60 if k == 12 else 6 for k in range(30)]
    assert curves["tail"]["customdata"][4] == ["tail", 5]
    (late,) = [trace for trace in one.spec["data"] if trace["mode"] == "markers"]
    assert (late["x"], late["y"]) == ([13], [60])
    assert one.spec["layout"]["shapes"][-1]["x0"] == 13
    assert "mean 7.80 ms" in one.spec["layout"]["annotations"][1]["text"]
    assert one.tables[1].rows["mean_ns"].to_list() == [MS, 7_800_000, 3 * MS]


def test_steps_that_are_far_apart_have_no_tick_each_which_would_keep_a_browser_busy_for_minutes() -> None:
    def axis(*steps: int) -> dict[str, Any]:
        return whole_ticks(pl.Series(steps))

    assert axis(10, 11, 15) == {"tickformat": "d", "dtick": 1}
    assert axis(10, 1_000_000) == axis() == {"tickformat": "d"}
    one = drawn("step-parts", of_rank(stated_steps([(1, 6, 3)] * 5)), step=10**9)  # not recorded
    assert one.spec["layout"]["xaxis"]["dtick"] == 1
    assert all(shape["x1"] < 100 for shape in one.spec["layout"]["shapes"])


def test_of_many_steps_the_longest_stays_seen() -> None:
    parts = [(1, 6, 3)] * 5000
    parts[4321] = (1, 60, 3)
    one = drawn("step-parts", of_rank(stated_steps(parts)))

    assert max(one.spec["data"][1]["y"]) == 60
    assert max(len(trace["x"]) for trace in one.spec["data"]) <= 600
    assert len(to_json(one)) < 120_000
    assert any("Of every 9 steps (5000 in all)" in note for note in one.notes)


def test_without_points_phases_are_shown() -> None:
    tables = stated_steps(PARTS)
    tables["steps"] = tables["steps"].with_columns(
        forward_start_ns=pl.lit(None, pl.Int64), backward_end_ns=pl.lit(None, pl.Int64)
    )
    del tables["rank_figures"]
    rows = pl.DataFrame(
        {"graph": [None] * 3, "step": [1, 2, 3], "rank": [0] * 3, "step_ns": [10, 12, 12]},
        schema_overrides={"graph": pl.Int64, "step": pl.Int32},
    ).with_columns(
        *(pl.lit(None, pl.Int64).alias(f"{name}_ns") for name in ("interval", "forward_backward", "tail")),
        *(pl.lit(0, pl.Int64).alias(f"{name}_ns") for name in ("compile", "warm_up", "checkpoint", "validation")),
        *(pl.lit(MS, pl.Int64).alias(f"{name}_ns") for name in ("data_wait", "forward", "backward", "optimizer")),
        exposed_communication_ns=pl.lit(2 * MS, pl.Int64),
        other_ns=pl.lit(0, pl.Int64),
    )
    means = pl.DataFrame(
        schema={
            "graph": pl.Int64,
            "phase": pl.String,
            "mean_ns": pl.Int64,
            "share_ratio": pl.Float64,
            "steps": pl.Int64,
            "outlier_steps": pl.List(pl.Int32),
        }
    )
    from tests.figures.test_figures import Answering

    one = drawn("step-parts", Answering({"step_trace": rows, "step_statistics": means}))

    assert [trace["name"] for trace in one.spec["data"]] == [
        *("data_wait", "forward", "backward", "exposed_communication", "optimizer")
    ]
    assert "Where forward starts and backward ends is unknown, so phases are shown." in one.notes


def test_of_inference_only_forward_is_drawn() -> None:
    tables = stated_steps(PARTS)
    tables["steps"] = tables["steps"].with_columns(backward_end_ns=pl.lit(None, pl.Int64))
    tables["rank_figures"] = tables["rank_figures"].head(1)
    run = of_rank(tables)
    one = drawn("step-trace", run, step=2)

    assert [(bar["name"], bar["base"], bar["x"]) for bar in bars(one)[1:3]] == [
        ("before forward 2.00 ms · 16.7%", [0], [2]),
        ("forward 10.00 ms · 83.3%", [2], [10]),
    ]
    assert one.spec["layout"]["yaxis"]["ticktext"] == ["step", "parts", "forward starts", "stream 11"]
    curves = [trace for trace in drawn("step-parts", run).spec["data"] if trace["mode"] != "markers"]
    assert [(trace["name"], trace["y"]) for trace in curves] == [("interval", [1, 2, 3]), ("forward", [9, 10, 9])]


def test_one_step_has_no_curves_but_is_drawn() -> None:
    run = of_rank(stated_steps([(1, 6, 3)]))

    with pytest.raises(Unavailable, match="only one step"):
        drawn("step-parts", run)
    assert drawn("step-trace", run).spec["data"][0]["x"] == [10]


# --- operators -------------------------------------------------------------------------------------------------------


def with_types(*names: str) -> Tables:
    """A kernel of each type, the first the longest."""
    count = len(names)
    return {
        "kernels": KERNELS.frame(
            kernel=list(range(count)),
            start_ns=[k * MS for k in range(count)],
            duration_ns=[1000 * (count - k) for k in range(count)],
            kind=["compute"] * count,
            core=["AI_CORE"] * count,
            name=[f"{name}-op{k}" for k, name in enumerate(names)],
            type=list(names),
        )
    }


@pytest.mark.parametrize("form", ["pie", "bar"])
def test_slices_and_bars_have_the_order_and_values_of_the_table(form: str) -> None:
    run = of_rank(with_types(*(f"Type{k:02}" for k in range(30))))
    table = run.analyse("operator_types")
    one = drawn("operator-types", run, form=form)
    (trace,) = one.spec["data"]

    assert one.table.rows["type"].to_list() == [*table["type"][:19], None]
    assert one.table.rows["total_ns"].sum() == table["total_ns"].sum()
    values = trace["values"] if form == "pie" else [value * 1000 for value in trace["x"]]
    assert values == pytest.approx([*table["total_ns"][:19], table["total_ns"][19:].sum()], rel=1e-5)
    assert [row[:2] for row in trace["customdata"]][::19] == [["Type00", table["unit"][0]], [None, table["unit"][0]]]
    assert trace.get("sort", False) is False
    assert any(note.startswith("19 of 30 types") for note in one.notes)


def test_an_unknown_list_or_form_is_an_error() -> None:
    run = of_rank(with_types("MatMul"))

    with pytest.raises(StepscopeError, match="no list 'AI_CPUS'"):
        drawn("operator-types", run, unit="AI_CPUS")
    with pytest.raises(StepscopeError, match="pie or bar"):
        drawn("operator-types", run, form="cube")


def with_shapes(types: Sequence[str], steps: int) -> Tables:
    """A call of each type in each step, with a shape of its own; the first type takes longest."""
    rows = [(kind, place, step) for place, kind in enumerate(types) for step in range(1, steps + 1)]
    return {
        "operator_steps": OPERATOR_STEPS.frame(
            unit=["AI_CORE"] * len(rows),
            type=[kind for kind, _, _ in rows],
            name=[f"{kind}-op1" for kind, _, _ in rows],
            step=[step for _, _, step in rows],
            duration_ns=[(len(types) - place) * 1000 + step for _, place, step in rows],
            input_shapes=[f"[{step},16]" for _, _, step in rows],
        )
    }


def test_the_three_costliest_types_are_curves_unless_others_are_named() -> None:
    run = of_rank(with_shapes(["A", "B", "C", "D"], 4))
    one = drawn("shape-curves", run)

    assert [trace["name"] for trace in one.spec["data"]] == ["A", "B", "C"]
    assert one.spec["data"][0]["y"] == pytest.approx([4.001, 4.002, 4.003, 4.004])
    assert one.spec["data"][1]["customdata"][2] == ["AI_CORE", "B", 3, 1, 1]
    assert [trace["name"] for trace in drawn("shape-curves", run, types="D, A").spec["data"]] == ["A", "D"]
    with pytest.raises(StepscopeError, match="no shapes of 'E' change"):
        drawn("shape-curves", run, types=["E"])
    with pytest.raises(StepscopeError, match="at most 10"):
        drawn("shape-curves", of_rank(with_shapes([f"T{k}" for k in range(12)], 2)), types=[f"T{k}" for k in range(12)])


def test_of_many_steps_with_shapes_few_points_stay() -> None:
    one = drawn("shape-curves", of_rank(with_shapes(["A", "B"], 3000)))

    assert max(len(trace["x"]) for trace in one.spec["data"]) <= 400
    assert max(one.spec["data"][0]["y"]) == pytest.approx(5)


# --- data preparation ------------------------------------------------------------------------------------------------

USAGE = {"BatchOp_1": 0.8, "MapOp_2": 0.1, "TFReaderOp_3": 0.9}


def test_operators_stand_from_left_to_right_with_queues_filled_by_usage() -> None:
    one = drawn("input-pipeline", of_rank(chain(USAGE)))
    operators, queues = one.spec["data"]

    placed = dict(zip((row[1] for row in operators["customdata"]), operators["x"], strict=True))
    assert sorted(placed, key=lambda name: placed[name]) == ["TFReaderOp_3", "MapOp_2", "BatchOp_1", "DataQueueOp_0"]
    assert {row[1]: text for row, text in zip(queues["customdata"], queues["text"], strict=True)} == {
        "BatchOp_1": "80.0%",
        "MapOp_2": "10.0%",
        "TFReaderOp_3": "90.0%",
    }
    assert queues["customdata"][0][0] == "queue"
    filled = [shape for shape in one.spec["layout"]["shapes"] if shape.get("opacity")]
    heights = sorted(round((shape["y1"] - shape["y0"]) / 0.52, 3) for shape in filled)
    assert heights == [0.1, 0.8, 0.9]
    assert len(one.spec["layout"]["annotations"]) == 6  # to each queue and from it


def test_branches_of_a_pipeline_stand_one_below_the_other() -> None:
    parents = {"Zip_0": None, "Map_1": "Zip_0", "Reader_2": "Map_1", "Reader_3": "Zip_0"}
    tables = {"pipeline_operators": pipeline(parents), "input_pipeline": samples({"Reader_2": [1], "Map_1": [2]})}
    operators = drawn("input-pipeline", of_rank(tables)).spec["data"][0]

    places = {
        row[1]: at
        for row, at in zip(operators["customdata"], zip(operators["x"], operators["y"], strict=True), strict=True)
    }
    assert places["Reader_2"][1] == places["Map_1"][1] != places["Reader_3"][1]
    assert places["Zip_0"][1] == (places["Map_1"][1] + places["Reader_3"][1]) / 2
    assert len({*places.values()}) == 4


def test_a_long_pipeline_goes_on_in_the_line_below() -> None:
    one = drawn("input-pipeline", of_rank(chain({f"Map_{k}": 0.5 for k in range(1, 12)})))
    operators, queues = one.spec["data"]

    places = {
        row[1]: at
        for row, at in zip(operators["customdata"], zip(operators["x"], operators["y"], strict=True), strict=True)
    }
    assert [places[f"Map_{k}"] for k in (11, 6, 5)] == [(0, 0), (5, 0), (0, 1)]
    assert places["DataQueueOp_0"] == (5, 1)
    assert max(queues["x"]) == 5.5
    assert [note["text"] for note in one.spec["layout"]["annotations"] if note["text"]] == ["↵", "↳"]
    assert one.spec["layout"]["xaxis"]["range"][1] > 5.5


def test_of_a_huge_pipeline_what_is_near_the_training_loop_is_drawn() -> None:
    names = [f"Map_{k}" for k in range(500)]
    parents = dict(zip(names, [None, *names[:-1]], strict=True))
    one = drawn("input-pipeline", of_rank({"pipeline_operators": pipeline(parents)}))

    assert one.table.rows["operator"].to_list() == names[:60]
    assert "60 of 500 operators" in one.notes[1]
    with pytest.raises(StepscopeError, match="no pipeline 3"):
        drawn("input-pipeline", of_rank({"pipeline_operators": pipeline(parents)}), pipeline=3)


def test_queues_are_curves_and_one_of_them_has_its_capacity() -> None:
    run = of_rank(chain(USAGE))

    assert [trace["name"] for trace in drawn("input-curves", run).spec["data"]] == [*USAGE]
    line, room = drawn("input-curves", run, operator="MapOp_2").spec["data"]
    assert (line["x"], line["y"]) == ([0, 1, 2, 3], [1, 1, 1, 1])
    assert line["customdata"][2] == ["MapOp_2", 2, None]
    assert room["y"] == [10] * 4
    with pytest.raises(StepscopeError, match="MapOp_2"):
        drawn("input-curves", run, operator="MapOp_3")


def test_of_many_samples_an_empty_queue_stays_seen() -> None:
    sizes = [7] * 9000
    sizes[4321] = 0
    one = drawn("input-curves", of_rank({"input_pipeline": samples({"Map_1": sizes})}))

    assert min(one.spec["data"][0]["y"]) == 0
    assert len(one.spec["data"][0]["y"]) <= 400


# --- host ------------------------------------------------------------------------------------------------------------


def with_usage() -> Tables:
    parts = [
        usage_of("host", [0.5, 0.25, 0.75]),
        usage_of("process", [0.25, 0.25, 0.5]),
        usage_of("operator", [0.1, 0.2, 0.1], name="Map_1"),
        usage_of("operator", [0.3, 0.2, 0.3], name="Batch_0"),
    ]
    return {"host_usage": pl.concat(parts)}


def test_processors_of_host_process_and_operators_are_areas() -> None:
    one = drawn("cpu-usage", of_rank(with_usage()))
    user = [trace for trace in one.spec["data"] if trace["name"] == "user code"]

    assert [trace["customdata"][0][0] for trace in user] == ["host", "process", "operators"]
    assert user[0]["y"] == [50, 25, 75]  # of the host, shares
    assert user[1]["y"] == [1, 1, 2]  # of the process, processors of four
    assert user[2]["y"] == pytest.approx([1.6, 1.6, 1.6])
    assert user[0]["x"] == [0, 10, 20]
    assert one.notes[-1] == "The host has 4 processors."


def test_each_operator_is_a_curve_the_busiest_first_and_one_can_be_chosen() -> None:
    run = of_rank(with_usage())
    lines = drawn("cpu-usage", run, of="operators").spec["data"]

    assert [trace["name"] for trace in lines] == ["Batch_0", "Map_1"]
    assert lines[1]["y"] == pytest.approx([0.4, 0.8, 0.4])
    one = drawn("cpu-usage", run, operator="Map_1")
    assert one.spec["data"][0]["y"] == pytest.approx([0.4, 0.8, 0.4])
    with pytest.raises(StepscopeError, match="Map_1"):
        drawn("cpu-usage", run, operator="Map_2")
    with pytest.raises(StepscopeError, match="not of 'cpu'"):
        drawn("cpu-usage", run, of="cpu")
    with pytest.raises(Unavailable, match="workers"):
        drawn("cpu-usage", run, of="workers")


def test_samples_that_are_not_whole_are_left_out_and_not_drawn_as_zero() -> None:
    rows = usage_of("host", [0.5, 0.25, 0.75]).with_columns(
        user_ratio=pl.Series([0.5, None, 0.75]), idle_ratio=pl.lit(0.1)
    )
    one = drawn("cpu-usage", of_rank({"host_usage": rows}))

    assert one.spec["data"][0]["y"] == [50, 75]
    assert any(note.endswith("are left out: 1.") for note in one.notes)


def test_of_many_samples_the_busiest_stays_seen() -> None:
    busy = [0.1] * 5000
    busy[1234] = 1.0
    one = drawn("cpu-usage", of_rank({"host_usage": usage_of("host", busy)}))

    assert max(one.spec["data"][0]["y"]) == 100
    assert len(one.spec["data"][0]["y"]) <= 400


def test_events_of_the_host_are_bars_by_their_own_time() -> None:
    run = of_rank({"host_events": events([("graph", "compile", 0, 50), ("runtime", "launch", 10, 20)])})
    one = drawn("host-time", run)

    assert one.spec["layout"]["yaxis"]["ticktext"] == ["compile", "launch"]
    assert [trace["x"] for trace in one.spec["data"]] == [[30], [20]]
    assert one.spec["data"][0]["customdata"][0][:3] == ["graph", "compile", None]
    assert one.table.rows["self_ns"].to_list() == run.analyse("host_time")["self_ns"].to_list()


def test_of_many_events_the_longest_are_drawn() -> None:
    rows = [("module", f"event{k}", 1000 * k, 200 - k) for k in range(100)]
    one = drawn("host-time", of_rank({"host_events": events(rows)}))

    assert sum(len(trace["x"]) for trace in one.spec["data"]) == 25
    assert "25 of 100 events" in one.notes[1]


# --- memory ----------------------------------------------------------------------------------------------------------


def with_graph(*, name: str = "Conv2D-op1", tensors: int = 3) -> Tables:
    """A graph of ten nodes whose forward starts at node 1 and backward ends at node 6, with some tensors."""
    totals = [100, 200, 300, 400, 500, 600, 500, 400, 300, 200]
    return {
        "graphs": GRAPHS.frame(graph=[1], static_bytes=[50], forward_start=[1], backward_end=[6]),
        "graph_nodes": GRAPH_NODES.frame(
            graph=[1] * 10, node=list(range(10)), name=[f"{name}{k}" for k in range(10)], total_bytes=totals
        ),
        "graph_tensors": GRAPH_TENSORS.frame(
            graph=[1] * tensors,
            tensor=list(range(tensors)),
            node=[min(k, 9) for k in range(tensors)],
            name=[f"{name}:{k}" for k in range(tensors)],
            type=["output"] * tensors,
            size_bytes=[1000 - k for k in range(tensors)],
            life_start=[min(k, 9) for k in range(tensors)],
            life_end=[min(k + 4, 9) for k in range(tensors)],
            lifetime=["LifeLongGraphAll" if k == 2 else None for k in range(tensors)],
        ),
        "rank_figures": RANK_FIGURES.frame(name=["memory_capacity_bytes"], value=[1e6]),
    }


def test_the_curve_of_a_graph_has_its_marks_and_places_to_ask_about() -> None:
    one = drawn("memory", of_rank(with_graph()))
    named = {trace["name"]: trace for trace in one.spec["data"]}

    assert named["static part"]["y"] == [50, 50]
    assert named["capacity"]["visible"] == "legendonly"  # a curve beside it would be flat
    assert named["in use"]["customdata"][5][:4] == [1, 5, None, None]
    assert named["peak"]["customdata"][0][:2] == [1, 5]
    lines = [(shape["x0"], note["text"]) for shape, note in zip(*_marked(one), strict=True)]
    assert lines == [(1, "forward starts"), (6, "backward ends")]


def _marked(one: Drawn) -> tuple[list[Any], list[Any]]:
    return one.spec["layout"]["shapes"], one.spec["layout"]["annotations"]


def test_a_click_on_a_curve_over_time_asks_for_that_time() -> None:
    late = 1_764_000_000_123_456_789
    curve = MEMORY_CURVE.frame(time_ns=[late, late + 1], allocated_bytes=[5, 7], device=[0, 0])
    blocks = ALLOCATIONS.frame(name=["mm"], device=[0], size_bytes=[5], allocation_ns=[late], release_ns=[late + 9])
    run = of_rank({"memory_curve": curve, "allocations": blocks})
    one = drawn("memory", run)

    at = json.loads(json.dumps(one.spec))["data"][0]["customdata"][1][2]
    assert at == str(late + 1)  # a number would lose its last digits in a browser
    held = run.analyse("memory_breakdown", at_ns=int(at))
    assert held["name"].to_list() == ["mm"]


def test_a_curve_can_be_chosen_by_graph_or_device() -> None:
    curve = MEMORY_CURVE.frame(time_ns=[1, 2, 1, 2], allocated_bytes=[5, 7, 3, 9], device=[0, 0, 1, 1])
    run = of_rank({"memory_curve": curve})

    assert drawn("memory", run).table.rows["total_bytes"].max() == 9
    assert "The highest of 2 curves: device 1." in drawn("memory", run).notes
    assert drawn("memory", run, device=0).table.rows["total_bytes"].max() == 7
    with pytest.raises(Unavailable):
        drawn("memory", run, graph=4)


def test_lives_of_tensors_are_bars_from_node_to_node() -> None:
    run = of_rank(with_graph())
    one = drawn("memory-lifetimes", run)
    (trace,) = bars(one)
    ticks = one.spec["layout"]["yaxis"]["ticktext"]

    lives = {
        ticks[y]: (start, start + length)
        for y, start, length in zip(trace["y"], trace["base"], trace["x"], strict=True)
    }
    assert lives == {"Conv2D-op1:0": (0, 5), "Conv2D-op1:1": (1, 6), "Conv2D-op1:2": (0, 10)}
    assert [row[:3] for row in trace["customdata"]] == [[1, 0, None], [1, None, None], [1, 1, None]]
    assert [shape["x0"] for shape in one.spec["layout"]["shapes"]] == [1, 6]
    assert one.table.rows["size_bytes"].to_list() == [1000, 999, 998]


def test_lives_of_blocks_are_bars_over_time_and_the_largest_are_kept() -> None:
    count = 500_000
    blocks = ALLOCATIONS.frame(
        name=["mm"] * count,
        device=[0] * count,
        size_bytes=list(range(1, count + 1)),
        allocation_ns=[k * 10 for k in range(count)],
        release_ns=[None if k == count - 1 else k * 10 + 500 for k in range(count)],
    )
    run = of_rank({"allocations": blocks})
    answer = run.analyse("memory_lifetimes")
    one = drawn("memory-lifetimes", run)

    assert answer["size_bytes"].to_list() == list(range(count, count - 200, -1))
    assert {*answer["others"]} == {count - 200}
    assert len(bars(one)[0]["x"]) == 40
    assert f"40 of {count}, the largest." in one.notes
    assert len(to_json(one)) < 20_000


def test_lifetimes_are_counted_for_each_place_apart() -> None:
    run = of_rank(with_graph(tensors=3), with_graph(tensors=250))
    answer = run.analyse("memory_lifetimes")

    assert answer.group_by("rank").agg(pl.len(), pl.col("others").max()).sort("rank").rows() == [
        (0, 3, 0),
        (1, 200, 50),
    ]
    assert answer.filter(pl.col("tensor") == 2)["first_node"].to_list() == [None, None]
    with pytest.raises(Unavailable, match="neither tensors"):
        of_rank({}).analyse("memory_lifetimes")


# --- all of them -----------------------------------------------------------------------------------------------------

CASES: dict[str, Callable[[str], Tables]] = {
    "step-trace": lambda name: stated_steps(PARTS, name=name),
    "operator-types": lambda name: with_types(name, "MatMul"),
    "input-pipeline": lambda name: chain({f"{name}_1": 0.5}),
    "input-curves": lambda name: chain({f"{name}_1": 0.5}),
    "memory": lambda name: with_graph(name=name),
    "memory-lifetimes": lambda name: with_graph(name=name),
    "cpu-usage": lambda name: {"host_usage": usage_of("operator", [0.5, 0.5], name=name)},
    "host-time": lambda name: {"host_events": events([(name, name, 0, 5)])},
    "shape-curves": lambda name: with_shapes([name], 3),
}
OPTIONS: dict[str, dict[str, Any]] = {"cpu-usage": {"of": "operators"}, "step-trace": {"step": 2}}


@pytest.mark.parametrize("form", ["pie", "bar"])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", CASES)
def test_hostile_names_are_shown_as_they_are(name: str, language: Any, form: str) -> None:
    options = {**OPTIONS.get(name, {}), **({"form": form} if name == "operator-types" else {})}
    one = drawn(name, of_rank(CASES[name](HOSTILE)), language=language, **options)
    page = fragment(one)

    assert page.count("</script>") == 1
    assert "<script>alert" not in page
    assert "\x1b" not in page
    for trace in one.spec["data"]:
        assert "alert" not in trace["hovertemplate"]
        texts = [trace.get("name", ""), *trace.get("text", []), *trace.get("labels", [])]
        texts += [hover for row in trace.get("customdata", []) for hover in row if "<br>" in str(hover)]
        assert not any("<script" in text or "<b>" in text for text in texts)
        assert all(len(text) < 600 for text in texts)
    ticks = one.spec["layout"].get("yaxis", {}).get("ticktext", [])
    assert not any("<" in text for text in ticks)
    one.figure()


@pytest.mark.parametrize("name", [*CASES, "step-parts"])
def test_a_run_without_answers_gets_a_reason(name: str) -> None:
    with pytest.raises(Unavailable, match=r"\w{4}"):
        drawn(name, of_rank({}))
