"""Floating point operations from shapes, against figures by hand and against PyTorch's own counter."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

from stepscope.analysis.methods.flop_formulas import COUNTED
from stepscope.run import Run, open_run

BATCH, CHANNELS, OUT, SIZE = 2, 3, 8, 16


def flops_of(*calls: tuple[str, str]) -> dict[tuple[str, str], int | None]:
    """Operations of calls (name, shapes) of one recording."""
    rows = [
        {"slice": n, "start_ns": n, "duration_ns": 10, "name": name, "input_shapes": shapes}
        for n, (name, shapes) in enumerate(calls)
    ]
    answer = Run.from_frames({0: {"operators": pl.DataFrame(rows)}}).analyse("flops")
    return {(name, shapes): flops for name, shapes, flops in answer.select("name", "input_shapes", "flops").iter_rows()}


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("aten::mm", "[[2, 3], [3, 5]]", 60),
        ("aten::addmm", "[[5], [2, 3], [3, 5], [], []]", 60),
        ("aten::bmm", "[[7, 2, 3], [7, 3, 5]]", 420),
        ("aten::baddbmm", "[[7, 2, 5], [7, 2, 3], [7, 3, 5], [], []]", 420),
        ("aten::addmv_", "[[2], [2, 3], [3], [], []]", 12),
        ("aten::dot", "[[9], [9]]", 18),
        ("aten::_scaled_dot_product_flash_attention", "[[1, 2, 4, 8], [1, 2, 6, 8], [1, 2, 6, 8]]", 2 * 2 * 4 * 6 * 16),
        (
            "aten::_scaled_dot_product_flash_attention_backward",
            "[[1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 6, 8], [1, 2, 6, 8]]",
            5 * 2 * 2 * 4 * 6 * 8,
        ),
        ("Default/fc-Dense/MatMul-op3", "[[2, 3], [5, 3]]", 60),  # transposed, as MindSpore stores weights
        ("Default/fc/BatchMatMul-op0", "[[7, 2, 3], [7, 5, 3], null]", 420),
        ("Default/fc/Dense-op0", "[[4, 2, 3], [5, 3], [5]]", 240),
        ("Gradients/Conv2DBackpropInput-op0", "[[2, 8, 14, 14], [8, 3, 3, 3], [4]]", 2 * 2 * 8 * 14 * 14 * 27),
    ],
)
def test_formulas(name: str, shapes: str, expected: int) -> None:
    assert flops_of((name, shapes)) == {(name, shapes): expected}


def test_a_convolution_takes_its_output_from_its_gradient() -> None:
    data, weight, grad = f"[{BATCH}, {CHANNELS}, {SIZE}, {SIZE}]", "[8, 3, 3, 3]", "[2, 8, 7, 7]"
    forward, backward = f"[{data}, {weight}, [8], []]", f"[{grad}, {data}, {weight}, []]"

    found = flops_of(("aten::convolution", forward), ("aten::convolution_backward", backward))

    once = 2 * 2 * 8 * 7 * 7 * 27
    assert found["aten::convolution", forward] == once
    assert found["aten::convolution_backward", backward] == 2 * once


def test_a_convolution_without_gradient_is_unknown_and_so_is_one_with_two() -> None:
    forward = "[[2, 3, 16, 16], [8, 3, 3, 3]]"
    gradients = [("aten::convolution_backward", f"[[2, 8, {n}, {n}], [2, 3, 16, 16], [8, 3, 3, 3]]") for n in (7, 14)]

    assert flops_of(("aten::convolution", forward))["aten::convolution", forward] is None
    assert flops_of(("aten::convolution", forward), *gradients)["aten::convolution", forward] is None


def test_a_convolution_of_mindspore_and_its_filters_gradient_complete_each_other() -> None:
    forward = ("Default/Conv2D-op0", "[[8, 3, 16, 16], [8, 3, 3, 3]]")
    backward = ("Gradients/Conv2DBackpropFilter-op0", "[[8, 8, 16, 16], [8, 3, 16, 16], [4]]")

    assert set(flops_of(forward, backward).values()) == {2 * 8 * 8 * 16 * 16 * 27}


@pytest.mark.parametrize("shapes", ["[]", "[[2, 3]]", "nonsense", "[[], []]", "[[2, 3], [4, 5]]", "{}", "[[2], [3]]"])
def test_shapes_that_do_not_fit_are_unknown_or_counted_but_never_an_error(shapes: str) -> None:
    counts = flops_of(*((name, shapes) for name in COUNTED))

    assert len(counts) == len(COUNTED)
    assert all(count is None or count >= 0 for count in counts.values())


def test_other_operators_and_operators_without_shapes_are_not_listed() -> None:
    assert flops_of(("aten::relu", "[[2, 3]]"), ("aten::mm", "[[2, 3], [3, 5]]")).keys() == {
        ("aten::mm", "[[2, 3], [3, 5]]")
    }


def test_resnet50_makes_three_times_its_forward_pass(shared: Path) -> None:
    run = open_run(shared / "data" / "pytorch" / "single" / "resnet50_num_workers_4.v0.2b.pt.trace.json.gz")

    found = run.analyse("flops")

    whole = int((found["flops"] * found["calls"]).sum())
    images = 6 * 32
    assert whole == pytest.approx(3 * 2 * 4.09e9 * images, rel=0.01)  # 4.09e9 multiply-adds an image


def test_the_count_is_that_of_pytorchs_own_counter(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from torch.profiler import profile
    from torch.utils.flop_counter import FlopCounterMode

    def work() -> None:
        data = torch.randn(BATCH, CHANNELS, SIZE, SIZE, requires_grad=True)
        layers = [torch.nn.Conv2d(CHANNELS, OUT, 3, stride=2), torch.nn.Conv2d(OUT, OUT, 3, padding=1)]
        net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(OUT * 49, 10))
        net(data).sum().backward()
        q, k, v = (torch.randn(2, 4, size, 8, requires_grad=True) for size in (16, 12, 12))
        torch.nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()
        torch.bmm(torch.randn(3, 4, 5), torch.randn(3, 5, 6))

    with FlopCounterMode(display=False) as counter:
        work()
    with profile(record_shapes=True) as recorded:
        work()
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))

    found = open_run(tmp_path / "trace.json").analyse("flops")

    ours = dict.fromkeys(found["name"], 0)
    for name, calls, each in found.select("name", "calls", "flops").iter_rows():
        ours[name] += calls * each
    theirs = {str(key): value for key, value in counter.get_flop_counts()["Global"].items()}
    attention = {name for name in ours if "scaled_dot" in name}
    missing = sum(ours[name] for name in attention) if not any("scaled_dot" in name for name in theirs) else 0
    assert math.isclose(sum(ours.values()) - missing, counter.get_total_flops()), json.dumps([ours, theirs])


def convolution(name: str, shapes: str, *values: object) -> int | None:
    """Operations of one convolution with recorded values."""
    row = {"slice": 0, "start_ns": 0, "duration_ns": 1, "name": name, "input_shapes": shapes}
    row["input_values"] = json.dumps(["" if value is None else str(value) for value in values])
    found: int | None = Run.from_frames({0: {"operators": pl.DataFrame([row])}}).analyse("flops")["flops"][0]
    return found


FORWARD = "[[2, 3, 16, 16], [8, 3, 3, 3], [], [], [], [], [], [], []]"
ONE = 2 * 27 * 2 * 8


@pytest.mark.parametrize(
    ("shapes", "values", "expected"),
    [
        (FORWARD, ([1, 1], [0, 0], [1, 1], False, [0, 0], 1), ONE * 14 * 14),
        (FORWARD, ([2, 2], [1, 1], [1, 1], False, [0, 0], 1), ONE * 8 * 8),
        (FORWARD, ([1, 1], [0, 0], [2, 2], False, [0, 0], 1), ONE * 12 * 12),
        (FORWARD, ([1], [1], [1], False, [0], 1), ONE * 16 * 16),
        ("[[2, 6, 16, 16], [8, 3, 3, 3]]", ([1, 1], [0, 0], [1, 1], False, [0, 0], 2), ONE * 14 * 14),
        ("[[2, 8, 16], [8, 4, 3]]", ([2], [1], [1], True, [0], 1), 2 * (2 * 8 * 16) * (4 * 3)),
        (FORWARD, ([0, 0], [0, 0], [1, 1], False, [0, 0], 1), None),
        (FORWARD, ([1, 1, 1], [0, 0], [1, 1], False, [0, 0], 1), None),
        (FORWARD, ("x", "y", "z", False, [0, 0], 1), None),
        ("[[2, 3, 2, 2], [8, 3, 7, 7]]", ([1, 1], [0, 0], [1, 1], False, [0, 0], 1), None),
    ],
)
def test_the_output_of_a_convolution_follows_from_strides_and_padding(
    shapes: str, values: tuple[object, ...], expected: int | None
) -> None:
    assert convolution("aten::convolution", shapes, None, None, None, *values) == expected


@pytest.mark.parametrize(("mask", "gradients"), [([True, True, False], 2), ([False, True, True], 1), ("x", 2)])
def test_the_gradients_of_a_convolution_count_if_they_were_asked_for(mask: object, gradients: int) -> None:
    shapes = "[[2, 8, 14, 14], [2, 3, 16, 16], [8, 3, 3, 3]]"
    values = (None, None, None, [8], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask)

    assert convolution("aten::convolution_backward", shapes, *values) == gradients * ONE * 14 * 14


@pytest.mark.parametrize("values", ["", "nonsense", "{}", "[1, 2]", "[" * 5000])
def test_values_that_cannot_be_read_leave_the_gradient_to_tell(values: str) -> None:
    rows = [
        {"slice": 0, "name": "aten::convolution", "input_shapes": FORWARD, "input_values": values},
        {
            "slice": 1,
            "name": "aten::convolution_backward",
            "input_shapes": "[[2, 8, 7, 7], [2, 3, 16, 16], [8, 3, 3, 3]]",
        },
    ]
    frame = pl.DataFrame([{**row, "start_ns": 0, "duration_ns": 1} for row in rows])

    found = Run.from_frames({0: {"operators": frame}}).analyse("flops")

    assert found["flops"].to_list() == [ONE * 7 * 7, 2 * ONE * 7 * 7]


def test_convolutions_without_a_backward_pass_are_those_of_pytorchs_own_counter(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from torch.profiler import profile
    from torch.utils.flop_counter import FlopCounterMode

    first = torch.nn.Conv2d(CHANNELS, OUT, 3, stride=2, padding=1)
    grouped = torch.nn.Conv2d(OUT, OUT, 3, dilation=2, groups=4)
    last = torch.nn.ConvTranspose2d(OUT, 4, 4, stride=2)

    def infer() -> None:
        with torch.no_grad():
            torch.nn.Sequential(first, grouped, last)(torch.randn(BATCH, CHANNELS, SIZE, SIZE))

    def train() -> None:
        """The first layer needs no gradient of its input. PyTorch counts that of a grouped weight once a group."""
        torch.nn.Sequential(first, last)(torch.randn(BATCH, CHANNELS, SIZE, SIZE)).sum().backward()

    for work in (infer, train):
        with FlopCounterMode(display=False) as counter:
            work()
        with profile(record_shapes=True) as recorded:
            work()
        file = tmp_path / f"{work.__name__}.json"
        recorded.export_chrome_trace(str(file))

        found = open_run(file).analyse("flops")

        if not found["input_values"].count():
            pytest.skip("this version of PyTorch records no values of inputs")
        assert int((found["flops"] * found["calls"]).sum()) == counter.get_total_flops()


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("aten::mm", "[[4294967296, 4294967296], [4294967296, 4294967296]]"),
        ("aten::bmm", "[[9223372036854775807, 2, 3], [9223372036854775807, 3, 5]]"),
        ("MatMul", "4294967296,4294967296;4294967296,4294967296"),
        ("aten::mm", "[[-1, 3], [3, 5]]"),
        ("aten::mm", "[[-1, 3], [3, -5]]"),
    ],
)
def test_operations_beyond_64_bits_and_of_unknown_sizes_are_unknown(name: str, shapes: str) -> None:
    found = flops_of((name, shapes), ("aten::mm", "[[2, 3], [3, 5]]"))

    assert found == {(name, shapes): None, ("aten::mm", "[[2, 3], [3, 5]]"): 60}
