"""Blocks that loader workers hand over belong to no allocator: they have a curve and a peak of their own."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.run import Run, open_run
from stepscope.sources.kineto.memory import Outside
from tests.sources.test_kineto import Trace

SHARED = "shared memory"

EVENTS = [
    # time, address, change, in use, reserved, as PyTorch writes them
    (10, 1, 400, 400, 0),
    (11, 90, 64, 0, 64),  # a batch arrives in shared memory
    (12, 2, 200, 600, 0),
    (13, 91, 32, 0, 32),
    (14, 90, -64, 0, 0),
    (15, 2, -200, 400, 0),
    (16, 92, -128, 0, 0),  # one that arrived before the recording
    (17, 1, -400, 0, 0),  # the allocator's last block: it does hold nothing now
    (18, 3, 50, 50, 0),
]
OWN = [400, 600, 400, 0, 50]


def recorded(directory: Path) -> Run:
    trace = Trace().add("user_annotation", "ProfilerStep#1", 0, 100).add("cpu_op", "aten::empty", 5, 90)
    for time, address, change, total, reserved in EVENTS:
        args = {"Addr": address, "Bytes": change, "Total Allocated": total, "Total Reserved": reserved}
        args |= {"Device Type": 0, "Device Id": -1}
        place = {"ph": "i", "cat": "cpu_instant_event", "pid": 9, "tid": 1, "ts": time}
        trace.events.append({**place, "name": "[memory]", "args": args})
    trace.read(directory)
    return open_run([directory])


def test_shared_memory_does_not_pull_the_curve_to_zero(tmp_path: Path) -> None:
    usage = recorded(tmp_path).analyse("memory_usage")

    assert usage.filter(pl.col("component").is_null())["allocated_bytes"].to_list() == OWN
    shared = usage.filter(pl.col("component") == SHARED)
    assert shared["allocated_bytes"].to_list() == [64, 96, 32, 32]  # of the last one nothing was known
    assert shared["reserved_bytes"].to_list() == [None] * 4


def test_what_is_alive_at_the_peak_is_the_peak(tmp_path: Path) -> None:
    run = recorded(tmp_path)

    peaks = dict(run.analyse("memory_peak").select("component", "peak_bytes").iter_rows())
    alive = run.analyse("memory_breakdown").group_by("component").agg(pl.col("size_bytes").sum())

    assert peaks == dict(alive.iter_rows()) == {None: 600, SHARED: 96}


def test_a_block_of_an_operator_in_use_throughout_keeps_its_place(tmp_path: Path) -> None:
    blocks = recorded(tmp_path).analyse("memory_breakdown").filter(pl.col("component").is_null())

    assert blocks["size_bytes"].to_list() == [400, 200]
    assert blocks["share_ratio"].sum() == pytest.approx(1)


@pytest.mark.parametrize("cut", range(len(EVENTS) + 1))
def test_parts_of_a_recording_are_told_apart_like_the_whole(cut: int) -> None:
    names = ("start_ns", "address", "change_bytes", "allocated_bytes", "reserved_bytes")
    events = pl.DataFrame(EVENTS, schema=dict.fromkeys(names, pl.Int64), orient="row")
    events = events.with_columns(device=pl.lit(None, pl.Int32))
    outside = Outside()

    parts = [outside.with_component(part) for part in (events[:cut], events[cut:])]

    assert pl.concat(parts).equals(Outside().with_component(events))
