"""How evenly experts are spread over the ranks of their groups, and what evenness would save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    slow: Mapping[int, float] | None = None,
    size: int | None = None,
    each: int | None = None,
) -> Run:
    """Two steps, in each of which experts take 100 us per token (times `slow`), and all ranks wait for the last one.

    The group is of as many ranks, or of `size`, of which the others were not recorded; or there are several of `each`.
    """
    times = [round(count * 100_000 * (slow or {}).get(rank, 1.0)) for rank, count in enumerate(tokens)]
    last = max(times)
    frames: dict[int, dict[str, pl.DataFrame]] = {}
    for rank, count in enumerate(tokens):
        own = times[rank]
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
            "groups": GROUPS.frame(group=["g"], name=[group], members=[list(range(size or len(tokens)))])
            if each is None
            else _groups_of(rank - rank % each, each),
        }
        if splits:  # to the experts, and back again
            sent, got = f"[{sum(tokens) // len(tokens)}]", f"[{count - 1}, 1]"
            frames[rank]["collective_splits"] = COLLECTIVE_SPLITS.frame(
                collective=[0, 1], input_splits=[sent, got], output_splits=[got, sent]
            )
    return Run.from_frames(frames)


def _groups_of(first: int, size: int) -> pl.DataFrame:
    """The group of `size` experts that begins at a rank, beside the one in which all exchange."""
    members = list(range(first, first + size))
    return GROUPS.frame(group=["g", f"e{first}"], name=["exchange", "ep"], members=[None, members])


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
            slice=[0, 1],
            start_ns=[EPOCH_NS, EPOCH_NS + STEP],
            duration_ns=[5, 5],
            name=["aten::_grouped_mm"] * 2,
            input_shapes=[f"[[{count}, 8]]"] * 2,
            step=[1, 2],
        )
    assert Run.from_frames(frames).analyse("expert_load")["tokens"].to_list() == [600, 200]


def test_even_experts_would_save_the_difference_to_the_mean() -> None:
    (cost,) = _run([100, 300, 200]).analyse("expert_costs").to_dicts()

    # the last rank takes 30 ms in each step, the mean 20
    assert (cost["saving_ns"], cost["steps"]) == (10 * MS, 2)
    assert abs(cost["error_ratio"]) < 0.01


def test_what_one_group_saves_does_not_hold_what_another_saves() -> None:
    costs = _run([100, 300, 100, 220], each=2).analyse("expert_costs")

    assert costs.select("ranks", "saving_ns").rows() == [("0, 1", 8 * MS), ("2, 3", 0)]
    assert costs["together_ns"].to_list() == [10 * MS] * 2


def test_even_experts_cost_nothing() -> None:
    run = _run([200, 200])

    assert run.analyse("expert_groups")["imbalance_ratio"].to_list() == [1.0]
    assert run.analyse("expert_costs").is_empty()
    assert not [one for one in advise(run, strict=True) if one.rule == "expert-load"]


def test_the_finding() -> None:
    (found,) = [one for one in advise(_run([100, 300, 200]), strict=True) if one.rule == "expert-load"]

    assert (found.message, found.ranks, found.parameters["excess_ratio"]) == ("tokens", [1], 0.5)
    assert (found.saving_ns, found.saving_low_ns) == (10 * MS, 0) and found.saving_high_ns == 10 * MS
    (timed,) = [one for one in advise(_run([100, 300], shapes=False), strict=True) if one.rule == "expert-load"]
    assert timed.message == "time"


def _blamed(run: Run) -> dict[str, list[int]]:
    return {one.rule: one.ranks for one in advise(run, strict=True) if one.rule in ("slow-rank", "expert-load")}


@pytest.mark.parametrize(("shapes", "splits"), [(True, False), (False, True), (False, False)])
def test_a_rank_with_more_tokens_is_no_slow_device(shapes: bool, splits: bool) -> None:
    run = _run([100, 100, 300, 100], shapes=shapes, splits=splits)

    (found,) = [one for one in advise(run, strict=True) if one.rule in ("slow-rank", "expert-load")]

    # 30 ms, and 15 if all ranks had as many
    assert (found.rule, found.ranks, found.saving_ns, found.saving_low_ns) == ("expert-load", [2], 15 * MS, 0)
    (row,) = run.analyse("slow_experts").to_dicts()
    assert row["cause"] == ("load" if shapes or splits else "unknown")
    assert row["levelled_ratio"] == 0.75 and row["slow_factor"] == 3.0


def test_kernels_without_a_name_for_experts_are_theirs_as_far_as_what_they_receive_explains_them() -> None:
    known = _run([100, 100, 300, 100], shapes=False, splits=True, kernel="gemm")

    assert _blamed(known) == {"expert-load": [2]}
    assert _blamed(_run([100, 100, 300, 100], shapes=False, splits=False, kernel="gemm")) == {"slow-rank": [2]}
    even = _run([100] * 4, shapes=False, splits=True, kernel="gemm", slow={2: 3.0})
    assert _blamed(even) == {"slow-rank": [2]}


def test_a_device_that_is_slow_at_as_many_tokens_is_named() -> None:
    assert _blamed(_run([100] * 4, slow={3: 1.5})) == {"slow-rank": [3]}


def test_a_device_that_is_slow_for_as_many_tokens_is_told_so_where_no_shapes_are_equal() -> None:
    run = _run([100, 101, 99, 102], slow={3: 1.5})

    (cause,) = run.analyse("slow_rank_causes").to_dicts()

    assert (cause["reason"], cause["sized_by"]) == ("some", "tokens")
    assert cause["factor"] == pytest.approx(1.5)


def test_of_a_slow_device_with_more_tokens_each_claims_its_part() -> None:
    found = advise(_run([100, 100, 200, 100], slow={2: 2.0}), strict=True)

    # 30 ms more, of which 10 as there are twice the tokens; 7.5 of these if all had as many
    assert {one.rule: one.saving_ns for one in found if one.saving_ns} == {
        "slow-rank": 20 * MS, "expert-load": 7.5 * MS
    }  # fmt: skip


def test_sequence_parallel_calls_are_no_experts() -> None:
    run = _run([100, 300], group="mesh_cp", splits=True)

    assert run.analyse("expert_groups")["group_by"].to_list() == ["none"]


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


def _in_layers(
    tokens: Sequence[Sequence[int]], *, shapes: bool = True, first_step: Mapping[int, int] | None = None
) -> Run:
    """Three steps with a layer for each of these numbers of tokens by rank: experts, 100 us per token, then a call.

    Recordings of ranks in `first_step` begin with that step.
    """
    longest = [max(layer) * 100_000 for layer in tokens]
    step_ns = sum(longest) + len(tokens) * MS
    frames: dict[int, dict[str, pl.DataFrame]] = {}
    for rank in range(len(tokens[0])):
        steps = list(range((first_step or {}).get(rank, 1), 4))
        starts = [EPOCH_NS + step * step_ns for step in steps]
        rows: list[tuple[int, int, int, int, str | None]] = []
        for step, start in zip(steps, starts, strict=True):
            at = start
            for layer, most in zip(tokens, longest, strict=True):
                own = layer[rank] * 100_000
                shape = f"{layer[rank]},64;64,8" if shapes else None
                rows += [(at, own, 1, step, shape), (at + own, most - own + MS, 2, step, None)]
                at += most + MS
        kernels = pl.DataFrame(rows, schema=["start_ns", "duration_ns", "stream", "step", "input_shapes"], orient="row")
        calls = kernels.filter(stream=2)
        on_device = pl.when(stream=1)
        frames[rank] = {
            "ranks": RANKS.frame(world_size=[len(tokens[0])], device_kind=["npu"]),
            "steps": STEPS.frame(
                step=steps,
                start_ns=starts,
                end_ns=[start + step_ns for start in starts],
                window_start_ns=starts,
                window_end_ns=[start + step_ns for start in starts],
                window=["device"] * len(steps),
            ),
            "kernels": KERNELS.frame(
                **kernels.with_columns(
                    kernel=pl.int_range(pl.len()),
                    kind=on_device.then(pl.lit("compute")).otherwise(pl.lit("communication")),
                    name=on_device.then(pl.lit("grouped_matmul")).otherwise(pl.lit("all_to_all")),
                ).to_dict()
            ),
            "collectives": COLLECTIVES.frame(
                collective=range(calls.height),
                group=["g"] * calls.height,
                sequence=[(steps[0] - 1) * len(tokens) + place for place in range(calls.height)],
                operation=["all_to_all"] * calls.height,
                name=["all_to_all"] * calls.height,
                group_size=[len(tokens[0])] * calls.height,
                start_ns=calls["start_ns"],
                duration_ns=calls["duration_ns"],
                on_device=[True] * calls.height,
                stream=[2] * calls.height,
                step=calls["step"],
            ),
            "collective_splits": COLLECTIVE_SPLITS.frame(
                collective=range(calls.height),
                input_splits=["[2, 2]"] * calls.height,
                output_splits=["[2, 2]"] * calls.height,
            ),
            "groups": GROUPS.frame(group=["g"], name=["ep"], members=[list(range(len(tokens[0])))]),
        }
        if not shapes:
            del frames[rank]["collective_splits"]
    return Run.from_frames(frames)


@pytest.mark.parametrize("shapes", [True, False])
def test_another_rank_in_each_layer_is_found_and_none_is_accused(shapes: bool) -> None:
    run = _in_layers([[50, 10], [10, 50]], shapes=shapes)

    (group,) = run.analyse("expert_groups").to_dicts()
    assert (group["imbalance_ratio"], group["calls"], group["max_ranks"]) == (1.0, 6, 2)
    assert group["call_imbalance_ratio"] == pytest.approx(50 / 30)
    (found,) = [one for one in advise(run, strict=True) if one.rule == "expert-load"]
    assert (found.message, found.ranks) == ("layers" if shapes else "layers-time", [])
    # each layer takes 5 ms instead of 3
    assert (found.saving_low_ns, found.saving_ns, found.saving_high_ns) == (0, 4 * MS, 4 * MS)


def test_tokens_that_differ_by_some_per_cent_in_each_layer_are_none() -> None:
    run = _in_layers([[105, 95], [95, 105], [110, 100]])

    assert not [one for one in advise(run, strict=True) if one.rule == "expert-load"]


def test_only_steps_that_ranks_share_are_compared() -> None:
    run = _in_layers([[30, 30], [30, 30]], first_step={1: 3})

    found = run.analyse("expert_load")
    assert found.select("rank", "tokens", "load_ratio").rows() == [(0, 60, 1.0), (1, 60, 1.0)]
    assert run.analyse("split_pairs").select("calls", "share_ratio").rows() == [(2, 0.25)] * 4
    assert not [one for one in advise(run, strict=True) if one.rule == "expert-load"]


def test_ranks_of_other_groups_are_compared_in_the_steps_that_all_share() -> None:
    run = _in_layers([[30, 30, 30, 30]], first_step={1: 3})
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks}
    for rank, own in frames.items():
        members = [0, 1] if rank < 2 else [2, 3]
        own["groups"] = GROUPS.frame(group=[f"g{members}"], name=["ep"], members=[members])
        own["collectives"] = own["collectives"].with_columns(group=pl.lit(f"g{members}"))

    assert Run.from_frames(frames).analyse("expert_load")["tokens"].to_list() == [30] * 4


def test_members_that_were_not_recorded_are_told_and_may_have_as_little_as_the_least() -> None:
    run = _run([100, 300], size=4)

    (found,) = [one for one in advise(run, strict=True) if one.rule == "expert-load"]

    assert found.parameters["missing"] == 2
    # 30 ms: 20 are the mean of these, 15 if the others take 10 each
    assert (found.saving_ns, found.saving_high_ns) == (10 * MS, 15 * MS)
