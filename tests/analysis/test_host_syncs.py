"""Where hosts wait for their GPUs, what the devices lose by it, and what the rule says of it."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import RANKS, STEPS
from tests.analysis.device.launched import US, Range, Work, tables_of

TO_HOST = "Memcpy DtoH (Device -> Pageable)"
SYNC = "cudaStreamSynchronize"


def step(around: list[Range], last: str, copied: bool = True) -> tuple[list[Work], list[Range]]:
    """A step of 1 ms: a kernel of 400 us, a wait for it that lasts until 500, then a launch and another kernel of
    300 us that starts at 600. `around` encloses the wait, outermost first; the innermost is `last`."""
    ranges = [Range("aten::mm", 10, 40), *around, Range(last, 50, 510, parent=len(around) or None)]
    inner = len(ranges) - 1
    ranges.append(Range(SYNC, 60, 500, parent=inner, category="runtime"))
    work = [Work("mm", 50, 450, (20, 25), operator=0), Work("add", 600, 900, (520, 530), operator=0)]
    if copied:
        ranges.append(Range("cudaMemcpyAsync", 52, 58, parent=inner, category="runtime", correlation=1002))
        work.append(Work(TO_HOST, 450, 452, (52, 58), kind="memory", size=4))
    return work, ranges


def run(work: list[Work], ranges: list[Range], kind: str = "cuda", ranks: int = 1) -> Run:
    tables = tables_of(work, ranges, kind)
    ends = {"start_ns": [0], "end_ns": [1000 * US], "window_start_ns": [0], "window_end_ns": [1000 * US]}
    steps = STEPS.frame(step=[1], **ends, window=["host"])
    for name in ("kernels", "slices", "operators"):
        tables[name] = tables[name].with_columns(step=pl.lit(1, pl.Int32))
    about = {
        rank: RANKS.frame(rank=[rank], device_kind=[kind], framework=["pytorch"], world_size=[ranks])
        for rank in range(ranks)
    }
    return Run.from_frames({rank: {**tables, "steps": steps, "ranks": about[rank]} for rank in range(ranks)})


@pytest.mark.parametrize(
    ("around", "last", "how", "purpose"),
    [
        ([], "aten::item", "value", None),
        ([Range("aten::index", 45, 515)], "aten::nonzero", "size", None),
        ([Range("aten::to", 45, 515)], "aten::copy_", "copy to host", None),
        ([Range("torch/nn/utils/clip_grad.py(9): clip_grad_norm_", 45, 515, category="python")], "aten::item", "value",
         "gradient clipping"),
        ([Range("torch/amp/grad_scaler.py(9): step", 45, 515, category="python")], "aten::item", "value",
         "gradient scaling"),
        ([Range("train.py(7): log_metrics", 45, 515, category="python")], "aten::item", "value", "logging"),
    ],
)  # fmt: skip
def test_the_place_says_what_the_wait_is_for(around: list[Range], last: str, how: str, purpose: str | None) -> None:
    (row,) = run(*step(around, last)).analyse("host_syncs").to_dicts()

    assert (row["how"], row["purpose"], row["count"]) == (how, purpose, 1)
    outermost = next(one.name for one in [*around, Range(last, 0, 0)] if one.name.startswith("aten::"))
    assert row["operator"] == outermost
    assert row["wait_ns"] == (440 + 6) * US  # the call and the blocking copy
    assert row["cost_ns"] == (600 - 452) * US
    assert (row["start_ns"], row["duration_ns"]) == (60 * US, 440 * US)


def test_a_wait_costs_no_more_than_it_lasts_and_nothing_while_the_device_works() -> None:
    work, ranges = step([], "aten::item")
    short = [Work("mm", 50, 100, (20, 25), operator=0), *work[1:]]
    busy = [*work, Work("long", 460, 590, (5, 6), stream=9)]

    assert run(short, [*ranges[:2], Range(SYNC, 460, 500, parent=1, category="runtime")]).analyse("host_syncs")[
        "cost_ns"
    ].to_list() == [40 * US]
    assert run(busy, ranges).analyse("host_syncs")["cost_ns"].to_list() == [0]  # launched before the device was free


def test_the_code_is_the_innermost_of_the_user() -> None:
    functions = ["train.py(3): main", "train.py(9): step", "torch/_tensor.py(4): item"]
    around = [Range(name, 41 + at, 519 - at, category="python", parent=at or None) for at, name in enumerate(functions)]
    work, ranges = step(around, "aten::item")

    (row,) = run(work, ranges).analyse("host_syncs").to_dicts()

    assert row["code"] == "train.py(9): step"


def test_values_of_tensors_on_the_host_and_the_end_of_the_recording_are_no_waits() -> None:
    work, ranges = step([], "aten::item")

    with pytest.raises(Unavailable, match="no wait of the host"):
        run(work, ranges[:2]).analyse("host_syncs")
    with pytest.raises(Unavailable, match="no wait of the host"):
        run(work[:1], ranges).analyse("host_syncs")
    with pytest.raises(Unavailable, match="no wait of the host"):
        run(work, ranges, kind="npu").analyse("host_syncs")


def test_the_finding_names_the_places_and_leaves_nothing_to_idle_time() -> None:
    found = {one.rule: one for one in advise(run(*step([], "aten::item")), strict=True)}

    one = found["host-synchronisation"]
    assert one.message == "value"
    assert (one.saving_low_ns, one.evidence["cost_ns"]) == (0, 148 * US)
    assert "148.0 us of a 1.00 ms step (15%), mostly in `aten::item`" in worded(one).summary
    assert "idle-time" not in found or found["idle-time"].message != "synchronisation"


def test_ranks_that_wait_for_one_another_lose_the_time_of_the_median_rank_once() -> None:
    (one,) = (one for one in advise(run(*step([], "aten::item"), ranks=2), strict=True)
              if one.rule == "host-synchronisation")  # fmt: skip

    assert one.evidence["cost_ns"] == 148 * US
    assert "Each of the two ranks waits" in worded(one).summary
