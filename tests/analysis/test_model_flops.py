"""Floating point operations by operator, of a step, by scope, and as a share of the device's peak."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from phases import STEP, US, kernels, operators, steps

from stepscope.analysis.flops.model_flops import cube_peak, peak_of
from stepscope.errors import Unavailable
from stepscope.pages.answering import answer, document
from stepscope.pages.ranks import PAGE as RANKS_PAGE
from stepscope.run import Run
from stepscope.tables import FLOP_SCOPES, KERNEL_COUNTERS, OPERATOR_TOTALS, RANK_FIGURES, RANKS, STEPS

MM = "[[100, 200], [200, 300]]"
MM_FLOPS = 2 * 100 * 200 * 300
FLOAT = '["float", "float"]'


def on_host(count: int = 2, **more: pl.DataFrame) -> Run:
    """Two matrix products, one within another operator, in each of some steps."""
    rows = [("aten::linear", 0, 150), ("aten::mm", 20, 120), ("aten::mm", 200, 300)]
    shapes = {"input_shapes": [None, MM, MM] * count, "input_types": [None, FLOAT, FLOAT] * count}
    return Run.from_frames({0: {"operators": operators(rows, count, **shapes), "steps": steps(count), **more}})


def test_operators_make_their_operations_in_their_own_time() -> None:
    (row,) = on_host().analyse("operator_flops").rows(named=True)

    assert (row["unit"], row["count"], row["flops"], row["total_ns"]) == ("CPU", 4, MM_FLOPS, 400 * US)
    assert row["flops_per_s"] == pytest.approx(MM_FLOPS / 100e-6)
    assert (row["data_type"], row["found_by"], row["share_ratio"]) == ("float", "shapes", 1)
    assert row["cube_flops"] is None


def test_on_a_device_the_time_is_that_of_the_kernels_launched_by_the_operator_and_those_it_calls() -> None:
    rows = [("aten::convolution", 0, 100), ("aten::cudnn_convolution", 20, 80), ("aten::relu", 200, 220)]
    values = '["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]'
    calls = operators(
        rows,
        external_id=[1, 2, 3],
        input_shapes=["[[2, 3, 8, 8], [4, 3, 3, 3]]", None, None],
        input_values=[values, None, None],
    )
    work = kernels([("compute", "conv", 30, 100, 150), ("compute", "relu", 210, 300, 310)], external_id=[2, 3])

    (row,) = Run.from_frames({0: {"operators": calls, "kernels": work}}).analyse("operator_flops").rows(named=True)

    assert (row["unit"], row["total_ns"]) == ("HOST_CPU", 50 * US)
    assert row["flops"] == 2 * (2 * 4 * 8 * 8) * 27


def test_shapes_of_an_ascend_devices_kernels_are_counted() -> None:
    work = [("compute", name, 0, n * 100, n * 100 + 50) for n, name in enumerate(("mm", "nz", "attention", "grad"))]
    columns = {
        "type": ["MatMulV3", "MatMulV2", "FlashAttentionScore", "FlashAttentionScoreGrad"],
        "core": ["AI_CORE", "AI_CORE", "MIX_AIC", "MIX_AIC"],
        "input_shapes": [
            "64,128;128,256",
            "8,4,16,16;16,8,16,16",  # tiles of a 64 x 128 and a 128 x 256 matrix
            "512,2,1024;512,2,1024;512,2,1024",
            "512,2,1024;512,2,1024;512,2,1024;512,2,1024",
        ],
        "output_shapes": ["64,256", "64,256", "2,16,512,8;2,16,512,8;512,2,1024", "512,2,1024"],
    }

    found = Run.from_frames({0: {"kernels": kernels(work, **columns)}}).analyse("operator_flops")

    product, attention = 2 * 64 * 128 * 256, 4 * 2 * 512 * 512 * 1024
    assert dict(found.select("name", "flops").rows()) == {
        "mm": product,
        "nz": product,
        "attention": attention,
        "grad": attention * 5 / 2,
    }


def test_what_the_hardware_counted_goes_before_shapes() -> None:
    work = kernels([("compute", "mm", 0, 100, 150)] * 2, type=["MatMulV3"] * 2, core=["AI_CORE"] * 2)
    counted = KERNEL_COUNTERS.frame(kernel=[0, 1], aic_cube_fops=[1e6, 3e6], aiv_vector_fops=[1e3, 1e3])

    (row,) = (
        Run.from_frames({0: {"kernels": work, "kernel_counters": counted}}).analyse("operator_flops").rows(named=True)
    )

    assert (row["cube_flops"], row["vector_flops"], row["flops"], row["found_by"]) == (2e6, 1e3, 2.001e6, "counters")
    assert row["cube_flops_per_s"] == pytest.approx(2e6 / 50e-6)


STATED_ROWS = {
    "unit": ["AI_CORE"] * 3,
    "level": ["operator"] * 3,
    "name": ["Conv2D-op1", "MatMul-op2", "Add-op3"],
    "full_name": ["Default/net/Conv2D-op1", "Gradients/net/MatMul-op2", "Default/Add-op3"],
    "count": [4, 4, 1],
    "total_ns": [400 * US, 800 * US, 10 * US],
    "cube_flops": [2e9, 4e9, 0.0],
    "vector_flops": [1e6, 0.0, 2e6],
}


def stated(**more: pl.DataFrame) -> Run:
    return Run.from_frames({0: {"operator_totals": OPERATOR_TOTALS.frame(**STATED_ROWS), **more}})


def test_what_a_source_states_of_operators_goes_first_and_adds_up_to_a_step() -> None:
    row = stated(steps=steps(9, window=["stated"] * 9)).analyse("model_flops").row(0, named=True)

    assert (row["steps"], row["step_ns"]) == (4, STEP * US)
    assert row["step_cube_flops"] == 6e9
    assert row["step_vector_flops"] == (4 * 1e6 + 2e6) / 4
    assert row["cube_flops_per_s"] == pytest.approx(24e9 / 1200e-6)
    assert row["vector_flops_per_s"] == pytest.approx(6e6 / 410e-6)
    assert row["step_flops_per_s"] == pytest.approx((6e9 + 1.5e6) / 1e-3)


def test_what_is_stated_is_not_counted_again_from_shapes() -> None:
    calls = operators([("aten::mm", 0, 10)], input_shapes=[MM])

    found = stated(operators=calls).analyse("operator_flops")

    assert found["found_by"].to_list() == ["stated"] * 3


def test_where_no_kernels_shapes_tell_those_of_operators_do() -> None:
    odd = kernels([("compute", "mm", 0, 100, 150)], type=["MatMulV3"], input_shapes=["2,3;4,5"])

    found = on_host(1, kernels=odd).analyse("operator_flops")

    assert found.select("name", "flops").rows() == [("aten::mm", MM_FLOPS)]


def test_the_data_type_is_that_of_most_operations() -> None:
    types = [FLOAT, '["c10::Half", "c10::Half"]', FLOAT]
    small = "[[1, 2], [2, 3]]"
    rows = [("aten::mm", 0, 10), ("aten::mm", 20, 30), ("aten::mm", 40, 50)]
    calls = operators(rows, input_shapes=[small, MM, small], input_types=types)

    row = Run.from_frames({0: {"operators": calls}}).analyse("model_flops").row(0, named=True)

    assert row["data_type"] == "c10::Half"


def test_shares_are_of_all_calls() -> None:
    rows = {name: values[:2] for name, values in STATED_ROWS.items()} | {"count": [4, 1], "vector_flops": [0.0, 0.0]}
    run = Run.from_frames({0: {"operator_totals": OPERATOR_TOTALS.frame(**rows)}})

    found = run.analyse("operator_flops").select("name", "share_ratio").rows()

    assert found == [("Conv2D-op1", pytest.approx(2 / 3)), ("MatMul-op2", pytest.approx(1 / 3))]


def test_where_as_many_operators_run_once_in_all_as_in_each_step_the_steps_are_the_more() -> None:
    rows = {name: [*values[:2], values[2], values[2]] for name, values in STATED_ROWS.items()}
    run = Run.from_frames({0: {"operator_totals": OPERATOR_TOTALS.frame(**rows)}})

    assert run.analyse("model_flops")["steps"].to_list() == [4]


def test_operations_over_time_are_compared_to_a_given_peak() -> None:
    row = on_host().analyse("model_flops", peak_flops_per_s=1e12).row(0, named=True)

    assert (row["steps"], row["step_flops"], row["peak_by"]) == (2, 2 * MM_FLOPS, "argument")
    assert row["utilization_ratio"] == pytest.approx(MM_FLOPS / 100e-6 / 1e12)
    assert row["mfu_ratio"] == pytest.approx(2 * MM_FLOPS / 1e-3 / 1e12)


@pytest.mark.parametrize(
    ("ranks", "values", "by", "peak"),
    [
        ({"device_name": "NVIDIA A100-SXM4-80GB"}, {}, "table", 19.5e12),
        ({"ai_cores": 32, "nominal_clock_mhz": 1000.0}, {}, "device", 262.144e12),
        ({"device_name": "NVIDIA A100"}, {"device_peak_flops_per_s": 5e12}, "stated", 5e12),
        ({}, {"flops_per_s": 2e12, "flops_utilization_ratio": 0.5}, None, None),  # a share of an unknown whole
        ({"device_name": "Toy 1"}, {}, None, None),
        ({"ai_cores": 32}, {}, None, None),
        ({"nominal_clock_mhz": 1000.0}, {}, None, None),
    ],
)
def test_the_peak_is_stated_or_follows_from_the_device(
    ranks: dict[str, Any], values: dict[str, float], by: str | None, peak: float | None
) -> None:
    more = {"ranks": RANKS.frame(**{name: [text] for name, text in ranks.items()} or {"device_name": [None]})}
    if values:
        more["rank_figures"] = RANK_FIGURES.frame(name=list(values), value=list(values.values()))

    row = on_host(**more).analyse("model_flops").row(0, named=True)

    assert (row["peak_by"], row["peak_flops_per_s"]) == (by, pytest.approx(peak) if peak else None)
    assert (row["mfu_ratio"] is None) == (peak is None)


def test_peaks_of_devices() -> None:
    assert peak_of("Tesla V100-SXM2-32GB", "c10::Half") == 125e12
    assert peak_of("NVIDIA H100 PCIe", "c10::BFloat16") == 756e12
    assert peak_of("NVIDIA H200", "DT_BF16") == 989e12
    assert peak_of("NVIDIA H200", "long int") is None
    assert peak_of(None, "float") is None
    assert cube_peak(24, 1800) == pytest.approx(353.9e12, rel=1e-3)


def test_a_source_that_states_the_whole_alone_is_told_as_it_states_it() -> None:
    values = {"flops": 8e9, "flops_per_s": 1e13, "flops_utilization_ratio": 0.04}

    run = Run.from_frames({0: {"rank_figures": RANK_FIGURES.frame(name=list(values), value=list(values.values()))}})

    row = run.analyse("model_flops").row(0, named=True)
    assert (row["step_flops"], row["flops_per_s"], row["utilization_ratio"]) == (8e9, 1e13, None)
    assert (row["stated_flops"], row["stated_flops_utilization_ratio"]) == (8e9, 0.04)


def test_calls_whose_shapes_do_not_tell_lower_the_known_share() -> None:
    shapes = [MM, "[[2, 3], [4, 5]]"]
    run = Run.from_frames(
        {0: {"operators": operators([("aten::mm", 0, 10), ("aten::mm", 20, 30)], input_shapes=shapes)}}
    )

    row = run.analyse("model_flops").row(0, named=True)

    assert row["known_ratio"] == 0.5
    assert (row["steps"], row["step_flops"], row["step_flops_per_s"]) == (None, None, None)
    assert row["flops_per_s"] == pytest.approx(MM_FLOPS / 10e-6)


def test_calls_without_shapes_lower_it_too() -> None:
    calls = operators([("aten::mm", 0, 10), ("aten::mm", 20, 30)], input_shapes=[MM, None])
    run = Run.from_frames({0: {"operators": calls}})

    assert run.analyse("model_flops")["known_ratio"].to_list() == [0.5]
    assert run.analyse("operator_flops").select("count", "flops").rows() == [(1, MM_FLOPS), (1, None)]


def test_calls_that_make_no_operations_are_known() -> None:
    nothing = OPERATOR_TOTALS.frame(**{**STATED_ROWS, "vector_flops": [0.0] * 3})

    assert Run.from_frames({0: {"operator_totals": nothing}}).analyse("model_flops")["known_ratio"].to_list() == [1]


def test_steps_in_which_nothing_was_recorded_make_no_operations() -> None:
    row = on_host(1, steps=steps(2, recorded=[True, False])).analyse("model_flops").row(0, named=True)

    assert (row["steps"], row["step_flops"]) == (1, 2 * MM_FLOPS)


def test_without_operations_there_is_a_reason() -> None:
    run = Run.from_frames({0: {"operators": operators([("aten::relu", 0, 10)], input_shapes=["[[2]]"])}})

    with pytest.raises(Unavailable, match="Record with shapes"):
        run.analyse("operator_flops")
    with pytest.raises(Unavailable, match="neither operators nor the source"):
        run.analyse("model_flops")
    with pytest.raises(Unavailable, match="no tree of scopes"):
        run.analyse("flop_tree")


def test_operations_add_up_from_operators_to_the_root() -> None:
    found = stated().analyse("flop_tree")

    rows = {
        scope: (parent, flops, share)
        for scope, parent, flops, share in found.select("scope", "parent", "flops", "share_ratio").iter_rows()
    }
    conv, matmul, add = 4 * (2e9 + 1e6), 4 * 4e9, 2e6
    assert rows["Default"] == ("Total", conv + add, pytest.approx((conv + add) / (conv + add + matmul)))
    assert rows["Default/net"] == ("Default", conv, pytest.approx(conv / (conv + add)))
    assert rows["Default/net/Conv2D-op1"] == ("Default/net", conv, 1)
    assert found["found_by"].unique().to_list() == ["operators"]


def test_an_operator_without_a_place_is_a_scope_of_its_own_beside_the_others() -> None:
    calls = [("Default/net/MatMul-op1", 0, 10), ("Bprop/gradMatMul/MatMul-op2", 20, 10), ("MatMul", 40, 10)]
    run = Run.from_frames({0: {"operators": operators(calls, input_shapes=["[[2, 2], [2, 2]]"] * 3)}})

    found = run.analyse("flop_tree").filter(parent="Total").select("scope", "flops", "share_ratio")

    third = pytest.approx(1 / 3)
    assert found.rows() == [("Bprop", 16.0, third), ("Default", 16.0, third), ("MatMul", 16.0, third)]


def test_a_stated_tree_is_taken_as_it_is() -> None:
    tree = FLOP_SCOPES.frame(
        parent=["Total", "Total", "Default"], scope=["Default", "Gradients", "net"], flops=[3.0, 1.0, 2.0]
    )

    found = stated(flop_scopes=tree).analyse("flop_tree")

    assert found.select("parent", "scope", "flops", "share_ratio", "found_by").rows() == [
        ("Default", "net", 2.0, pytest.approx(2 / 3), "stated"),
        ("Total", "Default", 3.0, 0.75, "stated"),
        ("Total", "Gradients", 1.0, 0.25, "stated"),
    ]


def test_totals_of_operators_are_the_source_of_some_steps_as_well_as_of_all() -> None:
    totals = OPERATOR_TOTALS.frame(
        level=["operator"], unit=["AI_CORE"], name=["MatMul-op1"], count=[4], total_ns=[4000], cube_flops=[2e9]
    )
    starts, ends = [0, 10_000, 20_000, 30_000], [10_000, 20_000, 30_000, 40_000]
    times = {"start_ns": starts, "end_ns": ends, "window_start_ns": starts, "window_end_ns": ends}
    windows = STEPS.frame(step=range(4), window=["stated"] * 4, **times)
    stated = RANK_FIGURES.frame(name=["cube_flops"], value=[1e9])
    run = Run.from_frames({0: {"operator_totals": totals, "steps": windows, "rank_figures": stated}})

    for one in (run, run.select(steps="1-2")):
        row = one.analyse("model_flops").row(0, named=True)
        assert (row["step_flops"], row["stated_cube_flops"], row["steps"]) == (2e9, 1e9, 4)
    notes = document(answer(run, RANKS_PAGE))["notes"]
    assert notes == [
        "The operators of rank 0 add up to 2.00 GFLOP in a step; the profile states 1.00 GFLOP. Believe the operators: "
        "they are listed one by one."
    ]
