"""A MindSpore job of two pipeline stages with two ranks each, of step tables alone, made up for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.run import Run
from stepscope.tables import COMMUNICATION_TOTALS, LINKS, RANK_FIGURES, RANKS, STEP_TOTALS, STEPS

MS = 1_000_000

INTERVALS = {0: 1, 1: 1, 2: 2, 3: 1}
"""Interval of each rank in ms, of steps that have one before them."""

COMPUTING = {0: 20, 1: 20, 2: 60, 3: 60}
RECEIVING = {0: 50, 1: 50, 2: 5, 3: 5}
COLLECTIVES = {0: 10, 1: 10, 2: 15, 3: 15}


def steps(rank: int, count: int = 3) -> pl.DataFrame:
    """Steps of 100 ms as a device states them: forward and backward are 90 ms, the tail is the rest."""
    starts = [number * 100 * MS for number in range(count)]
    forward = [start + (INTERVALS[rank] * MS if start else 0) for start in starts]
    return STEPS.frame(
        step=range(1, count + 1),
        start_ns=starts,
        end_ns=[start + 100 * MS for start in starts],
        window_start_ns=starts,
        window_end_ns=[start + 100 * MS for start in starts],
        window=["stated"] * count,
        forward_start_ns=forward,
        backward_end_ns=[start + 90 * MS for start in forward],
    )


def totals(rank: int, count: int = 3) -> pl.DataFrame:
    """What each step is made of; the first receives 1 s longer."""
    alone = [RECEIVING[rank] * MS + (1000 * MS if number == 0 else 0) for number in range(count)]
    return STEP_TOTALS.frame(
        step=range(1, count + 1),
        computing_and_free_ns=[COMPUTING[rank] * MS] * count,
        communication_not_overlapped_ns=[one + COLLECTIVES[rank] * MS for one in alone],
        stage_ns=[(COMPUTING[rank] + COLLECTIVES[rank]) * MS] * count,
        bubble_ns=alone,
        communication_not_overlapped_exclude_receive_ns=[COLLECTIVES[rank] * MS] * count,
    )


def calls(count: int = 2) -> pl.DataFrame:
    """Two operators in each step, and the totals of both; the second waits."""
    names = [None, "stream_1_0_AllReduce-op1", "stream_1_1_Receive-op2"] * count
    return COMMUNICATION_TOTALS.frame(
        step=[step for step in range(1, count + 1) for _ in range(3)],
        name=names,
        duration_ns=[5 * MS, 2 * MS, 3 * MS] * count,
        wait_ns=[7 * MS, 0, 7 * MS] * count,
    )


def links(rows: Mapping[tuple[int, int], tuple[int, int]], *, count: int = 2, named: bool = True) -> pl.DataFrame:
    """Links of a rank by their ends: bytes and ns in each step, in all and of one call."""
    of = (None, "stream_1_0_AllReduce-op1") if named else (None,)
    every = [(step, ends, moved, name) for step in range(1, count + 1) for ends, moved in rows.items() for name in of]
    return LINKS.frame(
        step=[step for step, *_ in every],
        name=[name for *_, name in every],
        source=[ends[0] for _, ends, *_ in every],
        destination=[ends[1] for _, ends, *_ in every],
        transport=["SDMA"] * len(every),
        size_bytes=[moved[0] for _, _, moved, _ in every],
        duration_ns=[moved[1] for _, _, moved, _ in every],
    )


def who(rank: int, **changes: Any) -> pl.DataFrame:
    sizes = json.dumps({"parallel_mode": "pipeline_parallel", "stage_num": 2})
    return RANKS.frame(rank=[rank], world_size=[4], **{"parallelism": [sizes], **changes})


def figures(**values: float) -> pl.DataFrame:
    return RANK_FIGURES.frame(name=list(values), value=[float(value) for value in values.values()])


def job(**more: Mapping[int, pl.DataFrame]) -> Run:
    """The job; further tables by name and rank."""
    frames = {}
    for rank in range(4):
        own = {"ranks": who(rank), "steps": steps(rank), "step_totals": totals(rank)}
        frames[rank] = {**own, **{name: of[rank] for name, of in more.items() if rank in of}}
    return Run.from_frames(frames)
