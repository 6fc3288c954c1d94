"""Why a job hangs: which rank is missing in which call, and who waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stepscope.pages.base import Page, Section
from stepscope.selection import named_numbers

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_HANGS = "In all groups, the calls of these dumps are finished, or under way: no rank is known to wait for another."
_GLOO = (
    "Members of some groups were not recorded (gloo records none): a rank without any call of such a group in its dump "
    "cannot be missed in it, and point-to-point calls are not recorded."
)
_HIDDEN = ("group", "backend", "is_point_to_point", "members_known", "timeout_ns")
"""Columns for programs."""


def _sentences(found: pl.DataFrame) -> Iterable[str]:
    if found.is_empty():
        yield _HANGS


def _notes(run: Run, found: pl.DataFrame) -> Iterable[str]:  # noqa: ARG001 - one signature for all
    if not run.has("groups"):
        yield _GLOO
    known = {rank.rank for rank in run.ranks if rank.has("recorded_calls")}
    every = range(max(run.world_size or 0, max(known, default=-1) + 1))
    if silent := sorted({*every, *(rank.rank for rank in run.ranks)} - known):
        yield f"There is no dump with calls of {named_numbers('rank', silent)}: what they did is unknown."


PAGE = Page(
    "hangs",
    "Show why a job hangs: which ranks are missing in which call, who waits for them, since when and where.",
    [
        Section("hangs", "Calls that hang, causes first", sentences=_sentences, notes=_notes, hidden=_HIDDEN),
        Section(
            "unfinished_calls",
            "What each rank does about the unfinished calls",
            hidden=(*_HIDDEN, "stack", "written_ns", "own_is_done", "next_is_done"),
        ),
        Section(
            "recorded_positions",
            "Calls of each rank by group",
            hidden=("group", "last_record", "last_stack", "first_created_ns"),
        ),
    ],
    more="Needs dumps of PyTorch's flight recorder (`nccl_trace_rank_*`, or JSON), at best of all ranks: set "
    "TORCH_FR_BUFFER_SIZE=2000 before the job starts. The call stacks are in «`--table unfinished_calls --json`».",
    scope="job",
    table="recorded_calls",
)
