"""The communication of each step by stream, with the gaps between."""

from __future__ import annotations

import polars as pl
import pytest
from phases import STEP, US, steps

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COLLECTIVES


def reduces() -> Run:
    starts = [(100, 200, 1), (300, 400, 1), (350, 500, 1), (50, 90, 2)]
    every = [(step, *row) for step in range(2) for row in starts]
    calls = COLLECTIVES.frame(
        collective=list(range(len(every))),
        sequence=list(range(len(every))),
        operation=["all_reduce"] * len(every),
        name=[f"AllReduce-op{n % 4}" for n in range(len(every))],
        start_ns=[(row[0] * STEP + row[1] + 10 * row[0]) * US for row in every],
        duration_ns=[(row[2] - row[1]) * US for row in every],
        on_device=[True] * len(every),
        stream=[row[3] for row in every],
        step=[row[0] + 1 for row in every],
    )
    points = {"forward_start_ns": [60 * US, 1060 * US], "backward_end_ns": [700 * US, 1700 * US]}
    return Run.from_frames({0: {"steps": steps(2, window=["stated"] * 2, **points), "collectives": calls}})


def test_the_calls_of_a_stream_have_gaps_between_from_forward_to_the_end_of_the_step() -> None:
    found = reduces().analyse("step_reduces").filter(pl.col("step") == 1)

    rows = [
        (s, kind, name, start // US, ns // US)
        for s, kind, name, start, ns in found.select("stream", "segment", "name", "start_ns", "duration_ns").iter_rows()
    ]
    assert rows == [
        (1, "gap", None, 60, 40),
        (1, "call", "AllReduce-op0", 100, 100),
        (1, "gap", None, 200, 100),
        (1, "call", "AllReduce-op1", 300, 100),
        (1, "call", "AllReduce-op2", 350, 150),
        (1, "gap", None, 500, 500),
        (2, "call", "AllReduce-op3", 50, 40),
        (2, "gap", None, 90, 910),
    ]


def test_a_call_within_a_longer_one_does_not_begin_a_gap() -> None:
    run = reduces()
    tables = {name: run.rank(0).table(name).collect() for name in ("steps", "collectives")}
    longer = pl.when(pl.col("name") == "AllReduce-op1").then(400 * US).otherwise("duration_ns")

    calls = tables["collectives"].with_columns(duration_ns=longer)
    found = Run.from_frames({0: {**tables, "collectives": calls}}).analyse("step_reduces")

    gaps = found.filter((pl.col("segment") == "gap") & (pl.col("step") == 1) & (pl.col("stream") == 1))
    assert (gaps["start_ns"] // US).to_list() == [60, 200, 700]


def test_calls_are_averaged_over_steps_with_and_without_the_first() -> None:
    every = reduces().analyse("step_reduce_statistics")

    found = every.row(0, named=True)
    assert every["place"].to_list() == [0] * 4  # each is the only one of its name
    assert (found["name"], found["steps"]) == ("AllReduce-op0", 2)
    assert (found["mean_start_ns"], found["mean_start_without_first_ns"]) == (105 * US, 110 * US)


def test_names_that_each_step_has_for_itself_are_not_what_calls_are_averaged_by() -> None:
    run = reduces()
    tables = {name: run.rank(0).table(name).collect() for name in ("steps", "collectives")}
    own = tables["collectives"].with_columns(name=pl.format("hcom_{}", "collective"))

    found = Run.from_frames({0: {**tables, "collectives": own}}).analyse("step_reduce_statistics")

    assert found["name"].null_count() == found.height == 4
    assert found["place"].to_list() == [0, 1, 2, 0]


def test_calls_of_the_host_alone_are_no_reduces() -> None:
    tables = {name: reduces().rank(0).table(name).collect() for name in ("steps", "collectives")}
    host = tables["collectives"].with_columns(on_device=False)

    with pytest.raises(Unavailable, match="no device communication"):
        Run.from_frames({0: {**tables, "collectives": host}}).analyse("step_reduces")


def test_calls_have_the_same_number_in_every_step() -> None:
    found = reduces().analyse("step_reduces").filter(pl.col("segment") == "call").sort("call", "step")

    assert found.select("call", "step", "name").rows() == [
        (number, step, name)
        for number, name in enumerate(("AllReduce-op3", "AllReduce-op0", "AllReduce-op1", "AllReduce-op2"))
        for step in (1, 2)
    ]
    assert found["collective"].to_list() == [3, 7, 0, 4, 1, 5, 2, 6]


def test_calls_of_the_host_are_laid_out_on_request() -> None:
    run = reduces()
    tables = {name: run.rank(0).table(name).collect() for name in ("steps", "collectives")}
    host = tables["collectives"].with_columns(on_device=False, stream=pl.lit(None, pl.Int64))
    run = Run.from_frames({0: {**tables, "collectives": host}})

    found = run.analyse("step_reduces", on_host=True)

    assert found.filter(pl.col("segment") == "call").height == 8
    with pytest.raises(Unavailable, match="no device communication"):
        run.analyse("step_reduces")
