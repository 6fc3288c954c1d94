"""Phases of steps: as a step table states them, as marks and operators tell them, as a user names them."""

from __future__ import annotations

import json

import polars as pl
import pytest
from phases import MARKS, STEP, TRAINING, US, kernels, marks, on_host, operators, steps

from stepscope.analysis.methods.step_points import NamedPoints
from stepscope.analysis.step.step_trace import PHASES
from stepscope.errors import StepscopeError, Unavailable
from stepscope.run import Run
from stepscope.tables import RANK_FIGURES, RANKS

SECTIONS = ("interval_ns", "forward_backward_ns", "tail_ns")
PARTS = ("data_wait_ns", "forward_ns", "backward_ns", "exposed_communication_ns", "optimizer_ns", "other_ns")


def told(frame: pl.DataFrame, columns: tuple[str, ...], row: int = 0) -> list[int | None]:
    """Columns of a row in microseconds."""
    return [None if value is None else value // US for value in frame.select(columns).row(row)]


def stated(**columns: object) -> Run:
    values = {"window": ["stated"] * 2, "forward_start_ns": [0, 1100 * US], "backward_end_ns": [700 * US, 1800 * US]}
    names = RANK_FIGURES.frame(
        name=["forward_start_operator", "backward_end_operator"], text=["Default/a", "Gradients/b"]
    )
    return Run.from_frames({0: {"steps": steps(2, **{**values, **columns}), "rank_figures": names}})


def test_a_step_table_is_told_as_it_states_its_points() -> None:
    trace = stated().analyse("step_trace")

    assert told(trace, ("step_ns", *SECTIONS)) == [STEP, 0, 700, 300]
    assert told(trace, ("step_ns", *SECTIONS), 1) == [STEP, 100, 700, 200]
    assert told(trace, PARTS) == [None] * 6
    names = trace.select("forward_start_by", "forward_start_operator", "backward_end_by", "backward_end_operator")
    assert names.row(0) == ("stated", "Default/a", "stated", "Gradients/b")


def test_a_point_that_is_stated_without_a_name_has_that_of_the_operator_there() -> None:
    bounds = {"forward_start_ns": [150 * US], "backward_end_ns": [700 * US]}

    row = on_host(steps=steps(1, **bounds)).analyse("step_trace").row(0, named=True)

    assert (row["forward_start_by"], row["forward_start_operator"]) == ("stated", "aten::mm")
    assert row["backward_end_operator"].startswith("autograd::engine")


def test_where_nothing_marks_a_phase_there_is_no_rest_of_them() -> None:
    work = kernels([("compute", "mm", None, 100, 400), ("communication", "all", None, 400, 600)])
    run = Run.from_frames({0: {"steps": steps(1, window=["stated"]), "kernels": work}})

    row = run.analyse("step_trace").row(0, named=True)

    assert (row["exposed_communication_ns"], row["other_ns"]) == (200 * US, None)


def test_communication_is_not_the_operator_at_a_point() -> None:
    work = kernels([("communication", "all_gather", None, 260, 290), ("compute", "gemm", None, 300, 400)])

    trace = on_host(steps=steps(1, forward_start_ns=[250 * US]), kernels=work).analyse("step_trace")

    assert trace["forward_start_operator"].to_list() == ["gemm"]


def test_a_name_that_is_stated_without_a_graph_is_that_of_every_graph() -> None:
    assert stated(graph=[3, 4]).analyse("step_trace")["forward_start_operator"].to_list() == ["Default/a"] * 2


def test_inference_has_a_forward_pass_to_the_end_and_no_tail() -> None:
    trace = stated(backward_end_ns=[None, None]).analyse("step_trace")

    assert told(trace, (*SECTIONS, "forward_ns"), 1) == [100, None, None, 900]


def test_stated_steps_are_told_where_no_operators_were_recorded_but_others_are_not() -> None:
    assert stated(recorded=[True, False]).analyse("step_trace")["step"].to_list() == [1, 2]
    assert on_host(2, steps=steps(2, recorded=[True, False])).analyse("step_trace")["step"].to_list() == [1]


def test_points_that_lie_outside_of_their_step_are_taken_at_its_ends() -> None:
    trace = stated(forward_start_ns=[-5, 1500 * US], backward_end_ns=[9999 * US, 1400 * US]).analyse("step_trace")

    assert told(trace, SECTIONS) == [0, STEP, 0]
    assert told(trace, SECTIONS, 1) == [500, 0, 500]


def test_marks_and_autograd_tell_the_phases_of_a_host() -> None:
    trace = on_host(2).analyse("step_trace")

    assert trace.height == 2
    assert told(trace, SECTIONS, 1) == [100, 600, 300]
    assert told(trace, PARTS, 1) == [100, 320, 280, 0, 200, 100]
    assert trace.row(0, named=True)["forward_start_operator"] == "aten::embedding"
    assert trace.row(0, named=True)["backward_end_operator"].startswith("autograd::engine")


def test_the_parts_are_the_step_and_agree_with_the_breakdown() -> None:
    run = on_host(3)
    trace, split = run.analyse("step_trace"), run.analyse("breakdown")

    assert trace.select(pl.sum_horizontal(PARTS)).to_series().equals(trace["step_ns"].alias("data_wait_ns"))
    assert trace["exposed_communication_ns"].to_list() == split["communication_not_overlapped_ns"].to_list()
    assert trace["data_wait_ns"].to_list() == split["data_loading_ns"].to_list()


def test_an_update_before_the_forward_pass_does_not_end_it() -> None:
    trace = on_host(slices=marks([("Optimizer.step#AdamW.step", 0, 50)])).analyse("step_trace")

    assert told(trace, ("forward_ns", "backward_ns")) == [320, 280]


def test_marked_phases_go_before_what_operators_tell() -> None:
    named = marks([("## forward ##", 90, 410), ("backward", 415, 710), ("optimizer: AdamW", 745, 955), *MARKS[:1]])

    trace = on_host(slices=named).analyse("step_trace")

    assert told(trace, SECTIONS) == [90, 620, 290]
    assert told(trace, PARTS) == [100, 310, 295, 0, 210, 85]


def test_forward_that_is_run_again_in_backward_is_backward() -> None:
    named = marks([("## forward ##", 100, 400), ("## forward ##", 500, 600), ("## backward ##", 420, 700)])

    assert told(on_host(slices=named).analyse("step_trace"), PARTS)[1:3] == [300, 280]


def test_without_backward_all_operators_but_those_of_loading_are_forward() -> None:
    run = on_host(operators=operators([("aten::stack", 10, 90), *TRAINING[:2]]), slices=marks(MARKS[:1]))

    trace = run.analyse("step_trace")

    assert told(trace, (*SECTIONS, "forward_ns", "backward_ns")) == [100, None, None, 300, None]


def test_on_a_device_phases_are_where_the_kernels_ran() -> None:
    work = kernels(
        [
            ("compute", "embedding", 150, 300, 350),
            ("compute", "gemm", 210, 350, 500),
            ("compute", "gemm_backward", 500, 500, 800),
            ("communication", "all_reduce", 600, 750, 850),
            ("compute", "adamw", 800, 860, 900),
        ]
    )

    trace = on_host(kernels=work, steps=steps(1, window=["device"])).analyse("step_trace")

    assert told(trace, SECTIONS) == [300, 550, 150]
    assert told(trace, PARTS) == [100, 200, 300, 50, 40, 310]
    assert trace["forward_start_operator"][0] == "embedding"


def test_waiting_for_data_while_the_device_computes_is_none() -> None:
    trace = on_host(kernels=kernels([("compute", "copy", 50, 60, 90)])).analyse("step_trace")

    assert told(trace, ("data_wait_ns",)) == [70]


def test_backward_ends_with_the_step_where_its_last_kernel_runs_on() -> None:
    trace = on_host(kernels=kernels([("compute", "back", 500, 900, 1100)])).analyse("step_trace", backward_end="back")

    assert told(trace, ("backward_end_ns", "tail_ns")) == [STEP, 0]


def test_what_the_host_did_is_no_phase_of_a_device_whose_launches_are_not_known() -> None:
    trace = on_host(kernels=kernels([("compute", "gemm", None, 300, 500)])).analyse("step_trace")

    assert told(trace, (*SECTIONS, "forward_ns")) == [None] * 4


def test_a_kernel_belongs_to_its_operator_even_if_another_thread_launched_it_later() -> None:
    ids = {"external_id": list(range(len(TRAINING)))}
    work = kernels([("compute", "gemm", 410, 450, 500), ("compute", "back", 740, 750, 800)], external_id=[1, 3])

    trace = on_host(operators=operators(TRAINING, **ids), kernels=work).analyse("step_trace")

    assert told(trace, SECTIONS) == [450, 350, 200]


def test_a_point_can_be_named_by_argument_in_full_or_by_its_last_part() -> None:
    named = [("Default/net/" + name.replace("::", "_"), start, end) for name, start, end in TRAINING]
    run = on_host(operators=operators(named))

    trace = run.analyse("step_trace", forward_start="aten_mm", backward_end="Default/net/aten__fused_adamw_")

    assert told(trace, SECTIONS) == [200, 700, 100]
    assert trace["forward_start_by"][0] == "argument"
    assert trace["forward_start_operator"][0] == "aten_mm"


def test_a_named_point_moves_the_phases() -> None:
    trace = on_host().analyse("step_trace", forward_start="aten::mm", backward_end="aten::mm")

    assert told(trace, SECTIONS) == [200, 490, 310]
    assert told(trace, PARTS)[1:3] == [220, 270]


def test_between_named_points_all_is_forward_in_a_step_without_backward() -> None:
    run = on_host(operators=operators(TRAINING[:2]), slices=marks(MARKS[:1]))

    trace = run.analyse("step_trace", forward_start="aten::embedding", backward_end="aten::mm")

    assert told(trace, PARTS)[1:3] == [300, 0]


def test_the_kernels_that_a_named_operator_launched_are_its_place_on_a_device() -> None:
    work = kernels([("compute", "gemm", 210, 350, 500), ("compute", "back", 500, 500, 800)])

    trace = on_host(kernels=work).analyse("step_trace", backward_end="autograd::engine::evaluate_function: MmBackward0")

    assert told(trace, SECTIONS) == [350, 450, 200]


def test_a_name_that_was_not_recorded_is_an_error() -> None:
    with pytest.raises(Unavailable, match="no operator or kernel named 'nonsense' was recorded"):
        on_host().analyse("step_trace", forward_start="nonsense")


def test_an_operator_that_begins_when_the_last_step_ends_is_outside_of_it() -> None:
    run = on_host(operators=operators([*TRAINING, ("late", STEP, STEP + 5)]))

    with pytest.raises(Unavailable, match="outside of all steps"):
        run.analyse("step_trace", backward_end="late")


def test_a_named_operator_without_kernels_is_told_apart_from_one_that_is_not_there() -> None:
    work = kernels([("compute", "gemm", None, 350, 500)])

    with pytest.raises(Unavailable, match=r"without the kernels that it launched. Name a kernel"):
        on_host(kernels=work).analyse("step_trace", forward_start="aten::mm")


def test_the_environment_names_points_and_an_argument_goes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILING_FP_START", "aten::embedding")  # counts only if the caller passes it
    names = NamedPoints.of({"PROFILING_FP_START": "aten::mm", "PROFILING_BP_END": ""})
    run = on_host().with_options({"step_trace": {"environment": names}})

    trace = run.analyse("step_trace")
    other = run.analyse("step_trace", forward_start="aten::embedding")
    statistics = run.analyse("step_statistics")

    assert not statistics.equals(on_host().analyse("step_statistics"))
    with pytest.raises(StepscopeError, match="step_trace has no option 'enviroment'"):
        run.with_options({"step_trace": {"enviroment": names}})

    assert (trace["forward_start_by"][0], told(trace, SECTIONS)[0]) == ("environment", 200)
    assert (other["forward_start_by"][0], told(other, SECTIONS)[0]) == ("argument", 100)


def test_the_environment_of_the_training_counts_and_a_name_that_is_not_there_does_not() -> None:
    def named(name: str) -> str:
        recorded = json.dumps({"PROFILING_BP_END": name})
        trace = on_host(ranks=RANKS.frame(environment=[recorded])).analyse("step_trace")
        return trace["backward_end_by"][0]

    assert named("aten::_fused_adamw_") == "environment"
    assert named("nonsense") == "phases"


@pytest.mark.parametrize("environment", ["", "nonsense", "[1]", "[" * 5000])
def test_an_environment_that_cannot_be_read_names_nothing(environment: str) -> None:
    trace = on_host(ranks=RANKS.frame(environment=[environment])).analyse("step_trace")

    assert trace["forward_start_by"][0] == "phases"


def test_statistics_are_of_each_graph_and_phase() -> None:
    bounds = {"forward_start_ns": [n * STEP * US for n in range(4)], "window": ["stated"] * 4}
    ends = [(n * STEP + end) * US for n, end in enumerate((900, 500, 700, 600))]
    run = Run.from_frames({0: {"steps": steps(4, graph=[1, 1, 2, 2], backward_end_ns=ends, **bounds)}})

    found = run.analyse("step_statistics").filter(pl.col("phase") == "forward_backward")

    assert found["graph"].to_list() == [1, 2]
    assert told(found, ("mean_ns", "mean_without_first_ns", "median_ns", "p95_ns", "min_ns", "max_ns")) == [
        *(700, 500, 700, 900),
        *(500, 900),
    ]
    assert found["share_ratio"].to_list() == [0.7, 0.65]
    assert found["share_without_first_ratio"].to_list() == [0.5, 0.6]


def test_one_step_has_no_mean_without_the_first() -> None:
    found = on_host(1).analyse("step_statistics")

    assert found["mean_without_first_ns"].null_count() == found.height
    assert found["phase"].to_list()[:4] == ["step", "interval", "forward_backward", "tail"]


def test_a_step_is_an_outlier_beyond_the_median_and_its_spread() -> None:
    ends = [(n * STEP + end) * US for n, end in enumerate((500, 505, 495, 502, 900, 540))]
    bounds = {"forward_start_ns": [n * STEP * US for n in range(6)], "window": ["stated"] * 6}
    run = Run.from_frames({0: {"steps": steps(6, backward_end_ns=ends, **bounds)}})

    found = run.analyse("step_statistics").filter(pl.col("phase") == "forward_backward").row(0, named=True)

    assert found["outlier_steps"] == [5]
    assert found["limit_ns"] > found["median_ns"] + 0.05 * STEP * US - 1


def test_points_named_by_the_user_reach_the_statistics() -> None:
    found = on_host(2).analyse("step_statistics", forward_start="aten::mm")

    assert found.filter(pl.col("phase") == "interval")["mean_ns"][0] == 200 * US


CLOSURE = [
    ("aten::embedding", 210, 300),
    ("autograd::engine::evaluate_function: MmBackward0", 420, 700),
    ("aten::_fused_adamw_", 760, 900),
]


@pytest.mark.parametrize("marked", [True, False])
def test_what_an_optimizer_runs_by_its_closure_is_forward_and_backward(marked: bool) -> None:
    rows = [("Optimizer.step#AdamW.step", 200, 950)]
    if marked:
        rows += [("optimizer: AdamW", 201, 949), ("forward: Net", 205, 400), ("backward", 410, 710)]
    trace = on_host(2, operators=operators(CLOSURE, 2), slices=marks(rows, 2)).analyse("step_trace")
    found = trace.select(pl.col("forward_ns", "backward_ns", "optimizer_ns") // US).rows()
    assert found == [(195, 300, 255) if marked else (210, 280, 260)] * 2


def test_a_compiled_step_that_holds_its_optimizer_keeps_it() -> None:
    """Forward around the optimizer is no closure of it."""
    rows = [("forward: step", 100, 950), ("optimizer: AdamW", 760, 900)]
    trace = on_host(operators=operators(TRAINING[:2] + TRAINING[-1:]), slices=marks(rows)).analyse("step_trace")
    assert trace.select(pl.col("forward_ns", "optimizer_ns") // US).rows() == [(710, 140)]


def test_validation_and_checkpoints_are_phases_of_their_own() -> None:
    rows = [
        ("validation", 0, 150),
        ("validation: Net", 50, 150),
        ("data: loader", 0, 50),
        ("checkpoint: save", 910, 990),
    ]
    trace = on_host(slices=marks([*rows, *MARKS[1:]])).analyse("step_trace")
    assert trace.select(pl.col("validation_ns", "checkpoint_ns", "data_wait_ns", "forward_ns") // US).rows() == [
        (150, 80, 0, 220)
    ]
    assert trace.select(pl.sum_horizontal(pl.col(PHASES)) - pl.col("step_ns")).item() == 0


PYNATIVE = [
    ("MatMul", 100, 300),
    ("Default/BiasAddGrad-op0", 410, 420),
    ("MatMul", 430, 700),  # queued by the backward pass, whose call returned at 450
    ("ReluGrad", 700, 710),
    ("Default/AssignAdd-op0", 800, 810),
    ("Default/SGD-op0", 820, 840),
]
LAUNCHES = [("forward: Net", 90, 350), ("backward: grad", 400, 450), ("optimizer: SGD", 460, 900)]


@pytest.mark.parametrize(
    ("mode", "framework", "backward"),
    [("pynative", "mindspore", 710), ("graph", "mindspore", 450), (None, "pytorch", 450)],
)
def test_backward_ends_with_its_last_operator_if_marks_show_launches(
    mode: str | None, framework: str, backward: int
) -> None:
    points = {"forward_start_ns": [90 * US], "backward_end_ns": [450 * US]}
    ranks = RANKS.frame(framework=[framework], mode=[mode])
    frames = {"steps": steps(1, **points), "operators": operators(PYNATIVE), "slices": marks(LAUNCHES), "ranks": ranks}

    found = Run.from_frames({0: frames}).analyse("step_trace")

    assert told(found, SECTIONS) == [90, backward - 90, STEP - backward]
    assert told(found, ("backward_ns", "optimizer_ns")) == [backward - 400, 900 - max(backward, 460)]
    launched = ("Default/BiasAddGrad-op0", "stated") if backward == 450 else ("ReluGrad", "phases")
    assert found.select("backward_end_operator", "backward_end_by").row(0) == launched


def test_without_an_update_marks_of_launches_are_all_that_is_known() -> None:
    frames = {
        "steps": steps(1, forward_start_ns=[90 * US], backward_end_ns=[450 * US]),
        "operators": operators(PYNATIVE[:4]),
        "slices": marks(LAUNCHES),
        "ranks": RANKS.frame(framework=["mindspore"], mode=["pynative"]),
    }

    assert told(Run.from_frames({0: frames}).analyse("step_trace"), SECTIONS) == [90, 360, 550]


def test_forward_does_not_begin_at_an_operator_of_the_optimizer() -> None:
    rows = [("Default/optimizer-SGD/AssignAdd-op0", 100, 110), ("Default/network-Net/MatMul-op0", 120, 200)]
    frames = {"steps": steps(1, forward_start_ns=[90 * US]), "operators": operators(rows)}

    found = Run.from_frames({0: frames}).analyse("step_trace")

    assert found["forward_start_operator"].to_list() == ["Default/network-Net/MatMul-op0"]
