"""Communication of several recordings of one rank. Each names its calls anew, so they are described one by one."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.sources.ascend.collective_tables import described_calls
from stepscope.sources.ascend.communication_files import CALLS, LINKS, PACKETS
from stepscope.sources.ascend.exported_rank import COMMUNICATION, ExportedRank, empty
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.steps import step_at

_TOTAL = pl.col("class").str.ends_with("-total")
_FIGURES = ("size_mb", "time_ms", "bandwidth")
_NUMBER = {"collective": pl.Int64}


def renumbered(numbers: Mapping[int, int | None], column: str = "step") -> pl.Expr:
    """`column` by the numbers that all recordings share; null if unknown."""
    kind = pl.Int64 if column == "step_analysed" else pl.Int32
    return pl.col(column).replace_strict(dict(numbers), default=None, return_dtype=kind)


class MergedCalls:
    """Takes the communication of recordings in order of time.

    Args:
        ranges: All steps of the rank.
    """

    def __init__(self, ranges: pl.DataFrame) -> None:
        self._ranges = ranges
        none = described_calls(empty(COMMUNICATION), empty(CALLS), empty(PACKETS), Groups())
        self._described = [none.with_columns(pl.col("collective").cast(pl.Int64))]
        self._packets = [empty({**PACKETS, **_NUMBER})]
        self._links = [empty({**LINKS, **_NUMBER})]
        self._next = 0

    def add(self, found: ExportedRank, shift_ns: int, first_id: int, numbers: Mapping[int, int | None]) -> None:
        """Take that of one recording.

        Args:
            found: The recording.
            shift_ns: Added to its times.
            first_id: Added to its ids.
            numbers: Number of a step in the recording -> its number among all steps.
        """
        calls = described_calls(found.communication, found.calls, found.packets, found.groups)
        calls = calls.with_columns(pl.col("collective").cast(pl.Int64) + self._next)
        self._next += calls.height
        ids = calls.select("name", "collective", step=pl.col("step_analysed").cast(pl.Int64))
        ids = ids.unique(["name", "step"], keep="first", maintain_order=True)
        for parts, frame in ((self._packets, found.packets), (self._links, found.links)):
            tied = frame.join(ids, on=["name", "step"], how="left", nulls_equal=True, maintain_order="left")
            parts.append(tied.with_columns(renumbered(numbers).cast(pl.Int64)))
        times = calls["start_ns"] + shift_ns
        # calls that only the analysis has have no launch: their start gives the step
        late = step_at(times, self._ranges, inside=False).cast(pl.Int64) if self._ranges.height else None
        analysed = pl.coalesce(renumbered(numbers, "step_analysed"), pl.lit(late))
        self._described.append(
            calls.with_columns(times, renumbered(numbers), analysed, pl.col("correlation") + first_id)
        )

    def merged(self) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Calls as of `described_calls`; packets and links with the number of their call (`collective`)."""
        links = pl.concat(self._links).with_columns(collective=pl.when(~_TOTAL).then("collective"))
        nowhere = _TOTAL & pl.col("step").is_null()  # totals of several steps, of several recordings
        keys = [name for name in links.columns if name not in _FIGURES]
        sums = links.filter(nowhere).group_by(keys, maintain_order=True).agg(pl.sum("size_mb", "time_ms"))
        links = pl.concat([links.filter(~nowhere), sums], how="diagonal")
        return pl.concat(self._described, how="vertical_relaxed"), pl.concat(self._packets), links
