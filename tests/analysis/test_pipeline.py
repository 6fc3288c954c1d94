"""Pipeline stages: waiting for one another, balance, micro-batches, sends and receives paired across ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.job.cluster_advice import SHARE, _parallel_by
from stepscope.analysis.methods.memberships import memberships
from stepscope.analysis.pipeline.schedule import Limits
from stepscope.analysis.replay.operation_replay import places
from stepscope.errors import Unavailable
from stepscope.pages.answering import Request, answer
from stepscope.pages.pipeline import PAGE
from stepscope.pages.showing import shown_sections
from stepscope.run import Run
from stepscope.tables import STEP_TOTALS
from tests.builders import make_run
from tests.pipelines import MS, SENT, Made, Pipeline

FOUR = Pipeline()
TWO = Pipeline(stages=2, micro_batches=4, copies=2)


def waiting(run: Run) -> dict[int, int]:
    """Bubble of each rank in the first step."""
    return dict(run.analyse("pipeline_bubbles").filter(step=1).select("rank", "bubble_ns").iter_rows())


def test_ranks_wait_as_long_as_the_schedule_says() -> None:
    found = FOUR.run().analyse("pipeline_bubbles")

    first = found.filter(step=1)
    assert first["bubble_by"].unique().to_list() == ["pairs"]
    assert first["computing_ns"].to_list() == [6 * (FOUR.forward_ns + FOUR.backward_ns)] * 4
    # The last stage only waits for its first micro-batch, which three stages compute and send before, and once each
    # until the stage before it has received what it sends.
    assert first.filter(stage=3)["bubble_ns"].item() == 3 * FOUR.forward_ns + 2 * SENT + 4 * SENT
    assert first["bubble_ns"].is_sorted(descending=True)
    assert found.filter(step=2)["bubble_ns"].to_list() == first["bubble_ns"].to_list()


def test_an_even_pipeline_without_transfers_waits_what_the_formula_says() -> None:
    waited = waiting(replace(FOUR, forward_ns=1000 * MS, backward_ns=2000 * MS, step_ns=60_000 * MS, steps=1).run())

    assert waited[0] / ((FOUR.micro_batches + 3) * 3000 * MS) == pytest.approx(3 / 9, rel=0.01)


def test_computing_while_a_call_waits_is_no_bubble() -> None:
    def busy(rows: dict[int, Made]) -> None:
        first = rows[1].kernels[0]
        rows[1].kernels.append({**first, "start_ns": 0, "duration_ns": 4 * MS})

    assert waiting(FOUR.run(busy))[1] == waiting(FOUR.run())[1] - 4 * MS


def test_waiting_in_a_collective_counts_if_the_last_rank_is_of_another_stage() -> None:
    def barrier(late: int) -> Callable[[dict[int, Made]], None]:
        def change(rows: dict[int, Made]) -> None:
            for rank, some in rows.items():
                entered = (900 if rank == late else 890) * MS
                some.calls.append(
                    {
                        **{"operation": "all_reduce", "name": "all_reduce", "group": "job", "stream": 30, "step": 1},
                        **{"start_ns": entered, "duration_ns": 901 * MS - entered, "micro_batch": None},
                    }
                )

        return change

    plain = waiting(TWO.run())
    late = waiting(TWO.run(barrier(3)))

    assert {rank: late[rank] - plain[rank] for rank in range(4)} == {0: 10 * MS, 1: 10 * MS, 2: 0, 3: 0}
    rows = TWO.run(barrier(3)).analyse("pipeline_bubbles").filter(step=1)
    assert rows["collective_wait_ns"].to_list() == [10 * MS, 10 * MS, 0, 0]


def test_without_pairs_it_is_the_time_in_receives() -> None:
    def cut(rows: dict[int, Made]) -> None:
        del rows[3].calls[0]  # its first receive

    found = FOUR.run(cut).analyse("pipeline_bubbles").filter(step=1)

    assert found.filter(rank=0)["bubble_by"].item() == "pairs"
    unknown = FOUR.run(lambda rows: rows.pop(2)).analyse("pipeline_bubbles").filter(step=1)
    assert dict(unknown.select("rank", "bubble_by").iter_rows()) == {0: "pairs", 1: "receives", 3: "receives"}
    assert unknown.filter(rank=3)["bubble_ns"].item() == unknown.filter(rank=3)["receiving_ns"].item()


def test_what_the_source_states_stands_beside_it_and_is_used_where_nothing_else_is_known() -> None:
    run = FOUR.run()
    stated = STEP_TOTALS.frame(step=[1], computing_and_free_ns=[180 * MS], stage_ns=[200 * MS], bubble_ns=[100 * MS])
    frames = {
        one.rank: {"ranks": one.table("ranks").collect().drop("rank"), "step_totals": stated} for one in run.ranks
    }

    found = Run.from_frames(frames).analyse("pipeline_bubbles")

    assert found["bubble_by"].to_list() == ["recorded"] * 4
    assert found.select("bubble_ns", "window_ns", "work_ns", "computing_ns").unique().rows() == [
        (100 * MS, 300 * MS, 180 * MS, None)
    ]
    assert found["bubble_ratio"].to_list() == pytest.approx([1 / 3] * 4)


def test_stages_are_compared_by_their_median_rank() -> None:
    run = replace(TWO, factor={1: 1.5}, copies=3).run(_slow(0))

    first, second = run.analyse("pipeline_stages").to_dicts()

    assert (first["work_ns"], second["work_ns"]) == (120 * MS, 180 * MS)
    assert (first["work_factor"], second["work_factor"]) == (0.8, 1.2)
    assert (first["operators"], first["ranks"], first["missing"], first["steps"]) == (8, "0, 1, 2", 0, 3)
    by_step = run.analyse("pipeline_steps")
    assert by_step.height == 6
    assert by_step["work_factor"].to_list() == [0.8, 1.2] * 3


def _slow(rank: int) -> Callable[[dict[int, Made]], None]:
    def change(rows: dict[int, Made]) -> None:
        for kernel in rows[rank].kernels:
            kernel["duration_ns"] = round(kernel["duration_ns"] * 1.3)

    return change


def test_stages_with_missing_ranks_say_so() -> None:
    found = TWO.run(lambda rows: rows.pop(3)).analyse("pipeline_stages")

    assert found.select("stage", "ranks", "missing").rows() == [(0, "0, 1", 0), (1, "2", 1)]


def test_first_steps_that_are_start_up_are_left_out() -> None:
    run = replace(FOUR, steps=4).run()
    longer = pl.when(pl.col("step") == 1).then(pl.col("window_start_ns") - 5000 * MS).otherwise("window_start_ns")
    frames = {
        one.rank: {
            name: one.table(name).collect().drop("rank") for name in ("ranks", "groups", "kernels", "collectives")
        }
        | {"steps": one.table("steps").collect().drop("rank").with_columns(window_start_ns=longer)}
        for one in run.ranks
    }

    found = Run.from_frames(frames).analyse("pipeline_stages")

    assert found["left_out"].to_list() == [1] * 4
    assert found["steps"].to_list() == [3] * 4
    assert found["window_ns"].to_list() == [1000 * MS] * 4

    frames[3]["steps"] = run.ranks[3].table("steps").collect().drop("rank")  # its start-up is no longer than a step
    some = Run.from_frames(frames)
    assert some.analyse("left_out_steps").rows() == [(rank, 1, "long") for rank in range(3)]
    assert some.analyse("pipeline_stages").equals(found)
    assert some.analyse("pipeline_schedule")["step_ns"].to_list() == [1000 * MS]
    (pairs,) = next(iter(shown_sections(answer(some, PAGE, Request(table="pairs"))))).tables
    assert pairs.rows["count"].unique().to_list() == [3 * FOUR.micro_batches]


def test_a_long_step_that_is_the_first_selected_one_is_no_start_up() -> None:
    run = replace(FOUR, steps=6).run()
    longer = pl.when(pl.col("step") == 3).then(pl.col("window_end_ns") + 1500 * MS).otherwise("window_end_ns")
    later = pl.when(pl.col("step") > 3).then(1500 * MS).otherwise(0)
    frames = {}
    for one in run.ranks:
        frames[one.rank] = {name: one.table(name).collect().drop("rank") for name in ("ranks", "groups")}
        for name in ("kernels", "collectives"):
            rows = one.table(name).collect().drop("rank")
            frames[one.rank][name] = rows.with_columns(start_ns=pl.col("start_ns") + later)
        steps = one.table("steps").collect().drop("rank").with_columns(window_end_ns=longer)
        frames[one.rank]["steps"] = steps.with_columns(pl.col("^.*_ns$") + later)
    chosen = Run.from_frames(frames).select(steps="3-6")

    stages, schedule = chosen.analyse("pipeline_stages"), chosen.analyse("pipeline_schedule")

    assert (stages["left_out"].to_list(), stages["steps"].to_list()) == ([0] * 4, [4] * 4)
    assert schedule["step_ns"].item() == stages["window_ns"][0] == chosen.analyse("time_by_rank")["window_ns"][0]


@pytest.mark.parametrize("marked", [True, False])
def test_micro_batches_are_stated_or_counted(marked: bool) -> None:
    found = replace(FOUR, marked=marked).run().analyse("pipeline_schedule").row(0, named=True)

    assert (found["stages"], found["micro_batches"], found["model_chunks"]) == (4, 6, 1)
    assert found["micro_batches_by"] == ("operations" if marked else "transfers")
    assert found["ideal_ratio"] == pytest.approx(3 / 9)
    assert (found["transfers"], found["unpaired"], found["longest_stage"]) == (3 * 3 * 12, 0, 0)


def test_messages_about_shapes_are_no_micro_batches() -> None:
    def shapes(rows: dict[int, Made]) -> None:
        for some in rows.values():
            small = [
                {**call, "start_ns": call["start_ns"] - 10, "duration_ns": 10, "size_bytes": 24} for call in some.calls
            ]
            some.calls += small

    run = FOUR.run(shapes)

    assert run.analyse("pipeline_schedule")["micro_batches"].item() == 6
    assert run.analyse("pipeline_schedule", limits=Limits(small_ratio=0))["micro_batches"].item() == 12


@pytest.mark.parametrize(("factor", "stage"), [(1.2, None), (1.3, 1)])
def test_the_analysis_says_which_stage_is_uneven(factor: float, stage: int | None) -> None:
    run = replace(TWO, factor={1: factor}, step_ns=1400 * MS).run()

    assert run.analyse("pipeline_schedule")["uneven_stage"].item() == stage
    assert run.analyse("pipeline_schedule", limits=Limits(uneven_factor=1))["uneven_stage"].item() == 1


def test_unequal_numbers_of_transfers_are_no_micro_batches() -> None:
    def lose(rows: dict[int, Made]) -> None:
        rows[0].calls = [call for call in rows[0].calls if call["operation"] != "send" or call["micro_batch"]]
        rows[1].calls = [call for call in rows[1].calls if call["peer"] != 0 or call["micro_batch"]]

    found = FOUR.run(lose).analyse("pipeline_schedule").row(0, named=True)

    assert (found["micro_batches"], found["ideal_ratio"]) == (None, None)


def test_calls_that_send_and_receive_at_once_leave_the_number_unknown() -> None:
    def join(rows: dict[int, Made]) -> None:
        for rank in (0, 1):
            next(call for call in rows[rank].calls if {rank, call["peer"]} == {0, 1})["operation"] = "send_recv"

    found = FOUR.run(join).analyse("pipeline_schedule").row(0, named=True)

    assert (found["micro_batches"], found["exchanges"]) == (None, 2)


def test_sends_and_receives_are_paired() -> None:
    found = replace(FOUR, marked=True, steps=1).run().analyse("pipeline_transfers")

    assert found["problem"].null_count() == found.height == 36
    assert set(found["paired_by"]) == {"position", "order"}  # both ways share a group, in which sides may differ
    row = found.filter(rank_a=1, rank_b=2, micro_batch=0).row(0, named=True)
    assert (row["stage_a"], row["stage_b"], row["direction"], row["number"]) == (1, 2, "forward", 0)
    assert (row["receiver_wait_ns"], row["sender_wait_ns"]) == (row["send_start_ns"] - row["receive_start_ns"], 0)
    assert (row["transmit_ns"], row["size_bytes"], row["received_bytes"]) == (SENT, 1 << 20, 1 << 20)
    back = found.filter(rank_a=3, direction="backward")
    assert back["number"].to_list() == list(range(6))
    assert back["micro_batch"].to_list() == list(range(6))


def test_sizes_that_differ_are_told() -> None:
    def change(rows: dict[int, Made]) -> None:
        next(call for call in rows[2].calls if call["operation"] == "recv" and call["peer"] == 1)["size_bytes"] = 7

    found = FOUR.run(change).analyse("pipeline_transfers").drop_nulls("problem")

    assert found.select("rank_a", "rank_b", "number", "received_bytes", "problem").rows() == [
        (1, 2, 0, 7, "sizes differ")
    ]


def test_a_rank_that_was_not_recorded_leaves_calls_without_a_pair() -> None:
    found = replace(FOUR, steps=1).run(lambda rows: rows.pop(2)).analyse("pipeline_transfers")

    lone = found.drop_nulls("problem")
    assert lone["problem"].unique().to_list() == ["other rank not recorded"]
    assert lone.filter(rank_a=1)["rank_b"].unique().to_list() == [2]
    assert lone.filter(rank_b=3)["rank_a"].unique().to_list() == [2]
    assert lone.height == 24


def test_two_stages_without_named_sides_are_paired_by_place_if_all_fits() -> None:
    run = replace(TWO, named=False, steps=2).run()

    found = run.analyse("pipeline_transfers")

    assert found["paired_by"].to_list() == ["place"] * 32
    assert set(found.select("rank_a", "rank_b").iter_rows()) == {(0, 2), (2, 0), (1, 3), (3, 1)}
    known = TWO.run().analyse("pipeline_transfers").filter(pl.col("step") <= 2)
    waits = ["rank_a", "rank_b", "step", "number", "receiver_wait_ns", "sender_wait_ns", "transmit_ns"]
    order = ["rank_a", "rank_b", "step", "number"]
    assert found.select(waits).sort(order).equals(known.select(waits).sort(order))


def test_places_are_no_guess_if_numbers_or_times_do_not_fit() -> None:
    def lose(rows: dict[int, Made]) -> None:
        rows[0].calls = [call for call in rows[0].calls if call["operation"] != "send" or call["micro_batch"]]

    def late(rows: dict[int, Made]) -> None:
        for call in rows[2].calls:
            call["start_ns"] += 500 * MS

    for change in (lose, late):
        found = replace(TWO, named=False, steps=1).run(change).analyse("pipeline_transfers")
        of_pair = found.filter((pl.col("rank_a") == 0) | (pl.col("rank_b") == 2))
        assert of_pair["problem"].unique().to_list() == ["other side unknown"]
        rest = found.filter((pl.col("rank_a") == 1) | (pl.col("rank_b") == 1))
        assert rest["paired_by"].unique().to_list() == ["place"]


def test_three_stages_without_named_sides_stay_unknown() -> None:
    found = replace(FOUR, stages=3, named=False, steps=1).run().analyse("pipeline_transfers")

    assert found["problem"].unique().to_list() == ["other side unknown"]


def test_types_of_operators_are_compared_between_stages() -> None:
    def only_last(rows: dict[int, Made]) -> None:
        for rank in (2, 3):
            rows[rank].kernels.append(
                {**rows[rank].kernels[-1], "name": "loss", "start_ns": 900 * MS, "duration_ns": 5 * MS}
            )

    found = TWO.run(only_last).analyse("stage_operators").filter(pl.col("type").is_in(["loss", "forward"]))

    by_type = {(row["stage"], row["type"]): row for row in found.to_dicts()}
    assert by_type.keys() == {(0, "forward"), (1, "forward"), (1, "loss")}
    assert (by_type[1, "loss"]["only"], by_type[1, "loss"]["total_ns"], by_type[1, "loss"]["others_ns"]) == (
        True,
        5 * MS,
        0,
    )
    assert by_type[0, "forward"]["others_ns"] == by_type[1, "forward"]["total_ns"] == 120 * MS
    assert by_type[0, "forward"]["ranks"] == "0, 1"


def test_stages_that_nothing_names_show_in_who_sends_to_whom() -> None:
    run = replace(FOUR, sizes=False, copies=2).run()
    frames = {
        one.rank: {
            name: one.table(name).collect().drop("rank") for name in ("ranks", "steps", "kernels", "collectives")
        }
        | {"groups": one.table("groups").collect().drop("rank").with_columns(name=pl.lit(None, pl.String))}
        for one in run.ranks
    }

    found = Run.from_frames(frames).analyse("pipeline_places")

    assert found["stage"].to_list() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert found["stage_by"].unique().to_list() == ["communication"]
    assert run.analyse("pipeline_places")["stage_by"].unique().to_list() == ["recorded"]


def test_a_stated_stage_is_the_same_in_every_answer() -> None:
    frames = {}
    for one in replace(TWO, sizes=False, named=False).run().ranks:
        tables = {name: one.table(name).collect().drop("rank") for name in ("ranks", "steps", "kernels", "collectives")}
        stated = pl.lit(f'{{"pipeline_stage": {one.rank % 2}, "data_parallel_rank": {one.rank // 2}}}')
        frames[one.rank] = {**tables, "ranks": tables["ranks"].with_columns(parallelism=stated)}
    run = Run.from_frames(frames)
    ranks = run.table("ranks")

    for question in ("pipeline_places", "rank_communication", "rank_means"):
        rows = run.analyse(question).select("rank", "stage").unique().sort("rank")
        assert rows["stage"].to_list() == [0, 1, 0, 1], question
    assert run.analyse("rank_communication", stage="1")["rank"].unique().sort().to_list() == [1, 3]
    assert places(ranks)["stage"].to_list() == [0, 1, 0, 1]
    assert run.analyse("strategy_stages")["ranks"].to_list() == ["0, 2", "1, 3"]
    units = memberships(ranks.collect()).filter(unit_kind="pipeline stage")
    assert units.select("unit", "rank").rows() == [("0", 0), ("0", 2), ("1", 1), ("1", 3)]
    assert set(run.analyse("parallel_layout")["pp_size"].drop_nulls()) <= {1}


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000])
def test_damaged_parallel_sizes_fail_no_question(text: str) -> None:
    frames = {}
    for one in TWO.run().ranks:
        tables = {name: one.table(name).collect().drop("rank") for name in ("ranks", "groups", "steps", "collectives")}
        frames[one.rank] = {**tables, "ranks": tables["ranks"].with_columns(parallelism=pl.lit(text))}
    run = Run.from_frames(frames)

    assert run.analyse("strategy_stages")["parallel_mode"].to_list() == [None, None]
    assert run.analyse("cluster_advice").height >= 0
    assert run.analyse("pipeline_places")["stage"].to_list() == [0, 0, 1, 1]
    assert places(run.table("ranks"))["replica"].to_list() == [None] * 4
    assert _parallel_by(run.table("ranks"), None) == SHARE


def test_jobs_without_stages_have_no_answer() -> None:
    with pytest.raises(Unavailable, match="no pipeline stages are known"):
        make_run().analyse("pipeline_stages")
    with pytest.raises(Unavailable, match="no pipeline stages are known"):
        replace(TWO, sizes=False, named=False).run().analyse("pipeline_transfers")
