"""Figures of memory, queues, pipelines and rooflines: their marks are the answers, and there are never too many."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.methods.least_bytes import least_bytes
from stepscope.errors import Unavailable
from stepscope.figures import figure_named, to_json
from stepscope.figures.base import Drawn
from stepscope.run import Run
from stepscope.tables import ALLOCATIONS, KERNELS, MEMORY_CURVE, RANKS
from tests.analysis.inputs import batches
from tests.analysis.jobs import MS
from tests.pipelines import Pipeline

GB = 10**9


def drawn(name: str, run: Run, **options: object) -> Drawn:
    return figure_named(name).drawn(run, **options)


def with_memory(*peaks: int, points: int = 5) -> Run:
    """Ranks whose memory grows to a peak, with one block that lives around it."""
    frames = {}
    for rank, peak in enumerate(peaks):
        levels = [GB + (peak - GB) * (points - abs(points - 1 - k)) // points for k in range(2 * points - 1)]
        count = len(levels)
        curve = MEMORY_CURVE.frame(
            time_ns=[1000 * MS + k * MS for k in range(count)],
            allocated_bytes=levels,
            reserved_bytes=[peak + GB] * count,
            device=[rank] * count,
        )
        blocks = ALLOCATIONS.frame(
            name=["aten::<b>mm"],
            device=[rank],
            size_bytes=[GB],
            allocation_ns=[1000 * MS + (points - 2) * MS],
            release_ns=[1000 * MS + points * MS],
        )
        frames[rank] = {"memory_curve": curve, "allocations": blocks}
    return Run.from_frames(frames)


def test_the_rank_with_the_highest_peak_is_shown_with_what_it_held() -> None:
    one = drawn("memory", with_memory(3 * GB, 7 * GB, 5 * GB))

    named = {trace["name"]: trace for trace in one.spec["data"]}
    assert named["in use"]["y"] == pytest.approx([2.2, 3.4, 4.6, 5.8, 7, 5.8, 4.6, 3.4, 2.2])
    assert (named["peak"]["x"], named["peak"]["y"]) == ([4], [7])
    assert named["reserved"]["y"] == [8] * 9
    assert one.notes == ["Rank 1; no rank has a higher peak."]
    held = named["held at the peak"]
    assert (held["base"], held["x"]) == ([3], [2])
    assert one.spec["layout"]["yaxis2"]["ticktext"] == ["aten::&lt;b&gt;mm"]
    assert drawn("memory", with_memory(3 * GB, 7 * GB), rank=0).spec["data"][0]["y"][4] == 3


def test_a_long_curve_keeps_its_peak() -> None:
    one = drawn("memory", with_memory(9 * GB, points=20_000))

    assert len(to_json(one)) < 60_000
    assert max(one.spec["data"][0]["y"]) == 9
    assert one.table.rows["total_bytes"].max() == 9 * GB


def with_batches(sizes: list[int]) -> dict[str, pl.DataFrame]:
    return {"input_pipeline": batches("device_queue", sizes, capacity=8)}


def test_the_emptiest_queue_is_shown_batch_by_batch() -> None:
    run = Run.from_frames({0: with_batches([3, 3, 3]), 1: with_batches([0, 1, 0])})
    one = drawn("queues", run)

    line, room = one.spec["data"]
    assert (line["x"], line["y"]) == ([1, 2, 3], [0, 1, 0])
    assert room["y"] == [8, 8, 8]
    assert one.notes[0].startswith("Rank 1")


def test_of_many_batches_an_empty_queue_stays_seen() -> None:
    sizes = [5] * 5000
    sizes[3210] = 0
    one = drawn("queues", Run.from_frames({0: with_batches(sizes)}))

    assert min(one.spec["data"][0]["y"]) == 0
    assert len(one.spec["data"][0]["y"]) <= 400


def test_passes_of_a_step_are_bars_of_their_ranks() -> None:
    run = Pipeline(stages=2, micro_batches=3, marked=True).run()
    one = drawn("pipeline", run)
    rows = one.table.rows

    forward, backward = one.spec["data"]
    assert (forward["name"], backward["name"]) == ("forward", "backward")
    own = rows.filter(pl.col("direction") == "forward")
    assert forward["x"] == pytest.approx((own["length_ns"] / 1e6).to_list(), rel=1e-3)
    assert len(forward["x"]) + len(backward["x"]) == rows.height
    assert one.notes[0].startswith("Step")
    with pytest.raises(Unavailable, match="step 99"):
        drawn("pipeline", run, step=99)


def test_where_most_passes_are_unknown_stages_are_shown() -> None:
    run = Pipeline(stages=2, micro_batches=3).run()
    one = drawn("pipeline", run)

    computing, waiting = one.spec["data"]
    answer = run.analyse("pipeline_stages")
    assert computing["y"] == pytest.approx((answer["work_ns"] / 1e6).to_list(), rel=1e-4)
    assert waiting["y"] == pytest.approx((answer["bubble_ns"] / 1e6).to_list(), rel=1e-4)


def with_products(device: str | None, kind: str = "DT_BF16") -> Run:
    tables = {
        "ranks": RANKS.frame(rank=[0], world_size=[1], device_kind=["cuda"], device_name=[device]),
        "kernels": KERNELS.frame(
            kernel=[0, 1],
            start_ns=[0, MS],
            duration_ns=[MS, MS],
            kind=["compute"] * 2,
            name=["mm", "Cast"],
            type=["MatMulV3", "Cast"],
            input_shapes=["1024,512;512,2048", "8,8"],
            input_types=[f"{kind};{kind}"] * 2,
            output_shapes=["1024,2048", "8,8"],
        ),
    }
    return Run.from_frames({0: tables})


def test_a_product_stands_at_its_operations_for_each_byte_under_the_roof_of_its_device() -> None:
    run = with_products("NVIDIA H100 80GB HBM3")
    row = run.analyse("operator_intensity").row(0, named=True)
    operations, moved = 2 * 1024 * 512 * 2048, 2 * (1024 * 512 + 512 * 2048 + 1024 * 2048)

    assert (row["flops"], row["moved_bytes"]) == (operations, moved)
    assert row["flops_per_byte"] == pytest.approx(operations / moved)
    assert row["roof_flops_per_s"] == pytest.approx(min(989e12, operations / moved * 3350e9))
    one = drawn("roofline", run)
    mark, roof = one.spec["data"]
    assert mark["x"] == pytest.approx([operations / moved], rel=1e-5)
    assert mark["y"] == pytest.approx([operations / 1e-3 / 1e12], rel=1e-5)
    assert roof["x"][1] == pytest.approx(989 / 3.35, rel=1e-4)


def test_of_an_unknown_device_no_roof_is_drawn() -> None:
    one = drawn("roofline", with_products("some device"))

    assert len(one.spec["data"]) == 1
    assert "no roof is drawn" in one.notes[1]


@pytest.mark.parametrize(
    ("kind", "inputs", "flops", "elements"),
    [
        ("aten::mm", [[4, 8], [8, 2]], 128, 32 + 16 + 8),
        ("aten::addmm", [[2], [4, 8], [8, 2]], 128, 2 + 32 + 16 + 8),
        ("aten::bmm", [[3, 4, 8], [3, 8, 2]], 384, 96 + 48 + 24),
        ("Dense", [[4, 8], [2, 8]], 128, 32 + 16 + 8),
        ("aten::convolution", [[1, 3, 8, 8], [6, 3, 3, 3]], 2 * 6 * 36 * 27, 192 + 162 + 216),
        ("aten::_scaled_dot_product_flash_attention", [[1, 2, 4, 8]] * 3, 1024, 4 * 64),
        ("aten::_scaled_dot_product_flash_attention_backward", [[1, 2, 4, 8]] * 4, 1024, 4 * 64 + 3 * 64),
    ],
)
def test_the_least_that_an_operator_moves(kind: str, inputs: list[list[int]], flops: int, elements: int) -> None:
    assert least_bytes(kind, inputs, "float", flops) == 4 * elements
    assert least_bytes(kind, inputs, "c10::BFloat16", flops) == 2 * elements
    assert least_bytes(kind, inputs, None, flops) is None


def test_what_shapes_do_not_tell_is_unknown() -> None:
    assert least_bytes("aten::add", [[4], [4]], "float", 4) is None
    assert least_bytes("aten::mm", [[4, 8]], "float", 128) is None
    assert least_bytes("aten::mm", [[4, -1], [8, 2]], "float", 128) is None
    with pytest.raises(Unavailable):
        drawn("roofline", with_products(None, kind="strange"))
