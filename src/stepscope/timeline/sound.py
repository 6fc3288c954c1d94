"""Rows as a timeline can show them: what has no place on it is left out, counted and said."""

from __future__ import annotations

import polars as pl

from stepscope import present
from stepscope.timeline.left_out import LeftOut
from stepscope.timeline.options import Format
from stepscope.timeline.tracks.base import Family
from stepscope.timeline.writing.base import MOST_TEXT

LONGEST_NS = 1 << 62
"""146 years: viewers fail at lengths of twice as much."""
EXACT_JSON_NS = 1 << 51
"""26 days: viewers read the microseconds of JSON as doubles, which have no nanoseconds beyond."""
_LAST_NS = (1 << 63) - 1


class Sound:
    """Makes rows sound, and counts what is wrong with them.

    Args:
        first_ns: Where the timeline begins.
        left_out: Takes what is left out.
    """

    def __init__(self, first_ns: int, left_out: LeftOut) -> None:
        self._first, self._last = first_ns, min(first_ns + LONGEST_NS, _LAST_NS)
        self._left_out = left_out
        self._backwards = self._endless = 0
        self._latest = first_ns

    def rows(self, family: Family, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of a family that have a place on the timeline; ranges with their `end_ns`, and texts no longer than
        viewers take."""
        wrong = {
            "without a time in the recording": ~pl.col("start_ns").is_between(self._first, self._last).fill_null(False)
        }
        if family.shape == "samples":
            wrong["whose value is no number"] = ~pl.col("value").is_finite()
        for why, where in wrong.items():
            sound = rows.filter(~where)
            if sound.height < rows.height:
                self._left_out.add(family.title, rows.height - sound.height, why)
                rows = sound
        return rows if family.shape == "samples" else self._ranges(rows)

    def _ranges(self, rows: pl.DataFrame) -> pl.DataFrame:
        left = self._last - pl.col("start_ns")
        length = pl.col("duration_ns")
        self._backwards += int((rows["duration_ns"] < 0).sum())
        self._endless += int(rows.select((length > left).sum()).item())
        rows = rows.with_columns(
            pl.col("name").fill_null("(no name)"),
            pl.col("category").fill_null("other"),
            # Points have no length, and `min_horizontal` ignores nulls.
            pl.when(length.is_not_null()).then(pl.min_horizontal(length.clip(lower_bound=0), left)),
        ).with_columns(end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        latest = rows.select(pl.max_horizontal(pl.col("start_ns").max(), pl.col("end_ns").max())).item()
        self._latest = max(self._latest, self._first if latest is None else latest)
        texts = [name for name, kind in rows.schema.items() if kind == pl.String and name != "track"]
        long = [name for name in texts if _longest(rows[name]) > MOST_TEXT]
        # One character more than viewers get: the writer sees that it goes on.
        return rows.with_columns(pl.col(long).str.head(MOST_TEXT + 1)) if long else rows

    def notes(self, form: Format) -> list[str]:
        """What is drawn otherwise than it was recorded, each a sentence."""
        found = []
        if self._backwards:
            ranges = present.plural(self._backwards, "range")
            found.append(f"Ends are before starts in {ranges}, which are drawn without a length.")
        if self._endless:
            ranges = present.plural(self._endless, "range")
            found.append(f"Of {ranges}, the end is not drawn: it is over 100 years after the start.")
        if form == "json" and self._latest - self._first > EXACT_JSON_NS:
            found.append(
                "It is longer than viewers can draw from JSON to the nanosecond: overlaps may be lost. Write "
                "Perfetto's format (--format perfetto)."
            )
        return found


def _longest(texts: pl.Series) -> int:
    return int(texts.str.len_bytes().max() or 0)  # type: ignore[arg-type]
