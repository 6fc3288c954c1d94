"""What modules of a model cost: work by the module in which it was launched, or whose backward pass it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope import open_run
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import FLOWS, KERNELS, OPERATORS, RANKS, SLICES
from stepscope.tables.slices import MODULE_MARKS

FORWARD, BACKWARD = "1", "2"
Call = tuple[str, int, int, str]
"""Name, start, end, thread."""


def recorded(
    modules: list[Call],
    operators: list[tuple[Call, int]],
    flows: list[tuple[int, int]],
    marks: bool = False,
    **facts: Any,
) -> Run:
    """A rank in which each operator launches one kernel of some length.

    Args:
        modules: Ranges of modules.
        operators: Each with the length of its kernel; 0 for none.
        flows: Starts of forward and backward operators that belong together.
        marks: Whether modules are ranges that a script marks.
    """
    rows: list[dict[str, Any]] = []
    for name, start, end, thread in modules:
        named = {"category": "python", "name": f"nn.Module: {name}", "process": "p"}
        if marks:
            named = {"category": "annotation", "name": name, "process": MODULE_MARKS}
        rows.append({**named, "start_ns": start, "duration_ns": end - start, "thread": thread})
    calls, kernels = [], []
    for number, ((name, start, end, thread), length) in enumerate(operators):
        place = {"start_ns": start, "duration_ns": end - start, "thread": thread, "name": name}
        rows.append({**place, "category": "operator", "process": "p"})
        calls.append({**place, "external_id": number, "slice": len(rows) - 1, "forward_thread": None})
        if thread == BACKWARD:
            calls[-1]["forward_thread"] = 1
        if length:
            device = {"kind": "compute", "name": f"{name}_kernel", "start_ns": 1000 + start, "duration_ns": length}
            kernels.append({**device, "external_id": number, "kernel": len(kernels)})
    slices = pl.DataFrame(rows).with_row_index("slice")
    shapes = {"input_shapes": "[[2, 3], [3, 4]]", "input_types": '["float", "float"]', "type": None}
    links = [
        {"kind": "forward_backward", "flow": str(one), "from_ns": a, "from_thread": FORWARD, "to_ns": b}
        for one, (a, b) in enumerate(flows)
    ]
    tables = {
        "slices": SLICES.conform(slices),
        "operators": OPERATORS.conform(pl.DataFrame(calls, infer_schema_length=None).with_columns(**_lit(shapes))),
        "kernels": KERNELS.conform(pl.DataFrame(kernels)),
        "ranks": RANKS.conform(pl.DataFrame({"framework": ["pytorch"], **{key: [one] for key, one in facts.items()}})),
    }
    if links:
        tables["flows"] = FLOWS.conform(pl.DataFrame(links).with_columns(to_thread=pl.lit(BACKWARD)))
    return Run.from_frames({0: tables})


def _lit(values: dict[str, Any]) -> dict[str, pl.Expr]:
    return {name: pl.lit(value) for name, value in values.items()}


NET = [("Net_0", 0, 100, FORWARD), ("Linear_0", 10, 40, FORWARD), ("Linear_1", 50, 90, FORWARD)]
WORK = [
    (("aten::mm", 12, 20, FORWARD), 5),
    (("aten::add", 42, 45, FORWARD), 3),
    (("aten::mm", 55, 60, FORWARD), 7),
    (("aten::loss", 110, 120, FORWARD), 2),
    (("MmBackward0", 200, 220, BACKWARD), 0),
    (("aten::mm", 205, 210, BACKWARD), 11),
]


def test_work_counts_for_the_innermost_module_and_all_around_it() -> None:
    found = recorded(NET, WORK, [(12, 200)]).analyse("modules")

    shown = found.select("module", "depth", "calls", "kernel_ns", "forward_ns", "backward_ns", "own_ns", "kernels")
    assert shown.rows() == [
        ("Net_0", 0, 1, 26, 15, 11, 3, 4),
        ("Net_0/Linear_0", 1, 1, 16, 5, 11, 16, 2),
        ("Net_0/Linear_1", 1, 1, 7, 7, 0, 7, 1),
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("model", "model/layers/0"), [("model", 0, 100, 30), ("model/layers/0", 1, 70, 70)]),
        (("a/model", "layers"), [("a/model", 0, 100, 30), ("a/model/layers", 1, 70, 70)]),
    ],
)
def test_marks_may_be_named_by_paths_with_modules_that_never_run(
    names: tuple[str, str], expected: list[tuple[str, int, int, int]]
) -> None:
    outer, inner = names
    work = [(("aten::mm", 12, 20, FORWARD), 70), (("aten::add", 42, 45, FORWARD), 30)]

    found = recorded([(outer, 0, 100, FORWARD), (inner, 10, 40, FORWARD)], work, [], marks=True).analyse("modules")

    assert found.select("module", "depth", "kernel_ns", "own_ns").rows() == expected
    assert found["share_ratio"].to_list() == [1.0, 0.7]


MARKS = [
    ("model", 0, 300, FORWARD),
    ("model/layers/0", 10, 90, FORWARD),
    ("model/layers/0/mlp", 20, 60, FORWARD),
    ("model/layers", 100, 200, FORWARD),
    ("model/layers/0", 110, 190, FORWARD),
    ("model/layers/0", 310, 390, FORWARD),
    ("other/part", 400, 450, FORWARD),
    ("x/Linear_0", 500, 600, FORWARD),
    ("Linear_0", 510, 520, FORWARD),
    ("Linear_0", 700, 710, FORWARD),
]


@pytest.mark.parametrize("marks", [True, False])
def test_the_work_of_modules_at_the_top_and_outside_of_all_is_all_work(marks: bool) -> None:
    """Paths that run in different places, in modules that ran only now and then, and outside of all."""
    work = [(("aten::mm", start + 1, start + 3, FORWARD), 1 << at) for at, (_, start, _, _) in enumerate(MARKS)]
    run = recorded(MARKS, [*work, (("aten::mm", 900, 910, FORWARD), 1 << 20)], [], marks=marks)

    found, listed = run.analyse("modules"), run.analyse("module_operators")

    assert found["module"].is_unique().all()
    assert found["own_ns"].sum() == (1 << len(MARKS)) - 1
    top, outside = found.filter(pl.col("depth") == 0), listed.filter(pl.col("module").is_null())
    assert top["kernel_ns"].sum() + outside["total_ns"].sum() == listed["total_ns"].sum()
    assert listed.drop_nulls("parent")["parent"].is_in(found["module"].to_list()).all()


def test_all_work_is_listed_once() -> None:
    found = recorded(NET, WORK, [(12, 200)]).analyse("module_operators")

    assert found.select("parent", "module", "phase", "operator", "count", "total_ns", "sequence").rows() == [
        ("Net_0", "Net_0/Linear_0", "backward", "aten::mm", 1, 11, "aten::mm_kernel"),
        ("Net_0", "Net_0/Linear_1", "forward", "aten::mm", 1, 7, "aten::mm_kernel"),
        ("Net_0", "Net_0/Linear_0", "forward", "aten::mm", 1, 5, "aten::mm_kernel"),
        (None, "Net_0", "forward", "aten::add", 1, 3, "aten::add_kernel"),
        (None, None, None, "aten::loss", 1, 2, "aten::loss_kernel"),
    ]
    assert found["share_ratio"].sum() == pytest.approx(1)


def test_a_forward_pass_that_is_computed_again_counts_for_the_same_module() -> None:
    again = [*NET, ("Linear_0", 195, 199, BACKWARD)]
    work = [*WORK, (("aten::mm", 196, 198, BACKWARD), 13)]

    found = recorded(again, work, [(12, 200)]).analyse("modules")

    row = found.filter(found["module"] == "Net_0/Linear_0").row(0, named=True)
    assert (row["calls"], row["forward_ns"], row["backward_ns"]) == (2, 18, 11)


def test_flops_and_their_share_of_the_peak() -> None:
    """A product of (2, 3) and (3, 4) has 48 operations; two of them run in the first layer, in 5 and 11 ns."""
    run = recorded(NET, WORK, [(12, 200)], device_name="A100", device_kind="cuda")

    found = run.analyse("modules", peak_flops_per_s=12e9)

    row = found.filter(found["module"] == "Net_0/Linear_0").row(0, named=True)
    assert (row["flops"], row["flops_per_s"], row["utilization_ratio"]) == (96, 6e9, 0.5)


def test_operators_without_known_work_do_not_raise_the_rate() -> None:
    work = [*WORK, (("aten::mm", 62, 70, FORWARD), 0)]

    found = recorded(NET, work, []).analyse("modules")

    row = found.filter(found["module"] == "Net_0/Linear_1").row(0, named=True)
    assert row["flops"] == 96
    assert row["flops_per_s"] == pytest.approx(48 / 7e-9)


def test_without_modules_it_says_how_to_record_them() -> None:
    with pytest.raises(Unavailable, match="--stacks"):
        recorded([], WORK, []).analyse("modules")


def test_marks_of_the_domain_of_modules_are_modules(shared: Path) -> None:
    """The generated profile marks a model and its two layers, in which all forward work of three steps is launched."""
    run = open_run(shared / "data" / "ascend" / "db_8rank").select(ranks="0")

    found = run.analyse("modules").sort("module")

    names = ["LlamaForCausalLM", "LlamaForCausalLM/layers.0", "LlamaForCausalLM/layers.1"]
    assert found.select("module", "depth", "calls").rows() == list(zip(names, (0, 1, 1), (3, 3, 3), strict=True))
    whole, first, second = found["kernel_ns"]
    assert whole == first + second + found["own_ns"][0]


@pytest.mark.parametrize("name", ["b200_eager_trace", "mi300_resnet_act_checkpoint"])
def test_the_work_of_modules_and_of_all_else_is_that_of_the_device(name: str, shared: Path) -> None:
    run = open_run(shared / "data" / "pytorch" / "single" / f"{name}.json.gz")

    listed, found = run.analyse("module_operators"), run.analyse("modules")

    assert listed["total_ns"].sum() == run.table("kernels").select(pl.col("duration_ns").sum()).collect().item()
    inside = listed.drop_nulls("module")["total_ns"].sum()
    assert found.filter(found["depth"] == 0)["kernel_ns"].sum() == inside == found["own_ns"].sum()
