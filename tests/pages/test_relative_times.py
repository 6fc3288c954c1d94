"""Moments are shown to people as times since the start of the recording."""

from __future__ import annotations

import polars as pl

from stepscope.pages.relative_times import since_start

EPOCH = 1_714_528_800_000_000_000


def test_moments_count_from_the_start_of_the_recording() -> None:
    answer = pl.DataFrame({"time_ns": [EPOCH + 7, EPOCH + 9], "release_ns": [EPOCH + 8, None], "life_ns": [1, 2]})

    rows, told = since_start(
        answer.tail(1), answer, ["time_ns", "release_ns"], {"start_ns": EPOCH, "end_ns": EPOCH + 10}
    )

    assert rows.row(0, named=True) == {"time_ns": 9, "release_ns": None, "life_ns": 2}
    assert told == ", times since the start of the recording"


def test_on_another_clock_they_count_from_the_first() -> None:
    answer = pl.DataFrame({"time_ns": [5, 9]})  # since a machine's start

    for facts in ({}, {"start_ns": EPOCH, "end_ns": EPOCH + 10}):
        rows, told = since_start(answer.tail(1), answer, ["time_ns"], facts)
        assert (rows["time_ns"].to_list(), told) == ([4], ", times since the first")


def test_each_clock_of_a_table_counts_from_its_own_first() -> None:
    hours = 3_600_000_000_000
    answer = pl.DataFrame({"queue": ["get_next", "get_next", "host", "host"], "time_ns": [5, 9, 20 * hours, 7]})
    answer = answer.with_columns(
        time_ns=pl.when(queue="host").then(20 * hours + pl.col("time_ns")).otherwise("time_ns")
    )

    rows, told = since_start(answer, answer, ["time_ns"], {})

    first = 20 * hours + 7
    assert rows["time_ns"].to_list() == [0, 4, 40 * hours - first, 0]
    assert told == ", times since the first of each clock"


def test_clocks_that_happen_to_be_close_are_still_two() -> None:
    queues = pl.DataFrame({"queue": ["get_next", "device_queue", "get_next"], "time_ns": [5, 7, 9]})
    memory = pl.DataFrame({"module": ["process", "Dataset", "Compiler"], "time_ns": [5, 7, 9]})

    assert since_start(queues, queues, ["time_ns"], {})[0]["time_ns"].to_list() == [0, 0, 4]
    rows, told = since_start(memory, memory, ["time_ns"], {})
    assert (rows["time_ns"].to_list(), told) == ([0, 0, 2], ", times since the first of each clock")


def test_samples_of_host_and_process_taken_together_have_one_clock() -> None:
    samples = pl.DataFrame({"scope": ["host", "host", "process"], "time_ns": [5, 7, 7]})

    rows, told = since_start(samples, samples, ["time_ns"], {})

    assert (rows["time_ns"].to_list(), told) == ([0, 2, 2], ", times since the first")


def test_a_recording_with_one_clock_has_one_for_all_series() -> None:
    queues = pl.DataFrame({"queue": ["get_next", "device_queue"], "time_ns": [EPOCH + 5, EPOCH + 7]})

    rows, told = since_start(queues, queues, ["time_ns"], {"start_ns": EPOCH, "end_ns": EPOCH + 10})

    assert (rows["time_ns"].to_list(), told) == ([5, 7], ", times since the start of the recording")


def test_lengths_stay_as_they_are() -> None:
    answer = pl.DataFrame({"start_ns": [5]})  # of a call, since the start of its step

    assert since_start(answer, answer, [], {}) == (answer, "")
    empty = pl.DataFrame({"time_ns": [None]}, schema={"time_ns": pl.Int64})
    assert since_start(empty, empty, ["time_ns"], {"start_ns": 1, "end_ns": 2}) == (empty, "")
