"""Operators whose shapes change from step to step."""

from __future__ import annotations

import polars as pl
import pytest
from phases import US, kernels, operators

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import OPERATOR_STEPS

PLACE = "Default/net/MatMul-op1"


def stated(shapes: list[str | None], durations: list[int]) -> Run:
    count = len(shapes)
    rows = {
        "step": list(range(1, count + 1)),
        "unit": ["AI_CORE"] * count,
        "type": ["MatMul"] * count,
        "name": ["MatMul-op1"] * count,
        "duration_ns": [each * US for each in durations],
        "input_shapes": shapes,
    }
    return Run.from_frames({0: {"operator_steps": OPERATOR_STEPS.frame(**rows)}})


def test_stated_executions_are_told_by_step_and_shape() -> None:
    found = stated(["16,64", "32,64", "16,64"], [10, 30, 12]).analyse("dynamic_shapes")

    assert found.select("step", "input_shapes", "count", "total_ns", "is_new").rows() == [
        (1, "16,64", 1, 10 * US, True),
        (2, "32,64", 1, 30 * US, True),
        (3, "16,64", 1, 12 * US, False),
    ]


def test_shapes_that_another_operator_had_before_are_new_to_this_one() -> None:
    one = stated(["a", "b"], [1, 1]).rank(0).table("operator_steps").collect()
    other = stated(["b", "a"], [1, 1]).rank(0).table("operator_steps").collect().with_columns(name=pl.lit("MatMul-op2"))

    found = Run.from_frames({0: {"operator_steps": pl.concat([one, other])}}).analyse("dynamic_shapes")

    assert found["is_new"].to_list() == [True] * 4


def test_types_are_summed_by_step() -> None:
    run = stated(["16,64", "32,64"], [10, 30])
    twice = pl.concat([run.rank(0).table("operator_steps").collect()] * 2)
    more = twice.with_columns(duration_ns=pl.col("duration_ns") + pl.int_range(pl.len()) * US)

    found = Run.from_frames({0: {"operator_steps": more}}).analyse("dynamic_shape_types")

    assert found.select("type", "step", "count", "total_ns", "mean_ns", "shapes").rows() == [
        ("MatMul", 1, 2, 22 * US, 11 * US, 1),
        ("MatMul", 2, 2, 64 * US, 32 * US, 1),
    ]


def test_changing_shapes_cost_what_the_fastest_would_save_and_what_first_calls_take_more() -> None:
    shapes = ["a", "a", "b", "b", "a", "c"]
    found = stated(shapes, [50, 10, 90, 30, 12, 20]).analyse("shape_costs").row(0, named=True)

    assert (found["shapes"], found["once"], found["steps"], found["count"]) == (3, 1, 6, 6)
    assert found["first_call_ns"] == (50 - 11 + 90 - 30) * US
    fastest = 20
    assert found["fastest_ns"] == fastest * US
    assert found["spread_ns"] == (72 - 3 * fastest + 120 - 2 * fastest) * US


def test_a_first_call_that_is_faster_saves_nothing_of_others() -> None:
    found = stated(["a", "a", "b", "b"], [5, 10, 90, 30]).analyse("shape_costs")

    assert found["first_call_ns"].to_list() == [60 * US]


def test_executions_without_shapes_have_no_cost() -> None:
    run = stated([None, None], [1, 2])

    assert run.analyse("dynamic_shapes")["is_new"].null_count() == 2
    with pytest.raises(Unavailable, match="but without shapes"):
        run.analyse("shape_costs")


def calls(*shapes: str, name: str = PLACE) -> pl.DataFrame:
    """Two calls a step."""
    rows = [(name, 0, 10), (name, 20, 30)]
    return operators(rows, len(shapes) // 2, input_shapes=list(shapes))


def test_operators_of_events_are_told_where_their_shapes_are_not_the_same_in_all_steps() -> None:
    changing = Run.from_frames({0: {"operators": calls("[[2]]", "[[2]]", "[[3]]", "[[3]]")}})
    same = Run.from_frames({0: {"operators": calls("[[2]]", "[[3]]", "[[3]]", "[[2]]")}})

    found = changing.analyse("dynamic_shapes")

    assert found.select("unit", "type", "full_name", "step", "count").rows() == [
        ("CPU", "MatMul", PLACE, 1, 2),
        ("CPU", "MatMul", PLACE, 2, 2),
    ]
    with pytest.raises(Unavailable, match="the same shapes throughout"):
        same.analyse("dynamic_shapes")


def test_in_one_step_it_is_not_known_whether_shapes_change() -> None:
    one = Run.from_frames({0: {"operators": calls("[[2]]", "[[3]]")}})

    with pytest.raises(Unavailable, match=r"nothing to compare.*so it is unknown whether they change"):
        one.analyse("dynamic_shapes")


def test_an_operator_with_several_shapes_in_a_step_stands_for_several_places_and_has_no_spread() -> None:
    run = Run.from_frames({0: {"operators": calls("[[2]]", "[[9]]", "[[3]]", "[[9]]", name="aten::mm")}})

    (row,) = run.analyse("shape_costs").rows(named=True)

    assert (row["shapes"], row["spread_ns"]) == (3, None)


def test_kernels_with_shapes_are_told_too() -> None:
    work = kernels([("compute", "mm", 0, 1, 2), ("compute", "mm", 3, 4, 6)], input_shapes=["2,3", "4,3"])
    two = work.with_columns(step=pl.Series([1, 2], dtype=pl.Int32), core=pl.lit("AI_CORE"))

    assert Run.from_frames({0: {"kernels": two}}).analyse("dynamic_shapes")["unit"].to_list() == ["AI_CORE"] * 2


def test_without_shapes_there_is_a_reason() -> None:
    with pytest.raises(Unavailable, match="operator shapes were not recorded"):
        Run.from_frames({0: {"operators": operators([("aten::mm", 0, 1)])}}).analyse("dynamic_shapes")
