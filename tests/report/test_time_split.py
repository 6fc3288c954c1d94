"""How long a step takes and how its time splits."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.job.time_by_rank import time_by_rank
from stepscope.report.sentences import Sentence, spoken
from stepscope.report.time_split import (
    LEAST_SHARE,
    PARTS,
    Stages,
    Waits,
    average_step,
    awaited,
    narrow_step,
    shares,
    some_steps,
    waits_of,
)


def steps(*rows: tuple[int, int, int, int, int, int], window: str = "host") -> pl.DataFrame:
    """Steps: rank, step, and what of it computes, communicates, copies and is idle."""
    names = ("rank", "step", *PARTS)
    frame = pl.DataFrame([dict(zip(names, row, strict=True)) for row in rows])
    return frame.with_columns(window_ns=pl.sum_horizontal(PARTS), window=pl.lit(window))


def average(*rows: tuple[int, int, int, int, int, int], window: str = "host") -> Sentence:
    """The sentence about the average of these steps."""
    frame = steps(*rows, window=window)
    return average_step(frame, time_by_rank(frame))


def parts_of(sentence: Sentence) -> dict[str, float]:
    return {part.key: part.parameters["ratio"] for part in sentence.parameters["split"]}


def test_shares_are_of_all_steps_of_all_ranks() -> None:
    rows = steps((0, 1, 100, 0, 0, 0), (0, 2, 100, 0, 0, 0), (0, 3, 100, 0, 0, 0), (1, 1, 0, 50, 25, 25))

    found = shares(time_by_rank(rows))

    assert found == {
        "computing_ns": 0.75,
        "communication_not_overlapped_ns": 0.125,
        "memory_not_overlapped_ns": 0.0625,
        "free_ns": 0.0625,
    }


def test_steps_without_any_time_have_no_shares() -> None:
    assert set(shares(time_by_rank(steps((0, 1, 0, 0, 0, 0)))).values()) == {0.0}
    assert shares(time_by_rank(steps((0, 1, 1, 0, 0, 0))))["computing_ns"] == 1.0


def test_the_average_step_has_its_length_and_parts() -> None:
    sentence = average((0, 1, 60, 0, 0, 40), (0, 2, 80, 20, 0, 0))

    assert (sentence.key, sentence.per) == ("average", "step")
    assert {**sentence.parameters, "split": None} == {
        **{"mean_ns": 100.0, "median_ns": None, "left_out": None, "split": None},
    }
    assert parts_of(sentence) == {"computing_ns": 0.7, "unsplit_communication": 0.1, "free_ns": 0.2}


def test_a_median_that_reads_differently_is_given() -> None:
    sentence = average((0, 1, 1000, 0, 0, 0), (0, 2, 1000, 0, 0, 0), (0, 3, 1600, 0, 0, 0))

    assert sentence.parameters["median_ns"] == 1000
    assert spoken(sentence).startswith("The average step takes 1.2 us (median 1.0 us): ")


@pytest.mark.parametrize(("idle", "there"), [(4, False), (5, True), (6, True)])
def test_a_part_that_would_be_shown_as_nothing_is_left_out(idle: int, there: bool) -> None:
    assert LEAST_SHARE == 0.005
    assert ("free_ns" in parts_of(average((0, 1, 1000 - idle, 0, 0, idle)))) == there


def test_a_first_step_that_is_left_out_is_named() -> None:
    sentence = average((0, 4, 9000, 0, 0, 0), (0, 5, 100, 0, 0, 0), (0, 6, 100, 0, 0, 0))

    assert (sentence.parameters["left_out"], sentence.parameters["mean_ns"]) == (4, 100.0)
    assert spoken(sentence) == "The average step without step 4 takes 0.1 us: 100% computing."
    assert spoken(sentence, "zh") == "平均每步（不含第 4 步）耗时 0.1 us：计算 100%。"


@pytest.mark.parametrize(("ranks", "key"), [(1, "average_recording"), (2, "average_recordings")])
def test_recordings_without_steps_are_called_so(ranks: int, key: str) -> None:
    sentence = average(*[(rank, 0, 100, 0, 0, 0) for rank in range(ranks)], window="recording")

    assert (sentence.key, sentence.per) == (key, "recording")
    assert "left_out" not in sentence.parameters
    assert "step" not in spoken(sentence)


def test_iterations_are_called_so() -> None:
    assert (
        spoken(average((0, 1, 100, 0, 0, 0), window="repetition"))
        == "The average iteration takes 0.1 us: 100% computing."
    )


def test_a_narrow_step_has_its_time_on_the_host() -> None:
    rows = steps((0, 1, 100, 0, 0, 0), (0, 2, 300, 0, 0, 0))

    sentence = narrow_step(rows, time_by_rank(rows), 5000.0)

    assert spoken(sentence) == (
        "The recorded work of the average step on its device spans 0.2 us of the 5.0 us that the step takes on the "
        "host: 100% computing of that span."
    )


def test_where_some_steps_can_be_split_both_lengths_are_given() -> None:
    every = steps((0, 1, 9000, 0, 0, 0), *[(0, n, 100, 0, 0, 0) for n in range(2, 6)], (0, 6, 2000, 0, 0, 0))
    some = every[1:3]

    sentence = some_steps(every, time_by_rank(every), time_by_rank(some))

    assert {**sentence.parameters, "split": None} == {
        **{"mean_ns": 480.0, "median_ns": 100, "left_out": 1, "steps": 5, "split_steps": 2, "split_mean_ns": 100.0},
        "split": None,
    }
    assert spoken(sentence) == (
        "The average step without step 1 takes 0.5 us (median 0.1 us). Operators were recorded in 2 of 5 steps, which "
        "take 0.1 us on average: 100% computing."
    )


def test_steps_and_means_count_over_all_ranks() -> None:
    every = steps((0, 1, 100, 0, 0, 0), (1, 1, 100, 0, 0, 0), (1, 2, 400, 0, 0, 0))

    found = some_steps(every, time_by_rank(every), time_by_rank(every[:2])).parameters

    assert (found["steps"], found["split_steps"], found["mean_ns"], found["split_mean_ns"]) == (3, 2, 200.0, 100.0)


def exposed(wait: int, transmit: int, unsplit: int) -> pl.DataFrame:
    """Parts of the mean of two steps."""
    parts = {"computing": 70, "wait": wait, "transmit": transmit, "communication": unsplit}
    return pl.DataFrame({"rank": [0] * 4, "part": list(parts), "mean_ns": list(parts.values()), "steps": [2] * 4})


def test_exposed_communication_is_split_where_all_members_are_known() -> None:
    late = pl.DataFrame({"rank": [0, 1, 2, 3], "root_rank": [3, 3, 3, 1], "mean_ns": [30, 30, 30, 9]})

    assert waits_of(exposed(60, 40, 0), late) == Waits(0.6, 0.4, [3])
    assert waits_of(exposed(60, 25, 15), late) is None
    assert waits_of(exposed(60, 40, 0), None) is None
    assert waits_of(exposed(0, 0, 0), late) is None


@pytest.mark.parametrize(("slow", "split"), [([], Waits(0.1, 0.4, [2], 0.5)), ([1], Waits(0.6, 0.4, [1]))])
def test_waits_between_pipeline_stages_are_late_only_for_ranks_known_to_be_slow(slow: list[int], split: Waits) -> None:
    rows = {"rank": [0, 2, 3], "for_rank": [1, 1, 2], "root_rank": [1, 1, 2], "mean_ns": [30, 30, 6]}
    places = pl.DataFrame({"rank": [0, 1, 2, 3], "stage": [0, 1, 2, 2]})
    stages = Stages(places, pl.DataFrame({"stage_wait_ns": [40, 60]}), slow)

    assert waits_of(exposed(60, 40, 0), pl.DataFrame(rows), stages) == split


@pytest.mark.parametrize(
    ("waits", "said"),
    [
        (
            Waits(0.75, 0.25, [3]),
            "40% exposed communication (30% waiting for rank 3, 10% transmission), ",
        ),
        (
            Waits(0.25, 0.25, [3], 0.5),
            "40% exposed communication (20% waiting for other stages, 10% waiting for rank 3, 10% transmission), ",
        ),
        (Waits(0.75, 0.25), "40% exposed communication (30% waiting, 10% transmission), "),
        (Waits(0.0, 1.0), "40% exposed communication (40% transmission), "),
        (None, "40% exposed communication (waiting for other ranks included), "),
    ],
)
def test_the_verdict_says_who_is_waited_for(waits: Waits | None, said: str) -> None:
    frame = steps((0, 1, 30, 40, 0, 30))

    assert said in spoken(average_step(frame, time_by_rank(frame), waits))


def test_a_rank_that_waits_as_the_others_do_is_not_the_one_that_they_wait_for() -> None:
    parts = pl.DataFrame({"rank": [0, 1, 2, 3], "part": ["wait"] * 4, "mean_ns": [100, 100, 90, 20]})

    assert awaited([2], parts) == []
    assert awaited([3], parts) == [3]
    assert awaited([2, 3], parts) == [3]
