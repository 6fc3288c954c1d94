"""What a timeline shows, and what came of writing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from stepscope.selection import Choice

Kind = Literal["summary", "detail"]
Format = Literal["perfetto", "json"]

KINDS: tuple[Kind, ...] = ("summary", "detail")
FORMATS: tuple[Format, ...] = ("perfetto", "json")


MOST_EXPLAINED = 1_000_000
"""Rows of device and host work whose analyses are drawn unasked, chosen by us: of more, they take longest of all."""


@dataclass(frozen=True)
class TimelineOptions:
    """What a timeline shows. Ranks and steps are those of the run (`Run.select`).

    Args:
        kind: `summary` has steps, their phases and the overlap analysis; `detail` has all that was recorded.
        graphs: Only the steps of these graphs (models), as `steps.graph` numbers them (`1,3-4`, or
            numbers); None for all.
        merge_graphs: Iterations of all graphs on one track, named `Model k Iteration n`; False for a track a graph.
        scope_names: Also draw the scopes in the names of operators, a track a level.
        limit_bytes: Maximum size of the file. Steps, communication and the longest ranges are kept first, and what was
            left out is reported; None for all.
        align: Correct the clocks of ranks by the ends of their calls.
        explain: Also draw what analyses say: idle time by cause, the critical path, findings. None: unless there are
            more than `MOST_EXPLAINED` rows.
        window_ns: Only what overlaps this time: its first and last moment on the clock of the run (ns since the epoch,
            where the recording has that), corrected if `align` corrects it; None for no bound.
    """

    kind: Kind = "detail"
    graphs: Choice = None
    merge_graphs: bool = True
    scope_names: bool = False
    limit_bytes: int | None = None
    align: bool = True
    explain: bool | None = None
    window_ns: tuple[int | None, int | None] | None = None


@dataclass
class Written:
    """A timeline that was written.

    Args:
        file: The file.
        format: Its format.
        size_bytes: Its size.
        base_ns: The moment that the file counts from, on the clock of the run.
        events: Ranges, points and samples in the file, by rank, track family and category.
        tracks: Tracks of the file, without those that only hold others.
        offsets_ns: What was subtracted from the times of a rank, if anything.
        left_out: What is not in the file, by subject, and why.
        notes: What a user should know of it otherwise, each a sentence.
    """

    file: Path
    format: Format
    size_bytes: int = 0
    base_ns: int = 0
    events: dict[tuple[int, str, str], int] = field(default_factory=dict)
    tracks: int = 0
    offsets_ns: dict[int, int] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def total_events(self) -> int:
        """All events."""
        return sum(self.events.values())

    def of_rank(self, rank: int) -> dict[str, int]:
        """Events of a rank by category."""
        found: dict[str, int] = {}
        for (of, _, category), count in self.events.items():
            if of == rank:
                found[category] = found.get(category, 0) + count
        return found
