"""How evenly experts are spread over the ranks of their groups, and what evenness would save."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from builders import EPOCH_NS, MS
from stepscope.advice import advise
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COLLECTIVE_SPLITS, COLLECTIVES, GROUPS, KERNELS, OPERATORS, RANKS, STEPS

STEP = 100 * MS


def _run(
    tokens: Sequence[int],
    *,
    group: str | None = "ep",
    shapes: bool = True,
    splits: bool = False,
    kernel: str = "aclnnGroupedMatmul_GroupedMatmul_GroupedMatmul",
) -> Run:
    """Two steps, in each of which experts take 100 us per token, and all ranks wait for the last one."""
    last = max(tokens) * 100_000
    frames: dict[int, dict[str, pl.DataFrame]] = {}
    for rank, count in enumerate(tokens):
        own = count * 100_000
        starts = [EPOCH_NS, EPOCH_NS + STEP]
        calls = [start + own for start in starts]
        frames[rank] = {
            "ranks": RANKS.frame(world_size=[len(tokens)], device_kind=["npu"]),
            "steps": STEPS.frame(
                step=[1, 2],
                start_ns=starts,
                end_ns=[start + STEP for start in starts],
                window_start_ns=starts,
                window_end_ns=[start + STEP for start in starts],
                window=["device"] * 2,
            ),
            "kernels": KERNELS.frame(
                kernel=range(4),
                start_ns=[starts[0], calls[0], starts[1], calls[1]],
                duration_ns=[own, last - own + 5 * MS] * 2,
                kind=["compute", "communication"] * 2,
                name=[kernel, "all_to_all"] * 2,
                stream=[1, 2] * 2,
                input_shapes=[f"{count},64;64,8" if shapes else None, None] * 2,
                step=[1, 1, 2, 2],
            ),
            "collectives": COLLECTIVES.frame(
                collective=range(2),
                group=["g"] * 2,
                sequence=range(2),
                operation=["all_to_all"] * 2,
                name=["all_to_all"] * 2,
                group_size=[len(tokens)] * 2,
                start_ns=calls,
                duration_ns=[last - own + 5 * MS] * 2,
                on_device=[True] * 2,
                stream=[2] * 2,
                step=[1, 2],
            ),
            "groups": GROUPS.frame(group=["g"], name=[group], members=[list(range(len(tokens)))]),
        }
        if splits:  # to the experts, and back again
            sent, got = f"[{sum(tokens) // len(tokens)}]", f"[{count - 1}, 1]"
            frames[rank]["collective_splits"] = COLLECTIVE_SPLITS.frame(
                collective=[0, 1], input_splits=[sent, got], output_splits=[got, sent]
            )
    return Run.from_frames(frames)


def test_tokens_of_each_rank() -> None:
    found = _run([100, 300, 200]).analyse("expert_load")

    assert found.select("rank", "load_by", "tokens", "expert_ns", "load_ratio").rows() == [
        (1, "tokens", 600, 60 * MS, 1.5), (2, "tokens", 400, 40 * MS, 1.0), (0, "tokens", 200, 20 * MS, 0.5)
    ]  # fmt: skip
    (group,) = _run([100, 300, 200]).analyse("expert_groups").to_dicts()
    assert (group["group_by"], group["ranks"], group["imbalance_ratio"]) == ("name", "0, 1, 2", 1.5)
    assert (group["max_rank"], group["max_load"], group["min_rank"], group["min_load"]) == (1, 600, 0, 200)


def test_without_shapes_what_calls_bring_counts() -> None:
    found = _run([100, 300, 200], shapes=False, splits=True, group=None).analyse("expert_load")

    assert found.select("rank", "load_by", "received", "tokens").rows() == [
        (1, "received", 600, None), (2, "received", 400, None), (0, "received", 200, None)
    ]  # fmt: skip


def test_without_either_time_counts() -> None:
    found = _run([100, 300], shapes=False).analyse("expert_load")

    assert found.select("rank", "load_by", "load_ratio").rows() == [(1, "time", 1.5), (0, "time", 0.5)]


def test_shapes_of_operators_count_where_kernels_have_none() -> None:
    run = _run([100, 300], shapes=False, kernel="cutlass::GemmKernel<GroupProblemVisitor>")
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks}
    for rank, count in ((0, 100), (1, 300)):
        frames[rank]["operators"] = OPERATORS.frame(
            slice=[0],
            start_ns=[EPOCH_NS],
            duration_ns=[5],
            name=["aten::_grouped_mm"],
            input_shapes=[f"[[{count}, 8]]"],
        )
    assert Run.from_frames(frames).analyse("expert_load")["tokens"].to_list() == [300, 100]


def test_even_experts_would_save_the_difference_to_the_mean() -> None:
    (cost,) = _run([100, 300, 200]).analyse("expert_costs").to_dicts()

    # the last rank takes 30 ms in each step, the mean 20
    assert (cost["saving_ns"], cost["steps"]) == (10 * MS, 2)
    assert abs(cost["error_ratio"]) < 0.01


def test_even_experts_cost_nothing() -> None:
    run = _run([200, 200])

    assert run.analyse("expert_groups")["imbalance_ratio"].to_list() == [1.0]
    assert run.analyse("expert_costs").is_empty()
    assert not [one for one in advise(run, strict=True) if one.rule == "expert-load"]


def test_the_finding() -> None:
    (found,) = [one for one in advise(_run([100, 300, 200]), strict=True) if one.rule == "expert-load"]

    assert (found.message, found.ranks, found.parameters["excess_ratio"]) == ("tokens", [1], 0.5)
    assert (found.saving_ns, found.saving_low_ns) == (0, 0) and found.saving_high_ns <= 10 * MS
    (timed,) = [one for one in advise(_run([100, 300], shapes=False), strict=True) if one.rule == "expert-load"]
    assert timed.message == "time"


def test_ranks_that_are_in_no_known_group_are_not_accused() -> None:
    run = _run([100, 300], group="x")

    assert run.analyse("expert_groups")["group_by"].to_list() == ["none"]
    assert not [one for one in advise(run, strict=True) if one.rule == "expert-load"]


def test_a_job_without_experts_says_so() -> None:
    with pytest.raises(Unavailable, match="experts"):
        _run([100, 300], kernel="gemm", group=None).analyse("expert_load")


def test_ranks_that_were_not_recorded_are_left_out_of_their_group() -> None:
    run = _run([100, 300, 200]).select(ranks="0-1")
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks}

    found = Run.from_frames(frames).analyse("expert_load")
    assert found.select("rank", "load_ratio").rows() == [(1, 1.5), (0, 0.5)]
