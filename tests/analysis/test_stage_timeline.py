"""Operators of a step side by side on the ranks of a stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, KERNELS, RANKS, STEPS
from tests.pipelines import MS, Made, Pipeline

TWO = Pipeline(stages=2, micro_batches=4, copies=2)


def late(rows: dict[int, Made]) -> None:
    for kernel in rows[1].kernels:
        kernel["start_ns"] += 3 * MS


def test_the_second_step_is_shown_or_the_one_asked_for() -> None:
    run = TWO.run()

    assert run.analyse("operator_spans")["step"].unique().to_list() == [2]
    assert run.analyse("operator_spans", step=3)["step"].unique().to_list() == [3]
    assert run.select(steps="1").analyse("operator_spans")["step"].unique().to_list() == [1]
    with pytest.raises(Unavailable):
        run.analyse("operator_spans", step=9)


def test_executions_of_one_name_are_put_together() -> None:
    found = {row["name"]: row for row in TWO.run().analyse("operator_spans", step=1).filter(rank=0).to_dicts()}

    assert found.keys() == {"forward", "backward", "send", "recv"}
    forward = found["forward"]
    assert (forward["calls"], forward["total_ns"], forward["start_ns"]) == (4, 4 * TWO.forward_ns, 0)
    assert forward["end_ns"] > forward["start_ns"] + forward["total_ns"]
    assert (found["send"]["kind"], found["send"]["calls"]) == ("communication", 4)


def test_ranks_of_a_stage_are_compared() -> None:
    timeline = TWO.run(late).analyse("stage_timeline", step=1)

    first = timeline.filter(stage=0, name="forward").row(0, named=True)
    assert (first["ranks"], first["calls"], first["spread_ns"]) == (2, 4, 3 * MS)
    assert (first["first_start_ns"], first["mean_start_ns"], first["last_start_ns"]) == (0, 1.5 * MS, 3 * MS)
    assert timeline.filter(stage=1, name="forward")["spread_ns"].item() == 0


def test_without_a_pipeline_all_ranks_are_one_stage() -> None:
    found = replace(TWO, sizes=False, named=False).run().analyse("stage_timeline")

    assert found["stage"].unique().to_list() == [0]
    assert found["ranks"].to_list() == [4] * found.height


def test_names_of_calls_are_without_what_only_their_rank_says() -> None:
    frames = {
        rank: {
            "ranks": RANKS.frame(rank=[rank], world_size=[2]),
            "steps": STEPS.frame(
                step=[1], start_ns=[0], end_ns=[9], window_start_ns=[0], window_end_ns=[9], window=["stated"]
            ),
            "kernels": KERNELS.frame(
                kernel=[0], name=["x_1_2_3"], kind=["compute"], start_ns=[0], duration_ns=[1], step=[1]
            ),
            "collectives": COLLECTIVES.frame(
                **{"collective": [0, 1], "group": ["g"] * 2, "sequence": [0, 1], "operation": ["all_reduce"] * 2},
                **{"name": [f"stream_{rank}_0_AllReduce-op7", f"hcom_allReduce__{rank}_0_1"], "start_ns": [1, 5]},
                **{"duration_ns": [2, 2], "on_device": [True] * 2, "step": [1, 1]},
            ),
        }
        for rank in range(2)
    }

    timeline = Run.from_frames(frames).analyse("stage_timeline")

    assert timeline.select("name", "ranks").rows() == [("x_1_2_3", 2), ("AllReduce-op7", 2), ("hcom_allReduce_", 2)]
