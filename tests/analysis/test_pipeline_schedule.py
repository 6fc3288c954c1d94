"""How many micro-batches and model chunks transfers show, and where they leave it open."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope import Run
from stepscope.tables import COLLECTIVES, GROUPS, RANKS, SLICES, STEPS

APART = 1000
"""Between two passes, in ns."""


def interleaved(stages: int, micro_batches: int, chunks: int, *, marked: bool = False) -> Run:
    """A step in which all micro-batches go forward through all chunks, and then back."""
    last = stages * chunks - 1
    calls: dict[int, list[tuple[int, str, int]]] = {rank: [] for rank in range(stages)}
    passes: dict[int, list[tuple[int, str]]] = {rank: [] for rank in range(stages)}
    end = (micro_batches + last + 1) * APART
    for batch in range(micro_batches):
        for place in range(last + 1):
            rank, forward, backward = place % stages, (batch + place) * APART, end + (batch + last - place) * APART
            turn = 20 * place  # chunks of a rank may be at work at once: their passes are apart
            passes[rank] += [(forward + turn, "forward"), (backward + turn, "backward")]
            after = (rank + 1) % stages
            if place < last:
                calls[rank].append((forward + 500 + place, "send", after))
                calls[after].append((forward + 500 + place, "recv", rank))
                calls[after].append((end + (batch + last - place - 1) * APART + 500 + place, "send", rank))
                calls[rank].append((end + (batch + last - place - 1) * APART + 500 + place, "recv", after))
    frames = {}
    for rank, rows in calls.items():
        rows.sort()
        window = {"start_ns": [0], "end_ns": [2 * end], "window_start_ns": [0], "window_end_ns": [2 * end]}
        frames[rank] = {
            "ranks": RANKS.frame(rank=[rank], world_size=[stages], parallelism=[f'{{"pp": {stages}}}']),
            "groups": GROUPS.frame(group=["pp"], name=["pp"], members=[list(range(stages))]),
            "steps": STEPS.frame(step=[0], window=["device"], **window),
            "collectives": COLLECTIVES.frame(
                collective=range(len(rows)),
                group=["pp"] * len(rows),
                sequence=range(len(rows)),
                operation=[way for _, way, _ in rows],
                name=[way for _, way, _ in rows],
                peer=[peer for *_, peer in rows],
                start_ns=[at for at, *_ in rows],
                duration_ns=[10] * len(rows),
                on_device=[True] * len(rows),
                step=[0] * len(rows),
            ),
        }
        if marked:
            marks = sorted(passes[rank])
            frames[rank]["slices"] = SLICES.frame(
                slice=range(len(marks)),
                start_ns=[at for at, _ in marks],
                duration_ns=[10] * len(marks),
                category=["annotation"] * len(marks),
                name=[name for _, name in marks],
            )
    return Run.from_frames(frames)


def known(run: Run) -> tuple[int | None, int | None, int | None, str | None]:
    schedule: pl.DataFrame = run.analyse("pipeline_schedule")
    count, chunks, most, by = schedule.select(
        "micro_batches", "model_chunks", "most_micro_batches", "micro_batches_by"
    ).row(0)
    return count, chunks, most, by


@pytest.mark.parametrize("stages", [3, 4])
@pytest.mark.parametrize(("micro_batches", "chunks"), [(6, 1), (4, 2), (3, 3)])
def test_transfers_around_the_pipeline_show_the_chunks(stages: int, micro_batches: int, chunks: int) -> None:
    assert known(interleaved(stages, micro_batches, chunks)) == (micro_batches, chunks, None, "transfers")


@pytest.mark.parametrize(("micro_batches", "chunks", "most"), [(4, 2, 12), (12, 1, 12), (4, 3, 20)])
def test_two_stages_leave_micro_batches_and_chunks_open(micro_batches: int, chunks: int, most: int) -> None:
    run = interleaved(2, micro_batches, chunks)

    assert known(run) == (None, None, most, None)
    assert run.analyse("pipeline_schedule")["ideal_ratio"].to_list() == [None]


def test_transfers_that_no_chunks_can_make_are_of_one_chunk() -> None:
    assert known(interleaved(2, 8, 1)) == (8, 1, None, "transfers")


@pytest.mark.parametrize(("micro_batches", "chunks"), [(4, 2), (12, 1)])
def test_marked_passes_tell_micro_batches_of_two_stages(micro_batches: int, chunks: int) -> None:
    assert known(interleaved(2, micro_batches, chunks, marked=True)) == (micro_batches, chunks, None, "marks")
